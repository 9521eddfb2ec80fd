"""Agent runs in the store: their entries, messages to them and their status; and claims on names.

A run that has not ended and has not sent a heartbeat for a while was interrupted: its process no longer exists. A claim
is valid as long as its holder renews it.
"""

from time import time

from msgspec import Struct

from dragoman.sessions.engine import Cursor, Engine
from dragoman.sessions.values import Conflict

RUNNING, INTERRUPTED = "running", "interrupted"
INTERRUPTED_AFTER = 30.0
"""Seconds without a heartbeat after which a run counts as interrupted."""


class RunStatus(Struct, frozen=True, kw_only=True):
    """The status of a run and its newest entry."""

    status: str
    """`running`, `interrupted`, or the reason why it ended."""
    summary: bytes
    """The outcome of a run that has ended, as a JSON object."""
    created: int
    last: bytes
    """The newest entry."""


class RunMessage(Struct, frozen=True):
    """A message to a run from another request or process."""

    owner: str
    run: str
    topic: str
    body: bytes


class Runs:
    """The table of runs, by owner and id."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def begin(self, owner: str, name: str, model: str, body: bytes, *, replaces_ended: bool = False) -> None:
        """Store a new run with its first entry; raises `Conflict` if a run of that name exists.

        With `replaces_ended` it replaces a run that is no longer running.
        """
        now = int(time())

        def insert(cursor: Cursor) -> None:
            has_ended = "owner = ? AND id = ? AND (status <> ? OR alive < ?)"
            values = (owner, name, RUNNING, int(now - INTERRUPTED_AFTER))
            if replaces_ended and cursor.execute(f"DELETE FROM runs WHERE {has_ended}", *values):  # noqa: S608
                cursor.execute("DELETE FROM run_entries WHERE owner = ? AND run = ?", owner, name)
                cursor.execute("DELETE FROM run_messages WHERE owner = ? AND run = ?", owner, name)
            added = cursor.execute(
                "INSERT INTO runs (owner, id, model, status, summary, created, alive) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                *(owner, name, model, RUNNING, b"{}", now, now),
            )
            if added != 1:
                raise Conflict(name)
            _insert_entry(cursor, owner, name, 0, body)

        await self._engine.write(insert)

    async def add_entry(self, owner: str, name: str, index: int, body: bytes) -> None:
        """Store an entry at its index; storing the same index again changes nothing."""
        await self._engine.write(lambda cursor: _insert_entry(cursor, owner, name, index, body), durable=False)

    async def replace_entries(self, owner: str, name: str, index: int, body: bytes) -> None:
        """Replace all earlier entries with one."""

        def change(cursor: Cursor) -> None:
            cursor.execute("DELETE FROM run_entries WHERE owner = ? AND run = ?", owner, name)
            _insert_entry(cursor, owner, name, index, body)

        await self._engine.write(change, durable=False)

    async def update_heartbeat(self, owner: str, name: str) -> None:
        """Record that a run is still running."""
        now = int(time())
        await self._engine.write(
            lambda cursor: cursor.execute("UPDATE runs SET alive = ? WHERE owner = ? AND id = ?", now, owner, name),
            durable=False,
        )

    async def end(self, owner: str, name: str, status: str, summary: bytes) -> None:
        """Record that a run has ended, and why; its messages are deleted."""
        statement = "UPDATE runs SET status = ?, summary = ? WHERE owner = ? AND id = ? AND status = ?"

        def change(cursor: Cursor) -> None:
            cursor.execute(statement, status, summary, owner, name, RUNNING)
            cursor.execute("DELETE FROM run_messages WHERE owner = ? AND run = ?", owner, name)

        await self._engine.write(change)

    async def find_status(self, owner: str, name: str) -> RunStatus | None:
        """Return the status of a run; None if there is none."""

        def select(cursor: Cursor) -> RunStatus | None:
            columns = "status, summary, created, alive"
            rows = cursor.fetch_all(f"SELECT {columns} FROM runs WHERE owner = ? AND id = ?", owner, name)  # noqa: S608
            if not rows:
                return None
            status, summary, created, alive = rows[0]
            newest = "SELECT body FROM run_entries WHERE owner = ? AND run = ? ORDER BY place DESC LIMIT 1"
            entries = cursor.fetch_all(newest, owner, name)
            return RunStatus(
                status=_current_status(status, alive),
                summary=bytes(summary),
                created=created,
                last=bytes(entries[0][0]) if entries else b"",
            )

        return await self._engine.read(select)

    async def list_entries(self, owner: str, name: str, after: int) -> list[tuple[int, bytes]]:
        """Return the entries of a run after an index, each with its index."""
        statement = "SELECT place, body FROM run_entries WHERE owner = ? AND run = ? AND place > ? ORDER BY place"
        rows = await self._engine.read(lambda cursor: cursor.fetch_all(statement, owner, name, after))
        return [(index, bytes(body)) for index, body in rows]

    async def send_message(self, message: RunMessage) -> None:
        """Store a message for a run, which may be in any process; only the first message of a topic counts."""
        statement = (
            "INSERT INTO run_messages (owner, run, topic, body, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        values = (message.owner, message.run, message.topic, message.body, int(time()))
        await self._engine.write(lambda cursor: cursor.execute(statement, *values))

    async def list_messages(self) -> list[RunMessage]:
        """Return the messages to all runs that have not ended."""
        statement = "SELECT owner, run, topic, body FROM run_messages"
        rows = await self._engine.read(lambda cursor: cursor.fetch_all(statement))
        return [RunMessage(owner, run, topic, bytes(body)) for owner, run, topic, body in rows]

    async def delete(self, owner: str, name: str) -> bool:
        """Delete a run; False if there is none of that name."""

        def change(cursor: Cursor) -> bool:
            cursor.execute("DELETE FROM run_entries WHERE owner = ? AND run = ?", owner, name)
            cursor.execute("DELETE FROM run_messages WHERE owner = ? AND run = ?", owner, name)
            return bool(cursor.execute("DELETE FROM runs WHERE owner = ? AND id = ?", owner, name))

        return await self._engine.write(change)


def _current_status(status: str, alive: int) -> str:
    return INTERRUPTED if status == RUNNING and alive < time() - INTERRUPTED_AFTER else status


def _insert_entry(cursor: Cursor, owner: str, name: str, index: int, body: bytes) -> None:
    statement = "INSERT INTO run_entries (owner, run, place, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    cursor.execute(statement, owner, name, index, body)


def delete_old_runs(cursor: Cursor, limit: int) -> None:
    """Delete runs that started before a time."""
    old = "SELECT 1 FROM runs WHERE runs.owner = run_entries.owner AND runs.id = run_entries.run AND created < ?"
    cursor.execute(f"DELETE FROM run_entries WHERE EXISTS ({old})", limit)  # noqa: S608
    cursor.execute("DELETE FROM runs WHERE created < ?", limit)
    cursor.execute("DELETE FROM run_messages WHERE created < ?", limit)


class Claims:
    """The table of claims, by owner and name. A claim is a lock that expires."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def acquire(self, owner: str, name: str, holder: str) -> bool:
        """Acquire a claim, or renew one's own; False if another holder has it."""
        now = int(time())
        statement = (
            "INSERT INTO claims (owner, name, holder, alive) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (owner, name) DO UPDATE SET holder = excluded.holder, alive = excluded.alive "
            "WHERE claims.alive < ? OR claims.holder = excluded.holder"
        )

        def change(cursor: Cursor) -> bool:
            return cursor.execute(statement, owner, name, holder, now, int(now - INTERRUPTED_AFTER)) == 1

        return await self._engine.write(change, durable=False)

    async def release(self, owner: str, name: str, holder: str) -> None:
        """Release a claim."""
        statement = "DELETE FROM claims WHERE owner = ? AND name = ? AND holder = ?"
        await self._engine.write(lambda cursor: cursor.execute(statement, owner, name, holder), durable=False)
