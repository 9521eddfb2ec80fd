"""One connection to a server: a request out, its reply in, as often as both sides like.

Bytes of a reply are handed on as they come. When nobody takes them, reading stops; when none come for too long, the
reply ends in `TooSlow`.
"""

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.http.message import Headers

_ENOUGH_HELD = 1 << 20
_MEASURES = frozenset({"content-length", "transfer-encoding"})
_LONGEST_REST = 1.0
_INFORMAL = 200
"""Replies below this say that the real one follows."""


class Failure(ConnectionError):  # noqa: N818  what a caller catches; the kinds below say which
    """A server could not be asked, or did not answer to the end."""


class NotReached(Failure):
    """Nobody answers there: refused, unknown host, or closed before the first byte of a reply."""


class Untrusted(Failure):
    """The server's certificate does not prove who it is."""


class TooSlow(Failure):
    """A deadline passed."""


class Broken(Failure):
    """The reply breaks off, or is no HTTP."""


class Stale(NotReached):
    """The server had closed a connection that was kept; another may do."""


class Link(asyncio.Protocol):
    """A connection and the reply that is being read from it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._held: list[bytes] = []
        self._held_size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """When the timer is over."""
        self._patience = 0.0
        self._words = ""
        """How long it may be silent, and what is said when it was too long."""
        self._last = 0.0
        self._asked = 0
        self._paused = False
        self._bodiless = False
        self._drained: Callable[[Link], None] | None = None
        self._on_data: Callable[[bytes], bool] | None = None
        """Called with each piece of the body as soon as it comes, until it returns False."""
        self._delivery_error: Exception | None = None
        self._unmeasured = False
        """The reply names no length: it ends with the connection."""
        self.status = 0
        self.headers: Headers = ()
        self.named: dict[str, str] = {}
        """The headers by name; of a name that stands twice the last."""
        self.headed = False
        self.complete = True
        self.failure: Failure | None = None
        self.reusable = True
        self.since = 0.0
        """When the last reply ended."""
        self.when_lost: Callable[[Link], object] | None = None
        """Is told when the connection is no more."""

    # What asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server is there."""
        self.transport = cast("asyncio.Transport", transport)  # a stream client makes no other, nor does uvloop

    def connection_lost(self, exc: Exception | None) -> None:
        """The server is gone: the end of a reply that names no length, else a failure."""
        del exc
        self.reusable = False
        self._stop_timer()
        if not self.complete and self.failure is None:
            if self.headed and self._unmeasured:
                self._completed()
            else:
                self._fail(self._broken_off())
        if self.when_lost is not None:
            self.when_lost(self)
        self._wake()

    def _broken_off(self) -> Failure:
        if self.headed:
            return Broken("the connection was closed in the middle of a reply")
        again = Stale if self._asked > 1 else NotReached
        return again("the connection was closed before a reply came")

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        self._last = self._loop.time()
        if self.complete:
            self.reusable = False  # nobody asked: what comes now must not be taken for the next reply
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.reusable = False
            self._fail(Broken(f"the reply is no HTTP: {error}"))
        if self._on_data is None or not self._deliver(self._on_data):
            self._wake()

    # What the parser tells

    def on_message_begin(self) -> None:
        self._pairs: list[tuple[str, str]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pairs.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < _INFORMAL:
            return
        self.status = status
        self.headers = tuple(self._pairs)
        self.headed = True
        self.named = dict(self.headers)
        self._unmeasured = _MEASURES.isdisjoint(self.named)
        if not self._parser.should_keep_alive():
            self.reusable = False
        if self._bodiless:
            self.reusable = False  # the parser goes on to wait for the body that the head speaks of
            self._completed()

    def on_body(self, body: bytes) -> None:
        if self._on_data is not None:
            self._held.append(body)  # delivered as soon as these bytes are parsed
            return
        self._held_size += len(body)
        if self._drained is not None:
            if self._held_size > _ENOUGH_HELD:
                self.abort()
            return
        self._held.append(body)
        if self._held_size > _ENOUGH_HELD and not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self.headed:
            self._completed()

    # What a caller does

    def ask(self, head: bytes, body: bytes, first_byte: float) -> None:
        """Send a request."""
        self._asked += 1
        self._bodiless = head.startswith(b"HEAD ")
        self.headed = self.complete = False
        self.failure = self._drained = None
        self._last = self._loop.time()
        self._watch(first_byte, "no reply came")
        self.transport.write(head + body if len(body) < _ENOUGH_HELD else head)
        if len(body) >= _ENOUGH_HELD:
            self.transport.write(body)

    async def answered(self, idle: float) -> None:
        """Return when the head of the reply is there; from then on the deadline is that of silence."""
        while not self.headed and self.failure is None:
            await self._wait()
        if self.failure is not None and not self.headed:
            raise self.failure
        if not self.complete:
            self._watch(idle, "the reply came to a halt")

    async def piece(self) -> bytes:
        """Return what has come of the body since the last time; nothing means that it is whole."""
        while not self._held:
            if self.complete:
                return b""
            if self.failure is not None:
                raise self.failure
            await self._wait()
        return self._taken()

    def rest(self) -> bytes:
        """Return what is left of a body that is whole."""
        return self._taken() if self._held else b""

    def _taken(self) -> bytes:
        held, self._held = self._held, []
        self._free()
        return held[0] if len(held) == 1 else b"".join(held)

    def _free(self) -> None:
        """Nothing is held any more: reading goes on."""
        self._held_size = 0
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    async def deliver_to(self, on_data: "Callable[[bytes], bool]") -> bool:
        """Call `on_data` with each piece as it comes, until it returns False; return whether the body is whole.

        A task that waits for each piece would cost more than most pieces do.
        """
        self._on_data = on_data
        try:
            if self._deliver(on_data):
                await self._wait()
        finally:
            self._on_data = None
        error, self._delivery_error = self._delivery_error, None
        if error is not None:
            raise error
        if self.failure is not None and not self._held:
            raise self.failure
        return self.complete and not self._held

    def _deliver(self, on_data: "Callable[[bytes], bool]") -> bool:
        """Deliver what is held; return whether there is more to wait for."""
        held = self._held
        if held:
            self._held = []
            if self._held_size:
                self._free()
            try:
                goes_on = on_data(held[0] if len(held) == 1 else b"".join(held))
            except Exception as error:  # noqa: BLE001  raised by `deliver_to`: it is not the connection's
                self._delivery_error = error
                goes_on = False
            if not goes_on:
                self._on_data = None
                return False
        return not self.complete and self.failure is None

    def abort(self) -> None:
        """End the connection now."""
        self.reusable = False
        self._stop_timer()
        self.transport.abort()

    def drain(self, done: "Callable[[Link], None]") -> None:
        """Let the rest of a reply that nobody wants go by, if it is not long in coming, and tell when it has."""
        self._held.clear()
        self._drained = done
        if self.complete:
            done(self)
        elif self._paused:
            self.abort()  # more has come than anybody wants to see go by
        elif self.failure is None:
            self._watch(_LONGEST_REST, "the rest of the reply did not come")

    def _completed(self) -> None:
        self.complete = True
        self.since = self._loop.time()
        if self._drained is not None:
            self._drained(self)

    def _watch(self, seconds: float, words: str) -> None:
        self._patience, self._words = seconds, words
        due = self._loop.time() + seconds
        # A timer that runs already looks again when it is over: making one for each request would cost more.
        if self._timer is None or due < self._due:
            self._stop_timer()
            self._look_at(due)

    def _look_at(self, due: float) -> None:
        self._due = due
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        """Fail if nothing came in all that time; bytes only note when they came, so that each costs nothing here."""
        self._timer = None
        if self.complete:
            return
        now = self._loop.time()
        due = self._last + self._patience
        if due > now + 0.001 or self._paused:
            self._look_at(max(due, now + 1.0) if self._paused else due)
            return
        self._fail(TooSlow(f"{self._words} within {self._patience:g} seconds"))
        self.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fail(self, failure: Failure) -> None:
        self.failure = failure
        self._stop_timer()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
