"""The store: every question and every change is a function over one transaction, the same for every database.

Everything has an owner, and is found by its owner only. A store is opened by the URL of its database.
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
    TURN_COLUMNS,
    delete_turn,
    group_names,
    has_followers,
    insert_items,
    insert_turn,
    read_conversation,
    read_history,
    read_turn,
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
    """Turns and conversations."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.runs = Runs(engine)
        self.claims = Claims(engine)
        self.signatures = SignatureTable(engine)

    async def close(self) -> None:
        """Let go of the database."""
        await self._engine.close()

    async def find_conversation(self, owner: str, name: str) -> Conversation | None:
        """Find a conversation."""
        return await self._engine.read(lambda cursor: read_conversation(cursor, owner, name))

    async def load_conversation(self, owner: str, name: str) -> tuple[Conversation, History] | None:
        """Find a conversation and all that was said in it, both of one moment."""

        def look(cursor: Cursor) -> tuple[Conversation, History] | None:
            found = read_conversation(cursor, owner, name)
            return None if found is None else (found, read_history(cursor, owner, found.head))

        return await self._engine.read(look)

    async def load_history(self, owner: str, turn: Turn) -> History:
        """Return all that was said up to a turn."""
        return await self._engine.read(lambda cursor: read_history(cursor, owner, turn.key))

    async def find_turn(self, owner: str, name: str) -> Turn | None:
        """Find a turn by what the client calls it; of two with one name the newer."""

        def look(cursor: Cursor) -> Turn | None:
            rows = cursor.fetch_all(
                f"SELECT {TURN_COLUMNS} FROM turns WHERE owner = ? AND id = ? ORDER BY created DESC, key DESC LIMIT 1",  # noqa: S608
                owner,
                name,
            )
            return read_turn(cursor, owner, rows[0]) if rows else None

        return await self._engine.read(look)

    async def find_same_turn(self, owner: str, parent: str, digest: str) -> Turn | None:
        """Find a turn that goes on from another with the same question."""

        def look(cursor: Cursor) -> Turn | None:
            rows = cursor.fetch_all(
                f"SELECT {TURN_COLUMNS} FROM turns WHERE parent = ? AND digest = ? AND owner = ? "  # noqa: S608
                "ORDER BY created DESC LIMIT 1",
                parent,
                digest,
                owner,
            )
            return read_turn(cursor, owner, rows[0]) if rows else None

        return await self._engine.read(look)

    async def find_items(self, owner: str, names: Sequence[str]) -> dict[str, bytes]:
        """Find items by their ids, wherever they were said."""

        def look(cursor: Cursor) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for name in names:
                rows = cursor.fetch_all("SELECT body FROM items WHERE owner = ? AND id = ? LIMIT 1", owner, name)
                if rows:
                    found[name] = bytes(rows[0][0])
            return found

        return await self._engine.read(look)

    async def add_turn(self, turn: Turn, conversation: Conversation | None = None) -> None:
        """Keep a turn, as the newest of `conversation` if that is given; `Conflict` if it is not as it was then."""

        def keep(cursor: Cursor) -> None:
            insert_turn(cursor, turn)
            if conversation is not None:
                write_conversation(cursor, structs.replace(conversation, head=turn.key))

        await self._engine.write(keep)

    async def finish_turn(self, turn: Turn, conversation: Conversation | None = None) -> bool:
        """Put the answer to a turn that is in progress; False if it is not any more, and nothing is changed."""

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
        """Put what is told of a turn while its answer is being made."""
        statement = "UPDATE turns SET reply = ? WHERE key = ? AND status = 'in_progress'"
        await self._engine.write(lambda cursor: cursor.execute(statement, reply, turn.key), durable=False)

    async def save_conversation(self, conversation: Conversation) -> None:
        """Keep a conversation as it is now; `Conflict` if somebody else has changed it."""
        await self._engine.write(lambda cursor: write_conversation(cursor, conversation))

    async def mark_delivered(self, turn: Turn) -> None:
        """Note that the client has got its answer."""
        await self._engine.write(
            lambda cursor: cursor.execute("UPDATE turns SET delivered = 1 WHERE key = ?", turn.key), durable=False
        )

    async def delete_turn(self, turn: Turn) -> None:
        """Forget a turn: its name and its answer at once, and what was said in it unless others go on from it."""

        def forget(cursor: Cursor) -> None:
            cursor.execute("UPDATE turns SET id = '', reply = ? WHERE key = ?", b"", turn.key)
            held = cursor.fetch_all("SELECT 1 FROM conversations WHERE owner = ? AND head = ?", turn.owner, turn.key)
            if not held and not has_followers(cursor, turn.key):
                delete_turn(cursor, turn.key)

        await self._engine.write(forget)

    async def delete_conversation(self, owner: str, name: str) -> bool:
        """Forget a conversation, and all of it that cannot be asked for by another name; False if there is none."""

        def forget(cursor: Cursor) -> bool:
            found = cursor.fetch_all("SELECT head FROM conversations WHERE owner = ? AND id = ?", owner, name)
            if not found:
                return False
            cursor.execute("DELETE FROM conversations WHERE owner = ? AND id = ?", owner, name)
            # From the newest on, as far as nobody else stands on it.
            for (key,) in cursor.fetch_all(KEYS_OF_CHAIN, found[0][0], owner):
                nameless = cursor.execute("UPDATE turns SET conversation = '' WHERE key = ? AND id = ''", key)
                if not nameless or has_followers(cursor, key):
                    break
                delete_turn(cursor, key)
            return True

        return await self._engine.write(forget)

    async def delete_item(self, conversation: Conversation, name: str) -> bool:
        """Take an item out of a conversation; False if it is not in it."""

        def forget(cursor: Cursor) -> bool:
            keys = cursor.fetch_all(KEYS_OF_CHAIN, conversation.head, conversation.owner)
            found = sum(cursor.execute("DELETE FROM items WHERE turn = ? AND id = ?", key, name) for (key,) in keys)
            if found:
                write_conversation(cursor, conversation)
            return bool(found)

        return await self._engine.write(forget)

    async def purge(self, before: float) -> int:
        """Forget what nobody has gone on from since then; return how many turns that were."""
        limit = int(before)
        count = 0
        # A few at a time: whoever has a turn to keep must not wait for all of it.
        while gone := await self._engine.write(lambda cursor: _delete_old(cursor, limit), durable=False):
            count += gone
        return count

    async def save_blobs(self, owner: str, blobs: Mapping[str, bytes]) -> None:
        """Keep what a client was not told of, by the ids of calls that it was told of."""
        now = int(time())
        rows = [(owner, call, body, now) for call, body in blobs.items()]
        statement = (
            "INSERT INTO asides (owner, call, body, created) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (owner, call) DO UPDATE SET body = excluded.body, created = excluded.created"
        )
        await self._engine.write(lambda cursor: cursor.execute_many(statement, rows))

    async def find_blobs(self, owner: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return what is kept under the ids of calls."""

        def look(cursor: Cursor) -> dict[str, bytes]:
            rows = [row for some in group_names(keys) for row in cursor.fetch_all(_FIND_BLOBS[len(some)], owner, *some)]
            return {call: bytes(body) for call, body in rows}

        return await self._engine.read(look)


def _delete_old(cursor: Cursor, limit: int) -> int:
    """Forget some of what is old: a turn is older than those that go on from it, so its end goes first."""
    keys = cursor.fetch_all(_FIND_OLD, limit)
    for (key,) in keys:
        cursor.execute("DELETE FROM conversations WHERE head = ?", key)
        delete_turn(cursor, key)
    if not keys:
        cursor.execute("DELETE FROM signatures WHERE created < ?", limit)
        delete_old_runs(cursor, limit)
        cursor.execute("DELETE FROM asides WHERE created < ?", limit)
        cursor.execute("DELETE FROM claims WHERE alive < ?", limit)
        unused = "NOT EXISTS (SELECT 1 FROM turns WHERE turns.settings = settings.hash)"
        cursor.execute(f"DELETE FROM settings WHERE used < ? AND {unused}", limit)  # noqa: S608
    return len(keys)


def default_url() -> str:
    """Return where sessions are kept if nobody says where: with the state of the user's other programs."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return f"sqlite:///{state}/dragoman/sessions.sqlite3"  # an absolute path, so four slashes in all


def open_store(url: str) -> Store:
    """Open a store; ValueError for a URL that names none, `Unavailable` for a file that cannot be written."""
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            from dragoman.sessions.sqlite import Sqlite  # noqa: PLC0415  only who uses it

            path = unquote(parts.path).removeprefix("/")
            if parts.netloc or not path:
                raise ValueError("a file is named like sqlite:///relative.db or sqlite:////absolute.db")
            return Store(Sqlite(Path(path)))
        case "postgresql" | "postgres":
            try:
                from dragoman.sessions.postgres import Postgres  # noqa: PLC0415  an extra
            except ImportError:
                raise ValueError("PostgreSQL needs an extra: pip install 'dragoman[postgres]'") from None
            return Store(Postgres(url))
        case _:
            raise ValueError("must begin with sqlite:/// or postgresql://")
