"""Tools of MCP servers, as Responses asks for them and tells of them: `mcp` tools, `mcp_list_tools`, `mcp_call`.

A call and its result are one item. Whoever sends it back sends both. A call that needs the client's word is asked for
by one item and answered by another; the call that was run then names the first.
"""

from collections.abc import Container, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.core.parts import AnyPart, Content, Data, Executor, Opaque, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Request, Tool, ToolChoice
from dragoman.core.value import Extras
from dragoman.dialects.record import APPROVED, DENIED, RemoteToolFormat, RequestedServer
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json

_NAME_SEPARATOR = "__"
_PROGRESS_MARK = b'"mcp_'


class _Filter(Struct):
    """Some tools of a server."""

    tool_names: frozenset[str] | None = None


class _Approval(Struct):
    """Which tools need somebody's word."""

    never: _Filter | None = None


class _McpTool(Struct):
    """A server's tools, as far as it matters which: where it stands is ours to know."""

    server_label: str
    allowed_tools: frozenset[str] | _Filter | None = None
    require_approval: str | _Approval | None = None

    @property
    def tool_filter(self) -> frozenset[str] | None:
        allowed = self.allowed_tools
        return allowed.tool_names if isinstance(allowed, _Filter) else allowed

    @property
    def approval_free(self) -> frozenset[str] | None:
        """Return the tools that need no approval: none, unless the client says so."""
        approval = self.require_approval
        if approval == "never":
            return None
        never = approval.never if isinstance(approval, _Approval) else None
        return (never.tool_names if never is not None else None) or frozenset()


def take_servers(request: Request, known_servers: Container[str]) -> tuple[Request, tuple[RequestedServer, ...]]:
    """Take the `mcp` tools of known servers out of a request."""
    servers: list[RequestedServer] = []
    others: list[Tool | NativeTool] = []
    for tool in request.tools:
        mcp = _decode_mcp_tool(tool) if isinstance(tool, NativeTool) and tool.dialect == NAME else None
        if mcp is None or mcp.server_label not in known_servers:
            others.append(tool)
        else:
            servers.append(
                RequestedServer(
                    name=mcp.server_label,
                    where=tool.where,
                    allowed_tools=mcp.tool_filter,
                    approval_free=mcp.approval_free,
                )
            )
    if not servers:
        return request, ()
    choice = _adapt_choice(request.tool_choice, frozenset(server.name for server in servers))
    return structs.replace(request, tools=tuple(others), tool_choice=choice), tuple(servers)


class _Choice(Struct):
    """A tool of a server that must, or may, be called."""

    type: str = ""
    server_label: str = ""
    name: str | None = None


def _adapt_choice(choice: ToolChoice | None, known_servers: frozenset[str]) -> ToolChoice | None:
    """Let a choice among the tools of servers be one among tools that the model is told of by their names."""
    fields = choice.extras.fields if choice is not None and choice.extras is not None else {}
    read = ((place, _decode_choice(raw)) for place, raw in fields.items())
    found = {place: one for place, one in read if one.type == "mcp" and one.server_label in known_servers}
    if choice is None or not found:
        return choice
    names = tuple(one.server_label + _NAME_SEPARATOR + one.name for one in found.values() if one.name)
    left = {place: raw for place, raw in fields.items() if place not in found}
    extras = Extras(NAME, left) if left else None
    # A server alone means all of its tools, which are not known here: no other is kept out for it.
    whole = len(names) < len(found)
    return ToolChoice(
        mode=choice.mode or "required",
        names=() if whole else (*choice.names, *names),
        listed=choice.listed and not whole,
        parallel=choice.parallel,
        where=choice.where,
        spelling="" if whole else choice.spelling,
        extras=extras,
    )


def _decode_choice(raw: bytes) -> _Choice:
    try:
        return msgspec.json.decode(raw, type=_Choice)
    except msgspec.ValidationError:
        return _Choice()  # no choice of a server's tool


def _decode_mcp_tool(tool: NativeTool) -> _McpTool | None:
    if json.decode(tool.raw).get("type") != "mcp":
        return None
    try:
        return msgspec.json.decode(tool.raw, type=_McpTool)
    except msgspec.ValidationError as error:
        raise Problem("invalid_request", f"the MCP server cannot be read: {error}", where=tool.where) from None


