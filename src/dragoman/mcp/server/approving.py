"""Somebody's word for a call that needs it: the host is asked to ask its user. Only a clear yes is one."""

from typing import Any

from mcp.types import ElicitRequest, ElicitRequestFormParams
from pydantic import BaseModel, Field

from dragoman.agent import ApprovalAsked
from dragoman.mcp.server.asking import compact

WAIT = 300.0
"""Seconds in which the user has to answer."""


class Approval(BaseModel):
    """What the user is asked."""

    approve: bool = Field(default=False, description="Run it?")


def words_of(asked: ApprovalAsked) -> str:
    """Return what the user is asked about a call."""
    return f"{asked.call.name}({compact(asked.call.arguments, 500)}): {asked.reason}."


def form_of(asked: ApprovalAsked) -> dict[str, Any]:
    """Return the same as a task asks it."""
    params = ElicitRequestFormParams(message=words_of(asked), requested_schema=Approval.model_json_schema())
    return ElicitRequest(params=params).model_dump(by_alias=True, mode="json", exclude_none=True)


def is_approved(said: Any) -> bool:
    """Tell whether what was said to such a form is a yes."""
    match said:
        case {"action": "accept", "content": {"approve": True}}:
            return True
        case _:
            return False
