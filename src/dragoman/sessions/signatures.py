"""The tables of signatures and signed reasoning, by owner, call id and a digest of the call's content.

What belongs to an answer without calls has an id made from its text.
"""

from collections.abc import Mapping, Sequence
from time import time

from msgspec import Struct

from dragoman.sessions.engine import Cursor, Engine
from dragoman.sessions.rows import GROUP_MARKS, group_names

_SAVE_SIGNATURE = (
    "INSERT INTO signatures (owner, call, digest, issuer, value, created) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (owner, call, digest) DO UPDATE SET issuer = excluded.issuer, value = excluded.value, "
    "created = excluded.created"
)
_SAVE_REASONING = (
    "INSERT INTO reasoning (owner, call, digest, body, created) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (owner, call, digest) DO UPDATE SET body = excluded.body, created = excluded.created"
)
_SIGNATURES = "SELECT call, digest, issuer, value, NULL FROM signatures WHERE owner = ? AND call IN "
_REASONING = " UNION ALL SELECT call, digest, '', '', body FROM reasoning WHERE owner = ? AND call IN "
_FIND = {size: _SIGNATURES + marks + _REASONING + marks for size, marks in GROUP_MARKS.items()}
_HAS_ANY = (
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM signatures WHERE owner = ?) "
    "OR EXISTS (SELECT 1 FROM reasoning WHERE owner = ?)"
)


class SignatureRow(Struct, frozen=True):
    """What is stored for a call: its own signature, and the signed reasoning and texts before it."""

    issuer: str = ""
    value: str = ""
    """The signature of the call; empty if it has none."""
    reasoning: bytes = b""
    """The signed parts before the call, as the caller encoded them; empty if there are none."""


class SignatureTable:
    """Stores and finds signatures and signed reasoning."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def save(self, owner: str, rows: Mapping[tuple[str, str], SignatureRow]) -> None:
        """Store rows, by call id and digest of the call's content."""
        now = int(time())
        signatures = [(owner, *key, row.issuer, row.value, now) for key, row in rows.items() if row.value]
        reasoning = [(owner, *key, row.reasoning, now) for key, row in rows.items() if row.reasoning]

        def insert(cursor: Cursor) -> None:
            if signatures:
                cursor.execute_many(_SAVE_SIGNATURE, signatures)
            if reasoning:
                cursor.execute_many(_SAVE_REASONING, reasoning)

        await self._engine.write(insert, durable=False)

    async def has_any(self, owner: str) -> bool:
        """Return whether anything is stored for an owner."""
        return await self._engine.look_up(lambda cursor: bool(cursor.fetch_all(_HAS_ANY, owner, owner)))

    async def find(self, owner: str, calls: Sequence[str]) -> dict[str, dict[str, SignatureRow]]:
        """Return the rows of calls, by call id and digest of the call's content."""

        def select(cursor: Cursor) -> dict[str, dict[str, SignatureRow]]:
            found: dict[str, dict[str, SignatureRow]] = {}
            for group in group_names(calls):
                rows = cursor.fetch_all(_FIND[len(group)], owner, *group, owner, *group)
                for call, digest, issuer, value, body in rows:
                    of_call = found.setdefault(call, {})
                    before = of_call.get(digest, SignatureRow())
                    of_call[digest] = (
                        SignatureRow(issuer, value, before.reasoning)
                        if body is None
                        else SignatureRow(before.issuer, before.value, bytes(body))
                    )
            return found

        return await self._engine.look_up(select)
