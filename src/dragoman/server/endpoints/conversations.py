"""`/v1/conversations`: create, show, extend and delete conversations by name, and list their items page by page."""

from collections.abc import Mapping, Sequence
from time import time
from typing import Any

from msgspec import Raw, structs

from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.conversation_recorder import build_items, generate_conversation_id
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, Item, Turn
from dragoman.wire import json
from dragoman.wire.pointer import escape

_MAX_LIMIT = 100
_DEFAULT_LIMIT = "20"
_TYPES_WITH_STATUS = frozenset({"message", "function_call", "function_call_output", "custom_tool_call_output"})
"""Item types that are listed with a status even if the client sent none."""


def render_item(item: Item) -> dict[str, Any]:
    """Render an item for a list: with its id, and with text content as parts."""
    body: dict[str, Any] = json.decode(item.body)
    kind = body.get("type") or "message"
    status = {"status": "completed"} if kind in _TYPES_WITH_STATUS else {}
    shown = {**status, **body, "id": item.id, "type": kind}
    if isinstance(shown.get("content"), str) and kind == "message":
        is_output = shown.get("role") == "assistant"
        part: dict[str, Any] = {"type": "output_text", "annotations": []} if is_output else {"type": "input_text"}
        shown["content"] = [{**part, "text": shown["content"]}]
    return shown


def render_page(items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any]:
    """Render one page of items, newest first unless `order` is asc."""
    order, limit, after = query.get("order", "desc"), query.get("limit", _DEFAULT_LIMIT), query.get("after", "")
    if order not in {"asc", "desc"}:
        raise Problem("invalid_request", f"order must be asc or desc, not {order!r}", where="/order")
    if not limit.isdecimal() or len(limit) > len(str(_MAX_LIMIT)) or not 1 <= int(limit) <= _MAX_LIMIT:
        raise Problem("invalid_request", f"limit must be from 1 to {_MAX_LIMIT}, not {limit!r}", where="/limit")
    ordered = items if order == "asc" else items[::-1]
    start = 0
    if after:
        start = next((at for at, item in enumerate(ordered, 1) if item.id == after), 0)
        if not start:
            raise Problem("invalid_request", f"Item with id '{after}' not found.", where="/after")
    shown = ordered[start : start + int(limit)]
    return render_list(shown, has_more=start + len(shown) < len(ordered))


def render_list(items: Sequence[Item], *, has_more: bool = False) -> dict[str, Any]:
    """Render items as a list object."""
    ids = [item.id for item in items] or [None]
    data = [render_item(item) for item in items]
    return {"object": "list", "data": data, "first_id": ids[0], "last_id": ids[-1], "has_more": has_more}


DIALECT = "responses"
_MAX_ADDED = 20
_MAX_METADATA = 16
_CREATE_MEMBERS = frozenset({"metadata", "items"})
_UPDATE_MEMBERS = frozenset({"metadata"})
_ADD_MEMBERS = frozenset({"items"})


async def create_conversation(store: Store, owner: str, body: bytes) -> dict[str, Any]:
    """Create a conversation."""
    members = _decode_members(body or b"{}", _CREATE_MEMBERS)
    now = int(time())
    conversation = Conversation(
        owner=owner, id=generate_conversation_id(), dialect=DIALECT, metadata=_parse_metadata(members), created=now
    )
    items = _parse_items(members, minimum=0)
    if items:
        await store.add_turn(_build_turn(conversation, items), conversation)
    else:
        await store.save_conversation(conversation)
    return _render_conversation(conversation)


async def show_conversation(store: Store, owner: str, name: str) -> dict[str, Any]:
    """Return a conversation."""
    return _render_conversation(await _find_conversation(store, owner, name))


async def update_conversation(store: Store, owner: str, name: str, body: bytes) -> dict[str, Any]:
    """Replace the metadata of a conversation."""
    conversation = await _find_conversation(store, owner, name)
    members = _decode_members(body, _UPDATE_MEMBERS)
    if "metadata" not in members:
        raise Problem("invalid_request", "Missing required parameter: 'metadata'.", where="/metadata")
    changed = structs.replace(conversation, metadata=_parse_metadata(members))
    await store.save_conversation(changed)
    return _render_conversation(changed)


async def delete_conversation(store: Store, owner: str, name: str) -> dict[str, Any]:
    """Delete a conversation."""
    if not await store.delete_conversation(owner, name):
        raise _build_not_found(name)
    return {"id": name, "object": "conversation.deleted", "deleted": True}


