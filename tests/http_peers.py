"""Servers for the tests of the HTTP client."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.exchange import Exchange
from dragoman.http.message import Origin
from dragoman.http.server import Server

QUICK = Deadlines(connect=2, first_byte=0.3, idle=0.3)
Steps = Callable[[Client], Awaitable[Any]]


def at(server: Server, target: str = "/", body: bytes = b"", method: str = "POST") -> Outgoing:
    host, port = server.address
    return Outgoing(Origin("http", host, port), method, target, (("x-a", "b"),), body)


async def echo(exchange: Exchange) -> None:
    request = exchange.request
    words = f"{request.method} {request.target} {request.header('x-a')} {request.header('host')} ".encode()
    await exchange.send(200, {"x-one": "1"}, words + request.body)


class Peer:
    """A server that says fixed bytes on every connection, after it has heard something."""

    def __init__(self, *output: bytes, close: bool = True) -> None:
        self._output = output
        self._close = close
        self.connections = 0
        self.received = b""

    async def __aenter__(self) -> Outgoing:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return Outgoing(Origin("http", "127.0.0.1", port), "POST", "/x", (), b"hello")

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.received += await reader.read(65536)
        for piece in self._output:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        if self._close:
            writer.close()
        else:
            await reader.read()
            writer.close()
