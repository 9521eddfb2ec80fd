"""Parses conversation items into messages, one message for each item, and renders messages as items.

Rules: an item of an unknown type becomes a message with one opaque part. The `spelling` of a message is "item" and
flags for the form of its item (role, string or list, typed or not); a message with any other spelling comes from
another dialect and is rendered in the simplest form. Fields of an item that is one part (call, result, reasoning) are
extras of that part; fields of a message item are extras of the message.
"""

from itertools import compress
from operator import attrgetter, is_not
from typing import Any, assert_never

from msgspec import Raw, structs
from msgspec.json import Decoder

from dragoman.core.parts import AnyPart, Content, Data, Opaque, Reasoning, Signature, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Role
from dragoman.core.value import own_extras
from dragoman.dialects.responses.client_items import read_client_item, write_client_call, write_client_result
from dragoman.dialects.responses.parts import PART, build_extras, read_contents, write_contents
from dragoman.dialects.responses.searches import read_web_search
from dragoman.dialects.responses.tool_search import SEARCH_KINDS, read_search, write_search
from dragoman.dialects.responses.wire import ISSUER, NAME, ContentPart, ReasoningText, WireItem, decode_known
from dragoman.wire import json
from dragoman.wire.pointer import escape
from dragoman.wire.shape import Shape
from dragoman.wire.splice import graft
from dragoman.wire.unread import Unknown, Unread

INSTRUCTIONS = "instructions"
CONTENT = "content"
_EMPTY_CONTENT = "empty content"
_STRING = "string"
_LIST = "list"
_NAMED = "named"
ADDITIONAL_TOOLS = "additional_tools"
REFERENCE = "item_reference"
_DECLARING = frozenset({"type", "role", "tools"})
"""Members of an `additional_tools` item that need no extras, because its tools are declared in the request."""

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_KNOWN_TYPES = frozenset(
    {
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "reasoning",
    }
)
_ITEMS_DECODER: Decoder[list[WireItem]] = Decoder(list[WireItem])
_ITEM_DECODER: Decoder[WireItem] = Decoder(WireItem)
_SHAPE: Shape[WireItem] = Shape(WireItem)
_USED_FIELDS = {
    "message": {"content", "role"},
    "function_call": {"call_id", "name", "namespace", "arguments"},
    "custom_tool_call": {"call_id", "name", "namespace", "input"},
    "function_call_output": {"call_id", "name", "output"},
    "custom_tool_call_output": {"call_id", "name", "output"},
    "reasoning": {"summary", "content", "encrypted_content"},
}
_UNUSED_NAMES = {
    kind: tuple(name for name in WireItem.__struct_fields__ if name != "type" and name not in used)
    for kind, used in _USED_FIELDS.items()
}
_UNUSED_POINTERS = {kind: tuple(f"/{name}" for name in names) for kind, names in _UNUSED_NAMES.items()}
_GET_UNUSED = {kind: attrgetter(*names) for kind, names in _UNUSED_NAMES.items()}
_DEFAULTS = {field.name: field.default for field in structs.fields(WireItem)}
_UNUSED_DEFAULTS = {kind: tuple(_DEFAULTS[name] for name in names) for kind, names in _UNUSED_NAMES.items()}


def read_items(raw: Raw, first: int = 0) -> list[Message]:
    """Parse a list of items; `first` is the index of the first one."""
    items = decode_known(_ITEMS_DECODER, raw)
    if items is None:
        return [read_item(one, f"/input/{index}") for index, one in enumerate(json.decode_array(raw), first)]
    raws: list[Raw] = []
    messages: list[Message] = []
    for index, item in enumerate(items):
        where = f"/input/{index + first}"
        message = _read_known(item, where, None)
        if message is None:
            raws = raws or json.decode_array(raw)
            message = read_item(raws[index], where)
        messages.append(message)
    return messages


def read_item(raw: Raw, where: str) -> Message:
    """Parse one item."""
    try:
        item, unread = decode_item(raw)
        message = None if item is None else _read_known(item, where, unread)
    except json.Malformed as error:
        raise json.Malformed(error.message, where + error.where) from None
    return _read_opaque(raw, where) if message is None else message


