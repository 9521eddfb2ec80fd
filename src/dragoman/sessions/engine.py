"""The interface of a database engine: the tables, and transactions that run off the event loop.

Never change a migration step that has been released; add a new step instead. `{bytes}` is replaced by the database's
type for bytes, the only difference between the databases. Statements use `?` for values and run on every engine.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

MIGRATION_STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "0001-turns",
        (
            """CREATE TABLE conversations (
                owner TEXT NOT NULL, id TEXT NOT NULL, dialect TEXT NOT NULL, head TEXT NOT NULL,
                revision BIGINT NOT NULL, metadata {bytes} NOT NULL, created BIGINT NOT NULL,
                PRIMARY KEY (owner, id))""",
            """CREATE TABLE turns (
                key TEXT PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL,
                conversation TEXT NOT NULL, dialect TEXT NOT NULL, model TEXT NOT NULL, settings TEXT NOT NULL,
                calls {bytes} NOT NULL, digest TEXT NOT NULL, attempt TEXT NOT NULL, reply {bytes} NOT NULL,
                status TEXT NOT NULL, created BIGINT NOT NULL, delivered BIGINT NOT NULL,
                alive BIGINT NOT NULL)""",
            "CREATE INDEX turns_by_id ON turns (owner, id)",
            "CREATE INDEX turns_by_parent ON turns (parent, digest)",
            "CREATE INDEX turns_by_age ON turns (created)",
            """CREATE TABLE items (
                turn TEXT NOT NULL, place BIGINT NOT NULL, owner TEXT NOT NULL, id TEXT NOT NULL,
                said BIGINT NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (turn, place))""",
            "CREATE INDEX items_by_id ON items (owner, id)",
            "CREATE INDEX turns_by_settings ON turns (settings)",
            "CREATE INDEX conversations_by_head ON conversations (head)",
            "CREATE TABLE settings (hash TEXT PRIMARY KEY, body {bytes} NOT NULL, used BIGINT NOT NULL)",
        ),
    ),
    (
        "0002-signatures",
        (
            """CREATE TABLE signatures (
                owner TEXT NOT NULL, call TEXT NOT NULL, digest TEXT NOT NULL, issuer TEXT NOT NULL,
                value TEXT NOT NULL, created BIGINT NOT NULL, PRIMARY KEY (owner, call, digest))""",
            "CREATE INDEX signatures_by_age ON signatures (created)",
        ),
    ),
    (
        "0003-asides",
        (
            """CREATE TABLE asides (
                owner TEXT NOT NULL, call TEXT NOT NULL, body {bytes} NOT NULL, created BIGINT NOT NULL,
                PRIMARY KEY (owner, call))""",
            "CREATE INDEX asides_by_age ON asides (created)",
        ),
    ),
    (
        "0004-runs",
        (
            """CREATE TABLE runs (
                owner TEXT NOT NULL, id TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL,
                summary {bytes} NOT NULL, created BIGINT NOT NULL, alive BIGINT NOT NULL, PRIMARY KEY (owner, id))""",
            "CREATE INDEX runs_by_age ON runs (created)",
            """CREATE TABLE run_entries (
                owner TEXT NOT NULL, run TEXT NOT NULL, place BIGINT NOT NULL, body {bytes} NOT NULL,
                PRIMARY KEY (owner, run, place))""",
        ),
    ),
    (
        "0005-messages-and-claims",
        (
            """CREATE TABLE run_messages (
                owner TEXT NOT NULL, run TEXT NOT NULL, topic TEXT NOT NULL, body {bytes} NOT NULL,
                created BIGINT NOT NULL, PRIMARY KEY (owner, run, topic))""",
            """CREATE TABLE claims (
                owner TEXT NOT NULL, name TEXT NOT NULL, holder TEXT NOT NULL, alive BIGINT NOT NULL,
                PRIMARY KEY (owner, name))""",
        ),
    ),
    (
        "0006-reasoning",
        (
            """CREATE TABLE reasoning (
                owner TEXT NOT NULL, call TEXT NOT NULL, digest TEXT NOT NULL, body {bytes} NOT NULL,
                created BIGINT NOT NULL, PRIMARY KEY (owner, call, digest))""",
            "CREATE INDEX reasoning_by_age ON reasoning (created)",
        ),
    ),
)

CREATE_MIGRATIONS_TABLE = "CREATE TABLE IF NOT EXISTS dragoman_steps (name TEXT PRIMARY KEY)"


T = TypeVar("T")


class Cursor(Protocol):
    """An open transaction."""

    def execute(self, statement: str, *values: Any) -> int:
        """Run a statement; return the number of rows it changed."""
        ...

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        ...

    def fetch_all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a query; return its rows."""
        ...


Transaction = Callable[[Cursor], T]


class Engine(Protocol):
    """A database. Every database error is raised as `Unavailable`."""

    async def read(self, work: Transaction[T]) -> T:
        """Run a transaction that only reads."""
        ...

    async def look_up(self, work: Transaction[T]) -> T:
        """Find a few rows by key, outside a transaction."""
        ...

    async def write(self, work: Transaction[T], *, durable: bool = True) -> T:
        """Run a transaction that writes. If `durable`, the data is on disk when this returns."""
        ...

    async def close(self) -> None:
        """Close the database."""
        ...


def migrate(cursor: Cursor, bytes_type: str) -> None:
    """Run the migration steps that this database has not run yet."""
    cursor.execute(CREATE_MIGRATIONS_TABLE)
    applied = {name for (name,) in cursor.fetch_all("SELECT name FROM dragoman_steps")}
    for name, statements in MIGRATION_STEPS:
        if name in applied:
            continue
        for statement in statements:
            cursor.execute(statement.replace("{bytes}", bytes_type))
        cursor.execute("INSERT INTO dragoman_steps (name) VALUES (?)", name)
