"""The SQLite engine: one file, written by one thread.

All queued jobs are written in one transaction and synced once; a job that fails is rolled back alone. Several processes
can share the file: with the write-ahead log one can write while the others read.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any, TypeVar

from msgspec import Struct

from dragoman.sessions.engine import Cursor, Transaction, migrate
from dragoman.sessions.values import Unavailable

T = TypeVar("T")
_BUSY_SECONDS = 4.0
_LOCKED_SECONDS = 0.05
"""Seconds to wait for a lock that the last transaction has not got: a request makes several, and must fail in time."""
_RETRY_SECONDS = 0.01
_PRIMARY_CODE = 0xFF
"""The low byte of an SQLite error code, which has the kind of error; the rest has the details."""
_MAX_BATCH = 64
_SLOW_SECONDS = 0.02
_BY_THREAD_SECONDS = 5.0


class _Job(Struct, frozen=True):
    work: Transaction[Any]
    future: "Future[Any]"
    durable: bool


class _Patience:
    """How long a connection waits for a lock: less while it is held, so that a request does not wait at each step."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._is_short = False

    def note_success(self) -> None:
        """Wait longer again: the lock was free."""
        if self._is_short:
            self._set(_BUSY_SECONDS, is_short=False)

    def note_error(self, error: sqlite3.Error) -> None:
        """Wait shortly from now on if the error is a lock that was held too long."""
        if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE == sqlite3.SQLITE_BUSY and not self._is_short:
            self._set(_LOCKED_SECONDS, is_short=True)

    def _set(self, seconds: float, *, is_short: bool) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
        self._is_short = is_short


class _Cursor:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, *values: Any) -> int:
        return self._connection.execute(statement, values).rowcount

    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, rows)

    def fetch_all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()


class Sqlite:
    """An SQLite database file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="sessions-read")
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._by_thread_until = 0.0
        """Lookups use a thread until this time, because one was slow."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Other users must not read conversations. SQLite creates its other files with the mode of this one.
            path.touch(mode=0o600)
            self._connection = self._connect()
            _enable_wal(self._connection)
            self._connection.execute("BEGIN IMMEDIATE")
            migrate(_Cursor(self._connection), "BLOB")
            self._connection.execute("COMMIT")
            self._patience = _Patience(self._connection)
            self._lookup_connection = self._connect(timeout=0.0)
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(str(error)) from None
        self._writer = threading.Thread(target=self._run_writer, name="sessions-write", daemon=True)
        self._writer.start()

    async def read(self, work: Transaction[T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    async def look_up(self, work: Transaction[T]) -> T:
        """Find a few rows by key.

        This runs on the event loop, because it takes microseconds and a thread would cost ten times as much. If the
        file is locked, or a lookup was slow a moment ago, it runs in a thread.
        """
        started = monotonic()
        if started >= self._by_thread_until:
            try:
                return work(_Cursor(self._lookup_connection))
            except sqlite3.Error:
                pass  # the file is locked; a thread can wait for it
            finally:
                if monotonic() - started > _SLOW_SECONDS:
                    self._by_thread_until = monotonic() + _BY_THREAD_SECONDS
        return await self.read(work)

    async def write(self, work: Transaction[T], *, durable: bool = True) -> T:
        done: Future[T] = Future()
        self._jobs.put(_Job(work, done, durable))
        return await asyncio.wrap_future(done)

    async def close(self) -> None:
        self._jobs.put(None)
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._open:
            connection.close()

    def _connect(self, timeout: float | None = None) -> sqlite3.Connection:
        seconds = _BUSY_SECONDS if timeout is None else timeout
        connection = sqlite3.connect(
            self._path, timeout=seconds, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        self._open.append(connection)
        return connection

    def _read(self, work: Transaction[T]) -> T:
        try:
            connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self._connect()
                self._local.patience = _Patience(connection)
        except sqlite3.Error as error:
            raise Unavailable(str(error)) from None
        patience: _Patience = self._local.patience
        try:
            # One transaction, so that a history and its head are consistent.
            connection.execute("BEGIN")
            try:
                result = work(_Cursor(connection))
            finally:
                connection.execute("COMMIT")
            patience.note_success()
        except sqlite3.Error as error:
            patience.note_error(error)
            raise Unavailable(str(error)) from None
        return result

    def _run_writer(self) -> None:
        while (job := self._jobs.get()) is not None:
            jobs = [job]
            while not self._jobs.empty() and len(jobs) < _MAX_BATCH:
                following = self._jobs.get()
                if following is None:
                    self._jobs.put(None)
                    break
                jobs.append(following)
            self._write_batch(jobs)

    def _write_batch(self, jobs: list[_Job]) -> None:
        cursor = _Cursor(self._connection)
        outcomes: list[Callable[[], None]] = []
        try:
            # FULL syncs the log at each commit. NORMAL may lose the last commits, but never corrupts the file.
            cursor.execute(f"PRAGMA synchronous = {'FULL' if any(job.durable for job in jobs) else 'NORMAL'}")
            cursor.execute("BEGIN IMMEDIATE")
            outcomes = [self._run_job(job, cursor) for job in jobs]
            cursor.execute("COMMIT")
        except sqlite3.Error as error:
            self._patience.note_error(error)
            self._roll_back()
            for job in jobs:
                _resolve_future(job.future.set_exception, Unavailable(str(error)), job.future)
            return
        self._patience.note_success()
        for resolve in outcomes:
            resolve()

    def _run_job(self, job: _Job, cursor: Cursor) -> Callable[[], None]:
        """Run one job; return a function that resolves its future, to be called after the commit."""
        cursor.execute("SAVEPOINT job")
        try:
            result = job.work(cursor)
        except sqlite3.DatabaseError:
            raise  # the disk is full or the file was deleted: the whole transaction fails
        except Exception as error:  # noqa: BLE001  passed to the caller that queued the job
            cursor.execute("ROLLBACK TO job")
            cursor.execute("RELEASE job")
            failure = error
            return lambda: _resolve_future(job.future.set_exception, failure, job.future)
        cursor.execute("RELEASE job")
        return lambda: _resolve_future(job.future.set_result, result, job.future)

    def _roll_back(self) -> None:
        """Roll back a failed transaction; if even that fails, replace the connection."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
                self._connection = self._connect()
                self._patience = _Patience(self._connection)


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log; retried here, because SQLite does not wait for a process that does the same."""
    end = monotonic() + _BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY_CODE != sqlite3.SQLITE_BUSY or monotonic() > end:
                raise
            sleep(_RETRY_SECONDS)
        else:
            return


def _resolve_future(set_outcome: Callable[[Any], None], value: Any, future: "Future[Any]") -> None:
    """Set the result or exception of a job, unless its caller has cancelled it."""
    if future.set_running_or_notify_cancel():
        set_outcome(value)
