"""One connection: bytes in, requests to the handler, one after the other.

What cannot be a request is answered with its status and the connection ends. A client that sends more requests before
the first is answered waits: they are read, some bytes of them, and answered in order. A request has to come within its
time: its head at once, its body at some speed, for a client that drips holds a place that others want. So does one that
reads nothing of its answer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import chain
from typing import Literal, cast

import httptools
from msgspec import Struct

from dragoman.http.encoding import ACCEPTED, BadEncoding, TooLarge, decoded, is_known
from dragoman.http.exchange import Exchange, Gone
from dragoman.http.message import Headers, Request, status_line

Handler = Callable[[Exchange], Awaitable[None]]
Refusal = Callable[[int, Request], tuple[Headers, bytes]]
"""Says a refusal in the client's own words: the status, and what is known of the request, to headers and body."""
_MOST_WAITING = 256 << 10
"""Bytes of requests that are read while one is answered."""
_REQUEST_COST = 1 << 10
"""Bytes that a request takes beside its head and body."""
_MOST_HEADERS = 256
_SLOWEST = 16 << 10
"""Bytes a second at which a body may take longer than its time."""
_LINGER = 2.0
"""Seconds in which a client that was refused may send the rest: one that is cut off while it sends never reads why."""
_Whole = tuple[Request, bool, bool]
"""A request that has come, whether its connection may go on, and whether its client knows chunks."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_FRAMING = frozenset({"expect", "content-length", "transfer-encoding", "content-encoding"})


class Limits(Struct, frozen=True, kw_only=True):
    """How much of a client is borne."""

    body: int = 64 << 20
    head: int = 64 << 10
    idle: float = 75.0
    """Seconds a connection may be silent between requests."""
    head_seconds: float = 10.0
    """Seconds in which the head of a request has to come; the first one's from when the client connects."""
    body_seconds: float = 30.0
    """Seconds in which its body has to come, unless it is a large one that comes fast."""
    write_seconds: float = 60.0
    """Seconds in which a client has to read something of an answer that waits for it."""


