"""What only the file promises."""

import asyncio
import os
import sqlite3
from contextlib import closing
from threading import Timer

import pytest

from dragoman.sessions import sqlite
from dragoman.sessions.sqlite import Sqlite
from dragoman.sessions.values import Unavailable


@pytest.fixture
def held(tmp_path):
    """A new file that another process is about to make its own."""
    path = tmp_path / "sessions.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield path, other


def test_a_new_file_is_opened_by_many_at_the_same_moment(held):
    path, other = held
    Timer(0.2, other.execute, ["COMMIT"]).start()
    asyncio.run(Sqlite(path).close())


def test_a_file_that_another_never_lets_go_of_cannot_be_opened(held, monkeypatch):
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.1)
    with pytest.raises(Unavailable, match="locked"):
        Sqlite(held[0])


def test_its_files_are_readable_only_by_the_owner(tmp_path):
    before = os.umask(0)
    try:
        store = Sqlite(tmp_path / "kept" / "sessions.sqlite3")
        made = list((tmp_path / "kept").iterdir())
        assert made
        assert not [path.name for path in (tmp_path / "kept", *made) if path.stat().st_mode & 0o077]
        asyncio.run(store.close())
    finally:
        os.umask(before)


def test_only_the_first_of_several_transactions_waits_long_for_a_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.4)
    path = tmp_path / "sessions.sqlite3"

    async def steps() -> list[int]:
        store = Sqlite(path)
        timeouts: list[int] = []

        async def write() -> None:
            try:
                await store.write(lambda cursor: cursor.fetch_all("SELECT 1"))
            finally:
                timeouts.append(store._connection.execute("PRAGMA busy_timeout").fetchone()[0])

        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            await write()
            other.execute("BEGIN IMMEDIATE")
            for _ in range(2):
                with pytest.raises(Unavailable):
                    await write()
            other.execute("COMMIT")
        await write()
        await store.close()
        return timeouts

    assert asyncio.run(steps()) == [400, 50, 50, 400]
