"""One connection: bytes in, requests to the handler, one after the other.

What cannot be a request is answered with its status and the connection ends. A client that sends more requests before
the first is answered waits: they are read, a few of them, and answered in order.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

import httptools
from msgspec import Struct

from dragoman.http.exchange import Exchange, Gone
from dragoman.http.message import Headers, Request, status_line

Handler = Callable[[Exchange], Awaitable[None]]
_MOST_WAITING = 8
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Limits(Struct, frozen=True, kw_only=True):
    """How much of a client is borne."""

    body: int = 64 << 20
    head: int = 64 << 10
    idle: float = 75.0
    """Seconds a connection may be silent between requests, or in the middle of one."""


class Connection(asyncio.Protocol):
    """A client."""

    def __init__(self, handler: Handler, limits: Limits, connections: "set[Connection]") -> None:
        self._handler = handler
        self._limits = limits
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Request, bool, bool]] = deque()
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._refused = False
        self._leaving = False
        self.ended = asyncio.Event()
        self.on_message_begin()

    # What asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast("asyncio.Transport", transport)  # a stream server makes no other, nor does uvloop
        self._connections.add(self)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        del exc
        self._connections.discard(self)
        self.ended.set()
        self._stop_watching()
        self._waiting.clear()
        if self._exchange is not None:
            self._exchange.hang_up()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        if self._exchange is not None:
            self._exchange.pause()

    def resume_writing(self) -> None:
        """The client has caught up."""
        if self._exchange is not None:
            self._exchange.resume()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self._refused:
            return
        if self._exchange is None:
            self._watch()
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(400)

    def _decline(self, rest: bytes) -> None:
        """Read a request that wishes for another protocol once more, as if it did not: its body follows."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._refuse(400)
            return
        version = self._parser.get_http_version()
        kept = [(name, value) for name, value in self._headers if name != "upgrade"]
        head = "".join([f"{name}: {value}\r\n" for name, value in kept]).encode("latin-1")
        line = method + b" " + self._url + f" HTTP/{version}\r\n".encode()
        self._parser = httptools.HttpRequestParser(self)
        self._parse(line + head + b"\r\n" + rest)

    # What the parser tells

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._body_size = 0
        self._head_size = 0

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._grow_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))
        self._grow_head(len(name) + len(value))

    def on_headers_complete(self) -> None:
        if self._refused or self._parser.should_upgrade():
            return
        expected = {name: value for name, value in self._headers if name in {"expect", "content-length"}}
        length = expected.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limits.body:
            self._refuse(413)
        elif expected.get("expect", "").lower() == "100-continue" and self._exchange is None:
            self._transport.write(_CONTINUE)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        self._body_size += len(body)
        if self._body_size > self._limits.body:
            self._refuse(413)

    def on_message_complete(self) -> None:
        if self._refused or self._parser.should_upgrade():
            return
        headers: Headers = tuple(self._headers)
        method = self._parser.get_method().decode("ascii")
        request = Request(method, self._url.decode("latin-1"), headers, b"".join(self._body))
        in_chunks = self._parser.get_http_version() != "1.0"
        self._waiting.append((request, self._parser.should_keep_alive(), in_chunks))
        if self._task is None:
            self._stop_watching()
            self._task = self._loop.create_task(self._answer())
        elif len(self._waiting) > _MOST_WAITING:
            self._transport.pause_reading()

    # The answers

    async def _answer(self) -> None:
        """Answer what has come, in order, until nothing waits."""
        while self._waiting and not self._transport.is_closing():
            request, keeps_alive, in_chunks = self._waiting.popleft()
            keeps_alive = keeps_alive and not self._leaving
            exchange = Exchange(request, self._transport, keeps_alive=keeps_alive, in_chunks=in_chunks)
            self._exchange = exchange
            with suppress(Gone):
                await self._handle(exchange)
            self._exchange = None
            if not exchange.ended or not exchange.keeps_alive or self._leaving:
                self._transport.close()
            elif len(self._waiting) <= _MOST_WAITING:
                self._transport.resume_reading()
        self._task = None
        self._watch()

    async def _handle(self, exchange: Exchange) -> None:
        try:
            await self._handler(exchange)
        except Gone:
            raise
        except Exception as error:  # noqa: BLE001  whatever it was, the others go on
            self._loop.call_exception_handler({"message": "a request could not be answered", "exception": error})
            if not exchange.started:
                exchange.keeps_alive = False
                await exchange.send(500, {"content-type": "text/plain"}, b"internal error\n")

    def leave(self) -> None:
        """Close at once if nothing is being answered, else when the answer is whole."""
        self._leaving = True
        if self._task is None and not self._transport.is_closing():
            self._transport.close()

    def kill(self) -> None:
        """Break off whatever is being answered."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def _grow_head(self, size: int) -> None:
        self._head_size += size
        if self._head_size > self._limits.head:
            self._refuse(431)

    def _refuse(self, status: int) -> None:
        """Say why this is no request and hang up; behind an answer that is under way only hang up."""
        if self._refused:
            return
        self._refused = True
        self._leaving = True
        if self._exchange is None:
            self._transport.write(status_line(status) + b"connection: close\r\ncontent-length: 0\r\n\r\n")
            self._transport.close()

    def _watch(self) -> None:
        """Hang up when nothing comes for too long."""
        self._stop_watching()
        if not self._transport.is_closing():
            self._idle = self._loop.call_later(self._limits.idle, self._transport.close)

    def _stop_watching(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
