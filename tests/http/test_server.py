"""The HTTP server over real sockets."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
import uvloop

from dragoman.http.admission import ClientLimits, Load, RequestPolicy
from dragoman.http.exchange import ClientDisconnected, Exchange
from dragoman.http.server import Server, listen

Steps = Callable[[Server], Awaitable[Any]]


async def echo(exchange: Exchange) -> None:
    request = exchange.request
    result = f"{request.method} {request.path} {request.query} {request.header('x-a')} {len(request.body)}"
    await exchange.send(200, {"content-type": "text/plain"}, result.encode())


async def numbers(exchange: Exchange) -> None:
    exchange.start(200, {"content-type": "text/plain"})
    for number in range(3):
        await exchange.write(f"{number} ".encode())
    await exchange.end()


def run(handler: Callable[[Exchange], Awaitable[None]], steps: Steps, limits: ClientLimits | None = None) -> Any:
    async def whole() -> Any:
        async with listen(handler, policy=RequestPolicy(load=Load(limits)), grace=0.2) as server, asyncio.timeout(20):
            return await steps(server)

    with asyncio.Runner(loop_factory=LOOP[0]) as runner:
        return runner.run(whole())


LOOP: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]


@pytest.fixture(autouse=True, params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loops(request: pytest.FixtureRequest) -> None:
    """Run every test on both event loops."""
    LOOP[0] = request.param


async def exchange_bytes(server: Server, *pieces: bytes, wait: bool = True) -> bytes:
    """Send bytes on a new connection and return all received bytes until it is closed."""
    reader, writer = await asyncio.open_connection(*server.address)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.01)
    try:
        return await reader.read() if wait else b""
    finally:
        writer.close()


def test_a_request_is_read_and_answered():
    async def steps(server: Server) -> str:
        host, port = server.address
        async with httpx2.AsyncClient(base_url=f"http://{host}:{port}") as client:
            reply = await client.post("/a%20b/c?x=1&y=", headers={"X-A": "yes"}, content=b"12345")
            assert reply.headers["content-type"] == "text/plain"
            return reply.text

    assert run(echo, steps) == "POST /a b/c {'x': '1', 'y': ''} yes 5"


def test_the_value_of_a_header_has_no_blanks_around_it():
    request = b"GET / HTTP/1.1\r\nhost: x\r\nx-a: \t one two \t \r\nconnection: close\r\n\r\n"
    assert run(echo, lambda server: exchange_bytes(server, request)).endswith(b"GET / {} one two 0")


def test_a_connection_is_used_again():
    async def steps(server: Server) -> bytes:
        return await exchange_bytes(
            server, b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )

    result = run(echo, steps)
    assert result.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert result.index(b"GET /1") < result.index(b"GET /2")
    assert result.count(b"connection: close") == 1


def test_requests_sent_at_once_are_answered_in_order():
    async def steps(server: Server) -> bytes:
        many = b"".join(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number for number in range(40))
        return await exchange_bytes(server, many + b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    result = run(echo, steps)
    places = [result.index(b"GET /%d " % number) for number in range(40)]
    assert places == sorted(places)
    assert b"GET /last" in result


def test_a_request_may_come_byte_by_byte():
    async def steps(server: Server) -> bytes:
        request = b"POST /x HTTP/1.1\r\nHost: a\r\nX-A: b\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
        reader, writer = await asyncio.open_connection(*server.address)
        for byte in request:
            writer.write(bytes([byte]))
            await writer.drain()
        result = await reader.read()
        writer.close()
        return result

    assert b"POST /x {} b 2" in run(echo, steps)


def test_a_body_may_come_in_chunks():
    async def steps(server: Server) -> bytes:
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        return await exchange_bytes(server, head, b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n")

    assert run(echo, steps).endswith(b" 5")


def test_an_answer_of_unknown_length_is_sent_in_chunks():
    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    result = run(numbers, steps)
    assert b"transfer-encoding: chunked" in result
    assert result.endswith(b"\r\n\r\n2\r\n0 \r\n2\r\n1 \r\n2\r\n2 \r\n0\r\n\r\n")


def test_the_first_and_the_last_piece_of_an_answer_go_with_its_beginning_and_its_end():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {}, first=b"first ")
        await exchange.write(b"then ")
        await exchange.end(b"last")

    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")

    result = run(handler, steps).partition(b"\r\n\r\n")[2]
    assert result == b"6\r\nfirst \r\n5\r\nthen \r\n4\r\nlast\r\n0\r\n\r\n"


def test_an_old_client_gets_an_answer_that_ends_with_the_connection():
    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")

    result = run(numbers, steps)
    assert b"chunked" not in result
    assert result.endswith(b"\r\n\r\n0 1 2 ")


def test_a_request_for_the_head_gets_no_body():
    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    result = run(echo, steps)
    assert result.endswith(b"\r\n\r\n")
    assert b"content-length: 12\r\n" in result


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"x" * 3000 + b"\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n" + b"x" * 4096, b"413"),
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_ends(words, status):
    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, words)

    result = run(echo, steps, ClientLimits(body=1000, head=2000))
    assert result.startswith(b"HTTP/1.1 " + status)
    assert result.count(b"HTTP/1.1") == 1


def test_a_client_that_expects_100_continue_gets_it():
    async def steps(server: Server) -> bytes:
        head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
        return await exchange_bytes(server, head, b"ok")

    assert run(echo, steps).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")


def test_an_upgrade_request_reaches_the_handler():
    async def steps(server: Server) -> bytes:
        head = b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(head)
        result = await reader.read(200)
        writer.close()
        return result

    assert b"GET /ws" in run(echo, steps)


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 5\r\n\r\n12345", b"Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n"]
)
def test_an_upgrade_to_http_2_does_not_lose_the_body(framing):
    async def steps(server: Server) -> list[bytes]:
        requested = b"POST /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n"
        whole = requested + framing + b"GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        return [
            await exchange_bytes(server, whole),
            await exchange_bytes(server, whole[:20], whole[20:150], whole[150:]),
        ]

    for result in run(echo, steps):
        assert b"POST /x {}  5" in result
        assert b"GET /next {}  0" in result


def test_a_tunnel_is_refused():
    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")

    assert run(echo, steps).startswith(b"HTTP/1.1 400")


def test_a_response_of_known_length_may_be_sent_in_pieces_to_any_client():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {}, 4)
        await exchange.write(b"ab")
        await exchange.write(b"cd")
        await exchange.end()

    async def steps(server: Server) -> list[bytes]:
        return [
            await exchange_bytes(server, b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"),
            await exchange_bytes(
                server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            ),
        ]

    old, new = run(handler, steps)
    assert old.endswith(b"content-length: 4\r\nconnection: close\r\n\r\nabcd")
    assert new.count(b"abcd") == 2


def test_an_answer_to_an_old_client_is_cut_without_the_marks_of_chunks():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        exchange.push(b"ab")
        exchange.truncate()

    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")

    assert run(handler, steps).endswith(b"\r\n\r\nab")


def test_a_failing_handler_is_an_internal_error_and_affects_no_other_request():
    async def handler(exchange: Exchange) -> None:
        if exchange.request.path == "/bad":
            raise RuntimeError("oops")
        await echo(exchange)

    async def steps(server: Server) -> tuple[bytes, bytes]:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: seen.append(context))
        good = asyncio.ensure_future(
            exchange_bytes(server, b"GET /good HTTP/1.1\r\nHost: a\r\n", b"Connection: close\r\n\r\n")
        )
        return await exchange_bytes(server, b"GET /bad HTTP/1.1\r\nHost: a\r\n\r\n"), await good

    seen: list[dict[str, Any]] = []
    bad, good = run(handler, steps)
    assert bad.startswith(b"HTTP/1.1 500")
    assert b"oops" not in bad
    assert good.startswith(b"HTTP/1.1 200")
    assert [str(context["exception"]) for context in seen] == ["oops"]


def test_a_client_that_hangs_up_is_noticed():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        await exchange.write(b"x")
        await exchange.wait_disconnected()
        noticed.append(exchange.is_disconnected)
        with contextlib.suppress(ClientDisconnected):
            await exchange.write(b"y")
            noticed.append(False)
        over.set()

    async def steps(server: Server) -> None:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"1\r\nx\r\n")
        writer.close()
        await over.wait()

    noticed: list[bool] = []
    over = asyncio.Event()
    run(handler, steps)
    assert noticed == [True]


def test_a_slow_reader_holds_up_the_writer():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        for _ in range(400):
            await exchange.write(b"x" * 65536)
            written.append(1)
        await exchange.end()

    async def steps(server: Server) -> int:
        reader, writer = await asyncio.open_connection(*server.address, limit=1 << 16)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        await asyncio.sleep(0.3)
        before = len(written)
        size = 0
        while data := await reader.read(1 << 20):
            size += len(data)
        writer.close()
        assert size > 400 * 65536
        return before

    written: list[int] = []
    assert run(handler, steps) < 400
    assert len(written) == 400


def test_a_truncated_answer_has_no_last_chunk():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        await exchange.write(b"x")
        exchange.truncate()

    async def steps(server: Server) -> bytes:
        return await exchange_bytes(server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")

    assert run(handler, steps).endswith(b"\r\n\r\n1\r\nx\r\n")


def test_a_server_that_closes_lets_an_answer_become_whole():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        await exchange.write(b"x")
        begun.set()
        await asyncio.sleep(0.1)
        await exchange.end()

    begun = asyncio.Event()

    async def whole() -> bytes:
        async with listen(handler) as server:
            idle = asyncio.ensure_future(exchange_bytes(server))
            result = asyncio.ensure_future(exchange_bytes(server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
            await begun.wait()
        assert await idle == b""
        return await result

    with asyncio.Runner(loop_factory=LOOP[0]) as runner:
        assert runner.run(whole()).endswith(b"0\r\n\r\n")


def test_a_server_that_closes_breaks_off_what_takes_too_long():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        await exchange.write(b"x")
        begun.set()
        await asyncio.sleep(60)

    begun = asyncio.Event()

    async def whole() -> None:
        async with listen(handler, grace=0.1) as server:
            result = asyncio.ensure_future(exchange_bytes(server, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))
            await begun.wait()
        with contextlib.suppress(ConnectionResetError):
            await result

    with asyncio.Runner(loop_factory=LOOP[0]) as runner:
        runner.run(asyncio.wait_for(whole(), 20))
