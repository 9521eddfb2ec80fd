"""A client that leaves: its request ends upstream at once, whatever it was waiting for; and many that stay do not mix."""

import asyncio
import contextlib
import json
from typing import Self

import pytest

from dragoman.config import UpstreamTable

DELTA = b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
HALF = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"id":"c",'
BUSY = b"HTTP/1.1 503 Busy\r\nretry-after: 15\r\ncontent-length: 2\r\n\r\n{}"
SAID = {
    "nothing yet": b"",
    "half a whole reply": HALF,
    "the head of a stream": STREAM,
    "the first of a stream": STREAM + b"%x\r\n%s\r\n" % (len(DELTA), DELTA),
}
TIMES = 5
NO_TIMER = {"hold": 600.0, "heartbeat": 600.0}
"""Nothing is written to the client meanwhile, so that only its disconnect can end a request."""
PATIENCE = 30
"""Seconds; the gateway itself waits five minutes or longer for an upstream."""


class Upstream:
    """A server that sends its bytes and then waits until the client disconnects."""

    def __init__(self, output: bytes) -> None:
        self._output = output
        self.asked = asyncio.Semaphore(0)
        self.left = asyncio.Semaphore(0)
        """Released whenever a client has disconnected."""
        self.requests = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    @property
    def table(self) -> UpstreamTable:
        port = self._server.sockets[0].getsockname()[1]
        return UpstreamTable(kind="openai", base_url=f"http://127.0.0.1:{port}/v1")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        self.requests += 1
        writer.write(self._output)
        await writer.drain()
        self.asked.release()
        await reader.read()
        self.left.release()


async def leave(gateway, upstream: Upstream, *, streamed: bool, hears: bool) -> None:
    """Send a request, and disconnect once the upstream has received it."""
    host, _, port = gateway.base_url.removeprefix("http://").partition(":")
    body = json.dumps({"model": "mine/m", "stream": streamed, "messages": [{"role": "user", "content": "x"}]}).encode()
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n\r\n".encode())
    writer.write(body)
    await asyncio.wait_for(upstream.asked.acquire(), PATIENCE)
    if hears:
        await asyncio.wait_for(reader.readuntil(b'"hi"'), PATIENCE)
    writer.transport.abort()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("streamed", "output"),
    [
        (False, "nothing yet"),
        (True, "nothing yet"),
        (False, "half a whole reply"),
        (True, "the head of a stream"),
        (True, "the first of a stream"),
    ],
)
def test_a_client_that_leaves_ends_the_request_upstream_at_once(serve, streamed, output):
    async def steps() -> None:
        async with Upstream(SAID[output]) as upstream:
            gateway = serve(upstreams={"mine": upstream.table}, **NO_TIMER)
            for _ in range(TIMES):
                await leave(gateway, upstream, streamed=streamed, hears=output == "the first of a stream")
                await asyncio.wait_for(upstream.left.acquire(), PATIENCE)

    asyncio.run(steps())


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_while_another_try_is_waited_for_ends_the_waiting(serve, streamed):
    async def steps() -> None:
        async with Upstream(BUSY) as upstream:
            gateway = serve(upstreams={"mine": upstream.table}, **NO_TIMER)
            await leave(gateway, upstream, streamed=streamed, hears=False)
            records = await asyncio.to_thread(gateway.wait_for_records, 1)
            assert [(record.outcome, record.tries) for record in records] == [("left", 1)]
            assert upstream.requests == 1

    asyncio.run(steps())
