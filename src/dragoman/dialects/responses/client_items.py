"""Items for calls and results of OpenAI's own tools that the client runs.

In the core they are parts with the tool's type in `native`. The arguments of a call are the member of the item that
says what to do. An item that was parsed is rendered with its own members (spelling "item"); the arguments of a call of
another vendor's model are made to fit the types of the vendor's SDK.
"""

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Raw

from dragoman.core.parts import Content, FoundTools, Opaque, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.value import Extras
from dragoman.dialects.responses.client_tools import CLIENT_TOOLS, ClientTool
from dragoman.dialects.responses.parts import read_part
from dragoman.dialects.responses.tool_search import list_names
from dragoman.dialects.responses.wire import NAME, InputImage
from dragoman.wire import json
from dragoman.wire.pointer import escape

_ITEM = "item"
_BY_ID = "item by id"
"""The spelling of an item whose `id` is the id of the call (local_shell_call_output)."""
_ID_ITEMS = frozenset({"local_shell_call", "local_shell_call_output"})
_SINGLE = "computer_use_preview"
_CALLS = {tool.call: kind for kind, tool in CLIENT_TOOLS.items() if kind != _SINGLE}
_RESULTS = {tool.result: kind for kind, tool in CLIENT_TOOLS.items() if kind != _SINGLE}


def read_client_item(kind: str, members: Mapping[str, Raw], where: str) -> ToolCall | ToolResult | None:
    """Parse a call or a result; None for an item of any other type, or one of a tool that OpenAI ran."""
    if kind not in _CALLS and kind not in _RESULTS:
        return None
    call_id, spelling = json.peek(members.get("call_id", b"null")), _ITEM
    if call_id is None and kind in _ID_ITEMS:
        call_id, spelling = json.peek(members.get("id", b"null")), _BY_ID
    values = {name: json.peek(members[name]) for name in ("environment", "execution") if name in members}
    place = json.as_object(values.get("environment")).get("type", "local")
    if place != "local" or values.get("execution", "client") != "client":
        return None
    if not isinstance(call_id, str):
        raise Problem("invalid_request", f"a {kind} needs a call_id that is a string", where=f"{where}/call_id")
    if kind in _CALLS:
        return _read_call(_CALLS[kind], members, call_id, where, spelling)
    return _read_result(_RESULTS[kind], members, call_id, where, spelling)


def _read_call(kind: str, members: Mapping[str, Raw], call_id: str, where: str, spelling: str) -> ToolCall:
    if kind == "computer" and not members.get("actions"):
        kind = _SINGLE
    row = CLIENT_TOOLS[kind]
    payload = bytes(members.get(row.member, b"null"))
    place, value = f"{where}/{row.member}", json.peek(payload)
    _require_type(value, _OBJECT if row.is_object else row.properties[row.member], place)
    for name, one in json.as_object(value).items() if row.is_object else ():
        if name in row.properties and one is not None:
            _require_type(one, row.properties[name], f"{place}/{name}")
    return ToolCall(
        where=where,
        spelling=spelling,
        extras=_keep_others(members, row.member, spelling),
        id=call_id,
        name=row.name or kind,
        arguments=(payload if row.is_object else b'{"%b":%b}' % (row.member.encode(), payload)).decode(),
        native=kind,
    )


_OBJECT: Mapping[str, Any] = {"type": "object"}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int, float),
}