def decode_item(raw: Raw | bytes) -> tuple[WireItem | None, Unread | None]:
    """Decode an item and its unknown fields; None for an item of an unknown type."""
    known = decode_known(_ITEM_DECODER, raw)
    if known is not None:
        return known, None
    kind = json.decode_object(raw).get("type")
    item_type = "message" if kind is None else json.decode(kind)
    if item_type is not None and not isinstance(item_type, str):
        raise json.Malformed("the type of an item must be a string", "/type")
    if item_type is not None and item_type not in _KNOWN_TYPES:
        return None, None
    return _SHAPE.read(raw)


def collect_item_fields(item: WireItem, kind: str, unread: Unread | None) -> dict[str, bytes]:
    """Return the members of an item that are not parsed for its type, by pointer."""
    values = _GET_UNUSED[kind](item)
    given = [*map(is_not, values, _UNUSED_DEFAULTS[kind])]
    fields = dict(zip(compress(_UNUSED_POINTERS[kind], given), map(json.encode, compress(values, given)), strict=True))
    if unread is not None:
        fields.update(unread.rest())
    return fields


def _read_known(item: WireItem, where: str, unread: Unread | None) -> Message | None:
    match item.type:
        case None | "message":
            role = _ROLES.get(item.role or "")
            return None if role is None else _read_message(item, role, where, unread)
        case "function_call" | "custom_tool_call":
            if item.call_id is None:
                raise Problem("invalid_request", "a call needs a call_id", where=where + "/call_id")
            if item.name is None:
                raise Problem("invalid_request", "a call needs a name", where=where + "/name")
            return Message(where=where, spelling="item", role="assistant", parts=(read_call(item, where, unread),))
        case "reasoning":
            return Message(where=where, spelling="item", role="assistant", parts=(read_reasoning(item, where, unread),))
        case "function_call_output" | "custom_tool_call_output":
            return Message(where=where, spelling="item", role="user", parts=(_read_result(item, where, unread),))
        case _:
            assert_never(item.type)


def _read_message(item: WireItem, role: Role, where: str, unread: Unread | None) -> Message:
    content = item.content
    if isinstance(content, str):
        parts: tuple[AnyPart, ...] = (Text(where=where + "/content", text=content),)
        form = _STRING
    elif content is None:
        parts, form = (), "nothing"
    else:
        parts, form = read_contents(content, where + "/content", "/content", unread), _LIST
    typed = "easy" if item.type is None else "typed"
    return Message(
        where=where,
        spelling=f"item {item.role} {form} {typed}",
        extras=build_extras(collect_item_fields(item, "message", unread)),
        role=role,
        parts=parts,
    )


def read_call(item: WireItem, where: str, unread: Unread | None) -> ToolCall:
    """Parse a function call or custom tool call; missing members become empty."""
    text = item.type == "custom_tool_call"
    return ToolCall(
        where=where,
        extras=build_extras(collect_item_fields(item, "custom_tool_call" if text else "function_call", unread)),
        id=item.call_id or "",
        name=item.name or "",
        arguments=(item.input if text else item.arguments) or "",
        form="text" if text else "json",
        namespace=item.namespace or "",
    )


def read_reasoning(item: WireItem, where: str, unread: Unread | None) -> Reasoning:
    """Parse a reasoning item: its summaries, or its raw texts if there is no summary."""
    summary = [piece.text for piece in item.summary or () if not isinstance(piece, Unknown)]
    content = item.content if isinstance(item.content, list) else []
    texts = summary
    spelling = _EMPTY_CONTENT if item.content == [] else ""
    kept: dict[str, bytes] = {}
    if content and not summary:
        texts = [piece.text for piece in content if isinstance(piece, ReasoningText)]
        spelling = CONTENT
        kept = _encode_other_pieces(content)
    elif content:
        whole = json.encode([piece.raw if isinstance(piece, Unknown) else piece for piece in content])
        kept["/content"] = graft(whole, (unread.take("/content") if unread else None) or {})
    for index, piece in enumerate(item.summary or ()):
        if isinstance(piece, Unknown):
            kept[f"/summary/{index}"] = bytes(piece.raw)
    fields = collect_item_fields(item, "reasoning", unread)
    return Reasoning(
        where=where,
        spelling=spelling,
        extras=build_extras({**fields, **kept}),
        texts=tuple(texts),
        signature=None if item.encrypted_content is None else Signature(ISSUER, item.encrypted_content, item.id or ""),
    )


