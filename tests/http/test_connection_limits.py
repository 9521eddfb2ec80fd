"""Client limits: slow, large and ambiguous requests end the connection and do not affect the server."""

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from dragoman.http.admission import ClientLimits, Load, RequestPolicy
from dragoman.http.connection import RequestHandler
from dragoman.http.exchange import ClientDisconnected, Exchange
from dragoman.http.rejection import RejectionRenderer
from dragoman.http.server import Server, listen

Steps = Callable[[Server], Awaitable[Any]]
QUICK = ClientLimits(head_seconds=0.15, body_seconds=0.15, idle=0.4, head=4000, body=100_000)
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Run steps on both event loops against a server that echoes what it received."""

    def running(
        steps: Steps,
        limits: ClientLimits = QUICK,
        refusal: RejectionRenderer | None = None,
        handler: RequestHandler | None = None,
    ) -> Any:
        async def whole() -> Any:
            async with (
                listen(
                    handler or echo, policy=RequestPolicy(load=Load(limits), rejection_renderer=refusal), grace=0.1
                ) as server,
                asyncio.timeout(20),
            ):
                return await steps(server)

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(whole())

    return running


async def echo(exchange: Exchange) -> None:
    request = exchange.request
    await exchange.send(200, {}, f"{[name for name, _ in request.headers]} ".encode() + request.body[:50])


async def drip_bytes(server: Server, begin: bytes, drip: bytes) -> tuple[bytes, float]:
    """Send some bytes, then few at a time until disconnected; return the received bytes and the duration."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(begin)
    answer = asyncio.ensure_future(reader.read())
    while not answer.done():
        await asyncio.wait([answer], timeout=0.03)
        if drip and not answer.done():
            writer.write(drip)
    writer.close()
    return answer.result(), loop.time() - began


async def exchange_bytes(server: Server, *words: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*server.address)
    for word in words:
        writer.write(word)
        await writer.drain()
    result = await reader.read()
    writer.close()
    return result


@pytest.mark.parametrize(
    ("begin", "drip"),
    [
        (b"", b""),
        (b"POST / HT", b""),
        (b"GET / HTTP/1.1\r\n", b"X: y\r\n"),
        (b"GET / HTTP/1.1\r\nX: ", b"y"),
        (POST + b"Content-Length: 5000\r\n\r\n", b""),
        (POST + b"Content-Length: 5000\r\n\r\n", b"x"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
    ],
    ids=["nothing", "half a line", "headers", "a header", "no body", "body", "chunks", "extension of a chunk"],
)
def test_a_client_that_sends_too_slowly_is_disconnected_in_time(run, begin, drip):
    result, seconds = run(lambda server: drip_bytes(server, begin, drip))
    assert result.startswith(b"HTTP/1.1 408") if b"\r\n\r\n" in begin else result == b""
    assert seconds > 0.1


def test_a_client_may_rest_between_requests_longer_than_within_one(run):
    async def steps(server: Server) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"['host'] ")
        assert await reader.read() == b""
        writer.close()
        return loop.time() - began

    assert run(steps) > 0.35


def test_a_large_body_that_comes_fast_may_take_longer_than_its_time(run):
    async def steps(server: Server) -> bytes:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(POST + b"Connection: close\r\nContent-Length: 90000\r\n\r\n")
        for _ in range(9):
            writer.write(bytes(10_000))
            await asyncio.sleep(0.05)
        result = await reader.read()
        writer.close()
        return result

    assert run(steps).startswith(b"HTTP/1.1 200")


UNCLEAR = {
    "two measures": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two measures, the other way": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    "the same length twice": b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n12345",
    "lengths in a list": b"Content-Length: 5, 5\r\n\r\n12345",
    "a length with a sign": b"Content-Length: +5\r\n\r\n12345",
    "a length below nothing": b"Content-Length: -5\r\n\r\n",
    "a length beyond numbers": b"Content-Length: 99999999999999999999999\r\n\r\n",
    "unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "coding within chunks": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks within a coding": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two codings, one unknown": b"Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no number of a chunk": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a chunk longer than said": b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    "a chunk's size beyond numbers": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n",
    "a chunk's line without return": b"Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
    "folded header": b"X: a\r\n b\r\n\r\n",
    "space before the colon": b"X : a\r\n\r\n",
    "no name": b": a\r\n\r\n",
    "nothing in a value": b"X: a\0b\r\n\r\n",
    "a return in a value": b"X: a\rB: c\r\n\r\n",
}


