"""The session store. Each query and each change is a function that runs in one transaction, the same on every database.

Every row has an owner and is only found with that owner. The URL of the database selects the engine.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import structs

from dragoman.sessions.engine import Cursor, Engine
from dragoman.sessions.rows import (
    GROUP_MARKS,
    KEYS_OF_CHAIN,
    TURN_BY_DIGEST,
    TURN_BY_ID,
    delete_turn,
    find_turn,
    group_names,
    has_followers,
    insert_items,
    insert_turn,
    read_conversation,
    read_history,
    write_conversation,
)
from dragoman.sessions.runs import Claims, Runs, delete_old_runs
from dragoman.sessions.signatures import SignatureTable
from dragoman.sessions.values import Conversation, History, Turn

_FIND_BLOBS = {
    size: "SELECT call, body FROM asides WHERE owner = ? AND call IN " + marks  # noqa: S608
    for size, marks in GROUP_MARKS.items()
}
_FIND_OLD = (
    "SELECT key FROM turns WHERE created < ? "
    "AND NOT EXISTS (SELECT 1 FROM turns AS later WHERE later.parent = turns.key) LIMIT 200"
)


class Store:
    """Stores turns, conversations, runs, claims, signatures, signed reasoning and hidden turns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.runs = Runs(engine)
        self.claims = Claims(engine)
        self.signatures = SignatureTable(engine)

    async def close(self) -> None:
        """Close the database."""
        await self._engine.close()

    async def find_conversation(self, owner: str, name: str) -> Conversation | None:
        """Find a conversation; None if there is none."""
        return await self._engine.read(lambda cursor: read_conversation(cursor, owner, name))

    async def load_conversation(self, owner: str, name: str) -> tuple[Conversation, History] | None:
        """Find a conversation with its history, read in one transaction."""

        def select(cursor: Cursor) -> tuple[Conversation, History] | None:
            found = read_conversation(cursor, owner, name)
            return None if found is None else (found, read_history(cursor, owner, found.head))

        return await self._engine.read(select)

    async def load_history(self, owner: str, turn: Turn) -> History:
        """Return the history up to and including a turn."""
        return await self._engine.read(lambda cursor: read_history(cursor, owner, turn.key))

    async def find_turn(self, owner: str, name: str) -> Turn | None:
        """Find a turn by the id that the client knows; if two have the same id, the newer."""
        return await self._engine.read(lambda cursor: find_turn(cursor, TURN_BY_ID, owner, name))

    async def find_same_turn(self, owner: str, parent: str, digest: str) -> Turn | None:
        """Find the newest turn with the same parent and the same request digest."""
        return await self._engine.read(lambda cursor: find_turn(cursor, TURN_BY_DIGEST, owner, parent, digest))

    async def find_items(self, owner: str, names: Sequence[str]) -> dict[str, bytes]:
        """Find items by id, in any conversation of the owner."""

        def select(cursor: Cursor) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for name in names:
                rows = cursor.fetch_all("SELECT body FROM items WHERE owner = ? AND id = ? LIMIT 1", owner, name)
                if rows:
                    found[name] = bytes(rows[0][0])
            return found

        return await self._engine.read(select)

    async def add_turn(self, turn: Turn, conversation: Conversation | None = None) -> None:
        """Store a turn, as the head of `conversation` if given; raises `Conflict` if that has changed since."""

        def insert(cursor: Cursor) -> None:
            insert_turn(cursor, turn)
            if conversation is not None:
                write_conversation(cursor, structs.replace(conversation, head=turn.key))

        await self._engine.write(insert)

    async def finish_turn(self, turn: Turn, conversation: Conversation | None = None) -> bool:
        """Store the reply to a turn in progress; return False and change nothing if it is no longer in progress."""

        def change(cursor: Cursor) -> bool:
            found = cursor.execute(
                "UPDATE turns SET reply = ?, status = ?, calls = ? WHERE key = ? AND status = 'in_progress'",
                turn.reply,
                turn.status,
                msgspec.json.encode(turn.calls),
                turn.key,
            )
            if found:
                cursor.execute("DELETE FROM items WHERE turn = ?", turn.key)
                insert_items(cursor, turn)
                if conversation is not None:
                    write_conversation(cursor, structs.replace(conversation, head=turn.key))
            return bool(found)

        return await self._engine.write(change)

    async def update_reply(self, turn: Turn, reply: bytes) -> None:
        """Store the reply so far of a turn in progress."""
        statement = "UPDATE turns SET reply = ? WHERE key = ? AND status = 'in_progress'"
        await self._engine.write(lambda cursor: cursor.execute(statement, reply, turn.key), durable=False)

    async def save_conversation(self, conversation: Conversation) -> None:
        """Save a conversation; raises `Conflict` if another request has changed it."""
        await self._engine.write(lambda cursor: write_conversation(cursor, conversation))

    async def mark_delivered(self, turn: Turn) -> None:
        """Record that the client has received the reply."""
        await self._engine.write(
            lambda cursor: cursor.execute("UPDATE turns SET delivered = 1 WHERE key = ?", turn.key), durable=False
        )

    async def delete_turn(self, turn: Turn) -> None:
        """Delete a turn: its id and reply at once, its items only if no other turn continues from it."""

        def delete(cursor: Cursor) -> None:
            cursor.execute("UPDATE turns SET id = '', reply = ? WHERE key = ?", b"", turn.key)
            is_head = cursor.fetch_all("SELECT 1 FROM conversations WHERE owner = ? AND head = ?", turn.owner, turn.key)
            if not is_head and not has_followers(cursor, turn.key):
                delete_turn(cursor, turn.key)

        await self._engine.write(delete)

    async def delete_conversation(self, owner: str, name: str) -> bool:
        """Delete a conversation with all turns that have no id of their own; False if there is none."""

        def delete(cursor: Cursor) -> bool:
            found = cursor.fetch_all("SELECT head FROM conversations WHERE owner = ? AND id = ?", owner, name)
            if not found:
                return False
            cursor.execute("DELETE FROM conversations WHERE owner = ? AND id = ?", owner, name)
            # From the newest turn back, until one has an id of its own or is the parent of another turn.
            for (key,) in cursor.fetch_all(KEYS_OF_CHAIN, found[0][0], owner):
                nameless = cursor.execute("UPDATE turns SET conversation = '' WHERE key = ? AND id = ''", key)
                if not nameless or has_followers(cursor, key):
                    break
                delete_turn(cursor, key)
            return True

        return await self._engine.write(delete)

    async def delete_item(self, conversation: Conversation, name: str) -> bool:
        """Remove an item from a conversation; False if it is not in it."""

        def delete(cursor: Cursor) -> bool:
            keys = cursor.fetch_all(KEYS_OF_CHAIN, conversation.head, conversation.owner)
            found = sum(cursor.execute("DELETE FROM items WHERE turn = ? AND id = ?", key, name) for (key,) in keys)
            if found:
                write_conversation(cursor, conversation)
            return bool(found)

        return await self._engine.write(delete)

    async def purge(self, before: float) -> int:
        """Delete turns older than a time that no other turn continues from; return the number of turns."""
        limit = int(before)
        count = 0
        # In small batches, so that other writes do not have to wait for all of it.
        while deleted := await self._engine.write(lambda cursor: _delete_old(cursor, limit), durable=False):
            count += deleted
        return count

    async def save_blobs(self, owner: str, blobs: Mapping[str, bytes]) -> None:
        """Store turns that a client has not seen, by the ids of the calls next to them that it has seen."""
        now = int(time())
        rows = [(owner, call, body, now) for call, body in blobs.items()]
        statement = (
            "INSERT INTO asides (owner, call, body, created) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (owner, call) DO UPDATE SET body = excluded.body, created = excluded.created"
        )
        await self._engine.write(lambda cursor: cursor.execute_many(statement, rows))

    async def find_blobs(self, owner: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the hidden turns that are stored under these call ids."""

        def select(cursor: Cursor) -> dict[str, bytes]:
            groups = group_names(keys)
            rows = [row for group in groups for row in cursor.fetch_all(_FIND_BLOBS[len(group)], owner, *group)]
            return {call: bytes(body) for call, body in rows}

        return await self._engine.read(select)


def _delete_old(cursor: Cursor, limit: int) -> int:
    """Delete one batch of old rows. A turn is older than those that continue it, so the ends of chains go first."""
    keys = cursor.fetch_all(_FIND_OLD, limit)
    for (key,) in keys:
        cursor.execute("DELETE FROM conversations WHERE head = ?", key)
        delete_turn(cursor, key)
    if not keys:
        cursor.execute("DELETE FROM signatures WHERE created < ?", limit)
        cursor.execute("DELETE FROM reasoning WHERE created < ?", limit)
        delete_old_runs(cursor, limit)
        cursor.execute("DELETE FROM asides WHERE created < ?", limit)
        cursor.execute("DELETE FROM claims WHERE alive < ?", limit)
        unused = "NOT EXISTS (SELECT 1 FROM turns WHERE turns.settings = settings.hash)"
        cursor.execute(f"DELETE FROM settings WHERE used < ? AND {unused}", limit)  # noqa: S608
    return len(keys)


def state_folder() -> Path:
    """Return the folder of this program in the user's state directory."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "dragoman"


def default_url() -> str:
    """Return the default URL of the store: a file in the user's state directory."""
    return f"sqlite:///{state_folder()}/sessions.sqlite3"  # an absolute path, so four slashes in all


def open_store(url: str) -> Store:
    """Open a store; raises ValueError for an invalid URL, `Unavailable` if the file cannot be written."""
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            from dragoman.sessions.sqlite import Sqlite  # noqa: PLC0415  loaded only if used

            path = unquote(parts.path).removeprefix("/")
            if parts.netloc or not path:
                raise ValueError("use sqlite:///relative.db or sqlite:////absolute.db")
            return Store(Sqlite(Path(path)))
        case "postgresql" | "postgres":
            try:
                from dragoman.sessions.postgres import Postgres  # noqa: PLC0415  optional dependency
            except ImportError:
                raise ValueError("PostgreSQL needs the `postgres` extra: pip install 'dragoman[postgres]'") from None
            return Store(Postgres(url))
        case _:
            raise ValueError("must start with sqlite:/// or postgresql://")