def _encode_other_pieces(content: list[ContentPart]) -> dict[str, bytes]:
    return {
        f"/content/{index}": bytes(piece.raw) if isinstance(piece, Unknown) else json.encode(piece)
        for index, piece in enumerate(content)
        if not isinstance(piece, ReasoningText)
    }


def _read_result(item: WireItem, where: str, unread: Unread | None) -> ToolResult:
    if item.call_id is None:
        raise Problem("invalid_request", "a tool result needs a call_id", where=where + "/call_id")
    output = item.output
    if isinstance(output, str):
        content: tuple[Content, ...] = (Text(where=where + "/output", text=output),) if output else ()
        spelling = _STRING
    elif output is None:
        content, spelling = (), "nothing"
    else:
        content = _to_content(read_contents(output, where + "/output", "/output", unread))
        spelling = _LIST
    kind = item.type or "function_call_output"
    return ToolResult(
        where=where,
        spelling=spelling if item.name is None else f"{spelling} {_NAMED}",
        extras=build_extras(collect_item_fields(item, kind, unread)),
        call_id=item.call_id,
        name=item.name or "",
        content=content,
        form="text" if kind == "custom_tool_call_output" else "json",
    )


def _to_content(parts: tuple[AnyPart, ...]) -> tuple[Content, ...]:
    """Return the parts of a tool result; a part other than text, data and media becomes opaque."""
    content: list[Content] = []
    for part in parts:
        if isinstance(part, Content):
            content.append(part)
        else:
            raw = json.encode(write_contents([part], assistant=True)[0])
            content.append(Opaque(where=part.where, spelling=PART, dialect=NAME, raw=raw))
    return tuple(content)


def _read_opaque(raw: Raw, where: str) -> Message:
    members = json.decode_object(raw)
    item_type = json.decode(members["type"]) if "type" in members else None
    if (native := read_client_item(str(item_type), members, where)) is not None:
        role: Role = "assistant" if isinstance(native, ToolCall) else "user"
        return Message(where=where, spelling="item", role=role, parts=(native,))
    if item_type is None and "role" not in members and "id" not in members:
        raise json.Malformed("an item needs a type or a role", where + "/type")
    declares = item_type == ADDITIONAL_TOOLS
    fields = {f"/{escape(name)}": bytes(value) for name, value in members.items() if name not in _DECLARING}
    extras = build_extras(fields) if declares else None
    kind = str(item_type or REFERENCE)
    refers = "/id" if kind == REFERENCE and not _is_reasoning_id(members.get("id")) else ""
    part = Opaque(where=where, extras=extras, dialect=NAME, raw=bytes(raw), declares=declares, refers=refers)
    part = read_search(part) if kind in SEARCH_KINDS else read_web_search(part.raw, where) or part
    return Message(where=where, spelling="item", role=_find_role(kind), parts=(part,))


def _is_reasoning_id(item_id: Raw | None) -> bool:
    """Return whether the id of a stored item is that of reasoning, which other vendors cannot use."""
    return item_id is not None and bytes(item_id).startswith(b'"rs_')


def _find_role(item_type: str) -> Role:
    if item_type == "mcp_approval_response":
        return "user"
    is_own = item_type in ("compaction", REFERENCE, "program", "tool_search_output")
    return "assistant" if is_own or item_type.endswith("_call") or item_type.startswith("mcp_") else "user"


def write_message(message: Message) -> list[Any]:
    """Render a message as one or more items; tool results come before the message item of the other parts."""
    items: list[Any] = []
    content: list[AnyPart] = []
    for part in message.parts:
        match part:
            case ToolResult():
                items.append(_write_result(part))
                continue
            case ToolCall():
                item = write_call(part)
            case Reasoning():
                item = write_reasoning(part)
            case Opaque(spelling=spelling) if spelling != PART:
                item = Raw(part.raw) if part.dialect == NAME else write_search(part)
            case _:
                content.append(part)
                continue
        if content:
            items.append(_write_message_item(message, content))
            content = []
        if item is not None:
            items.append(item)
    if content or (not message.parts and message.spelling.startswith("item")):
        items.append(_write_message_item(message, content))
    return items