def _require_type(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Raise `Problem` if a member of an item has not the type of its schema."""
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
        raise Problem("invalid_request", f"{where.rpartition('/')[2]} must be of the type {kind}", where=where)
    for index, item in enumerate(json.as_list(value)):
        _require_type(item, schema.get("items", _OBJECT), f"{where}/{index}")


def _keep_others(members: Mapping[str, Raw], member: str, spelling: str) -> Extras | None:
    used = {"type", member, "id" if spelling == _BY_ID else "call_id"}
    fields = {f"/{escape(name)}": bytes(raw) for name, raw in members.items() if name not in used}
    return Extras(NAME, fields) if fields else None


def _read_result(kind: str, members: Mapping[str, Raw], call_id: str, where: str, spelling: str) -> ToolResult:
    row = CLIENT_TOOLS[kind]
    content: tuple[Content, ...] = ()
    if row.output in members:
        place, raw = f"{where}/{row.output}", bytes(members[row.output])
        value = json.peek(raw)
        if value is not None and not isinstance(value, str):
            _require_type(value, {"type": row.output_type}, place)
        if isinstance(value, str):
            content = (Text(where=place, text=value),)
        else:
            parts = (_read_screenshot(value, place),) if kind == "computer" else (_read_text(kind, value, raw),)
            content = (Opaque(where=place, dialect=NAME, raw=raw, content=parts),)
            if kind == "tool_search":
                content = (_read_found(value, content[0]),)
    return ToolResult(
        where=where,
        spelling=spelling,
        extras=_keep_others(members, row.output, spelling),
        call_id=call_id,
        content=content,
        failed=json.peek(members.get("status", b"null")) == "failed",
        native=kind,
    )


def _read_found(value: Any, found: Opaque) -> FoundTools:
    """Return the tools that the client found with their names."""
    names = [name for tool in json.as_list(value) for name in list_names(json.as_object(tool))]
    return FoundTools(where=found.where, dialect=NAME, raw=found.raw, content=found.content, names=tuple(names))


def _read_screenshot(value: Any, where: str) -> Any:
    """Return a screenshot as an image; as text if it is none."""
    found = json.as_object(value)
    url, file_id = found.get("image_url"), found.get("file_id")
    if not isinstance(url, str) and not isinstance(file_id, str):
        return Text(where=where, text=json.encode(value).decode())
    image = InputImage(
        image_url=url if isinstance(url, str) else None, file_id=file_id if isinstance(file_id, str) else None
    )
    return read_part(image, where, None)


def _read_text(kind: str, value: Any, raw: bytes) -> Text:
    entries = [json.as_object(entry) for entry in cast("list[Any]", value)] if isinstance(value, list) else []
    if kind == "tool_search":
        names = [name for entry in entries for name in list_names(entry)]
        return Text(text=f"Tools that you can call now: {', '.join(names)}" if names else "No tool was found.")
    if kind == "shell" and entries:
        return Text(text="\n".join(line for entry in entries for line in _list_lines(entry)))
    return Text(text=raw.decode())


def _list_lines(entry: dict[str, Any]) -> list[str]:
    """Return what a command printed, then how it ended."""
    printed = [text.rstrip("\n") for name in ("stdout", "stderr") if (text := json.get_text(entry, name))]
    outcome = json.as_object(entry.get("outcome"))
    ending = "timed out" if outcome.get("type") == "timeout" else f"exit code {outcome.get('exit_code')}"
    return [*printed, f"[{ending}]"]


def read_found_tools(result: ToolResult) -> tuple[bytes, str] | None:
    """Return the array of tools that the client found for a search, and its pointer."""
    if result.native != "tool_search" or not result.content:
        return None
    found = result.content[0]
    return (found.raw, found.where) if isinstance(found, Opaque) and json.first_byte(found.raw) == b"[" else None


# Rendering


def find_item_prefix(native: str) -> str:
    """Return the prefix of the ids of a tool's call items."""
    return CLIENT_TOOLS[native].prefix


def write_client_call(part: ToolCall, status: str, item_id: str) -> dict[str, Any]:
    """Render a call without its extras; in a reply it also has a status and an item id."""
    row = CLIENT_TOOLS[part.native]
    wire: dict[str, Any] = {"type": row.call}
    if item_id:
        wire["id"] = item_id
    if status:
        wire["status"] = row.unfinished if status == "incomplete" else status
    wire["id" if part.spelling == _BY_ID else "call_id"] = part.id
    is_own = part.spelling in (_ITEM, _BY_ID)
    arguments = (part.arguments if is_own else fit_arguments(part)).encode()
    wire[row.member] = Raw(arguments) if row.is_object else json.decode_object(arguments)[row.member]
    return wire if is_own else {**wire, **dict(row.fixed)}


def write_client_result(part: ToolResult) -> dict[str, Any]:
    """Render a result without its extras."""
    row = CLIENT_TOOLS[part.native]
    wire: dict[str, Any] = {"type": row.result, "id" if part.spelling == _BY_ID else "call_id": part.call_id}
    match part.content:
        case (Opaque(raw=raw),):
            wire[row.output] = Raw(raw)
        case (Text(text=text),):
            wire[row.output] = text
        case _:
            pass
    return wire


def render_call_events(item: bytes, native: str, index: int) -> tuple[bytes, list[tuple[str, bytes]]]:
    """Return the initial state of a call's item, and the names and members of the events up to its end."""
    row, members = CLIENT_TOOLS[native], json.decode_object(item)
    location = b',"output_index":%d' % index
    events: list[tuple[str, bytes]] = []
    payload = members[row.member]
    if native == "shell":
        action = json.decode_object(payload)
        for at, command in enumerate(json.decode_array(action["commands"])):
            place = b'%b,"command_index":%d' % (location, at)
            name = "response.shell_call_command"
            events += [
                (f"{name}.added", place + b',"command":""'),
                (f"{name}.delta", place + b',"delta":' + bytes(command)),
                (f"{name}.done", place + b',"command":' + bytes(command)),
            ]
        payload = Raw(json.encode({**action, "commands": []}))
    elif native == "apply_patch" and "diff" in (operation := json.decode_object(payload)):
        place = b'%b,"item_id":%b' % (location, bytes(members["id"]))
        diff, name = bytes(operation["diff"]), "response.apply_patch_call_operation_diff"
        events = [(f"{name}.delta", place + b',"delta":' + diff), (f"{name}.done", place + b',"diff":' + diff)]
        payload = Raw(json.encode({**operation, "diff": ""}))
    elif native == "tool_search":
        payload = Raw(b"{}")
    started = {**members, "status": "in_progress", row.member: payload}
    return json.one_line(json.encode(started)), events


# Arguments


def fit_arguments(call: ToolCall) -> str:
    """Return the arguments of a call as the types of the vendor's SDK require; unchanged if they fit."""
    row = CLIENT_TOOLS[call.native]
    value = json.peek(call.arguments.encode())
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
    else:
        given = {row.text: call.arguments if value is None else value} if row.text and call.arguments.strip() else {}
    if not row.properties:
        return call.arguments if given is value else json.encode(given).decode()
    adapted = _fit_object(given, row)
    return call.arguments if adapted == value else json.encode(adapted).decode()


def _fit_object(given: dict[str, Any], row: ClientTool) -> dict[str, Any]:
    aliases = {alias: name for alias, name in row.aliases if name not in given}
    named: dict[str, Any] = {aliases.get(name, name): value for name, value in given.items()}
    if not row.is_object and row.member not in named:
        named = {row.member: named}
    adapted = {
        name: _fit_value(named[name], schema, row)
        for name, schema in row.properties.items()
        if named.get(name) is not None and _has_value(named[name], schema)
    }
    adapted = {**{name: value for name, value in row.defaults.items() if name not in adapted}, **adapted}
    kind, unused = row.unused
    return {name: value for name, value in adapted.items() if name != unused or adapted["type"] != kind}


def _has_value(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value can be made to fit; others are left out, as an optional member may be."""
    if "enum" in schema:
        return value in schema["enum"]
    if schema["type"] == "integer":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if schema["type"] != "object":
        return True
    return _has_type(value) if "properties" in schema else isinstance(value, dict)


def _has_type(value: Any) -> bool:
    """Return whether a value is an action of a computer."""
    return isinstance(json.as_object(value).get("type"), str)


def _fit_value(value: Any, schema: Mapping[str, Any], row: ClientTool) -> Any:
    """Return a value in the type of its schema."""
    match schema["type"]:
        case "integer":
            return int(value)
        case "string":
            return _to_text(value)
        case "array":
            if isinstance(value, str) and row.runner:
                return [*row.runner, value]
            values = cast("list[Any]", value) if isinstance(value, list) else [value]
            if schema["items"]["type"] == "string":
                return [_to_text(one) for one in values]
            return list(filter(_has_type, values))
        case _:
            members = json.as_object(value)
            texts = json.as_object(schema.get("additionalProperties"))
            return {name: _to_text(one) for name, one in members.items()} if texts else members


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.encode(value).decode()
