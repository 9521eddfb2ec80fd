"""Somebody's word for a call that needs it: the host is asked to ask its user.

Rules: a task asks by its status, and a host of the older era that waits for its call is asked in the middle of it, if
it can ask its user. Everybody else cannot be asked, and the model is told so. Only a clear yes is one.
"""

from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequest, ElicitRequestFormParams
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from dragoman.agent import ApprovalAsked
from dragoman.mcp.server.asking import compact
from dragoman.mcp.server.job import current_job

WAIT = 300.0
"""Seconds in which the user has to answer."""


class Approval(BaseModel):
    """What the user is asked."""

    approve: bool = Field(default=False, description="Run it?")


class Approver:
    """Asks the user of one call's host."""

    def __init__(self, ctx: Context[Any, Any]) -> None:
        self._ctx = ctx
        capabilities = ctx.client_capabilities
        knows = capabilities is not None and capabilities.elicitation is not None
        job = current_job()
        self._job = job if knows and job is not None and job.begun.is_set() else None
        older = ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and ctx.request_context.request is None
        self.seconds = WAIT if knows and (self._job is not None or older) else 0.0
        """How long the user is waited for; 0 where nobody can be asked."""

    async def ask(self, asked: ApprovalAsked) -> bool:
        """Return whether the user says yes."""
        call = asked.call
        words = f"{call.name}({compact(call.arguments, 500)}): {asked.reason}."
        if self._job is None:
            try:
                answer = await self._ctx.elicit(words, Approval)
            except MCPError:
                return False
            return answer.action == "accept" and answer.data.approve
        params = ElicitRequestFormParams(message=words, requested_schema=Approval.model_json_schema())
        request = ElicitRequest(params=params).model_dump(by_alias=True, mode="json", exclude_none=True)
        said = (await self._job.ask({asked.topic: request}))[asked.topic]
        match said:
            case {"action": "accept", "content": {"approve": True}}:
                return True
            case _:
                return False
