"""Tools of MCP servers, as Messages asks for them and tells of them: `mcp_servers`, `mcp_tool_use`, `mcp_tool_result`.

The tools of a server are asked for by a toolset, in the older form by the server itself.
"""

from collections.abc import Container, Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from dragoman.core.parts import AnyPart, Content, Data, Opaque, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Request, Tool
from dragoman.core.value import Extras
from dragoman.dialects.messages.wire import NAME
from dragoman.dialects.record import RemoteToolFormat, RequestedServer
from dragoman.wire import json

_NAME_SEPARATOR = "__"
_SERVERS = "/mcp_servers"


class _Switch(Struct):
    """Whether a tool may be used."""

    enabled: bool | None = None


class _ToolConfiguration(_Switch):
    """How the older form says which tools may be used."""

    allowed_tools: frozenset[str] | None = None


class _Server(Struct):
    """A server, as far as it matters which it is: where it stands is ours to know."""

    name: str
    tool_configuration: _ToolConfiguration | None = None


class _Toolset(Struct):
    """Which tools of a server may be used."""

    mcp_server_name: str
    default_config: _Switch | None = None
    configs: dict[str, _Switch] | None = None


def take_servers(request: Request, known_servers: Container[str]) -> tuple[Request, tuple[RequestedServer, ...]]:
    """Take known servers, and their toolsets, out of a request."""
    fields = request.extras.fields if request.extras is not None else {}
    raw = fields.get(_SERVERS)
    if raw is None or raw == b"null":
        return request, ()
    try:
        servers = msgspec.json.decode(raw, type=list[_Server])
        toolsets = {at: _decode_toolset(tool) for at, tool in enumerate(request.tools) if _is_toolset(tool)}
    except msgspec.ValidationError as error:
        raise Problem("invalid_request", f"the MCP servers cannot be read: {error}", where=_SERVERS) from None
    by_name = {toolset.mcp_server_name: toolset for toolset in toolsets.values()}
    wanted = tuple(
        _build_server(server, by_name.get(server.name), f"{_SERVERS}/{at}")
        for at, server in enumerate(servers)
        if server.name in known_servers
    )
    if not wanted:
        return request, ()
    left = [
        bytes(item)
        for item, server in zip(json.decode_array(raw), servers, strict=True)
        if server.name not in known_servers
    ]
    others = {field: value for field, value in fields.items() if field != _SERVERS}
    if left:
        others[_SERVERS] = b"[" + b",".join(left) + b"]"
    names = {server.name for server in wanted}
    gone = {at for at, toolset in toolsets.items() if toolset.mcp_server_name in names}
    tools = tuple(tool for at, tool in enumerate(request.tools) if at not in gone)
    return structs.replace(request, tools=tools, extras=Extras(NAME, others) if others else None), wanted


def _is_toolset(tool: Tool | NativeTool) -> bool:
    return isinstance(tool, NativeTool) and tool.dialect == NAME and json.decode(tool.raw).get("type") == "mcp_toolset"


def _decode_toolset(tool: Tool | NativeTool) -> _Toolset:
    return msgspec.json.decode(tool.raw if isinstance(tool, NativeTool) else b"", type=_Toolset)


def _build_server(server: _Server, toolset: _Toolset | None, where: str) -> RequestedServer:
    if toolset is None:
        older = server.tool_configuration or _ToolConfiguration()
        only = frozenset[str]() if older.enabled is False else older.allowed_tools
        return RequestedServer(name=server.name, where=where, allowed_tools=only)
    configs = (toolset.configs or {}).items()
    on = frozenset(tool for tool, switch in configs if switch.enabled is True)
    off = frozenset(tool for tool, switch in configs if switch.enabled is False)
    usual = toolset.default_config or _Switch()
    return RequestedServer(
        name=server.name, where=where, allowed_tools=on if usual.enabled is False else None, excluded_tools=off
    )


def render_tool_list(server: str, tools: Iterable[Tool], request: Request, error: str) -> tuple[bytes, ...]:
    """Say nothing: the dialect lists no tools."""
    del server, tools, request, error
    return ()


def render_call(server: str, call: ToolCall, result: ToolResult, approval_id: str) -> tuple[bytes, ...]:
    """Say a call and its result as two blocks."""
    del approval_id
    arguments = Raw(call.arguments.encode() if json.is_object(call.arguments) else b"{}")
    use = {"type": "mcp_tool_use", "id": call.id, "name": call.name, "server_name": server, "input": arguments}
    content = [{"type": "text", "text": words} for words in map(_content_to_text, result.content)]
    answer = {"type": "mcp_tool_result", "tool_use_id": call.id, "is_error": result.failed, "content": content}
    return json.encode(use), json.encode(answer)


def render_approval_request(server: str, call: ToolCall) -> tuple[bytes, ...]:
    """Ask nothing: the dialect has no word for it, and no request asks for it."""
    del server, call
    return ()


def _content_to_text(part: Content) -> str:
    match part:
        case Text(text=text):
            return text
        case Data(json=raw):
            return raw.decode()
        case _:
            return f"[{getattr(part, 'kind', 'something')} that cannot be told here]"


def restore_calls(messages: Iterable[Message], known_servers: Container[str]) -> tuple[Message, ...]:
    """Make calls and results of what a history tells of known servers."""
    found: list[Message] = []
    ours: set[str] = set()
    for message in messages:
        parts = tuple(_restore_part(part, known_servers, ours) for part in message.parts)
        is_same = all(one is other for one, other in zip(parts, message.parts, strict=True))
        found.append(message if is_same else Message(role=message.role, parts=parts))
    return tuple(found)


def _restore_part(part: AnyPart, known_servers: Container[str], call_ids: set[str]) -> AnyPart:
    if not isinstance(part, Opaque) or part.dialect != NAME:
        return part
    match json.decode(part.raw):
        case {
            "type": "mcp_tool_use",
            "server_name": str(server),
            "name": str(name),
            "id": str(call_id),
            "input": given,
        }:
            if server not in known_servers:
                return part
            call_ids.add(call_id)
            arguments = json.encode(given).decode()
            return ToolCall(id=call_id, name=server + _NAME_SEPARATOR + name, arguments=arguments, executor="provider")
        case {"type": "mcp_tool_result", "tool_use_id": str(call_id), **rest} if call_id in call_ids:
            content = tuple(map(_read_content, _as_list(rest.get("content"))))
            failed = rest.get("is_error") is True
            return ToolResult(call_id=call_id, content=content, failed=failed, executor="provider")
        case _:
            return part


def _as_list(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) else content or []


def _read_content(item: Any) -> Content:
    match item:
        case str() | {"text": str()}:
            return Text(text=item if isinstance(item, str) else str(item["text"]))
        case _:
            return Data(json=json.encode(item))


REMOTE = RemoteToolFormat(
    b'"mcp_servers"', take_servers, render_tool_list, render_call, render_approval_request, restore_calls, "mcptoolu_"
)
