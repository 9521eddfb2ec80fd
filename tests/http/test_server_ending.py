"""How a server stops: it may drain first, and responses that outlive the grace still send why."""

import asyncio
import contextlib

import pytest
import uvloop

from dragoman.http.admission import RequestPolicy
from dragoman.http.exchange import Exchange
from dragoman.http.server import Ending, listen

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


async def echo(exchange: Exchange) -> None:
    await exchange.send(200, {}, b"ok")


@LOOPS
def test_responses_that_outlive_the_grace_may_still_send_why(loop):
    failed = asyncio.Event()

    async def endless(exchange: Exchange) -> None:
        exchange.start(200, {}, first=b"one ")
        await failed.wait()
        await exchange.end(b"an error")

    async def steps() -> bytes:
        ending = Ending(grace=0.05, on_grace_end=failed.set)
        async with listen(endless, ending=ending) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await reader.readuntil(b"one ")
        answer = await reader.read()
        writer.close()
        return answer

    with asyncio.Runner(loop_factory=loop) as runner:
        answer = runner.run(steps())
    assert b"an error" in answer
    assert answer.endswith(b"0\r\n\r\n")


@LOOPS
def test_connections_are_accepted_while_the_server_drains(loop):
    async def steps() -> bytes:
        policy = RequestPolicy()
        async with asyncio.timeout(20), contextlib.AsyncExitStack() as stack:
            server = await stack.enter_async_context(listen(echo, policy=policy, ending=Ending(drain=0.5)))
            closing = asyncio.ensure_future(stack.aclose())
            await asyncio.sleep(0.05)
            assert policy.load.is_stopping
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
            await closing
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*server.address)
        return answer

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(steps()).startswith(b"HTTP/1.1 200")
