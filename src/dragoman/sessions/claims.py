"""Who works at something now, among all processes that share a store.

A claim holds as long as its holder renews it: one of which nothing was heard for a while is anybody's.
"""

from time import time

from dragoman.sessions.engine import Cursor, Engine
from dragoman.sessions.runs import SILENT


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
