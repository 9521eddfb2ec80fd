"""The HTTP client against real servers on real sockets."""

import asyncio

import pytest

from dragoman.http import upstream_connection
from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.exchange import Exchange
from dragoman.http.message import Origin
from dragoman.http.server import Server, listen
from dragoman.http.upstream_connection import BrokenReply, DeadlineExceeded, ShuttingDown, Unreachable
from http_peers import QUICK, Peer, at, echo


def test_a_request_arrives_whole_and_its_reply_comes_back_whole(run):
    async def steps(client: Client) -> None:
        async with listen(echo, grace=0.1) as server:
            incoming = await client.send(at(server, "/path?q=1", b"body"), QUICK)
            body = await incoming.read()
            host, port = server.address
        assert (incoming.status, incoming.header("x-one")) == (200, "1")
        assert body == f"POST /path?q=1 b {host}:{port} body".encode()

    run(steps)


def test_a_connection_is_used_again_when_its_reply_was_taken_whole(run):
    connections: set[int] = set()

    async def handler(exchange: Exchange) -> None:
        connections.add(exchange.transport.get_extra_info("peername")[1])
        await exchange.send(200, {}, b"x")

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            for _ in range(5):
                await (await client.send(at(server), QUICK)).read()

    run(steps)
    assert len(connections) == 1


def test_replies_that_come_at_once_have_connections_of_their_own(run):
    async def handler(exchange: Exchange) -> None:
        await asyncio.sleep(0.05)
        await exchange.send(200, {}, exchange.request.body)

    async def one(client: Client, server: Server, number: int) -> bytes:
        return await (await client.send(at(server, body=b"%d" % number), QUICK)).read()

    async def steps(client: Client) -> list[bytes]:
        async with listen(handler, grace=0.1) as server:
            return await asyncio.gather(*(one(client, server, number) for number in range(20)))

    assert run(steps) == [b"%d" % number for number in range(20)]


def test_a_second_reply_behind_the_first_is_dropped_and_its_connection_not_used_again(run):
    one = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na"
    peer = Peer(one + b"HTTP/1.1 500 No\r\nx-one: 1\r\ncontent-length: 1\r\n\r\nb", close=False)

    async def steps(client: Client) -> None:
        async with peer as request:
            for _ in range(2):
                incoming = await client.send(request, QUICK)
                assert (incoming.status, incoming.header("x-one"), await incoming.read()) == (200, "", b"a")

    run(steps)
    assert peer.connections == 2


def test_chunks_are_delivered_as_they_arrive(run):
    go_on = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        await exchange.write(b"one")
        await go_on.wait()
        await exchange.write(b"two")
        await exchange.end()

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), QUICK)
            assert await incoming.read_chunk() == b"one"
            go_on.set()
            assert await incoming.read_chunk() == b"two"
            assert await incoming.read_chunk() == b""
            assert await incoming.read_chunk() == b""

    run(steps)


def test_a_kept_connection_that_the_server_gave_up_is_replaced_once(run):
    served: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        if len(served) == 1:
            await reader.readuntil(b"\r\n\r\n")  # hears the second request and hangs up without a word
        writer.close()

    async def steps(client: Client) -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        asked = Outgoing(Origin("http", "127.0.0.1", server.sockets[0].getsockname()[1]), "GET", "/")
        assert await (await client.send(asked, QUICK)).read() == b"ok"
        assert await (await client.send(asked, QUICK)).read() == b"ok"
        server.close()

    run(steps)
    assert len(served) == 2


def test_a_new_connection_that_closes_without_a_response_is_not_retried(run):
    async def steps(client: Client) -> int:
        peer = Peer()
        async with peer as asked:
            with pytest.raises(Unreachable):
                await client.send(asked, QUICK)
        return peer.connections

    assert run(steps) == 1


def test_a_refused_connection_is_unreachable(run):
    async def steps(client: Client) -> None:
        async with listen(echo, grace=0.1) as server:
            asked = at(server)
        with pytest.raises(Unreachable, match="cannot be reached"):
            await client.send(asked, QUICK)

    run(steps)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ((b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",), "middle"),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",), "middle"),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",), "not valid HTTP"),
    ],
    ids=["shorter than said", "no last chunk", "no chunk at all"],
)
def test_a_reply_that_breaks_off_is_broken_and_never_whole(run, output, words):
    async def steps(client: Client) -> None:
        async with Peer(*output) as asked:
            with pytest.raises(BrokenReply, match=words):
                await (await client.send(asked, QUICK)).read()

    run(steps)


def test_what_is_no_http_is_broken(run):
    async def steps(client: Client) -> None:
        async with Peer(b"220 smtp.example.com ESMTP\r\n") as asked:
            with pytest.raises(BrokenReply):
                await client.send(asked, QUICK)

    run(steps)


def test_a_reply_without_a_length_ends_with_its_connection(run):
    async def steps(client: Client) -> bytes:
        async with Peer(b"HTTP/1.1 200 OK\r\n\r\nall ", b"of it") as asked:
            return await (await client.send(asked, QUICK)).read()

    assert run(steps) == b"all of it"


