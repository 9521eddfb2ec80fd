"""Delivery of response chunks to a callback, on real sockets."""

import asyncio

import pytest

from dragoman.http.client import Client
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen
from dragoman.http.upstream_connection import BrokenReply
from http_peers import QUICK, Peer, at, echo


def test_each_piece_is_delivered_at_once_until_the_callback_returns_false(run):
    go_on = asyncio.Event()
    taken: list[bytes] = []

    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        for piece in (b"one", b"two", b"three"):
            await exchange.write(piece)
            await go_on.wait()
            go_on.clear()
        await exchange.end(b"four")

    def on_data(piece: bytes) -> bool:
        taken.append(piece)
        go_on.set()
        return piece != b"two"

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), QUICK)
            assert not await incoming.deliver_to(on_data)
            assert taken == [b"one", b"two"]
            assert await incoming.deliver_to(on_data)
            assert b"".join(taken) == b"onetwothreefour"
            assert await incoming.read_chunk() == b""
            assert (await (await client.send(at(server), QUICK)).read_chunk()).startswith(b"one")

    run(steps)


def test_an_error_in_the_callback_is_raised_where_the_reply_is_awaited(run):
    def on_data(_piece: bytes) -> bool:
        raise ZeroDivisionError

    async def steps(client: Client) -> None:
        async with listen(echo, grace=0.1) as server:
            with pytest.raises(ZeroDivisionError):
                await (await client.send(at(server), QUICK)).deliver_to(on_data)

    run(steps)


def test_a_reply_that_breaks_off_during_delivery_raises_broken(run):
    taken: list[bytes] = []

    async def steps(client: Client) -> None:
        async with Peer(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf") as asked:
            with pytest.raises(BrokenReply):
                await (await client.send(asked, QUICK)).deliver_to(lambda piece: not taken.append(piece))

    run(steps)
    assert taken == [b"half"]


def test_no_more_is_read_while_the_callback_does_not_take_it(run):
    sent: list[int] = []

    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        for _ in range(256):
            await exchange.write(bytes(64 << 10))
            sent.append(64 << 10)
        await exchange.end()

    async def steps(client: Client) -> None:
        async with listen(handler, grace=0.1) as server:
            incoming = await client.send(at(server), QUICK)
            assert not await incoming.deliver_to(lambda _piece: False)
            await asyncio.sleep(0.2)
            assert incoming._connection._held_size <= 512 << 10
            taken = 0
            while piece := await incoming.read_chunk():
                taken += len(piece)
            assert taken > sum(sent) - (1 << 20)
            assert sum(sent) == 256 * (64 << 10)

    run(steps)
