"""Send requests to a server over some connections at once, and look at every answer."""

import asyncio
from collections.abc import Sequence
from typing import cast

import httptools
from msgspec import Struct

from dragoman.http.message import split_url

_LONGEST = 120.0


class WrongAnswer(Exception):  # noqa: N818  it says what the answer is
    """An answer that is not the one to its request."""


class Post(Struct, frozen=True):
    """One request, and what its answer must hold."""

    body: bytes
    markers: tuple[bytes, ...]


class _Connection(asyncio.Protocol):
    """One connection: the next request leaves when an answer is whole."""

    def __init__(self, head: str, waiting: list[Post]) -> None:
        self._head = head
        self._waiting = waiting
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(WrongAnswer(f"the server closed the connection: {exc!r}"))

    def _next(self) -> None:
        if not self._waiting:
            self.done.set_result(None)
            self._transport.close()
            return
        self._post = self._waiting.pop()
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._transport.write(f"{self._head}content-length: {len(self._post.body)}\r\n\r\n".encode() + self._post.body)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        body = b"".join(self._body)
        status = self._parser.get_status_code()
        missing = [marker for marker in self._post.markers if marker not in body]
        if status != 200 or missing:
            self.done.set_exception(WrongAnswer(f"status {status}, without {missing}: {body[:300]!r}"))
            self._transport.close()
            return
        asyncio.get_running_loop().call_soon(self._next)


async def send(url: str, posts: Sequence[Post], connections: int, headers: str = "") -> None:
    """Send all requests; `WrongAnswer` if one is answered wrongly."""
    origin, target = split_url(url)
    head = f"POST {target} HTTP/1.1\r\nhost: {origin.authority}\r\ncontent-type: application/json\r\n{headers}"
    waiting = list(reversed(posts))
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: _Connection(head, waiting), origin.host, origin.port)
        for _ in range(min(connections, len(posts)))
    ]
    async with asyncio.timeout(_LONGEST):
        await asyncio.gather(*(connection.done for _, connection in made))
