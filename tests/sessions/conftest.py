"""A store on each database."""

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from databases import postgres
from dragoman.sessions.store import open_store


@pytest.fixture(scope="session")
def postgres_url() -> Generator[str]:
    with postgres() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: Any, tmp_path: Any) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/sessions.sqlite3"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def ask(url):
    """Run one coroutine function with a store of its own."""

    def run(do):
        async def with_store():
            store = open_store(url)
            try:
                return await do(store)
            finally:
                await store.close()

        return asyncio.run(with_store())

    return run
