"""MCP server tools in Messages: the request field `mcp_servers`, the blocks `mcp_tool_use` and `mcp_tool_result`.

A toolset in `tools` selects the tools of a server; in the older form the server's own entry does.
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
    """Whether a tool is enabled."""

    enabled: bool | None = None


class _ToolConfiguration(_Switch):
    """The tool selection of the older form, in the server's entry."""

    allowed_tools: frozenset[str] | None = None


class _Server(Struct):
    """A server by name. Its URL is not read: the gateway's configuration has it."""

    name: str
    tool_configuration: _ToolConfiguration | None = None


class _Toolset(Struct):
    """The tools of a server that are enabled."""

    mcp_server_name: str
    default_config: _Switch | None = None
    configs: dict[str, _Switch] | None = None


def take_servers(request: Request, known_servers: Container[str]) -> tuple[Request, tuple[RequestedServer, ...]]:
    """Remove known servers and their toolsets from a request; return it and the servers."""
    fields = request.extras.fields if request.extras is not None else {}
    raw = fields.get(_SERVERS)
    if raw is None or raw == b"null":
        return request, ()
    try:
        servers = msgspec.json.decode(raw, type=list[_Server])
        toolsets = {index: _decode_toolset(tool) for index, tool in enumerate(request.tools) if _is_toolset(tool)}
    except msgspec.ValidationError as error:
        raise Problem("invalid_request", f"invalid MCP servers or toolsets: {error}", where=_SERVERS) from None
    by_name = {toolset.mcp_server_name: toolset for toolset in toolsets.values()}
    requested = tuple(
        _build_server(server, by_name.get(server.name), f"{_SERVERS}/{index}")
        for index, server in enumerate(servers)
        if server.name in known_servers
    )
    if not requested:
        return request, ()
    remaining = [
        bytes(item)
        for item, server in zip(json.decode_array(raw), servers, strict=True)
        if server.name not in known_servers
    ]
    others = {field: value for field, value in fields.items() if field != _SERVERS}
    if remaining:
        others[_SERVERS] = b"[" + b",".join(remaining) + b"]"
    names = {server.name for server in requested}
    removed = {index for index, toolset in toolsets.items() if toolset.mcp_server_name in names}
    tools = tuple(tool for index, tool in enumerate(request.tools) if index not in removed)
    return structs.replace(request, tools=tools, extras=Extras(NAME, others) if others else None), requested


def _is_toolset(tool: Tool | NativeTool) -> bool:
    return isinstance(tool, NativeTool) and tool.dialect == NAME and json.decode(tool.raw).get("type") == "mcp_toolset"


def _decode_toolset(tool: Tool | NativeTool) -> _Toolset:
    return msgspec.json.decode(tool.raw if isinstance(tool, NativeTool) else b"", type=_Toolset)


def _build_server(server: _Server, toolset: _Toolset | None, where: str) -> RequestedServer:
    if toolset is None:
        older = server.tool_configuration or _ToolConfiguration()
        allowed = frozenset[str]() if older.enabled is False else older.allowed_tools
        return RequestedServer(name=server.name, where=where, allowed_tools=allowed)
    configs = (toolset.configs or {}).items()
    enabled = frozenset(tool for tool, switch in configs if switch.enabled is True)
    disabled = frozenset(tool for tool, switch in configs if switch.enabled is False)
    allowed = enabled if (toolset.default_config or _Switch()).enabled is False else None
    return RequestedServer(name=server.name, where=where, allowed_tools=allowed, excluded_tools=disabled)


def render_tool_list(server: str, tools: Iterable[Tool], request: Request, error: str) -> tuple[bytes, ...]:
    """Return nothing: Messages replies do not list the tools of a server."""
    del server, tools, request, error
    return ()


def render_call(server: str, call: ToolCall, result: ToolResult, approval_id: str) -> tuple[bytes, ...]:
    """Render a call and its result as two blocks."""
    del approval_id
    arguments = Raw(call.arguments.encode() if json.is_object(call.arguments) else b"{}")
    use = {"type": "mcp_tool_use", "id": call.id, "name": call.name, "server_name": server, "input": arguments}
    content = [{"type": "text", "text": text} for text in map(_content_to_text, result.content)]
    answer = {"type": "mcp_tool_result", "tool_use_id": call.id, "is_error": result.failed, "content": content}
    return json.encode(use), json.encode(answer)


def render_approval_request(server: str, call: ToolCall) -> tuple[bytes, ...]:
    """Return nothing: Messages has no approval requests, so no request enables them."""
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
    """Convert `mcp_tool_use` and `mcp_tool_result` blocks of known servers to calls and results."""
    restored: list[Message] = []
    call_ids: set[str] = set()
    for message in messages:
        parts = tuple(_restore_part(part, known_servers, call_ids) for part in message.parts)
        is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
        restored.append(message if is_same else Message(role=message.role, parts=parts))
    return tuple(restored)


def _restore_part(part: AnyPart, known_servers: Container[str], call_ids: set[str]) -> AnyPart:
    if not isinstance(part, Opaque) or part.dialect != NAME:
        return part
    match json.decode(part.raw):
        case {
            "type": "mcp_tool_use",
            "server_name": str(server),
            "name": str(name),
            "id": str(call_id),
            "input": call_input,
        }:
            if server not in known_servers:
                return part
            call_ids.add(call_id)
            arguments = json.encode(call_input).decode()
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
