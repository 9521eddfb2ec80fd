"""Parses and renders the output items of a reply.

Rules: one item is one part, except that a message item is one part for each content part. The fields of a message item
are in the extras of its parts under /item/: the status on the last part, because a stream knows it only then, all
others on the first. The spelling of a part says whether it starts a message item ("first") or continues it ("same"); a
part with any other spelling comes from another dialect and gets a separate item. A status of "completed" is not kept,
because it is the default when rendering.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from msgspec import Raw, structs

from dragoman.core.parts import (
    AnyPart,
    Data,
    FoundTools,
    Inline,
    Media,
    Opaque,
    Reasoning,
    Refusal,
    Search,
    Text,
    ToolCall,
    ToolSearch,
)
from dragoman.core.problems import Problem
from dragoman.core.value import own_extras
from dragoman.dialects.responses.client_items import find_item_prefix
from dragoman.dialects.responses.items import (
    collect_item_fields,
    decode_item,
    read_reasoning,
    restore_fields,
    write_call,
    write_reasoning,
)
from dragoman.dialects.responses.parts import (
    ITEM_FIELDS,
    build_extras,
    is_item_field,
    read_contents,
    write_citations,
)
from dragoman.dialects.responses.searches import read_web_search, write_web_search
from dragoman.dialects.responses.tool_search import CALL_PREFIX, OUTPUT_PREFIX, read_search, write_search
from dragoman.dialects.responses.wire import NAME, WireItem
from dragoman.wire import json
from dragoman.wire.unread import Unread

FIRST_PART = "first"
SAME_MESSAGE = "same"
COMPLETED = b'"completed"'
NO_ARGUMENTS = "{}"
_TEXTS = (Text, Refusal, Data)


def read_output(raw: Raw | bytes, where: str) -> list[AnyPart]:
    """Parse one output item; an item of an unknown type becomes opaque."""
    item, unread = decode_item(raw)
    parts = read_known(item, where, unread) if item is not None else None
    if parts is not None:
        return parts
    part = Opaque(where=where, dialect=NAME, raw=bytes(raw))
    if b"tool_search_" in part.raw:
        return [read_search(part)]
    return [read_web_search(part.raw, where) or part]


def read_known(item: WireItem, where: str, unread: Unread | None) -> list[AnyPart] | None:
    """Parse an output item of a known type; None for one that must be kept as opaque."""
    match item.type:
        case "function_call" | "custom_tool_call":
            return [_read_call(item, where, unread)]
        case "reasoning":
            return [read_reasoning(item, where, unread)]
        case "message" if item.content and item.role in ("assistant", None):
            return _read_message(item, where, unread)
        case _:
            return None


def _read_call(item: WireItem, where: str, unread: Unread | None) -> ToolCall:
    if not item.name:
        raise Problem("malformed_reply", "a tool call has no name", where=where + "/name")
    text = item.type == "custom_tool_call"
    fields = collect_item_fields(item, "custom_tool_call" if text else "function_call", unread)
    call = ToolCall(
        where=where,
        id=item.call_id or "",
        name=item.name,
        arguments=(item.input or "") if text else item.arguments or NO_ARGUMENTS,
        form="text" if text else "json",
        namespace=item.namespace or "",
    )
    complete = is_complete(call, item.status)
    if item.status == "completed" or not complete:
        fields.pop("/status", None)
    return structs.replace(call, extras=build_extras(fields), complete=complete) if fields or not complete else call


def is_complete(call: ToolCall, status: str | None) -> bool:
    """Return whether the arguments of a call are complete."""
    if status == "completed":
        return True
    if call.form == "text":
        return status != "incomplete"
    return not call.arguments or json.is_json(call.arguments)


def _read_message(item: WireItem, where: str, unread: Unread | None) -> list[AnyPart]:
    if isinstance(item.content, str):
        parts: tuple[AnyPart, ...] = (Text(where=f"{where}/content", text=item.content),)
    else:
        parts = read_contents(item.content or [], f"{where}/content", "/content", unread)
    fields = collect_item_fields(item, "message", unread)
    status = fields.pop("/status", COMPLETED)
    last = len(parts) - 1
    found: list[AnyPart] = []
    for index, part in enumerate(parts):
        own = part.extras.fields if part.extras is not None else {}
        if index == 0 and fields:
            own = {**own, **{ITEM_FIELDS + name[1:]: raw for name, raw in fields.items()}}
        if index == last and status != COMPLETED:
            own = {**own, ITEM_FIELDS + "status": status}
        found.append(structs.replace(part, spelling=SAME_MESSAGE if index else FIRST_PART, extras=build_extras(own)))
    return found


_PREFIXES: dict[type[AnyPart], str] = {
    ToolCall: "fc_",
    Reasoning: "rs_",
    Media: "ig_",
    Search: "ws_",
    ToolSearch: CALL_PREFIX,
    FoundTools: OUTPUT_PREFIX,
}
"""Prefixes of item ids by type of part; all other parts are messages."""


class ItemIds:
    """Generates item ids from the reply's id, so the same reply always gets the same ids."""

    def __init__(self, response_id: str) -> None:
        self._suffix = hashlib.sha256(response_id.encode()).hexdigest()[:32]

    def get_id(self, part: AnyPart, output_index: int) -> str:
        """Return the id of the item that a part starts: its own id, or a generated one."""
        fields = own_extras(part, NAME) if part.extras is not None else None
        own = (fields.get("/item/id") or fields.get("/id")) if fields else None
        if own is not None and own.startswith(b'"'):
            return json.decode(own)
        prefix = _PREFIXES.get(type(part), "msg_")
        if isinstance(part, ToolSearch | FoundTools) and part.id:
            return prefix + part.id
        if type(part) is ToolCall and part.form == "text":
            prefix = "ctc_"
        elif type(part) is ToolCall and part.native:
            prefix = find_item_prefix(part.native)
        return f"{prefix}{self._suffix}{output_index:04x}"


