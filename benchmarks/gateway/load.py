"""Ask a server again and again over some connections, and look at every answer."""

import asyncio
import time
from typing import cast

import httptools
from msgspec import Struct

from dragoman.http.origin import split

_LONGEST = 60.0


class Ask(Struct, frozen=True):
    """What is asked, how a right answer can be told, and over how many connections at once."""

    body: bytes
    marker: bytes
    connections: int
    seconds: float
    headers: str = ""


class _Asking(asyncio.Protocol):
    """One connection: the next request leaves when an answer is whole."""

    def __init__(self, ask: Ask, request: bytes, until: float) -> None:
        self._ask = ask
        self._request = request
        self._until = until
        self.answers = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server hung up"))

    def _next(self) -> None:
        if time.perf_counter() >= self._until and self.answers:
            self.done.set_result(None)
            self._transport.close()
            return
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        body = b"".join(self._body)
        if self._parser.get_status_code() != 200 or self._ask.marker not in body:
            self.done.set_exception(RuntimeError(f"a wrong answer: {body[:300]!r}"))
            self._transport.close()
            return
        self.answers += 1
        asyncio.get_running_loop().call_soon(self._next)


async def answers(url: str, ask: Ask) -> int:
    """Ask for some time; return how many answers came."""
    origin, target = split(url)
    head = (
        f"POST {target} HTTP/1.1\r\nhost: {origin.authority}\r\ncontent-type: application/json\r\n{ask.headers}"
        f"content-length: {len(ask.body)}\r\n\r\n"
    )
    request = head.encode() + ask.body
    until = time.perf_counter() + ask.seconds
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: _Asking(ask, request, until), origin.host, origin.port)
        for _ in range(ask.connections)
    ]
    async with asyncio.timeout(ask.seconds + _LONGEST):
        await asyncio.gather(*(asking.done for _, asking in made))
    return sum(asking.answers for _, asking in made)
