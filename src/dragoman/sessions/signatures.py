"""The table of tool call signatures, by owner, call id and a digest of the call's content."""

from collections.abc import Mapping, Sequence
from time import time

from dragoman.sessions.engine import Cursor, Engine
from dragoman.sessions.rows import GROUP_MARKS, group_names

_SAVE = (
    "INSERT INTO signatures (owner, call, digest, issuer, value, created) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (owner, call, digest) DO UPDATE SET issuer = excluded.issuer, value = excluded.value, "
    "created = excluded.created"
)
_FIND = {
    size: "SELECT call, digest, issuer, value FROM signatures WHERE owner = ? AND call IN " + marks  # noqa: S608
    for size, marks in GROUP_MARKS.items()
}


class SignatureTable:
    """Stores and finds signatures."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def save(self, owner: str, signed: Mapping[tuple[str, str], tuple[str, str]]) -> None:
        """Store the issuer and value of signatures, by call id and digest of the call's content."""
        now = int(time())
        rows = [(owner, call, digest, issuer, value, now) for (call, digest), (issuer, value) in signed.items()]
        await self._engine.write(lambda cursor: cursor.execute_many(_SAVE, rows), durable=False)

    async def find(self, owner: str, calls: Sequence[str]) -> dict[str, dict[str, tuple[str, str]]]:
        """Return the issuer and value of signatures, by call id and digest of the call's content."""

        def select(cursor: Cursor) -> dict[str, dict[str, tuple[str, str]]]:
            found: dict[str, dict[str, tuple[str, str]]] = {}
            for group in group_names(calls):
                for call, digest, issuer, value in cursor.fetch_all(_FIND[len(group)], owner, *group):
                    found.setdefault(call, {})[digest] = (issuer, value)
            return found

        return await self._engine.look_up(select)
