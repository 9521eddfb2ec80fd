"""`/v1/conversations`: create, show, extend and delete conversations by name, and list their items page by page."""

from collections.abc import Mapping, Sequence
from time import time
from typing import Any, cast

from msgspec import Raw, structs

from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.conversations.recorder import fresh_conversation, item_id
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, Item, Turn
from dragoman.wire import json
from dragoman.wire.pointer import escape

_MOST = 100
_USUAL = "20"
_STATED = frozenset({"message", "function_call", "function_call_output", "custom_tool_call_output"})
"""Items whose status is told also where the client did not tell it."""


def told(item: Item) -> dict[str, Any]:
    """Return an item as it is listed: under its id, its content in parts."""
    body: dict[str, Any] = json.decode(item.body)
    kind = body.get("type") or "message"
    stated = {"status": "completed"} if kind in _STATED else {}
    shown = {**stated, **body, "id": item.id, "type": kind}
    if isinstance(shown.get("content"), str) and kind == "message":
        is_said = shown.get("role") == "assistant"
        part: dict[str, Any] = {"type": "output_text", "annotations": []} if is_said else {"type": "input_text"}
        shown["content"] = [{**part, "text": shown["content"]}]
    return shown


def page(items: Sequence[Item], query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of items, the newest first unless `order` says otherwise."""
    order, limit, after = query.get("order", "desc"), query.get("limit", _USUAL), query.get("after", "")
    if order not in {"asc", "desc"}:
        raise Problem("invalid_request", f"order must be asc or desc, not {order!r}", where="/order")
    if not limit.isdecimal() or len(limit) > len(str(_MOST)) or not 1 <= int(limit) <= _MOST:
        raise Problem("invalid_request", f"limit must be from 1 to {_MOST}, not {limit!r}", where="/limit")
    ordered = items if order == "asc" else items[::-1]
    begins = 0
    if after:
        begins = next((at for at, item in enumerate(ordered, 1) if item.id == after), 0)
        if not begins:
            raise Problem("invalid_request", f"Item with id '{after}' not found.", where="/after")
    shown = ordered[begins : begins + int(limit)]
    return listed(shown, more=begins + len(shown) < len(ordered))


def listed(items: Sequence[Item], *, more: bool = False) -> dict[str, Any]:
    """Return items as a list."""
    ids = [item.id for item in items] or [None]
    data = [told(item) for item in items]
    return {"object": "list", "data": data, "first_id": ids[0], "last_id": ids[-1], "has_more": more}


DIALECT = "responses"
_MOST_ADDED = 20
_MOST_PAIRS = 16
_CREATED = frozenset({"metadata", "items"})
_UPDATED = frozenset({"metadata"})
_ADDED = frozenset({"items"})


async def made(store: Store, owner: str, body: bytes) -> dict[str, Any]:
    """Make a conversation."""
    members = _members(body or b"{}", _CREATED)
    now = int(time())
    conversation = Conversation(
        owner=owner, id=fresh_conversation(), dialect=DIALECT, metadata=_metadata(members), created=now
    )
    items = _items(members, least=0)
    if items:
        await store.add(_turn(conversation, items), conversation)
    else:
        await store.save(conversation)
    return _shown(conversation)


async def shown(store: Store, owner: str, name: str) -> dict[str, Any]:
    """Show a conversation."""
    return _shown(await _found(store, owner, name))


async def updated(store: Store, owner: str, name: str, body: bytes) -> dict[str, Any]:
    """Change what a client notes beside a conversation."""
    conversation = await _found(store, owner, name)
    members = _members(body, _UPDATED)
    if "metadata" not in members:
        raise Problem("invalid_request", "Missing required parameter: 'metadata'.", where="/metadata")
    changed = structs.replace(conversation, metadata=_metadata(members))
    await store.save(changed)
    return _shown(changed)


async def deleted(store: Store, owner: str, name: str) -> dict[str, Any]:
    """Forget a conversation."""
    if not await store.forget_conversation(owner, name):
        raise _unknown(name)
    return {"id": name, "object": "conversation.deleted", "deleted": True}


async def items(store: Store, owner: str, name: str, query: Mapping[str, str]) -> dict[str, Any]:
    """List what was said."""
    return page(await _said(store, owner, name), query)


async def added(store: Store, owner: str, name: str, body: bytes) -> dict[str, Any]:
    """Add what was said elsewhere."""
    opened = await store.opened(owner, name)
    if opened is None:
        raise _unknown(name)
    conversation, history = opened
    new = _items(_members(body, _ADDED), least=1)
    turn = structs.replace(_turn(conversation, new), parent=conversation.head, settings=history.settings)
    await store.add(turn, conversation)
    return listed(turn.items)


async def item(store: Store, owner: str, name: str, wanted: str) -> dict[str, Any]:
    """Show one item."""
    one = next((one for one in await _said(store, owner, name) if one.id == wanted), None)
    if one is None:
        raise Problem("not_found", f"Item with id '{wanted}' not found.")
    return told(one)


async def removed(store: Store, owner: str, name: str, wanted: str) -> dict[str, Any]:
    """Take an item out of a conversation."""
    conversation = await _found(store, owner, name)
    if not await store.forget_item(conversation, wanted):
        raise Problem("not_found", f"Item with id '{wanted}' not found.")
    return _shown(conversation)


async def _found(store: Store, owner: str, name: str) -> Conversation:
    conversation = await store.conversation(owner, name)
    if conversation is None:
        raise _unknown(name)
    return conversation


async def _said(store: Store, owner: str, name: str) -> Sequence[Item]:
    opened = await store.opened(owner, name)
    if opened is None:
        raise _unknown(name)
    conversation, history = opened
    if conversation.dialect != DIALECT:
        words = f"the conversation '{name}' is kept in {conversation.dialect}, whose items are no Responses items"
        raise Problem("unsupported", words)
    return history.items


def _unknown(name: str) -> Problem:
    return Problem("not_found", f"Conversation with id '{name}' not found.")


def _shown(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created,
        "metadata": Raw(conversation.metadata),
    }


def _turn(conversation: Conversation, items: tuple[Item, ...]) -> Turn:
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


def _members(body: bytes, known: frozenset[str]) -> dict[str, Raw]:
    """Read a body; what nobody would heed is refused, as the vendor does."""
    members = json.decode_object(body)
    for name in members:
        if name not in known:
            words = f"Unknown parameter: '{name}'."
            raise Problem("invalid_request", words, where=f"/{escape(name)}", code="unknown_parameter")
    return members


def _metadata(members: Mapping[str, Raw]) -> bytes:
    said: Any = json.decode(members["metadata"]) if "metadata" in members else None
    if said is None:
        return b"{}"
    pairs = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    if not isinstance(said, dict) or len(pairs) > _MOST_PAIRS or not all(isinstance(v, str) for v in pairs.values()):
        raise Problem("invalid_request", f"metadata has {_MOST_PAIRS} pairs of strings at most", where="/metadata")
    return json.encode(pairs)


def _items(members: Mapping[str, Raw], *, least: int) -> tuple[Item, ...]:
    raw = members.get("items")
    bodies = json.decode_array(raw) if raw is not None and json.first_byte(raw) == b"[" else []
    if len(bodies) < least or len(bodies) > _MOST_ADDED:
        raise Problem("invalid_request", f"items has {least} to {_MOST_ADDED} items", where="/items")
    for at, body in enumerate(bodies):
        if json.first_byte(body) != b"{":
            raise Problem("invalid_request", "an item is an object", where=f"/items/{at}")
    return tuple(Item(item_id(bytes(body)), bytes(body)) for body in bodies)