def write_output(parts: Iterable[AnyPart], response_id: str) -> list[Any]:
    """Render the output items of a reply."""
    ids = ItemIds(response_id)
    items: list[Any] = []
    message: list[AnyPart] = []
    for part in parts:
        if message and part.spelling != SAME_MESSAGE:
            items.append(write_message_item(message, ids.get_id(message[0], len(items))))
            message = []
        if is_message_part(part):
            message.append(part)
            continue
        item = write_item(part, ids.get_id(part, len(items)))
        if item is not None:
            items.append(item)
    if message:
        items.append(write_message_item(message, ids.get_id(message[0], len(items))))
    return items


def is_message_part(part: AnyPart) -> bool:
    """Return whether a part belongs in a message item."""
    return isinstance(part, _TEXTS) or (isinstance(part, Opaque) and part.spelling in (FIRST_PART, SAME_MESSAGE))


def write_item(part: AnyPart, item_id: str) -> Any:
    """Render a part that is a separate item; None if this dialect cannot express it."""
    match part:
        case ToolCall(complete=complete):
            return write_call(part, "completed" if complete else "incomplete", item_id)
        case Reasoning():
            return write_reasoning(part, item_id)
        case Opaque(dialect=dialect, raw=raw) if dialect == NAME:
            return Raw(raw)
        case Search():
            return write_web_search(part, item_id)
        case Opaque():
            return write_search(part, item_id)
        case Media(kind="image", source=Inline(data=data)):
            return {"type": "image_generation_call", "id": item_id, "status": "completed", "result": data}
        case _:
            return None


def write_message_item(parts: list[AnyPart], item_id: str) -> Any:
    """Render a message item with these parts."""
    return render_message_item([write_content(part) for part in parts], collect_message_fields(parts), item_id)


def render_message_item(contents: list[Any], fields: dict[str, bytes], item_id: str) -> Any:
    """Build a message item from rendered content parts and the fields of the item."""
    wire: dict[str, Any] = {
        "type": "message",
        "id": item_id,
        "status": "completed",
        "role": "assistant",
        "content": contents,
    }
    return restore_fields(wire, fields)


def collect_message_fields(parts: Iterable[AnyPart]) -> dict[str, bytes]:
    """Collect the fields of the message item that these parts were parsed from."""
    fields: dict[str, bytes] = {}
    for part in parts:
        own = own_extras(part, NAME) if part.extras is not None else None
        for name, raw in own.items() if own else ():
            if is_item_field(name):
                fields[name[len(ITEM_FIELDS) - 1 :]] = raw
    return fields


def write_content(part: AnyPart) -> Any:
    """Render one content part of a message item."""
    match part:
        case Text(text=text):
            wire: dict[str, Any] = {
                "type": "output_text",
                "text": text,
                "annotations": write_citations(part.citations, len(text)) if part.citations else [],
                "logprobs": [],
            }
        case Refusal(text=text):
            wire = {"type": "refusal", "refusal": text}
        case Data(json=raw):
            wire = {"type": "output_text", "text": raw.decode(), "annotations": [], "logprobs": []}
        case Opaque(raw=raw):
            return Raw(raw)
        case _:
            wire = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    if part.extras is None:
        return wire
    fields = {name: raw for name, raw in (own_extras(part, NAME) or {}).items() if not is_item_field(name)}
    return restore_fields(wire, fields)


def drop_extras(part: AnyPart) -> AnyPart:
    """Return the part without extras: `content_part.added` omits fields that are known only at the end."""
    return part if isinstance(part, Opaque | Data) else structs.replace(part, extras=None)


def announce_item(item: Any) -> bytes:
    """Render an item for `output_item.added`: in progress, without members that only a finished item has."""
    raw = json.encode(item)
    members = {name: bytes(value) for name, value in json.decode_object(raw).items()}
    for name in ("encrypted_content", "content"):
        members.pop(name, None)
    if "status" in members:
        members["status"] = b'"in_progress"'
    return json.one_line(json.with_members(b"{}", members))
