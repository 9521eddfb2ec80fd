"""Parses and renders MCP tools as Responses represents them: `mcp` tools, `mcp_list_tools`, `mcp_call`, approvals.

A call and its result are one item, so a client sends both back together. A call that needs approval is an
`mcp_approval_request` item, and the client's answer an `mcp_approval_response` item; the `mcp_call` that is then run
has the id of the approval request.
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
from dragoman.dialects.responses.searches import ITEM_TYPE, render_progress
from dragoman.dialects.responses.wire import NAME
from dragoman.wire import json

_NAME_SEPARATOR = "__"
_MCP_TYPE_PREFIX = b'"mcp_'
_WITH_PROGRESS = (_MCP_TYPE_PREFIX, ITEM_TYPE)
"""Bytes of items that have progress events."""


class _Filter(Struct):
    """A filter that selects tools of a server by name."""

    tool_names: frozenset[str] | None = None


class _Approval(Struct):
    """The object form of `require_approval`; tools in `never` run without approval."""

    never: _Filter | None = None


class _McpTool(Struct):
    """An `mcp` tool of a request. Its URL is not read: the gateway's configuration has the server's address."""

    server_label: str
    allowed_tools: frozenset[str] | _Filter | None = None
    require_approval: str | _Approval | None = None

    @property
    def tool_filter(self) -> frozenset[str] | None:
        allowed = self.allowed_tools
        return allowed.tool_names if isinstance(allowed, _Filter) else allowed

    @property
    def approval_free(self) -> frozenset[str] | None:
        """Return the tools that run without approval: by default none; None means all."""
        approval = self.require_approval
        if approval == "never":
            return None
        never = approval.never if isinstance(approval, _Approval) else None
        return (never.tool_names if never is not None else None) or frozenset()


def take_servers(request: Request, known_servers: Container[str]) -> tuple[Request, tuple[RequestedServer, ...]]:
    """Remove the `mcp` tools of known servers from a request; return the request and these servers."""
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
    """A tool choice that refers to an MCP server or one of its tools."""

    type: str = ""
    server_label: str = ""
    name: str | None = None


def _adapt_choice(choice: ToolChoice | None, known_servers: frozenset[str]) -> ToolChoice | None:
    """Convert a choice of MCP tools to a choice of function tools, by the names that the model sees."""
    fields = choice.extras.fields if choice is not None and choice.extras is not None else {}
    decoded = ((pointer, _decode_choice(raw)) for pointer, raw in fields.items())
    found = {pointer: one for pointer, one in decoded if one.type == "mcp" and one.server_label in known_servers}
    if choice is None or not found:
        return choice
    names = tuple(one.server_label + _NAME_SEPARATOR + one.name for one in found.values() if one.name)
    others = {pointer: raw for pointer, raw in fields.items() if pointer not in found}
    extras = Extras(NAME, others) if others else None
    # A choice of a server means all of its tools, which are not known here, so the choice is not restricted.
    has_whole_server = len(names) < len(found)
    return ToolChoice(
        mode=choice.mode or "required",
        names=() if has_whole_server else (*choice.names, *names),
        listed=choice.listed and not has_whole_server,
        parallel=choice.parallel,
        where=choice.where,
        spelling="" if has_whole_server else choice.spelling,
        extras=extras,
    )


def _decode_choice(raw: bytes) -> _Choice:
    try:
        return msgspec.json.decode(raw, type=_Choice)
    except msgspec.ValidationError:
        return _Choice()  # not a choice of an MCP tool


def _decode_mcp_tool(tool: NativeTool) -> _McpTool | None:
    if json.decode(tool.raw).get("type") != "mcp":
        return None
    try:
        return msgspec.json.decode(tool.raw, type=_McpTool)
    except msgspec.ValidationError as error:
        raise Problem("invalid_request", f"the mcp tool is invalid: {error}", where=tool.where) from None


def render_tool_list(server: str, tools: Iterable[Tool], request: Request, error: str) -> tuple[bytes, ...]:
    """Render the `mcp_list_tools` item of a server, or its error; nothing if the history has the list already."""
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
    """Render a call and its result as one `mcp_call` item."""
    output = _content_to_text(result.content)
    item = {
        "type": "mcp_call",
        "id": call.id,
        "server_label": server,
        "name": call.name,
        "arguments": call.arguments,
        "status": "failed" if result.failed else "completed",
        "approval_request_id": approval_id or None,
        "output": None if result.failed else output,
        "error": _render_execution_error(output) if result.failed else None,
    }
    return (json.encode(item),)


def _render_execution_error(message: str) -> dict[str, Any]:
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": message}]}


def _content_to_text(content: Iterable[Content]) -> str:
    texts: list[str] = []
    for part in content:
        match part:
            case Text(text=text):
                texts.append(text)
            case Data(json=raw):
                texts.append(raw.decode())
            case _:
                texts.append(f"[{getattr(part, 'kind', 'something')} that cannot be told here]")
    return "\n".join(texts)


def render_approval_request(server: str, call: ToolCall) -> tuple[bytes, ...]:
    """Render an `mcp_approval_request` item for a call."""
    item = {
        "type": "mcp_approval_request",
        "id": call.id,
        "server_label": server,
        "name": call.name,
        "arguments": call.arguments,
    }
    return (json.encode(item),)


def restore_calls(messages: Iterable[Message], known_servers: Container[str]) -> tuple[Message, ...]:
    """Convert the MCP items of known servers in a history to tool calls and results."""
    history = _History(known_servers)
    originals = tuple(messages)
    history.index(originals)
    restored: list[Message] = []
    for message in originals:
        parts = tuple(part for original in message.parts for part in history.restore_part(original))
        if parts == message.parts:
            restored.append(message)
        elif parts:
            restored.append(Message(role=message.role, parts=parts))
    return tuple(restored)


class _PastItem(Struct):
    """An MCP item of a history: a tool list, a call, an approval request or response."""

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
    """Return the message of an error, or its JSON if it has no known form."""
    match error:
        case str():
            return error
        case {"content": [{"text": str(message)}]} | {"message": str(message)}:
            return message
        case _:
            return json.encode(error).decode()


class _History:
    """The MCP items of a history, indexed by approval request."""

    def __init__(self, known_servers: Container[str]) -> None:
        self._known_servers = known_servers
        self._requested: set[str] = set()
        """Ids of approval requests for calls to known servers."""
        self._calls_by_approval: dict[str, _PastItem] = {}
        """Calls that were run after approval, by the id of the approval request."""
        self._foreign_requests: set[str] = set()
        """Ids of approval requests for calls to servers that the upstream connects to."""
        self._references = b""
        """Raw JSON of references to items stored by the upstream; one may be such an approval request."""

    def index(self, messages: Iterable[Message]) -> None:
        """Collect the approval requests and the calls that were run after approval."""
        for part in (part for message in messages for part in message.parts):
            past = _decode_past_item(part)
            if isinstance(part, Opaque) and part.refers:
                self._references += part.raw
            if past is None:
                continue
            is_known = past.server_label in self._known_servers
            if past.type == "mcp_approval_request":
                (self._requested if is_known else self._foreign_requests).add(past.id)
            elif not is_known:
                continue
            elif past.type == "mcp_call" and past.approval_request_id:
                self._calls_by_approval[past.approval_request_id] = past

    def restore_part(self, part: AnyPart) -> tuple[AnyPart, ...]:
        """Convert an MCP item of a known server to tool calls and results; return any other part unchanged."""
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
                return ()  # the approval response becomes its result
            case "mcp_call":
                return past.to_call("provider"), past.to_result(past.id, "provider")
            case _:
                return (part,)

    def _is_own_approval(self, past: _PastItem, part: AnyPart) -> bool:
        """Return whether an approval response is for a known server; raise if its request is not in the history."""
        request_id = past.approval_request_id or ""
        if request_id in self._requested:
            return True
        if request_id in self._foreign_requests or (request_id and request_id.encode() in self._references):
            return False
        message = f"no mcp_approval_request with the id {request_id!r} precedes this mcp_approval_response"
        raise Problem("invalid_request", message, where=f"{part.where}/approval_request_id")

    def _build_approval_result(self, past: _PastItem) -> ToolResult:
        request_id = past.approval_request_id or ""
        call = self._calls_by_approval.get(request_id)
        if call is not None:
            return call.to_result(request_id, "client")
        content = (Text(text=past.reason),) if past.reason else ()
        return ToolResult(call_id=request_id, content=content, spelling=APPROVED if past.approve else DENIED)


def _decode_past_item(part: AnyPart) -> _PastItem | None:
    if not isinstance(part, Opaque) or part.dialect != NAME or b'"mcp_' not in part.raw:
        return None
    try:
        return msgspec.json.decode(part.raw, type=_PastItem)
    except msgspec.ValidationError:
        return None  # an unknown form: left to the upstream


def render_progress_events(raw: bytes, index: int) -> tuple[bytes, list[tuple[str, bytes]]]:
    """Return the initial state of a whole item, and its progress events as names and members.

    An item of another type is returned unchanged, without events.
    """
    members = json.decode_object(raw) if any(kind in raw for kind in _WITH_PROGRESS) else {}
    kind = json.decode(members["type"]) if "type" in members else ""
    location = b',"item_id":%b,"output_index":%d' % (bytes(members.get("id", b'""')), index)
    match kind:
        case "mcp_call":
            arguments = bytes(members.get("arguments", b'""'))
            started = {**members, "status": Raw(b'"in_progress"'), "output": Raw(b"null"), "error": Raw(b"null")}
            return json.one_line(json.encode(started)), [
                ("response.mcp_call.in_progress", location),
                ("response.mcp_call_arguments.delta", location + b',"delta":' + arguments),
                ("response.mcp_call_arguments.done", location + b',"arguments":' + arguments),
                (f"response.mcp_call.{_find_outcome_suffix(members)}", location),
            ]
        case "mcp_list_tools":
            started = {**members, "tools": Raw(b"[]"), "error": Raw(b"null")}
            return json.one_line(json.encode(started)), [
                ("response.mcp_list_tools.in_progress", location),
                (f"response.mcp_list_tools.{_find_outcome_suffix(members)}", location),
            ]
        case "web_search_call":
            return render_progress(members, location)
        case _:
            return raw, []


def _find_outcome_suffix(members: Mapping[str, Raw]) -> str:
    return "completed" if bytes(members.get("error", b"null")) == b"null" else "failed"


REMOTE = RemoteToolFormat(
    b'"mcp"', take_servers, render_tool_list, render_call, render_approval_request, restore_calls, "mcp_"
)
