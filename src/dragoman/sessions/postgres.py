"""The PostgreSQL engine, shared by any number of gateways. Only this module imports psycopg."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, LiteralString, TypeVar, cast

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from dragoman.sessions.engine import Transaction, migrate
from dragoman.sessions.values import Unavailable

T = TypeVar("T")
_CONNECTIONS = 8
_WAIT_SECONDS = 5.0
_MIGRATION_LOCK = 0x647261676F
"""The advisory lock that lets only one gateway migrate the tables at a time."""


class _Cursor:
    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection

    def execute(self, statement: str, *values: Any) -> int:
        return self._connection.execute(_to_psycopg(statement), values).rowcount

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_to_psycopg(statement), rows)

    def fetch_all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(_to_psycopg(statement), values).fetchall()


def _to_psycopg(statement: str) -> LiteralString:
    # Every statement is a constant of this package; only the placeholder for values differs.
    return cast("LiteralString", statement.replace("?", "%s"))


class Postgres:
    """A PostgreSQL database. It may be down when the gateway starts; then the first transactions wait for it."""

    def __init__(self, url: str) -> None:
        self._pool: ConnectionPool[psycopg.Connection[tuple[Any, ...]]] = ConnectionPool(
            url,
            kwargs={"connect_timeout": 5, "options": "-c statement_timeout=10000"},
            min_size=0,
            max_size=_CONNECTIONS,
            timeout=_WAIT_SECONDS,
            open=False,
            check=ConnectionPool.check_connection,
        )
        self._threads = ThreadPoolExecutor(_CONNECTIONS, thread_name_prefix="sessions")
        self._is_ready = False

    async def read(self, work: Transaction[T]) -> T:
        return await self._run_in_thread(work, durable=True)

    async def look_up(self, work: Transaction[T]) -> T:
        return await self.read(work)

    async def write(self, work: Transaction[T], *, durable: bool = True) -> T:
        return await self._run_in_thread(work, durable=durable)

    async def close(self) -> None:
        await asyncio.to_thread(self._pool.close)
        await asyncio.to_thread(self._threads.shutdown)

    async def _run_in_thread(self, work: Transaction[T], *, durable: bool) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run_transaction, work, durable)

    def _run_transaction(self, work: Transaction[T], durable: bool) -> T:
        try:
            self._pool.open()
            with self._pool.connection() as connection:
                cursor = _Cursor(connection)
                if not self._is_ready:
                    with connection.transaction():
                        cursor.fetch_all("SELECT pg_advisory_xact_lock(?)", _MIGRATION_LOCK)
                        migrate(cursor, "BYTEA")
                    self._is_ready = True
                with connection.transaction():
                    if not durable:
                        cursor.execute("SET LOCAL synchronous_commit = off")
                    return work(cursor)
        except (psycopg.Error, PoolTimeout) as error:
            raise Unavailable(str(error)) from None
