"""Both event loops for the tests of the client."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from dragoman.http.client import Client
from http_peers import Steps

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Steps], Any]:
    """Run steps on asyncio's loop and on uvloop, with a client of their own."""

    async def limit(steps: Steps) -> Any:
        client = Client()
        try:
            return await asyncio.wait_for(steps(client), 20)
        finally:
            await client.close()
            await asyncio.sleep(0.01)

    def running(steps: Steps) -> Any:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(limit(steps))

    return running
