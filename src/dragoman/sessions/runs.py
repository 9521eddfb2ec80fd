"""Runs in the store: their entries as they happened, messages to them, their state; and claims on what is worked at.

A run that is not over and has not sent a heartbeat for a while was interrupted: its process is gone. A claim holds as
long as its holder renews it.
"""

from time import time

from msgspec import Struct

from dragoman.sessions.engine import Cursor, Engine
from dragoman.sessions.values import Conflict

RUNNING, INTERRUPTED = "running", "interrupted"
SILENT = 30.0
"""Seconds without a sign of life after which a run will never end."""


class KeptRun(Struct, frozen=True, kw_only=True):
    """A run as it is kept."""

    owner: str
    id: str
    model: str = ""
    status: str = RUNNING
    """`running`, `interrupted`, or why it ended."""
    summary: bytes = b"{}"
    """What is to be known of a run that is over, as one JSON object."""
    created: int = 0
    entries: tuple[bytes, ...] = ()


class Seen(Struct, frozen=True, kw_only=True):
    """How far a run is."""

    status: str
    summary: bytes
    created: int
    last: bytes
    """Its newest entry."""


class RunMessage(Struct, frozen=True):
    """What somebody says to a run."""

    owner: str
    run: str
    topic: str
    body: bytes


class Runs:
    """Runs, by owner and id."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def begin(self, owner: str, name: str, model: str, body: bytes, *, anew: bool = False) -> None:
        """Keep a run that begins, with its first entry; `Conflict` if there is one of that name.

        With `anew` it takes the place of one that is not under way any more.
        """
        now = int(time())

        def keep(cursor: Cursor) -> None:
            over = "owner = ? AND id = ? AND (status <> ? OR alive < ?)"
            past = (owner, name, RUNNING, int(now - SILENT))
            if anew and cursor.run(f"DELETE FROM runs WHERE {over}", *past):  # noqa: S608
                cursor.run("DELETE FROM run_entries WHERE owner = ? AND run = ?", owner, name)
                cursor.run("DELETE FROM run_messages WHERE owner = ? AND run = ?", owner, name)
            added = cursor.run(
                "INSERT INTO runs (owner, id, model, status, summary, created, alive) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                *(owner, name, model, RUNNING, b"{}", now, now),
            )
            if added != 1:
                raise Conflict(name)
            _add(cursor, owner, name, 0, body)

        await self._engine.write(keep)

    async def add(self, owner: str, name: str, place: int, body: bytes) -> None:
        """Keep an entry at its place; the same one again changes nothing."""
        await self._engine.write(lambda cursor: _add(cursor, owner, name, place, body), lasting=False)

    async def replace(self, owner: str, name: str, place: int, body: bytes) -> None:
        """Keep one entry instead of all before it."""

        def change(cursor: Cursor) -> None:
            cursor.run("DELETE FROM run_entries WHERE owner = ? AND run = ?", owner, name)
            _add(cursor, owner, name, place, body)

        await self._engine.write(change, lasting=False)

    async def live(self, owner: str, name: str) -> None:
        """Note that a run is still going on."""
        now = int(time())
        await self._engine.write(
            lambda cursor: cursor.run("UPDATE runs SET alive = ? WHERE owner = ? AND id = ?", now, owner, name),
            lasting=False,
        )

    async def end(self, owner: str, name: str, status: str, summary: bytes) -> None:
        """Note that a run is over, and how."""
        statement = "UPDATE runs SET status = ?, summary = ? WHERE owner = ? AND id = ? AND status = ?"

        def change(cursor: Cursor) -> None:
            cursor.run(statement, status, summary, owner, name, RUNNING)
            cursor.run("DELETE FROM run_messages WHERE owner = ? AND run = ?", owner, name)

        await self._engine.write(change)

    async def see(self, owner: str, name: str) -> Seen | None:
        """Tell how far a run is."""

        def look(cursor: Cursor) -> Seen | None:
            columns = "status, summary, created, alive"
            rows = cursor.rows(f"SELECT {columns} FROM runs WHERE owner = ? AND id = ?", owner, name)  # noqa: S608
            if not rows:
                return None
            status, summary, created, alive = rows[0]
            newest = "SELECT body FROM run_entries WHERE owner = ? AND run = ? ORDER BY place DESC LIMIT 1"
            entries = cursor.rows(newest, owner, name)
            return Seen(
                status=_as_it_is(status, alive),
                summary=bytes(summary),
                created=created,
                last=bytes(entries[0][0]) if entries else b"",
            )

        return await self._engine.read(look)

    async def entries(self, owner: str, name: str, after: int) -> list[tuple[int, bytes]]:
        """Return the entries of a run behind a place, each with its own."""
        statement = "SELECT place, body FROM run_entries WHERE owner = ? AND run = ? AND place > ? ORDER BY place"
        rows = await self._engine.read(lambda cursor: cursor.rows(statement, owner, name, after))
        return [(place, bytes(body)) for place, body in rows]

    async def say(self, said: RunMessage) -> None:
        """Leave a word for a run, wherever it is; what was said first about a topic holds."""
        statement = (
            "INSERT INTO run_messages (owner, run, topic, body, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        values = (said.owner, said.run, said.topic, said.body, int(time()))
        await self._engine.write(lambda cursor: cursor.run(statement, *values))

    async def heard(self) -> list[RunMessage]:
        """Return all that was said to runs that are not over."""
        statement = "SELECT owner, run, topic, body FROM run_messages"
        rows = await self._engine.read(lambda cursor: cursor.rows(statement))
        return [RunMessage(owner, run, topic, bytes(body)) for owner, run, topic, body in rows]

    async def find(self, owner: str, name: str) -> KeptRun | None:
        """Find a run, and all that was said in it."""

        def look(cursor: Cursor) -> KeptRun | None:
            columns = "model, status, summary, created, alive"
            rows = cursor.rows(f"SELECT {columns} FROM runs WHERE owner = ? AND id = ?", owner, name)  # noqa: S608
            if not rows:
                return None
            model, status, summary, created, alive = rows[0]
            entries = cursor.rows(
                "SELECT body FROM run_entries WHERE owner = ? AND run = ? ORDER BY place", owner, name
            )
            return KeptRun(
                owner=owner,
                id=name,
                model=model,
                status=_as_it_is(status, alive),
                summary=bytes(summary),
                created=created,
                entries=tuple(bytes(body) for (body,) in entries),
            )

        return await self._engine.read(look)

    async def forget(self, owner: str, name: str) -> bool:
        """Forget a run; False if there is none of that name."""

        def change(cursor: Cursor) -> bool:
            cursor.run("DELETE FROM run_entries WHERE owner = ? AND run = ?", owner, name)
            cursor.run("DELETE FROM run_messages WHERE owner = ? AND run = ?", owner, name)
            return bool(cursor.run("DELETE FROM runs WHERE owner = ? AND id = ?", owner, name))

        return await self._engine.write(change)


def _as_it_is(status: str, alive: int) -> str:
    return INTERRUPTED if status == RUNNING and alive < time() - SILENT else status


def _add(cursor: Cursor, owner: str, name: str, place: int, body: bytes) -> None:
    statement = "INSERT INTO run_entries (owner, run, place, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    cursor.run(statement, owner, name, place, body)


def forget_runs(cursor: Cursor, limit: int) -> None:
    """Forget runs that began before a time."""
    old = "SELECT 1 FROM runs WHERE runs.owner = run_entries.owner AND runs.id = run_entries.run AND created < ?"
    cursor.run(f"DELETE FROM run_entries WHERE EXISTS ({old})", limit)  # noqa: S608
    cursor.run("DELETE FROM runs WHERE created < ?", limit)
    cursor.run("DELETE FROM run_messages WHERE created < ?", limit)


class Claims:
    """Claims, by owner and name."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def take(self, owner: str, name: str, holder: str) -> bool:
        """Claim something; False if somebody else has it."""
        now = int(time())
        statement = (
            "INSERT INTO claims (owner, name, holder, alive) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (owner, name) DO UPDATE SET holder = excluded.holder, alive = excluded.alive "
            "WHERE claims.alive < ? OR claims.holder = excluded.holder"
        )

        def change(cursor: Cursor) -> bool:
            return cursor.run(statement, owner, name, holder, now, int(now - SILENT)) == 1

        return await self._engine.write(change, lasting=False)

    async def drop(self, owner: str, name: str, holder: str) -> None:
        """Give a claim back."""
        statement = "DELETE FROM claims WHERE owner = ? AND name = ? AND holder = ?"
        await self._engine.write(lambda cursor: cursor.run(statement, owner, name, holder), lasting=False)
