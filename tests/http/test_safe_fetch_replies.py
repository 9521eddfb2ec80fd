"""Responses of untrusted servers are limited in size, in all forms of framing and compression."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from dragoman.http.addresses import LinkRefused
from dragoman.http.safe_fetch import ByteBudget, FetchRules, GuardedFetcher, LinkedPage

LOOPBACK = ("127.0.0.0/8", "::1/128")
PACKED = FetchRules(allows_gzip=True)
OK = b"HTTP/1.1 200 OK\r\n"


def pack(data: bytes) -> bytes:
    """Compress without a timestamp, because test ids are built from the bytes."""
    return gzip.compress(data, mtime=0)


def fetch_from_server(
    reply: Iterator[bytes], *, most: int = 1 << 20, terms: FetchRules = PACKED, seconds: float = 5.0
) -> LinkedPage:
    """Fetch from a server that sends these bytes to every client."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in reply:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
        writer.close()

    async def steps() -> LinkedPage:
        server = await asyncio.start_server(speak, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await GuardedFetcher(LOOPBACK).fetch(f"http://127.0.0.1:{port}/", ByteBudget(most), seconds, terms)

    return asyncio.run(asyncio.wait_for(steps(), 20))


def endlessly(start: bytes, again: bytes) -> Iterator[bytes]:
    yield start
    while True:
        yield again


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (OK + b"x: ", b"y" * 65536),
        (OK + b"x", b"y" * 65536),
        (b"HTTP/1.1 200 ", b"y" * 65536),
        (OK, b"x: y\r\n" * 1000),
        (b"", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 1000),
        (OK + b"transfer-encoding: chunked\r\n\r\n1;", b"y" * 65536),
        (OK + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: ", b"y" * 65536),
        (OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 10000),
        (OK + b"content-encoding: gzip\r\n\r\n", pack(b"") * 1000),
    ],
    ids=["value", "name", "reason", "headers", "informal", "extension", "trailer", "chunks", "empty-members"],
)
def test_an_endless_reply_is_left_after_some_of_it_wherever_it_is_endless(start, again):
    tracemalloc.start()
    try:
        with pytest.raises(LinkRefused, match=r"reached|larger"):
            fetch_from_server(endlessly(start, again), most=200_000)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_compressed_page_is_decompressed_if_gzip_was_requested():
    body = pack(b"hello" * 100)
    head = (
        OK
        + f'Content-Encoding: GZip\r\ncontent-type: text/html; charset="UTF-8"\r\ncontent-length: {len(body)}\r\n\r\n'.encode()
    )
    page = fetch_from_server(iter([head, body]))
    assert (page.media_type, page.charset, page.body) == ("text/html", "utf-8", b"hello" * 100)


def bomb(size: int) -> Iterator[bytes]:
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(size >> 20):
        yield press.compress(bytes(1 << 20))
    yield press.flush()


def test_a_decompression_bomb_is_refused():
    bombed = b"".join(bomb(100 << 20))
    assert len(bombed) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(LinkRefused, match="larger than 4194304 bytes"):
            fetch_from_server(iter([OK + b"content-encoding: gzip\r\n\r\n", bombed]), most=4 << 20)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("headers", "body", "terms"),
    [
        (b"content-encoding: br\r\n", b"x", PACKED),
        (b"content-encoding: deflate\r\n", zlib.compress(b"x"), PACKED),
        (b"content-encoding: gzip, gzip\r\n", pack(pack(b"x")), PACKED),
        (b"content-encoding: gzip\r\ncontent-encoding: gzip\r\n", pack(pack(b"x")), PACKED),
        (b"content-encoding: identity\r\ncontent-encoding: br\r\n", b"x", PACKED),
        (b"content-encoding: gzip\r\n", b"no gzip", PACKED),
        (b"content-encoding: gzip\r\n", pack(b"cut off")[:-4], PACKED),
        (b"content-encoding: gzip\r\n", pack(b"x"), FetchRules()),
    ],
)
def test_an_encoding_that_was_not_requested_or_is_broken_is_refused(headers, body, terms):
    with pytest.raises(LinkRefused, match=r"encoding that was not requested|cannot be decompressed"):
        fetch_from_server(iter([OK + headers + b"\r\n", body]), terms=terms)


def test_a_kind_of_no_use_is_refused_before_its_body_comes():
    def accept(kind: str) -> None:
        raise LinkRefused(f"it is {kind}")

    head = OK + b"content-type: Application/Octet-Stream\r\ncontent-length: 9\r\n\r\n"
    with pytest.raises(LinkRefused, match="it is application/octet-stream"):
        fetch_from_server(iter([head]), terms=FetchRules(accept=accept))


def test_every_redirect_is_admitted_before_its_name_is_resolved():
    seen: list[str] = []
    looked_up: list[str] = []

    async def names(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["127.0.0.1"]

    def admit(place: Any) -> None:
        seen.append(place.host)
        if place.host == "evil.example":
            raise LinkRefused("not there")

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nlocation: http://evil.example/\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async def steps() -> None:
        async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            guard = GuardedFetcher(("good.example",), resolve=names)
            await guard.fetch(f"http://good.example:{port}/", ByteBudget(9), 5, FetchRules(admit=admit))

    with pytest.raises(LinkRefused, match="not there"):
        asyncio.run(steps())
    assert seen == ["good.example", "evil.example"]
    assert looked_up == ["good.example"]


def listen_on(addresses: list[str], steps: Callable[[int], Awaitable[Any]]) -> Any:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"\r\n" + head)
        writer.close()

    async def run() -> Any:
        async with await asyncio.start_server(speak, addresses, 0) as server:
            return await steps(server.sockets[0].getsockname()[1])

    return asyncio.run(asyncio.wait_for(run(), 20))


def test_ipv6_works_from_end_to_end():
    page = listen_on(
        ["::1"], lambda port: GuardedFetcher((f"[::1]:{port}",)).fetch(f"http://[0::1]:{port}/a", ByteBudget(999), 5)
    )
    assert page.body.startswith(b"GET /a HTTP/1.1\r\nhost: [::1]:")


def test_the_next_address_of_a_host_is_tried_if_the_first_does_not_answer():
    async def names(host: str, port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]

    guard = GuardedFetcher(("two.example",), resolve=names)
    page = listen_on(["127.0.0.1"], lambda port: guard.fetch(f"http://two.example:{port}/", ByteBudget(999), 5))
    assert b"host: two.example:" in page.body


def test_a_redirect_with_utf8_is_followed():
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        moved = "HTTP/1.1 302 Found\r\nlocation: /ü\r\ncontent-length: 0\r\n\r\n".encode()
        writer.write(moved if head.startswith(b"GET / ") else OK + b"\r\n" + head)
        writer.close()

    async def steps() -> LinkedPage:
        async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await GuardedFetcher(LOOPBACK).fetch(f"http://127.0.0.1:{port}/", ByteBudget(999), 5)

    page = asyncio.run(steps())
    assert page.body.startswith(b"GET /%C3%BC HTTP/1.1\r\n")
