"""Reads and writes the rows of the tables, within one transaction."""

import hashlib
from collections.abc import Sequence
from time import time
from typing import Any

import msgspec

from dragoman.sessions.engine import Cursor
from dragoman.sessions.values import Conflict, Conversation, History, Item, Turn

_TURN_FIELDS = (
    *("key", "parent", "id", "conversation", "dialect", "model", "calls", "digest", "attempt", "reply", "status"),
    *("created", "delivered"),
)
_TURN_COLUMNS = ", ".join((*_TURN_FIELDS, "settings"))
TURN_BY_KEY = f"SELECT {_TURN_COLUMNS} FROM turns WHERE owner = ? AND key = ?"  # noqa: S608
TURN_BY_ID = f"SELECT {_TURN_COLUMNS} FROM turns WHERE owner = ? AND id = ? ORDER BY created DESC, key DESC LIMIT 1"  # noqa: S608
TURN_BY_DIGEST = (
    f"SELECT {_TURN_COLUMNS} FROM turns WHERE owner = ? AND parent = ? AND digest = ? "  # noqa: S608
    "ORDER BY created DESC LIMIT 1"
)
_CONVERSATION_FIELDS = ("dialect", "head", "revision", "metadata", "created")
_CONVERSATION_COLUMNS = ", ".join(_CONVERSATION_FIELDS)
_CHAIN = """WITH RECURSIVE chain (key, parent, depth) AS (
    SELECT key, parent, 0 FROM turns WHERE key = ? AND owner = ?
    UNION ALL
    SELECT turns.key, turns.parent, chain.depth + 1 FROM turns JOIN chain ON turns.key = chain.parent)
"""
KEYS_OF_CHAIN = _CHAIN + "SELECT key FROM chain ORDER BY depth"  # noqa: S608
_CALLS_OF_CHAIN = (
    _CHAIN + "SELECT turns.calls FROM chain JOIN turns ON turns.key = chain.key ORDER BY chain.depth DESC"  # noqa: S608
)
_ITEMS_OF_CHAIN = (
    _CHAIN + "SELECT items.id, items.body, items.said FROM chain JOIN items ON items.turn = chain.key "  # noqa: S608
    "ORDER BY chain.depth DESC, items.place"
)
_CALLS = msgspec.json.Decoder(dict[str, str])


def read_conversation(cursor: Cursor, owner: str, name: str) -> Conversation | None:
    """Read a conversation; None if there is none."""
    rows = cursor.fetch_all(
        f"SELECT {_CONVERSATION_COLUMNS} FROM conversations WHERE owner = ? AND id = ?",  # noqa: S608
        owner,
        name,
    )
    if not rows:
        return None
    found: dict[str, Any] = dict(zip(_CONVERSATION_FIELDS, rows[0], strict=True))
    found["metadata"] = bytes(found["metadata"])
    return Conversation(owner=owner, id=name, **found)


def write_conversation(cursor: Cursor, conversation: Conversation) -> None:
    """Write a conversation; raises `Conflict` if its revision has changed since it was read."""
    if conversation.revision:
        changed = cursor.execute(
            "UPDATE conversations SET head = ?, metadata = ?, revision = revision + 1 "
            "WHERE owner = ? AND id = ? AND revision = ?",
            conversation.head,
            conversation.metadata,
            conversation.owner,
            conversation.id,
            conversation.revision,
        )
    else:
        changed = cursor.execute(
            "INSERT INTO conversations (owner, id, dialect, head, revision, metadata, created) "
            "VALUES (?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO NOTHING",
            conversation.owner,
            conversation.id,
            conversation.dialect,
            conversation.head,
            conversation.metadata,
            conversation.created or int(time()),
        )
    if changed != 1:
        raise Conflict(conversation.id)


def read_history(cursor: Cursor, owner: str, key: str) -> History:
    """Read the history that ends with the turn of this key."""
    if not key:
        return History()
    turns = cursor.fetch_all(_CALLS_OF_CHAIN, key, owner)
    items = cursor.fetch_all(_ITEMS_OF_CHAIN, key, owner)
    last = find_turn(cursor, TURN_BY_KEY, owner, key)
    if last is None:
        return History()
    calls: dict[str, str] = {}
    for (calls_json,) in turns:
        calls |= _CALLS.decode(bytes(calls_json))
    return History(items=tuple(_read_item(row) for row in items), calls=calls, settings=last.settings, last=last)