@pytest.mark.parametrize("words", UNCLEAR.values(), ids=UNCLEAR)
def test_what_two_readers_could_read_in_two_ways_is_refused_and_nothing_after_it_is_read(run, words):
    result = run(lambda server: exchange_bytes(server, POST + words + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
    assert result.startswith(b"HTTP/1.1 400")
    assert result.count(b"HTTP/1.1") == 1


HOSTS = ["a:evil", "a:", "a:1:2", "[::1", "[::1]evil", "[evil]", "a@b", "a b", "a\\b", "a/b", "a?b", "a#b", "a:123456"]


@pytest.mark.parametrize("host", [None, *HOSTS, "a\r\nHost: a"])
def test_a_missing_invalid_or_repeated_host_is_rejected_and_nothing_after_it_is_read(run, host):
    head = b"GET / HTTP/1.1\r\n" + (b"" if host is None else f"Host: {host}\r\n".encode()) + b"\r\n"
    result = run(lambda server: exchange_bytes(server, head + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
    assert result.startswith(b"HTTP/1.1 400")
    assert result.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("host", ["a", "a:1", "a.b-c_d:65535", "[::1]", "[::1]:80", "127.0.0.1:8741", "A%20b", ""])
def test_a_valid_host_is_accepted(run, host):
    words = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    assert run(lambda server: exchange_bytes(server, words)).startswith(b"HTTP/1.1 200")


def test_an_old_client_cannot_send_chunks(run):
    words = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert run(lambda server: exchange_bytes(server, words)).startswith(b"HTTP/1.1 400")


def test_headers_behind_a_body_are_not_taken_for_headers(run):
    words = POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Api-Key: late\r\n\r\n"
    assert run(lambda server: exchange_bytes(server, words)).endswith(b"['host', 'connection', 'transfer-encoding'] ")


@pytest.mark.parametrize(
    "words",
    [b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 300 + b"\r\n", b"GET / HTTP/1.1\r\nx: " + b"a" * 20_000],
    ids=["too many", "one without end"],
)
def test_headers_have_limits_before_they_are_whole(run, words):
    assert run(lambda server: exchange_bytes(server, words)).startswith(b"HTTP/1.1 431")


def test_a_client_that_is_refused_while_it_sends_reads_why(run):
    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, POST + b"Content-Length: 3000000\r\n\r\n", bytes(3_000_000))

    assert run(steps).startswith(b"HTTP/1.1 413")


def test_a_rejection_is_rendered_in_the_clients_dialect(run):
    def refusal(status, request):
        return (("content-type", "text/plain"),), f"{status} for {request.path} {request.header('x-a')}".encode()

    words = b"POST /there?a=b HTTP/1.1\r\nHost: a\r\nX-A: me\r\nContent-Length: 3000000\r\n\r\n"
    result = run(lambda server: exchange_bytes(server, words), refusal=refusal)
    assert result.startswith(b"HTTP/1.1 413")
    assert result.endswith(b"content-length: 17\r\n\r\n413 for /there me")


BODY = b'{"model":"m","text":"' + b"words and words " * 3000 + b'"}'
RAW = zlib.compressobj(wbits=-15)
PACKED = {
    "gzip": gzip.compress(BODY),
    "GZIP": gzip.compress(BODY),
    "x-gzip": gzip.compress(BODY[:20]) + gzip.compress(BODY[20:]),
    "deflate": zlib.compress(BODY),
    "deflate ": RAW.compress(BODY) + RAW.flush(),
    "identity": BODY,
}


def pack(encoding: str, body: bytes) -> bytes:
    head = f"Content-Encoding: {encoding}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return POST + head.encode() + body


@pytest.mark.parametrize("encoding", PACKED)
def test_a_compressed_body_is_decompressed_before_the_handler_reads_it(run, encoding):
    result = run(lambda server: exchange_bytes(server, pack(encoding, PACKED[encoding])))
    assert result.endswith(b"['host', 'connection'] " + BODY[:50])


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("zstd", b"x", b"415"),
        ("br", b"x", b"415"),
        ("gzip, gzip", b"x", b"415"),
        ("gzip", b"no gzip at all", b"400"),
        ("gzip", gzip.compress(BODY, mtime=0)[:-10], b"400"),
        ("deflate", b"\xff\xff\xff\xff", b"400"),
        ("gzip", gzip.compress(bytes(200_000), mtime=0), b"413"),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_refused(run, encoding, body, status):
    result = run(lambda server: exchange_bytes(server, pack(encoding, body)))
    assert result.startswith(b"HTTP/1.1 " + status)
    assert (b"accept-encoding: gzip, deflate" in result) == (status == b"415")


def test_a_decompression_bomb_is_rejected_before_it_expands(run):
    bomb = gzip.compress(bytes(60 << 20))
    result = run(lambda server: exchange_bytes(server, pack("gzip", bomb)), limits=ClientLimits())
    assert result.startswith(b"HTTP/1.1 413")


READERS = ClientLimits(write_seconds=0.8)


async def without_end(exchange: Exchange) -> None:
    """Send more than the socket buffers hold, and record how that ends."""
    exchange.start(200, {})
    try:
        for _ in range(256):
            await exchange.write(bytes(64 << 10))
        await exchange.end()
        ends.append("whole")
    except ClientDisconnected:
        ends.append("gone")


ends: list[str] = []


@pytest.mark.parametrize("reads", [False, True])
def test_a_client_that_reads_nothing_is_disconnected_and_one_that_reads_slowly_is_not(run, reads):
    async def steps(server: Server) -> None:
        ends.clear()
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(POST + b"Content-Length: 0\r\n\r\n")
        async with asyncio.timeout(15):
            while not ends:
                await asyncio.sleep(0.02)  # slower than the answer comes, and for longer than the deadline
                if reads:
                    await reader.read(1 << 18)
        writer.close()

    run(steps, READERS, handler=without_end)
    assert ends == ["whole" if reads else "gone"]


def test_of_requests_that_wait_only_some_bytes_are_read(run):
    begun, ready = asyncio.Event(), asyncio.Event()
    sizes: list[int] = []

    async def slow(exchange: Exchange) -> None:
        sizes.append(len(exchange.request.body))
        begun.set()
        await ready.wait()
        await exchange.send(200, {}, b"ok")

    async def steps(server: Server) -> bytes:
        reader, writer = await asyncio.open_connection(*server.address)
        request = POST + b"Content-Length: 8000000\r\n\r\n" + bytes(8_000_000)
        writer.write(request * 3 + POST + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
        await begun.wait()
        await asyncio.sleep(0.2)
        (connection,) = server.connections
        assert connection._waiting_size + connection._body_size < 1_000_000
        ready.set()
        answers = await reader.read()
        writer.close()
        return answers

    assert run(steps, ClientLimits(), handler=slow).count(b"200 OK") == 4
    assert sizes == [8_000_000] * 3 + [0]


def test_an_invalid_request_after_a_valid_one_is_rejected_after_its_answer(run):
    async def steps(server: Server) -> bytes:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(POST + b"Content-Length: 2\r\n\r\nhigarbage\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer

    first, rest = run(steps).split(b"hi")
    assert first.startswith(b"HTTP/1.1 200")
    assert rest.startswith(b"HTTP/1.1 400")
    assert b"connection: close" in rest


def test_an_invalid_request_on_a_reused_connection_is_rejected_while_the_last_handler_still_runs(run):
    async def lingering(exchange: Exchange) -> None:
        await exchange.send(200, {}, b"hi")
        await asyncio.sleep(0.1)

    async def steps(server: Server) -> bytes:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(POST + b"Content-Length: 0\r\n\r\n")
        await reader.readuntil(b"hi")
        writer.write(b"garbage\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer

    assert run(steps, ClientLimits(), handler=lingering).startswith(b"HTTP/1.1 400")
