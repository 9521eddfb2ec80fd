"""What stands in a list of tools and is none: left out one by one, so that it does not take its whole server away.

The SDK takes a list whole or not at all. So each answer is looked at on its way there, and of a list of tools only what
is of the spoken revision goes on; what was left out is remembered with the reason.
"""

from typing import Any, cast

from dragoman.mcp.client.reasons import misfit
from dragoman.mcp.sdk import (
    MODERN_PROTOCOL_VERSIONS,
    SessionMessage,
    ValidationError,
    find_invalid_x_mcp_header,
    types,
    validate_server_result,
)

_METHOD = "tools/list"
_LONGEST_NAME = 128
_MOST = 200
"""Tools left out that are remembered: more is no list of tools."""
_REST: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What a list has beside its tools, in the revision that wants it."""


class Sieve:
    """Looks through the answers of one connection."""

    def __init__(self) -> None:
        self.version = ""
        """The revision that is spoken; nothing is looked at before that is known."""
        self.left_out: dict[str, str] = {}
        """Why each was left out, by its name."""

    def look_at(self, message: Any) -> None:
        """Take out of a list what is no tool."""
        if not self.version or not isinstance(message, SessionMessage):
            return
        answer = message.message
        # No other result of the protocol has a member of this name.
        if isinstance(answer, types.JSONRPCResponse) and isinstance(answer.result.get("tools"), list):
            tools = cast("list[Any]", answer.result["tools"])
            answer.result["tools"] = [tool for at, tool in enumerate(tools) if self._is_tool(tool, at)]

    def _is_tool(self, tool: Any, at: int) -> bool:
        reason = self._objection(tool)
        if reason and len(self.left_out) < _MOST:
            members = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
            name = members.get("name")
            self.left_out[name[:_LONGEST_NAME] if isinstance(name, str) else f"[{at}]"] = reason
        return not reason

    def _objection(self, tool: Any) -> str:
        try:
            validate_server_result(_METHOD, self.version, {**_REST, "tools": [tool]})
            types.Tool.model_validate(tool, by_name=False)
        except ValidationError as error:
            return f"its definition is not of this protocol: {misfit(error, skip=('tools', 0))}"
        except RecursionError:
            return "its definition is nested too deeply"
        if self.version in MODERN_PROTOCOL_VERSIONS and (odd := find_invalid_x_mcp_header(tool["inputSchema"])):
            return f"its x-mcp-header cannot be sent: {odd}"
        return ""