def _read_item(row: tuple[Any, ...]) -> Item:
    name, body, is_from_model = row
    return Item(name, bytes(body), bool(is_from_model))


def _read_turn(cursor: Cursor, owner: str, row: tuple[Any, ...]) -> Turn:
    """Build a turn from a row of `_TURN_COLUMNS`."""
    *values, settings_hash = row
    found: dict[str, Any] = dict(zip(_TURN_FIELDS, values, strict=True))
    found |= {
        "calls": _CALLS.decode(bytes(found["calls"])),
        "reply": bytes(found["reply"]),
        "delivered": bool(found["delivered"]),
    }
    items = cursor.fetch_all("SELECT id, body, said FROM items WHERE turn = ? ORDER BY place", found["key"])
    settings = cursor.fetch_all("SELECT body FROM settings WHERE hash = ?", settings_hash)
    return Turn(
        owner=owner,
        items=tuple(_read_item(item) for item in items),
        settings=bytes(settings[0][0]) if settings else b"{}",
        **found,
    )


def find_turn(cursor: Cursor, statement: str, owner: str, *values: str) -> Turn | None:
    """Find a turn of an owner by one of the statements `TURN_BY_…`; None if there is none."""
    rows = cursor.fetch_all(statement, owner, *values)
    return _read_turn(cursor, owner, rows[0]) if rows else None


def insert_turn(cursor: Cursor, turn: Turn) -> None:
    """Insert a turn; raises `Conflict` if its parent no longer exists."""
    # Updated, not only read, so that no other transaction can delete the parent before this turn exists.
    if turn.parent and not cursor.execute(
        "UPDATE turns SET key = key WHERE key = ? AND owner = ?", turn.parent, turn.owner
    ):
        raise Conflict(turn.parent)
    # Most turns have the same settings as their parent, so settings are stored once, by hash.
    settings_hash = hashlib.sha256(turn.settings).hexdigest()
    now = int(time())
    cursor.execute(
        "INSERT INTO settings (hash, body, used) VALUES (?, ?, ?) "
        "ON CONFLICT (hash) DO UPDATE SET used = excluded.used",
        settings_hash,
        turn.settings,
        now,
    )
    cursor.execute(
        f"INSERT INTO turns (owner, {_TURN_COLUMNS}, alive) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        turn.owner,
        turn.key,
        turn.parent,
        turn.id,
        turn.conversation,
        turn.dialect,
        turn.model,
        msgspec.json.encode(turn.calls),
        turn.digest,
        turn.attempt,
        turn.reply,
        turn.status,
        turn.created or now,
        int(turn.delivered),
        settings_hash,
        0,
    )
    insert_items(cursor, turn)


def insert_items(cursor: Cursor, turn: Turn) -> None:
    """Insert the items of a turn."""
    rows = [
        (turn.key, place, turn.owner, item.id, int(item.is_output), item.body) for place, item in enumerate(turn.items)
    ]
    cursor.execute_many("INSERT INTO items (turn, place, owner, id, said, body) VALUES (?, ?, ?, ?, ?, ?)", rows)


def has_followers(cursor: Cursor, key: str) -> bool:
    """Return whether a turn is the parent of another."""
    return bool(cursor.fetch_all("SELECT 1 FROM turns WHERE parent = ? LIMIT 1", key))


def delete_turn(cursor: Cursor, key: str) -> None:
    """Delete a turn and its items."""
    cursor.execute("DELETE FROM items WHERE turn = ?", key)
    cursor.execute("DELETE FROM turns WHERE key = ?", key)


def group_names(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Split names into groups of one size in `GROUP_MARKS`; the last group is padded with empty names."""
    size = next((size for size in GROUP_MARKS if len(names) <= size), max(GROUP_MARKS))
    padded = [*names, *[""] * (-len(names) % size)]
    return [tuple(padded[start : start + size]) for start in range(0, len(padded), size)]


GROUP_MARKS = {size: "(" + ", ".join("?" * size) + ")" for size in (2, 8, 64)}
"""SQL placeholders for the names in one lookup: only few group sizes, so that statements are prepared once."""