def render_tool_list(server: str, tools: Iterable[Tool], request: Request, error: str) -> tuple[bytes, ...]:
    """Say which tools a server has, unless the history says so already, or why nobody knows."""
    parts = (part for message in request.messages for part in message.parts if isinstance(part, Opaque))
    if not error and any(_is_tool_list(part, server) for part in parts):
        return ()
    listed = [
        {
            "name": tool.name,
            "description": tool.description or None,
            "input_schema": Raw(tool.parameters or b'{"type":"object","properties":{}}'),
            "annotations": None,
        }
        for tool in tools
    ]
    item = {"type": "mcp_list_tools", "id": f"mcpl_{server}", "server_label": server, "tools": listed}
    return (json.encode({**item, "error": error or None}),)


def _is_tool_list(part: Opaque, server: str) -> bool:
    if part.dialect != NAME:
        return False
    match json.decode(part.raw):
        case {"type": "mcp_list_tools", "server_label": label, **rest}:
            return label == server and not rest.get("error")
        case _:
            return False


def render_call(server: str, call: ToolCall, result: ToolResult, approval_id: str) -> tuple[bytes, ...]:
    """Say a call and its result as one item."""
    words = _content_to_text(result.content)
    item = {
        "type": "mcp_call",
        "id": call.id,
        "server_label": server,
        "name": call.name,
        "arguments": call.arguments,
        "status": "failed" if result.failed else "completed",
        "approval_request_id": approval_id or None,
        "output": None if result.failed else words,
        "error": _render_execution_error(words) if result.failed else None,
    }
    return (json.encode(item),)


def _render_execution_error(words: str) -> dict[str, Any]:
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": words}]}


def _content_to_text(content: Iterable[Content]) -> str:
    said: list[str] = []
    for part in content:
        match part:
            case Text(text=text):
                said.append(text)
            case Data(json=raw):
                said.append(raw.decode())
            case _:
                said.append(f"[{getattr(part, 'kind', 'something')} that cannot be told here]")
    return "\n".join(said)


def render_approval_request(server: str, call: ToolCall) -> tuple[bytes, ...]:
    """Ask whether a call may be run."""
    item = {
        "type": "mcp_approval_request",
        "id": call.id,
        "server_label": server,
        "name": call.name,
        "arguments": call.arguments,
    }
    return (json.encode(item),)


def restore_calls(messages: Iterable[Message], known_servers: Container[str]) -> tuple[Message, ...]:
    """Make calls and results of what a history tells of known servers."""
    history = _History(known_servers)
    whole = tuple(messages)
    history.index(whole)
    found: list[Message] = []
    for message in whole:
        parts = tuple(part for one in message.parts for part in history.restore_part(one))
        if parts == message.parts:
            found.append(message)
        elif parts:
            found.append(Message(role=message.role, parts=parts))
    return tuple(found)


class _PastItem(Struct):
    """An item that tells of a server's tool."""

    type: str = ""
    id: str = ""
    server_label: str = ""
    name: str = ""
    arguments: str = "{}"
    output: str | None = None
    error: Any = None
    approval_request_id: str | None = None
    approve: bool = False
    reason: str | None = None

    def to_call(self, executor: Executor) -> ToolCall:
        name = self.server_label + _NAME_SEPARATOR + self.name
        return ToolCall(id=self.id, name=name, arguments=self.arguments or "{}", executor=executor)

    def to_result(self, call_id: str, executor: Executor) -> ToolResult:
        error = _read_error_text(self.error)
        content = (Text(text=error if self.output is None else self.output),)
        return ToolResult(call_id=call_id, content=content, failed=self.error is not None, executor=executor)


def _read_error_text(error: Any) -> str:
    """Return what an error says: its text, in OpenAI's form of it, or all of it."""
    match error:
        case str():
            return error
        case {"content": [{"text": str(words)}]} | {"message": str(words)}:
            return words
        case _:
            return json.encode(error).decode()