def _write_message_item(message: Message, parts: list[AnyPart]) -> Any:
    flags = message.spelling.split()
    is_own = flags[:1] == ["item"]
    assistant = message.role == "assistant"
    role: str = message.role
    if role == "system" and (not is_own or "developer" in flags):
        role = "developer"
    wire: dict[str, Any] = {"role": role} if is_own and "easy" in flags else {"type": "message", "role": role}
    if not parts and "nothing" in flags:
        pass
    elif len(parts) == 1 and _LIST not in flags[2:3] and (text := find_plain_text(parts[0])) is not None:
        wire["content"] = text
    else:
        wire["content"] = write_contents(parts, assistant=assistant)
    fields = own_extras(message, NAME)
    return Raw(graft(json.encode(wire), fields)) if fields else wire


def find_plain_text(part: AnyPart) -> str | None:
    """Return the text of a part that has only text: no cache mark, citations or extras; else None."""
    if not isinstance(part, Text) or part.cache is not None or part.citations or own_extras(part, NAME):
        return None
    return part.text


def write_call(part: ToolCall, status: str = "", item_id: str = "") -> Any:
    """Render a call; in a reply it also has a status and an item id."""
    if part.native:
        return restore_fields(write_client_call(part, status, item_id), own_extras(part, NAME))
    wire: dict[str, Any] = {"type": "function_call" if part.form == "json" else "custom_tool_call"}
    if item_id:
        wire["id"] = item_id
    if status:
        wire["status"] = status
    wire["call_id"] = part.id
    wire["name"] = part.name
    if part.namespace:
        wire["namespace"] = part.namespace
    wire["arguments" if part.form == "json" else "input"] = part.arguments
    return restore_fields(wire, own_extras(part, NAME))


def write_reasoning(part: Reasoning, item_id: str = "") -> Any:
    """Render a reasoning item; `summary` is required even if it is empty.

    OpenAI validates the encrypted content against the item's original id: another id is rejected, a missing one is not.
    """
    wire: dict[str, Any] = {"type": "reasoning"}
    item_id = item_id or (part.signature.item if part.signature is not None else "")
    if item_id:
        wire["id"] = item_id
    raw = part.spelling == CONTENT
    wire["summary"] = [] if raw else [{"type": "summary_text", "text": text} for text in part.texts]
    if raw:
        wire["content"] = [{"type": "reasoning_text", "text": text} for text in part.texts]
    elif part.spelling == _EMPTY_CONTENT:
        wire["content"] = []
    if part.signature is not None:
        wire["encrypted_content"] = part.signature.value
    return restore_fields(wire, own_extras(part, NAME))


def restore_fields(wire: dict[str, Any], fields: dict[str, bytes] | None) -> Any:
    """Add an item's extras back; they replace members of the same name."""
    if not fields:
        return wire
    for pointer in fields:
        wire.pop(pointer[1:], None)
    return Raw(graft(json.encode(wire), fields))


def _write_result(part: ToolResult) -> Any:
    if part.native:
        return restore_fields(write_client_result(part), own_extras(part, NAME))
    flags = part.spelling.split()
    wire: dict[str, Any] = {
        "type": "function_call_output" if part.form == "json" else "custom_tool_call_output",
        "call_id": part.call_id,
    }
    if _NAMED in flags:
        wire["name"] = part.name
    if not part.content and "nothing" in flags:
        return restore_fields(wire, own_extras(part, NAME))
    if not part.content:
        wire["output"] = [] if _LIST in flags else ""
    elif len(part.content) == 1 and _LIST not in flags and (text := _find_only_text(part.content[0])) is not None:
        wire["output"] = text
    else:
        wire["output"] = write_contents(part.content, assistant=False)
    return restore_fields(wire, own_extras(part, NAME))


def _find_only_text(part: Content) -> str | None:
    return part.json.decode() if isinstance(part, Data) else find_plain_text(part)