def test_an_interim_response_is_not_the_final_response(run):
    async def steps(client: Client) -> tuple[int, bytes]:
        output = (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok")
        async with Peer(*output) as asked:
            incoming = await client.send(asked, QUICK)
            return incoming.status, await incoming.read()

    assert run(steps) == (201, b"ok")


def test_a_server_that_does_not_answer_is_too_slow(run):
    async def steps(client: Client) -> None:
        async with Peer(close=False) as asked:
            with pytest.raises(DeadlineExceeded, match="no response"):
                await client.send(asked, QUICK)

    run(steps)


def test_a_stalled_response_times_out_but_a_slow_one_does_not(run):
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

    async def drip(exchange: Exchange) -> None:
        exchange.start(200, {})
        for _ in range(6):
            await exchange.write(b".")
            await asyncio.sleep(0.1)
        await exchange.end()

    async def steps(client: Client) -> bytes:
        async with Peer(head, b"1\r\nx\r\n", close=False) as asked:
            incoming = await client.send(asked, QUICK)
            assert await incoming.read_chunk() == b"x"
            with pytest.raises(DeadlineExceeded, match="stalled"):
                await incoming.read_chunk()
        async with listen(drip, grace=0.1) as server:
            return await (await client.send(at(server), QUICK)).read()

    assert run(steps) == b"......"


def test_each_request_over_a_kept_connection_has_its_own_time(run):
    async def handler(exchange: Exchange) -> None:
        await asyncio.sleep(float(exchange.request.body))
        await exchange.send(200, {}, b"x")

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            for patience in (0.6, 0.3, 0.6):
                deadlines = Deadlines(connect=2, first_byte=patience, idle=patience)
                assert await (await client.send(at(server, body=b"0.1"), deadlines)).read() == b"x"
            with pytest.raises(DeadlineExceeded, match=r"within 0\.3 seconds"):
                await client.send(at(server, body=b"60"), QUICK)

    run(steps)


def test_closing_a_reply_hangs_up_on_the_server(run):
    left = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        await exchange.write(b"x")
        await exchange.wait_disconnected()
        left.set()

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), QUICK)
            incoming.close()
            await left.wait()

    run(steps)


def test_the_rest_of_an_unread_reply_is_dropped_and_the_connection_is_reused(run):
    connections: set[int] = set()

    async def handler(exchange: Exchange) -> None:
        connections.add(exchange.transport.get_extra_info("peername")[1])
        exchange.start(200, {})
        await exchange.write(b"all that matters")
        await asyncio.sleep(0.05)
        await exchange.write(b"the rest")
        await exchange.end()

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            for _ in range(3):
                incoming = await client.send(at(server), QUICK)
                assert await incoming.read_chunk() == b"all that matters"
                incoming.drain()
                assert await incoming.read_chunk() == b""
                await asyncio.sleep(0.15)

    run(steps)
    assert len(connections) == 1


@pytest.mark.parametrize("rest", [b"", bytes(3 << 20)], ids=["that never comes", "that is long"])
def test_a_rest_is_not_waited_for(run, rest):
    left = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        await exchange.write(b"x")
        try:
            await exchange.write(rest)
            await exchange.wait_disconnected()
        finally:
            left.set()

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), QUICK)
            await incoming.read_chunk()
            incoming.drain()
            await left.wait()

    run(steps)


def test_drain_aborts_a_connection_whose_reading_is_paused(run, monkeypatch):
    monkeypatch.setattr(upstream_connection, "_DRAIN_SECONDS", 600)
    left = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        try:
            await exchange.write(bytes(3 << 20))
        finally:
            left.set()

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), Deadlines(idle=60))
            await asyncio.sleep(0.1)  # nobody takes what comes, until no more is read
            assert incoming._connection._is_paused
            incoming.drain()
            await left.wait()

    run(steps)


def test_reading_pauses_while_the_caller_does_not_take_the_body(run):
    sent = 0

    async def handler(exchange: Exchange) -> None:
        nonlocal sent
        exchange.start(200, {})
        for _ in range(2000):
            await exchange.write(bytes(1 << 16))
            sent += 1
        await exchange.end()

    async def steps(client: Client) -> int:
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), Deadlines())
            await asyncio.sleep(0.5)
            held = sent
            total = len(await incoming.read(1 << 30))
            assert total == 2000 << 16
            return held

    assert run(steps) < 500


def test_a_whole_reply_has_a_limit(run):
    async def handler(exchange: Exchange) -> None:
        await exchange.send(200, {}, bytes(1000))

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            with pytest.raises(BrokenReply, match="larger"):
                await (await client.send(at(server), QUICK)).read(999)

    run(steps)


def test_a_header_cannot_become_two(run):
    async def steps(client: Client) -> None:
        async with listen(echo, grace=0.1) as server:
            asked = Outgoing(at(server).origin, "POST", "/", (("x-a", "b\r\nx-evil: 1"),))
            with pytest.raises(ValueError, match="line feeds"):
                await client.send(asked, QUICK)

    run(steps)


def test_no_connection_outlives_the_client_that_made_it(run, monkeypatch):
    monkeypatch.setattr(upstream_connection, "_DRAIN_SECONDS", 600)
    hung_up = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        await exchange.write(b"one")
        await exchange.wait_disconnected()
        hung_up.set()

    async def steps(_: Client) -> None:
        client = Client()
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), QUICK)
            assert await incoming.read_chunk() == b"one"
            incoming.drain()  # the rest may go by for a while
            await client.close()
            await hung_up.wait()

    run(steps)


def test_a_stopped_client_lets_open_responses_and_later_requests_fail(run):
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {}, first=b"one")
        await exchange.wait_disconnected()

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), QUICK)
            assert await incoming.read_chunk() == b"one"
            asyncio.get_running_loop().call_soon(client.fail_all)
            with pytest.raises(ShuttingDown):
                await incoming.read_chunk()
            with pytest.raises(ShuttingDown):
                await client.send(at(server), QUICK)

    run(steps)
