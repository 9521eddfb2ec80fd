"""What a server accepts: the limits of each client and of all clients together, and the present load.

The limit of open requests is lowered while the event loop is late, because then requests wait for CPU time. Open
streams that wait for an upstream do not delay the loop, and do not lower it.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct, field

from dragoman.http.message import Request
from dragoman.http.rejection import RejectionRenderer, RejectionResponse

HeadCheck = Callable[[Request], RejectionResponse | None]
"""Checks a request of which the body has not been received; returns the response that rejects it."""
_TICK = 0.05
"""Seconds between two measurements of the event loop's delay."""
_LATE = 0.1
"""Seconds of delay above which requests wait too long for CPU time."""
_PATIENCE = 2
"""Measurements in a row that must be late: one large request delays the loop once."""
_LEAST_REQUESTS = 16
"""Open requests that are admitted however late the loop is."""
_GROWTH = 1.1
_LARGEST_CUT = 0.5


class ClientLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Client limits (`[server.limits]`): sizes in bytes, times in seconds."""

    body: int = 64 << 20
    head: int = 64 << 10
    idle: float = 75.0
    """Seconds that a connection may be idle between requests."""
    head_seconds: float = 10.0
    """Seconds in which the head of a request must arrive; for the first request, counted from the connect."""
    body_seconds: float = 30.0
    """Seconds in which the body must arrive; a large body may take longer if it arrives fast enough."""
    write_seconds: float = 60.0
    """Seconds in which a client must read at least some bytes of a buffered response."""
    separators: int = 2_000_000
    """Commas and colons in a JSON body, which its processing time depends on more than on its bytes."""
    connections: int = 16_000
    """Client connections; a request on one more is rejected."""
    requests: int = 12_000
    """Requests that are handled at once."""
    buffered: int = 1 << 30
    """Bytes of the bodies of all requests that are received or handled."""

    def __post_init__(self) -> None:
        if self.buffered < self.body:
            raise ValueError("`buffered` must be at least `body`, or no request of that size is ever accepted")
        if min(self.connections, self.requests, self.separators) < 1:
            raise ValueError("`connections`, `requests` and `separators` must be at least 1")


class Load:
    """The open requests and the buffered bodies of a server."""

    def __init__(self, limits: ClientLimits | None = None) -> None:
        self.limits = limits or ClientLimits()
        self.body_bytes = 0
        """Bytes of all bodies that are received or handled."""
        self.is_stopping = False
        """Whether the server is about to accept no more connections."""
        self.is_full = False
        """Whether there are as many open requests as the server can handle."""
        self._open_requests = 0
        self._request_limit = float(self.limits.requests)
        self._late_ticks = 0
        self._timer: asyncio.TimerHandle | None = None

    def find_exceeded(self, length: int = 0) -> str:
        """Return why one more request, with a body of `length` bytes to be received, is too much; "" if it is not."""
        if self.is_full:
            if self._request_limit < self.limits.requests:
                return "it has more requests than it can handle in time"
            return f"it has {self._open_requests} open requests; the limit is `requests` in [server.limits]"
        if length and self.body_bytes + length > self.limits.buffered:
            return f"it buffers {self.body_bytes} bytes of requests; the limit is `buffered` in [server.limits]"
        return ""

    def begin_request(self) -> None:
        """Count an open request, and measure the delay of the event loop while there are any."""
        self._open_requests += 1
        self.is_full = self._open_requests >= self._request_limit
        if self._timer is None:
            self._start_timer(asyncio.get_running_loop())

    def end_request(self) -> None:
        """Count an open request no more."""
        self._open_requests -= 1
        self.is_full = self._open_requests >= self._request_limit

    def _start_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_at(loop.time() + _TICK, self._on_tick, loop, loop.time() + _TICK)

    def _on_tick(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        delay = loop.time() - due
        self._late_ticks = self._late_ticks + 1 if delay > _LATE else 0
        if self._late_ticks >= _PATIENCE:
            admitted = min(self._request_limit, self._open_requests)
            least = min(_LEAST_REQUESTS, self.limits.requests)
            self._request_limit = max(least, admitted * max(_LARGEST_CUT, _LATE / delay))
        elif not self._late_ticks and self._request_limit < self.limits.requests:
            self._request_limit = min(self.limits.requests, self._request_limit * _GROWTH + 1)
        self.is_full = self._open_requests >= self._request_limit
        self._timer = None
        if self._open_requests or self._request_limit < self.limits.requests:
            self._start_timer(loop)


class RequestPolicy(Struct, frozen=True, kw_only=True):
    """How a server decides which requests it accepts."""

    load: Load = field(default_factory=Load)
    check_head: HeadCheck | None = None
    rejection_renderer: RejectionRenderer | None = None
    unlimited_paths: frozenset[bytes] = frozenset()
    """Paths that are answered also on a connection beyond the limit."""