class Connection(asyncio.Protocol):
    """A client."""

    def __init__(
        self, handler: Handler, limits: Limits, connections: "set[Connection]", refusal: Refusal | None = None
    ) -> None:
        self._handler = handler
        self._limits = limits
        self._refusal = refusal
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[_Whole] = deque()
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._since = 0.0
        self._held_back = False
        self._waiting_size = 0
        self._unread_size = 0
        self._reading: asyncio.TimerHandle | None = None
        """Runs while the client reads too slowly."""
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
        self._stop_reading()
        self._waiting.clear()
        if self._exchange is not None:
            self._exchange.hang_up()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._await_reading()
        if self._exchange is not None:
            self._exchange.pause()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._stop_reading()
        if self._exchange is not None:
            self._exchange.resume()

    def _await_reading(self) -> None:
        self._stop_reading()
        self._unread_size = self._transport.get_write_buffer_size()
        self._reading = self._loop.call_later(self._limits.write_seconds, self._has_read)

    def _has_read(self) -> None:
        """Hang up on a client that has read nothing in all that time: whoever answers it is held up."""
        if self._transport.get_write_buffer_size() < self._unread_size:
            self._await_reading()
        else:
            self._reading = None
            self._transport.abort()

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self._refused:
            return
        before = self._stage
        self._parse(data)
        if self._stage == "head" and not self._refused:
            self._unread += len(data)
            if self._unread > self._limits.head:
                self._refuse(431)
        if self._task is None and self._stage != before:
            self._watch()

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
        self._stage: Literal["quiet", "head", "body"] = "head"
        self._url = b""
        self._lines: list[tuple[bytes, bytes]] = []
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []
        self._encoding = ""
        self._body_size = 0
        self._unread = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._stage == "head":  # what comes behind the body was not there when it was decided about
            self._lines.append((name, value))

    def _read_head(self) -> None:
        """Read the headers that have come, all at once: a call for each would cost more than the reading."""
        lines = self._lines
        size = len(self._url) + sum(map(len, chain.from_iterable(lines)))
        if size > self._limits.head or len(lines) > _MOST_HEADERS:
            self._refuse(431)
        else:
            self._headers = _decoded(lines)

    def on_headers_complete(self) -> None:
        self._stage = "body"
        self._read_head()
        if self._refused or self._parser.should_upgrade():
            return
        framing = dict(self._headers)
        if _FRAMING.isdisjoint(framing):
            return
        length = framing.get("content-length", "0")
        self._encoding = framing.get("content-encoding", "")
        if "transfer-encoding" in framing and not self._in_known_chunks(framing["transfer-encoding"]):
            self._refuse(400)
        elif length.isdecimal() and int(length) > self._limits.body:
            self._refuse(413)
        elif self._encoding and not is_known(self._encoding):
            self._refuse(415)
        elif framing.get("expect", "").lower() == "100-continue" and self._exchange is None:
            self._transport.write(_CONTINUE)

    def _in_known_chunks(self, coding: str) -> bool:
        # Others on the way may read what is coded in another way, or by an old client, as ending elsewhere.
        return coding.strip().lower() == "chunked" and self._parser.get_http_version() != "1.0"

    def on_body(self, body: bytes) -> None:
        if self._refused:
            return
        self._body.append(body)
        self._body_size += len(body)
        if self._body_size > self._limits.body:
            self._refuse(413)
        self._hold_back()

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade() and not self._refused:
            return
        self._stage = "quiet"
        request = None if self._refused else self._read()
        if request is None:
            return
        in_chunks = self._parser.get_http_version() != "1.0"
        whole = (request, self._parser.should_keep_alive(), in_chunks)
        self._body_size = 0
        if self._task is None:
            self._task = self._loop.create_task(self._answer(whole))
        else:
            self._waiting.append(whole)
            self._waiting_size += _size(request)
            self._hold_back()

    def _hold_back(self) -> None:
        """Read no more while enough waits behind an answer that is under way."""
        if self._task is None or self._held_back or self._waiting_size + self._body_size <= _MOST_WAITING:
            return
        if not self._transport.is_closing():
            self._held_back = True
            self._transport.pause_reading()

    def _go_on_reading(self) -> None:
        if self._held_back and not self._transport.is_closing():
            self._held_back = False
            self._transport.resume_reading()

    def _read(self) -> Request | None:
        """Return the request that has come; None if its body is refused."""
        body = b"".join(self._body)
        self._body.clear()
        if self._encoding:
            try:
                body = decoded(body, self._encoding, self._limits.body)
            except TooLarge:
                return self._refuse(413)
            except BadEncoding:
                return self._refuse(400)
            self._headers = [header for header in self._headers if header[0] not in _FRAMING]
        headers: Headers = tuple(self._headers)
        return Request(self._parser.get_method().decode("ascii"), self._url.decode("latin-1"), headers, body)

    # The answers

    async def _answer(self, whole: _Whole | None) -> None:
        """Answer a request and what has come behind it, in order, until nothing waits."""
        while whole is not None and not self._transport.is_closing():
            request, keeps_alive, in_chunks = whole
            keeps_alive = keeps_alive and not self._leaving
            exchange = Exchange(request, self._transport, keeps_alive=keeps_alive, in_chunks=in_chunks)
            self._exchange = exchange
            await self._handle(exchange)
            self._exchange = None
            if not exchange.ended or not exchange.keeps_alive or self._leaving:
                self._transport.close()
            whole = self._next()
        self._task = None
        self._go_on_reading()
        self._watch()

    def _next(self) -> _Whole | None:
        if not self._waiting:
            return None
        whole = self._waiting.popleft()
        self._waiting_size -= _size(whole[0])
        if self._waiting_size <= _MOST_WAITING:
            self._go_on_reading()
        return whole

    async def _handle(self, exchange: Exchange) -> None:
        try:
            await self._handler(exchange)
        except Gone:
            pass  # nobody is left to be told anything
        except Exception as error:  # noqa: BLE001  whatever it was, the others go on
            self._loop.call_exception_handler({"message": "a request could not be answered", "exception": error})
            if not exchange.started:
                exchange.keeps_alive = False
                with suppress(Gone):
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

    def _refuse(self, status: int) -> None:
        """Say why this is no request and hang up; behind an answer that is under way only hang up."""
        if self._refused:
            return
        self._refused = True
        self._leaving = True
        self._body.clear()
        if self._task is not None or self._transport.is_closing():
            return
        self._stop_watching()
        told, body = self._refusal(status, self._known()) if self._refusal is not None else ((), b"")
        lines = "".join(f"{name}: {value}\r\n" for name, value in told).encode("latin-1", "replace")
        if status == 415:
            lines += f"accept-encoding: {ACCEPTED}\r\n".encode()
        ending = f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        self._transport.write(status_line(status) + lines + ending + body)
        self._transport.write_eof()
        self._timer = self._loop.call_later(_LINGER, self._transport.abort)

    def _known(self) -> Request:
        return Request("", self._url.decode("latin-1"), tuple(self._headers or _decoded(self._lines)))

    def _watch(self) -> None:
        """Hang up when what is waited for takes too long."""
        if self._transport.is_closing() or self._refused:
            return
        self._since = self._loop.time()
        due = self._since + self._patience()
        # A timer that runs already looks again when it is over: making one for each request would cost more.
        if self._timer is None or due < self._due:
            self._stop_watching()
            self._look_at(due)

    def _look_at(self, due: float) -> None:
        self._due = due
        self._timer = self._loop.call_at(due, self._look)

    def _patience(self) -> float:
        match self._stage:
            case "quiet":
                return self._limits.idle
            case "head":
                return self._limits.head_seconds
            case _:
                return self._limits.body_seconds + self._body_size / _SLOWEST

    def _look(self) -> None:
        self._timer = None
        if self._task is not None:
            return  # nothing is waited for while an answer is under way
        due = self._since + self._patience()
        if due > self._loop.time() + 0.001:  # bytes only grow the body's size, so that each costs nothing here
            self._look_at(due)
        elif self._stage == "body":
            self._refuse(408)
        else:
            self._transport.close()

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _decoded(lines: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1").lower(), value.rstrip(b" \t").decode("latin-1")) for name, value in lines]


def _size(request: Request) -> int:
    """Return the bytes that a request holds."""
    return _REQUEST_COST + len(request.body) + sum(len(name) + len(value) for name, value in request.headers)
