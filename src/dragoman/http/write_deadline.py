"""The deadline of a client that does not read its response."""

import asyncio

CLOCK_STEP = 0.001
"""Seconds by which uvloop's timers may fire early."""


class WriteDeadline:
    """Disconnects a client that reads nothing of a full write buffer for too long, because its handler waits for it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._size = 0
        """Size of the write buffer at `_since`; 0 if the client reads fast enough."""
        self._since = 0.0

    def start(self, transport: asyncio.Transport, now: float) -> None:
        """Start the deadline: the write buffer is full."""
        self._size, self._since = transport.get_write_buffer_size(), now

    def stop(self) -> None:
        """Stop the deadline: the client has read enough of the write buffer."""
        self._size = 0

    def check(self, transport: asyncio.Transport, now: float) -> float | None:
        """Disconnect a client that has read nothing in time; return the time of the next check, if one is needed."""
        if not self._size:
            return None
        if now + CLOCK_STEP >= self._since + self._seconds:
            size = transport.get_write_buffer_size()
            if size >= self._size:
                transport.abort()
            self._size, self._since = size, now
        return self._since + self._seconds
