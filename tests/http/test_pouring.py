"""A reply that is given away as it comes, on real sockets."""

import asyncio

import pytest

from dragoman.http.client import Client
from dragoman.http.exchange import Exchange
from dragoman.http.link import Broken
from dragoman.http.server import listening
from http_peers import QUICK, Peer, at, echo


def test_what_comes_is_poured_out_at_once_until_its_taker_wants_no_more(run):
    go_on = asyncio.Event()
    taken: list[bytes] = []

    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {})
        for piece in (b"one", b"two", b"three"):
            await exchange.write(piece)
            await go_on.wait()
            go_on.clear()
        await exchange.end(b"four")

    def take(piece: bytes) -> bool:
        taken.append(piece)
        go_on.set()
        return piece != b"two"

    async def steps(client: Client) -> None:
        async with listening(handler, grace=0.1) as server:
            incoming = await client.ask(at(server), QUICK)
            assert not await incoming.pour(take)
            assert taken == [b"one", b"two"]
            assert await incoming.pour(take)
            assert b"".join(taken) == b"onetwothreefour"
            assert await incoming.piece() == b""
            assert (await (await client.ask(at(server), QUICK)).piece()).startswith(b"one")

    run(steps)


def test_what_goes_wrong_with_who_takes_is_told_to_who_waits(run):
    def take(_piece: bytes) -> bool:
        raise ZeroDivisionError

    async def steps(client: Client) -> None:
        async with listening(echo, grace=0.1) as server:
            with pytest.raises(ZeroDivisionError):
                await (await client.ask(at(server), QUICK)).pour(take)

    run(steps)


def test_a_reply_that_breaks_off_while_it_is_poured_out_is_told_so(run):
    taken: list[bytes] = []

    async def steps(client: Client) -> None:
        async with Peer(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf") as asked:
            with pytest.raises(Broken):
                await (await client.ask(asked, QUICK)).pour(lambda piece: not taken.append(piece))

    run(steps)
    assert taken == [b"half"]
