"""What the store needs of a database: work done in a transaction, off the event loop.

Statements have `?` for their values, and run alike on every engine.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from dragoman.sessions.tables import MIGRATIONS, STEPS

T = TypeVar("T")


class Cursor(Protocol):
    """A transaction that is open."""

    def run(self, statement: str, *values: Any) -> int:
        """Change something; return how many rows that were."""
        ...

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Do the same for many rows."""
        ...

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Look something up."""
        ...


Work = Callable[[Cursor], T]


class Engine(Protocol):
    """A database. Whatever is wrong with it is told as `Unavailable`."""

    async def read(self, work: Work[T]) -> T:
        """Look at what is kept."""
        ...

    async def look_up(self, work: Work[T]) -> T:
        """Find a few rows by their key, outside a transaction."""
        ...

    async def write(self, work: Work[T], *, lasting: bool = True) -> T:
        """Change it, all or nothing; lasting means it survives the machine as soon as this returns."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


def migrate(cursor: Cursor, bytes_type: str) -> None:
    """Make the tables what this version needs."""
    cursor.run(MIGRATIONS)
    known = {name for (name,) in cursor.rows("SELECT name FROM dragoman_steps")}
    for name, statements in STEPS:
        if name in known:
            continue
        for statement in statements:
            cursor.run(statement.replace("{bytes}", bytes_type))
        cursor.run("INSERT INTO dragoman_steps (name) VALUES (?)", name)
