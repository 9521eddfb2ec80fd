"""Fetch the tool list of a server: all pages, each tool validated, renamed for every vendor, and pinned.

An invalid entry is left out, so that it does not invalidate the others. A tool is named `server__tool`; a name that had
to be changed gets a hash of the original, so that two tools never share a name. The first definition of a tool is
accepted, unless the configuration pins another. From then on a changed definition is blocked until an operator accepts
it, also after a restart of the server. Accepted definitions are kept until the process exits.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from dragoman.mcp.sdk import (
    MODERN_PROTOCOL_VERSIONS,
    Client,
    MCPError,
    SessionMessage,
    ValidationError,
    find_invalid_x_mcp_header,
    types,
    validate_server_result,
)
from dragoman.mcp.settings import ToolServer
from dragoman.tools.handler import qualify_name

MAX_TOOL_NAME = 64
_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")
_HASH_LENGTH = 8
_METHOD = "tools/list"
_MAX_NAME = 128
_MAX_REJECTED = 200
"""The maximum number of rejected tools to remember; a real tool list has fewer."""
_LIST_RESULT_FIELDS: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""The fields of a list result other than its tools, in the revision that requires them."""
_MAX_PAGES = 200
_MAX_TOOLS = 2000
_PIN_HASH_LENGTH = 32
_MAX_PINNED = 10_000
"""The maximum number of pinned names per server; a server with more would exhaust memory."""
_DEFINITION_FIELDS = {"name", "title", "description", "input_schema", "output_schema", "annotations"}


def describe_error(error: BaseException, settings: ToolServer) -> str:
    """Return what went wrong, in terms of the configuration."""
    match error:
        case BaseExceptionGroup():
            return describe_error(error.exceptions[0], settings)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        case TimeoutError():
            return f"no answer within {settings.connect:g} seconds (`connect`)"
        case OSError() if settings.command and not isinstance(error, ConnectionError):
            place = settings.cwd or "a temporary directory"
            return f"{settings.command!r} cannot be run in {place}: {error.strerror or error}"
        case ValidationError():
            return f"its answer is not valid MCP: {describe_validation_error(error)}"
        case MCPError(code=types.CONNECTION_CLOSED):
            return "the process exited before it answered" if settings.command else "the connection was closed"
        case _:
            return f"{error}" or type(error).__name__


def describe_validation_error(error: ValidationError, skip: tuple[str | int, ...] = ()) -> str:
    """Return the first validation error and its location, relative to `skip`."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"][len(skip) if first["loc"][: len(skip)] == skip else 0 :]))
    return f"{first['msg']} at {place}" if place else first["msg"]


class ToolFilter:
    """Removes invalid tools from the list results of one connection."""

    def __init__(self) -> None:
        self.version = ""
        """The protocol revision in use; until it is known, messages are not checked."""
        self.rejected: dict[str, str] = {}
        """The reason for each rejected tool, by its name."""

    def filter_message(self, message: Any) -> None:
        """Remove invalid tools from a `tools/list` result, in place."""
        if not self.version or not isinstance(message, SessionMessage):
            return
        answer = message.message
        # No other result in the protocol has a field with this name.
        if isinstance(answer, types.JSONRPCResponse) and isinstance(answer.result.get("tools"), list):
            tools = cast("list[Any]", answer.result["tools"])
            answer.result["tools"] = [tool for at, tool in enumerate(tools) if self._is_valid_tool(tool, at)]

    def _is_valid_tool(self, tool: Any, at: int) -> bool:
        reason = self._find_objection(tool)
        if reason and len(self.rejected) < _MAX_REJECTED:
            members = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
            name = members.get("name")
            self.rejected[name[:_MAX_NAME] if isinstance(name, str) else f"[{at}]"] = reason
        return not reason

    def _find_objection(self, tool: Any) -> str:
        try:
            validate_server_result(_METHOD, self.version, {**_LIST_RESULT_FIELDS, "tools": [tool]})
            types.Tool.model_validate(tool, by_name=False)
        except ValidationError as error:
            return f"its definition is not valid MCP: {describe_validation_error(error, skip=('tools', 0))}"
        except RecursionError:
            return "its definition is nested too deeply"
        if self.version in MODERN_PROTOCOL_VERSIONS and (odd := find_invalid_x_mcp_header(tool["inputSchema"])):
            return f"its x-mcp-header cannot be sent: {odd}"
        return ""


class ToolList(Struct, frozen=True):
    """The tools that a server offers."""

    tools: list[types.Tool]
    rejected: dict[str, str]
    """Listed entries that are not valid tools, each with the reason."""


async def list_all_tools(client: Client, tool_filter: ToolFilter) -> ToolList:
    """Fetch all pages of the tool list, up to the limits on pages and tools."""
    tool_filter.version, tool_filter.rejected = client.protocol_version, {}
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND and cursor is None:
                return ToolList([], {})  # a server may offer only prompts or resources
            raise
        tools += page.tools
        cursor = page.next_cursor
        if not cursor or len(tools) >= _MAX_TOOLS:
            break
    return ToolList(tools[:_MAX_TOOLS], tool_filter.rejected)


def make_tool_name(server: str, tool: str) -> str:
    """Return the name that models use to call a tool."""
    whole = qualify_name(server, tool)
    plain = _INVALID_CHARACTERS.sub("_", whole)
    if plain == whole and len(whole) <= MAX_TOOL_NAME:
        return whole
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    return f"{plain[: MAX_TOOL_NAME - _HASH_LENGTH - 1]}_{mark}"


def fingerprint_tool(tool: types.Tool) -> str:
    """Return a hash of the parts of a definition that say what a tool does and how it is called."""
    definition = tool.model_dump(by_alias=True, mode="json", exclude_none=True, include=_DEFINITION_FIELDS)
    return hashlib.sha256(msgspec.json.encode(definition, order="deterministic")).hexdigest()[:_PIN_HASH_LENGTH]


class Pins:
    """The accepted definitions of one server's tools."""

    def __init__(self, pinned: Mapping[str, str]) -> None:
        self._accepted = dict(pinned)

    def get_accepted(self, tool: str) -> str:
        """Return the accepted hash, or "" if there is none."""
        return self._accepted.get(tool, "")

    def admit(self, tool: str, found: str) -> bool:
        """Check whether a definition is accepted; the first definition of a tool is accepted and remembered."""
        if tool not in self._accepted and len(self._accepted) < _MAX_PINNED:
            self._accepted[tool] = found
        return self._accepted.get(tool) == found

    def accept(self, tool: str, found: str) -> None:
        """Accept this definition, and only this one, from now on."""
        self._accepted[tool] = found
