"""The streams of several choices, played by hand: failures after the first bytes, disconnects and slow clients."""

import asyncio
import contextlib
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator
from typing import Self

import pytest

from dragoman.config import UpstreamTable
from server.conftest import Gateway

HELLO = [{"role": "user", "content": "hello"}]
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    b'"model":"claude-opus-4-8","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":'
    b'{"type":"text","text":""}}\n\n'
)
OVERLOADED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
PATIENCE = 30


def delta(text: str) -> bytes:
    return (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
        b'{"type":"text_delta","text":%b}}\n\n' % json.dumps(text).encode()
    )


class Upstream:
    """A Claude server whose connections send the parts they are given, and note when the gateway closes them."""

    def __init__(self) -> None:
        self.writers: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        self.closed = asyncio.Semaphore(0)
        self._all: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._all:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    @property
    def table(self) -> UpstreamTable:
        port = self._server.sockets[0].getsockname()[1]
        return UpstreamTable(kind="anthropic", base_url=f"http://127.0.0.1:{port}", api_key="k")

    async def take(self, count: int) -> list[asyncio.StreamWriter]:
        """Return the connections of the next requests."""
        return [await asyncio.wait_for(self.writers.get(), PATIENCE) for _ in range(count)]

    async def wait_closed(self, count: int) -> None:
        for _ in range(count):
            await asyncio.wait_for(self.closed.acquire(), PATIENCE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._all.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        self.writers.put_nowait(writer)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        self.closed.release()


@contextlib.asynccontextmanager
async def connect(gateway: Gateway, *, streamed: bool) -> AsyncGenerator[tuple[StreamReader, StreamWriter]]:
    """Send a request for three choices; disconnect at the end."""
    host, _, port = gateway.base_url.removeprefix("http://").partition(":")
    body = json.dumps({"model": "mine/claude-opus-4-8", "stream": streamed, "n": 3, "messages": HELLO}).encode()
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\n\r\n".encode())
    writer.write(body)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_cancels_all_choices(serve, streamed):
    async def steps() -> None:
        async with Upstream() as upstream:
            gateway = serve(upstreams={"mine": upstream.table})
            async with connect(gateway, streamed=streamed):
                await upstream.take(3)
            await upstream.wait_closed(3)
            records = await asyncio.to_thread(gateway.wait_for_records, 1)
            assert [record.outcome for record in records] == ["left"]

    asyncio.run(steps())


@pytest.mark.parametrize("ending", [OVERLOADED, b""], ids=["an error", "a cut"])
def test_a_choice_that_fails_after_the_first_bytes_ends_the_stream_with_an_error_and_cancels_the_others(serve, ending):
    async def steps() -> None:
        async with Upstream() as upstream:
            gateway = serve(upstreams={"mine": upstream.table})
            async with connect(gateway, streamed=True) as (reader, _):
                writers = await upstream.take(3)
                for number, writer in enumerate(writers):
                    writer.write(STREAM + START + delta(f"text {number}"))
                    await asyncio.wait_for(reader.readuntil(f'"text {number}"'.encode()), PATIENCE)
                writers[1].write(delta("the last words") + ending)
                writers[1].write_eof()
                rest = await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), PATIENCE)
                assert rest.count(b'"error"') == 1
                assert b"the last words" in rest
                assert b"[DONE]" not in rest
                await upstream.wait_closed(3)
                records = await asyncio.to_thread(gateway.wait_for_records, 1)
                assert [record.outcome for record in records] == ["failed"]

    asyncio.run(steps())


def test_a_choice_that_fails_before_its_first_byte_is_retried_while_the_others_stream(serve):
    async def steps() -> None:
        async with Upstream() as upstream:
            gateway = serve(upstreams={"mine": upstream.table})
            async with connect(gateway, streamed=True) as (reader, _):
                first, second, _third = await upstream.take(3)
                first.write(STREAM + START + delta("one"))
                await asyncio.wait_for(reader.readuntil(b'"one"'), PATIENCE)
                second.write(b"HTTP/1.1 529 Overloaded\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")
                (again,) = await upstream.take(1)
                again.write(STREAM + START + delta("two"))
                await asyncio.wait_for(reader.readuntil(b'"two"'), PATIENCE)
                first.write(delta("still here"))
                await asyncio.wait_for(reader.readuntil(b'"still here"'), PATIENCE)

    asyncio.run(steps())


def test_a_choice_that_is_refused_after_others_have_begun_ends_the_stream_with_an_error(serve):
    async def steps() -> None:
        async with Upstream() as upstream:
            gateway = serve(upstreams={"mine": upstream.table})
            async with connect(gateway, streamed=True) as (reader, _):
                first, second, _third = await upstream.take(3)
                first.write(STREAM + START + delta("one"))
                await asyncio.wait_for(reader.readuntil(b'"one"'), PATIENCE)
                error = b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'
                second.write(
                    b"HTTP/1.1 400 Bad\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(error), error)
                )
                rest = await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), PATIENCE)
                assert rest.count(b'"error"') == 1
                assert b'"invalid_request_error"' in rest
                await upstream.wait_closed(3)

    asyncio.run(steps())


def test_a_stream_that_a_heartbeat_has_started_ends_with_the_error_of_a_choice(serve):
    async def steps() -> None:
        async with Upstream() as upstream:
            gateway = serve(upstreams={"mine": upstream.table}, hold=0.01)
            async with connect(gateway, streamed=True) as (reader, _):
                first, _second, _third = await upstream.take(3)
                await asyncio.wait_for(reader.readuntil(b"200 OK"), PATIENCE)
                error = b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'
                first.write(
                    b"HTTP/1.1 400 Bad\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(error), error)
                )
                rest = await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), PATIENCE)
                assert rest.count(b'"error"') == 1
                await upstream.wait_closed(3)

    asyncio.run(steps())


def test_a_client_that_stops_reading_stops_the_reading_of_every_choice(serve):
    async def steps() -> None:
        async with Upstream() as upstream:
            gateway = serve(upstreams={"mine": upstream.table})
            async with connect(gateway, streamed=True) as (reader, _):
                writers = await upstream.take(3)
                for writer in writers:
                    writer.write(STREAM + START)
                    writer.transport.set_write_buffer_limits(high=1)
                tasks = [asyncio.create_task(send_much(writer)) for writer in writers]
                done, pending = await asyncio.wait(tasks, timeout=3)
                assert not done
                assert b"role" in await asyncio.wait_for(reader.readuntil(b"role"), PATIENCE)
                for task in pending:
                    task.cancel()
                await asyncio.wait(pending)

    asyncio.run(steps())


async def send_much(writer: asyncio.StreamWriter) -> None:
    """Send more than all buffers on the way hold."""
    chunk = delta("x" * 100_000)
    for _ in range(1000):
        writer.write(chunk)
        await writer.drain()