async def list_items(store: Store, owner: str, name: str, query: Mapping[str, str]) -> dict[str, Any]:
    """List the items of a conversation."""
    return render_page(await _load_items(store, owner, name), query)


async def add_items(store: Store, owner: str, name: str, body: bytes) -> dict[str, Any]:
    """Append items to a conversation."""
    opened = await store.load_conversation(owner, name)
    if opened is None:
        raise _build_not_found(name)
    conversation, history = opened
    new = _parse_items(_decode_members(body, _ADD_MEMBERS), history.items, minimum=1)
    turn = structs.replace(_build_turn(conversation, new), parent=conversation.head, settings=history.settings)
    await store.add_turn(turn, conversation)
    return render_list(turn.items)


async def show_item(store: Store, owner: str, name: str, item_id: str) -> dict[str, Any]:
    """Return one item."""
    found = next((item for item in await _load_items(store, owner, name) if item.id == item_id), None)
    if found is None:
        raise Problem("not_found", f"Item with id '{item_id}' not found.")
    return render_item(found)


async def delete_item(store: Store, owner: str, name: str, item_id: str) -> dict[str, Any]:
    """Delete an item of a conversation."""
    conversation = await _find_conversation(store, owner, name)
    if not await store.delete_item(conversation, item_id):
        raise Problem("not_found", f"Item with id '{item_id}' not found.")
    return _render_conversation(conversation)


async def _find_conversation(store: Store, owner: str, name: str) -> Conversation:
    conversation = await store.find_conversation(owner, name)
    if conversation is None:
        raise _build_not_found(name)
    return conversation


async def _load_items(store: Store, owner: str, name: str) -> Sequence[Item]:
    opened = await store.load_conversation(owner, name)
    if opened is None:
        raise _build_not_found(name)
    conversation, history = opened
    if conversation.dialect != DIALECT:
        message = f"conversation '{name}' is stored in the dialect {conversation.dialect} and has no Responses items"
        raise Problem("unsupported", message)
    return history.items


def _build_not_found(name: str) -> Problem:
    return Problem("not_found", f"Conversation with id '{name}' not found.")


def _render_conversation(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created,
        "metadata": Raw(conversation.metadata),
    }


def _build_turn(conversation: Conversation, items: tuple[Item, ...]) -> Turn:
    """Return a turn of the given items without a reply."""
    body = b'{"model":"","input":[' + b",".join(item.body for item in items) + b"]}"
    messages = dialect_named(DIALECT).parse_request(Call(body)).messages
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
    return Turn(
        owner=conversation.owner,
        dialect=DIALECT,
        conversation=conversation.id,
        items=items,
        calls={call.id: call.name for call in calls},
        created=int(time()),
    )


def _decode_members(body: bytes, known: frozenset[str]) -> dict[str, Raw]:
    """Decode a body; unknown fields are rejected, as OpenAI does."""
    members = json.decode_object(body)
    for name in members:
        if name not in known:
            message = f"Unknown parameter: '{name}'."
            raise Problem("invalid_request", message, where=f"/{escape(name)}", code="unknown_parameter")
    return members


def _parse_metadata(members: Mapping[str, Raw]) -> bytes:
    value: Any = json.decode(members["metadata"]) if "metadata" in members else None
    if value is None:
        return b"{}"
    pairs = json.as_object(value)
    if not isinstance(value, dict) or len(pairs) > _MAX_METADATA or not all(isinstance(v, str) for v in pairs.values()):
        raise Problem(
            "invalid_request", f"metadata must be an object of at most {_MAX_METADATA} strings", where="/metadata"
        )
    return json.encode(pairs)


def _parse_items(members: Mapping[str, Raw], earlier: Sequence[Item] = (), *, minimum: int) -> tuple[Item, ...]:
    raw = members.get("items")
    bodies = json.decode_array(raw) if raw is not None and json.first_byte(raw) == b"[" else []
    if len(bodies) < minimum or len(bodies) > _MAX_ADDED:
        raise Problem("invalid_request", f"items must be an array of {minimum} to {_MAX_ADDED} items", where="/items")
    for at, body in enumerate(bodies):
        if json.first_byte(body) != b"{":
            raise Problem("invalid_request", "an item must be an object", where=f"/items/{at}")
    return build_items(map(bytes, bodies), {item.id for item in earlier})
