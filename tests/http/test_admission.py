"""What a server accepts: requests are rejected before their bodies are received, and beyond the limits of all."""

import asyncio
import socket

import pytest
import uvloop

from dragoman.http.admission import ClientLimits, Load, RequestPolicy
from dragoman.http.exchange import Exchange
from dragoman.http.rejection import RejectionResponse
from dragoman.http.server import listen

KEY = b"POST / HTTP/1.1\r\nHost: a\r\nX-Key: k\r\n"
NO_KEY = b"POST / HTTP/1.1\r\nHost: a\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
SMALL = ClientLimits(body=1 << 20, buffered=1 << 20, connections=2)


def require_key(request):
    return None if request.header("x-key") else RejectionResponse(401, (("content-type", "text/plain"),), b"no key")


async def echo(exchange: Exchange) -> None:
    await exchange.send(200, {}, b"%d bytes" % len(exchange.request.body))


async def until(is_true):
    while not is_true():  # noqa: ASYNC110  what another process sends
        await asyncio.sleep(0.01)


def connect(server):
    """Connect without a turn of the event loop."""
    sock = socket.create_connection(server.address)
    sock.setblocking(False)  # noqa: FBT003
    return sock


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def running(steps, limits=None, handler=echo):
        async def whole():
            load = Load(limits)
            policy = RequestPolicy(load=load, check_head=require_key, unlimited_paths=frozenset({b"/health"}))
            async with listen(handler, policy=policy, grace=0.1) as server, asyncio.timeout(20):
                await steps(server, load)

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(whole())

    return running


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n", b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"],
)  # fmt: skip
def test_a_request_is_rejected_before_its_body_is_received(run, head):
    async def steps(server, load):
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(NO_KEY + head)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 401")
        assert answer.endswith(b"connection: close\r\ncontent-length: 6\r\n\r\nno key")
        assert load.body_bytes == 0
        writer.close()

    run(steps)


def test_a_whole_request_is_left_to_its_handler(run):
    async def steps(server, load):
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(NO_KEY + b"Content-Length: 2\r\n\r\nhi")
        assert await reader.readuntil(b"2 bytes")
        writer.close()

    run(steps)


def test_a_rejection_before_the_body_waits_for_earlier_responses(run):
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(0.1)
        await exchange.send(200, {}, b"first")

    async def steps(server, load):
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(GET + NO_KEY + b"Content-Length: 1000\r\n\r\n")
        first, rest = (await reader.read()).split(b"first")
        assert first.startswith(b"HTTP/1.1 200")
        assert rest.startswith(b"HTTP/1.1 401")
        writer.close()

    run(steps, handler=slow)


def test_a_rejected_client_may_send_a_little_more_and_is_then_disconnected(run):
    async def steps(server, load):
        loop = asyncio.get_running_loop()
        sock = connect(server)
        await loop.sock_sendall(sock, NO_KEY + b"Content-Length: 50000000\r\n\r\n")
        assert (await loop.sock_recv(sock, 1 << 16)).startswith(b"HTTP/1.1 401")
        await loop.sock_sendall(sock, bytes(100_000))
        assert await loop.sock_recv(sock, 1) == b""
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            await loop.sock_sendall(sock, bytes(50_000_000))
        assert not server.connections
        sock.close()

    run(steps)


def test_bodies_are_counted_from_the_first_byte_to_the_response(run):
    arrived, ready = asyncio.Event(), asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        arrived.set()
        await ready.wait()
        await echo(exchange)

    async def steps(server, load):
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(KEY + b"Content-Length: 500000\r\n\r\n" + bytes(400_000))
        await until(lambda: load.body_bytes >= 400_000)
        other = await asyncio.open_connection(*server.address)
        other[1].write(KEY + b"Transfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n" + bytes(0xFFFF) + b"\r\n")
        await until(lambda: load.body_bytes >= 400_000 + 0xFFFF)
        other[1].close()
        await until(lambda: load.body_bytes <= 400_000)
        writer.write(bytes(100_000))
        await arrived.wait()
        assert load.body_bytes == 500_000
        ready.set()
        assert await reader.readuntil(b"500000 bytes")
        await asyncio.sleep(0)
        assert load.body_bytes == 0
        writer.close()

    run(steps, handler=slow)


def test_bodies_beyond_the_limit_of_all_are_rejected(run):
    async def steps(server, load):
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(KEY + b"Content-Length: 1000000\r\n\r\n" + bytes(900_000))
        await until(lambda: load.body_bytes >= 900_000)
        other_reader, other = await asyncio.open_connection(*server.address)
        other.write(KEY + b"Content-Length: 1000000\r\n\r\n" + bytes(200_000))
        assert (await other_reader.read()).startswith(b"HTTP/1.1 503")
        writer.write(bytes(100_000))
        assert await reader.readuntil(b"1000000 bytes")
        for each in (writer, other):
            each.close()

    run(steps, SMALL)


def test_a_connection_beyond_the_limit_gets_503_and_health_is_answered(run):
    async def steps(server, load):
        held = [await asyncio.open_connection(*server.address) for _ in range(2)]
        for request, status in ((GET, b"503"), (HEALTH, b"200"), (GET, b"503")):
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(request)
            answer = await reader.read()  # to its end: the connection is closed
            assert answer.startswith(b"HTTP/1.1 " + status)
            writer.close()
        reader, writer = held[0]
        writer.write(GET)
        assert (await reader.readuntil(b"0 bytes")).startswith(b"HTTP/1.1 200")
        for _, each in held:
            each.close()
        await until(lambda: not server.connections)
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(GET)
        assert (await reader.readuntil(b"0 bytes")).startswith(b"HTTP/1.1 200")
        writer.close()

    run(steps, SMALL)


def test_all_waiting_connections_are_accepted_in_one_turn_of_the_loop(run):
    async def steps(server, load):
        clients = [connect(server) for _ in range(100)]
        await asyncio.sleep(0)
        for _ in range(5):  # turns, in which the connections are initialised
            await asyncio.sleep(0)
        assert len(server.connections) == 100
        for client in clients:
            client.close()

    run(steps)


def test_open_requests_have_a_limit(run):
    async def steps(server, load):
        assert not load.find_exceeded()
        load.begin_request()
        assert "`requests` in [server.limits]" in load.find_exceeded()
        load.end_request()
        assert not load.find_exceeded()

    run(steps, ClientLimits(requests=1))


def test_the_limit_of_open_requests_falls_while_the_loop_is_late_and_rises_again(run):
    async def steps(server, load):
        loop = asyncio.get_running_loop()
        for _ in range(1000):
            load.begin_request()
        load._on_tick(loop, loop.time() - 1)
        assert not load.find_exceeded()  # one large request delays the loop once
        for _ in range(3):
            load._on_tick(loop, loop.time() - 1)
        assert "more requests than it can handle in time" in load.find_exceeded()
        for _ in range(900):
            load.end_request()
        assert not load.find_exceeded()
        for _ in range(900):
            load.begin_request()
        for _ in range(60):
            load._on_tick(loop, loop.time())
        assert not load.find_exceeded()
        for _ in range(1000):
            load.end_request()
        for _ in range(10):
            load._on_tick(loop, loop.time() - 10)
        for _ in range(15):
            load.begin_request()
        assert not load.find_exceeded()  # some are admitted however late the loop is

    run(steps, ClientLimits(requests=1000 + 1))


@pytest.mark.parametrize("settings", [{"buffered": 1}, {"connections": 0}, {"requests": -1}])
def test_limits_that_admit_nothing_are_an_error(settings):
    with pytest.raises(ValueError, match="must be at least"):
        ClientLimits(**settings)