class _History:
    """What a history tells of known servers."""

    def __init__(self, known_servers: Container[str]) -> None:
        self._known_servers = known_servers
        self._requested: set[str] = set()
        """Calls that were asked for."""
        self._calls_by_approval: dict[str, _PastItem] = {}
        """What came of those that were run."""
        self._foreign_requests: set[str] = set()
        """Calls that the vendor asked for, to servers of its own."""
        self._references = b""
        """Items that the vendor keeps: one may be such a call."""

    def index(self, messages: Iterable[Message]) -> None:
        """Find out what was asked for, and what was run then."""
        for part in (part for message in messages for part in message.parts):
            past = _decode_past_item(part)
            if isinstance(part, Opaque) and part.refers:
                self._references += part.raw
            if past is None:
                continue
            is_ours = past.server_label in self._known_servers
            if past.type == "mcp_approval_request":
                (self._requested if is_ours else self._foreign_requests).add(past.id)
            elif not is_ours:
                continue
            elif past.type == "mcp_call" and past.approval_request_id:
                self._calls_by_approval[past.approval_request_id] = past

    def restore_part(self, part: AnyPart) -> tuple[AnyPart, ...]:
        """Return what a part says in our own words."""
        past = _decode_past_item(part)
        if past is None:
            return (part,)
        if past.type == "mcp_approval_response":
            return (self._build_approval_result(past),) if self._is_own_approval(past, part) else (part,)
        if past.server_label not in self._known_servers:
            return (part,)
        match past.type:
            case "mcp_list_tools":
                return ()
            case "mcp_approval_request":
                return (past.to_call("client"),)
            case "mcp_call" if past.approval_request_id in self._requested:
                return ()  # the word on it has its result
            case "mcp_call":
                return past.to_call("provider"), past.to_result(past.id, "provider")
            case _:
                return (part,)

    def _is_own_approval(self, past: _PastItem, part: AnyPart) -> bool:
        """Tell whether a call of ours waits for this word; a `Problem` if nothing waits for it."""
        asked = past.approval_request_id or ""
        if asked in self._requested:
            return True
        if asked in self._foreign_requests or (asked and asked.encode() in self._references):
            return False
        words = f"no mcp_approval_request {asked!r} stands before this answer to it"
        raise Problem("invalid_request", words, where=f"{part.where}/approval_request_id")

    def _build_approval_result(self, past: _PastItem) -> ToolResult:
        asked = past.approval_request_id or ""
        run = self._calls_by_approval.get(asked)
        if run is not None:
            return run.to_result(asked, "client")
        content = (Text(text=past.reason),) if past.reason else ()
        return ToolResult(call_id=asked, content=content, spelling=APPROVED if past.approve else DENIED)


def _decode_past_item(part: AnyPart) -> _PastItem | None:
    if not isinstance(part, Opaque) or part.dialect != NAME or b'"mcp_' not in part.raw:
        return None
    try:
        return msgspec.json.decode(part.raw, type=_PastItem)
    except msgspec.ValidationError:
        return None  # not as anybody writes it: the vendor may know


def render_progress_events(raw: bytes, index: int) -> tuple[bytes, list[tuple[str, bytes]]]:
    """Return an item that comes whole as it begins, and the events until it ends: their names and members."""
    members = json.decode_object(raw) if _PROGRESS_MARK in raw else {}
    kind = json.decode(members["type"]) if "type" in members else ""
    place = b',"item_id":%b,"output_index":%d' % (bytes(members.get("id", b'""')), index)
    match kind:
        case "mcp_call":
            arguments = bytes(members.get("arguments", b'""'))
            begun = {**members, "status": Raw(b'"in_progress"'), "output": Raw(b"null"), "error": Raw(b"null")}
            return json.one_line(json.encode(begun)), [
                ("response.mcp_call.in_progress", place),
                ("response.mcp_call_arguments.delta", place + b',"delta":' + arguments),
                ("response.mcp_call_arguments.done", place + b',"arguments":' + arguments),
                (f"response.mcp_call.{_find_outcome_suffix(members)}", place),
            ]
        case "mcp_list_tools":
            begun = {**members, "tools": Raw(b"[]"), "error": Raw(b"null")}
            return json.one_line(json.encode(begun)), [
                ("response.mcp_list_tools.in_progress", place),
                (f"response.mcp_list_tools.{_find_outcome_suffix(members)}", place),
            ]
        case _:
            return raw, []


def _find_outcome_suffix(members: Mapping[str, Raw]) -> str:
    return "completed" if bytes(members.get("error", b"null")) == b"null" else "failed"


REMOTE = RemoteToolFormat(
    b'"mcp"', take_servers, render_tool_list, render_call, render_approval_request, restore_calls, "mcp_"
)
