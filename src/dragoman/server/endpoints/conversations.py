"""`/v1/conversations`: create, show, extend and delete conversations by name, and list their items page by page."""

from collections.abc import Mapping, Sequence
from time import time
from typing import Any, cast

from msgspec import Raw, structs

from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.conversations.recorder import find_or_generate_id, generate_conversation_id
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, Item, Turn
from dragoman.wire import json
from dragoman.wire.pointer import escape

_MAX_LIMIT = 100
_DEFAULT_LIMIT = "20"
_TYPES_WITH_STATUS = frozenset({"message", "function_call", "function_call_output", "custom_tool_call_output"})
"""Items whose status is told also where the client did not tell it."""


def render_item(item: Item) -> dict[str, Any]:
    """Return an item as it is listed: under its id, its content in parts."""
    body: dict[str, Any] = json.decode(item.body)
    kind = body.get("type") or "message"
    stated = {"status": "completed"} if kind in _TYPES_WITH_STATUS else {}
    shown = {**stated, **body, "id": item.id, "type": kind}
    if isinstance(shown.get("content"), str) and kind == "message":
        is_said = shown.get("role") == "assistant"
        part: dict[str, Any] = {"type": "output_text", "annotations": []} if is_said else {"type": "input_text"}
        shown["content"] = [{**part, "text": shown["content"]}]
    return shown


def render_page(items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of items, the newest first unless `order` says otherwise."""
    order, limit, after = query.get("order", "desc"), query.get("limit", _DEFAULT_LIMIT), query.get("after", "")
    if order not in {"asc", "desc"}:
        raise Problem("invalid_request", f"order must be asc or desc, not {order!r}", where="/order")
    if not limit.isdecimal() or len(limit) > len(str(_MAX_LIMIT)) or not 1 <= int(limit) <= _MAX_LIMIT:
        raise Problem("invalid_request", f"limit must be from 1 to {_MAX_LIMIT}, not {limit!r}", where="/limit")
    ordered = items if order == "asc" else items[::-1]
    begins = 0
    if after:
        begins = next((at for at, item in enumerate(ordered, 1) if item.id == after), 0)
        if not begins:
            raise Problem("invalid_request", f"Item with id '{after}' not found.", where="/after")
    shown = ordered[begins : begins + int(limit)]
    return render_list(shown, has_more=begins + len(shown) < len(ordered))


def render_list(items: Sequence[Item], *, has_more: bool = False) -> dict[str, Any]:
    """Return items as a list."""
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
    """Make a conversation."""
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
    """Show a conversation."""
    return _render_conversation(await _find_conversation(store, owner, name))


async def update_conversation(store: Store, owner: str, name: str, body: bytes) -> dict[str, Any]:
    """Change what a client notes beside a conversation."""
    conversation = await _find_conversation(store, owner, name)
    members = _decode_members(body, _UPDATE_MEMBERS)
    if "metadata" not in members:
        raise Problem("invalid_request", "Missing required parameter: 'metadata'.", where="/metadata")
    changed = structs.replace(conversation, metadata=_parse_metadata(members))
    await store.save_conversation(changed)
    return _render_conversation(changed)


async def delete_conversation(store: Store, owner: str, name: str) -> dict[str, Any]:
    """Forget a conversation."""
    if not await store.delete_conversation(owner, name):
        raise _build_not_found(name)
    return {"id": name, "object": "conversation.deleted", "deleted": True}


async def list_items(store: Store, owner: str, name: str, query: Mapping[str, str]) -> dict[str, Any]:
    """List what was said."""
    return render_page(await _load_items(store, owner, name), query)


async def add_items(store: Store, owner: str, name: str, body: bytes) -> dict[str, Any]:
    """Add what was said elsewhere."""
    opened = await store.load_conversation(owner, name)
    if opened is None:
        raise _build_not_found(name)
    conversation, history = opened
    new = _parse_items(_decode_members(body, _ADD_MEMBERS), minimum=1)
    turn = structs.replace(_build_turn(conversation, new), parent=conversation.head, settings=history.settings)
    await store.add_turn(turn, conversation)
    return render_list(turn.items)


async def show_item(store: Store, owner: str, name: str, wanted_id: str) -> dict[str, Any]:
    """Show one item."""
    one = next((one for one in await _load_items(store, owner, name) if one.id == wanted_id), None)
    if one is None:
        raise Problem("not_found", f"Item with id '{wanted_id}' not found.")
    return render_item(one)


async def delete_item(store: Store, owner: str, name: str, wanted_id: str) -> dict[str, Any]:
    """Take an item out of a conversation."""
    conversation = await _find_conversation(store, owner, name)
    if not await store.delete_item(conversation, wanted_id):
        raise Problem("not_found", f"Item with id '{wanted_id}' not found.")
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
        words = f"the conversation '{name}' is kept in {conversation.dialect}, whose items are no Responses items"
        raise Problem("unsupported", words)
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
    """Return items as a turn in which nothing was answered."""
    body = b'{"model":"","input":[' + b",".join(one.body for one in items) + b"]}"
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
    """Read a body; what nobody would heed is refused, as the vendor does."""
    members = json.decode_object(body)
    for name in members:
        if name not in known:
            words = f"Unknown parameter: '{name}'."
            raise Problem("invalid_request", words, where=f"/{escape(name)}", code="unknown_parameter")
    return members


def _parse_metadata(members: Mapping[str, Raw]) -> bytes:
    said: Any = json.decode(members["metadata"]) if "metadata" in members else None
    if said is None:
        return b"{}"
    pairs = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    if not isinstance(said, dict) or len(pairs) > _MAX_METADATA or not all(isinstance(v, str) for v in pairs.values()):
        raise Problem("invalid_request", f"metadata has {_MAX_METADATA} pairs of strings at most", where="/metadata")
    return json.encode(pairs)


def _parse_items(members: Mapping[str, Raw], *, minimum: int) -> tuple[Item, ...]:
    raw = members.get("items")
    bodies = json.decode_array(raw) if raw is not None and json.first_byte(raw) == b"[" else []
    if len(bodies) < minimum or len(bodies) > _MAX_ADDED:
        raise Problem("invalid_request", f"items has {minimum} to {_MAX_ADDED} items", where="/items")
    for at, body in enumerate(bodies):
        if json.first_byte(body) != b"{":
            raise Problem("invalid_request", "an item is an object", where=f"/items/{at}")
    return tuple(Item(find_or_generate_id(bytes(body)), bytes(body)) for body in bodies)
