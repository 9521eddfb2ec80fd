"""A row is found by its key on the event loop, unless the file is locked or the disk is slow."""

import asyncio
import sqlite3
import threading

import pytest

from dragoman.sessions import sqlite
from dragoman.sessions.sqlite import Sqlite


@pytest.fixture
def engine(tmp_path):
    opened = Sqlite(tmp_path / "sessions.sqlite3")
    yield opened
    asyncio.run(opened.close())


def thread_of(_cursor):
    return threading.current_thread().name


def test_a_lookup_takes_no_thread(engine):
    assert asyncio.run(engine.look_up(thread_of)) == threading.current_thread().name


def test_a_file_that_is_locked_is_waited_for_by_a_thread(engine):
    tries = []

    def look(cursor):
        tries.append(thread_of(cursor))
        if len(tries) == 1:
            raise sqlite3.OperationalError("database is locked")
        return tries[-1]

    assert asyncio.run(engine.look_up(look)).startswith("sessions-read")


def test_after_a_slow_lookup_threads_do_it_for_a_while(engine, monkeypatch):
    now = iter([100.0, 100.03, 100.03, 101.0, 200.0, 200.0])
    monkeypatch.setattr(sqlite, "monotonic", lambda: next(now))
    first = threading.current_thread().name
    assert asyncio.run(engine.look_up(thread_of)) == first
    assert asyncio.run(engine.look_up(thread_of)).startswith("sessions-read")
    assert asyncio.run(engine.look_up(thread_of)) == first
