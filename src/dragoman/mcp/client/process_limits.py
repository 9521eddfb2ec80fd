"""The limits that a stdio server must keep: the size of a message, unrequested messages, and the time to answer.

Whether a server still answers is found out with pings, because a call may take long: while a call runs, the server may
be silent for as long as a call may take. A server that never answers pings is only checked after a call has failed.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager

from dragoman.mcp.sdk import SessionMessage, types
from dragoman.mcp.settings import ToolServer

_WINDOW = 10.0
_MAX_UNREQUESTED = 5000
"""The maximum number of messages in a window that answer no request: notifications, questions and nonsense."""
_MAX_CANCELLED = 1000
"""The maximum number of cancelled requests to remember: the server may still answer them."""
_IDLE_SECONDS = 30.0
"""Seconds without any message after which a server is pinged."""
_PING_ID = "dragoman-ping-"


class MisbehaviorError(Exception):
    """The server broke a limit."""


class ProcessLimits:
    """Watches the messages of one process; raises `MisbehaviorError` when a limit is broken."""

    def __init__(self, settings: ToolServer) -> None:
        self._settings = settings
        self._window_end = 0.0
        self._unrequested = 0
        self._unrequested_bytes = 0
        self._waiting = set[str | int]()
        """The requests that are neither answered nor cancelled."""
        self._cancelled = dict[str | int, None]()
        self._ping = ""
        """The id of the ping that is not answered yet."""
        self._pings = 0
        self._answers_pings = False
        self._is_suspect = False
        """A call was cancelled or timed out, and the server has not been pinged since."""
        self._is_required = False
        """The ping must be answered."""
        self._asked_at: float | None = None
        """When the ping was sent, or the write began that has not ended."""
        self._active_at = self._answered_at = self._cancelled_at = time.monotonic()

    def check_size(self, size: int) -> None:
        """Check the size of a message, complete or not."""
        if size > self._settings.max_message_bytes:
            limit = self._settings.max_message_bytes
            raise MisbehaviorError(f"it sent a message of more than {limit} bytes (`max_message_bytes`)")

    def on_sent(self, message: types.JSONRPCMessage) -> None:
        """Record a message to the server."""
        self._active_at = time.monotonic()
        match message:
            case types.JSONRPCRequest(id=identity):
                self._waiting.add(identity)
            case types.JSONRPCNotification(method="notifications/cancelled", params={"requestId": identity}):
                self._waiting.discard(identity)
                self._cancelled[identity] = None
                if len(self._cancelled) > _MAX_CANCELLED:
                    del self._cancelled[next(iter(self._cancelled))]
                self._cancelled_at = self._active_at
                self._is_suspect = True
            case _:
                pass

    def on_received(self, message: SessionMessage | None, size: int) -> bool:
        """Record a line of the server, with its message if it is one.

        Return whether the message is for the session, and not the answer to a ping.
        """
        now = self._active_at = time.monotonic()
        match message:
            case SessionMessage(message=types.JSONRPCResponse(id=identity) | types.JSONRPCError(id=identity)):
                if identity is not None and self._is_answer(identity):
                    self._answered_at = now
                    return not str(identity).startswith(_PING_ID)
            case _:
                pass
        if now > self._window_end:
            self._window_end, self._unrequested, self._unrequested_bytes = now + _WINDOW, 0, 0
        self._unrequested += 1
        self._unrequested_bytes += size
        limit = self._settings.max_message_bytes
        if self._unrequested > _MAX_UNREQUESTED or self._unrequested_bytes > limit:
            raise MisbehaviorError(
                f"it sent more than {_MAX_UNREQUESTED} messages or {limit} bytes in {_WINDOW:g} seconds that answer no"
                " request"
            )
        return True

    def _is_answer(self, identity: str | int) -> bool:
        if identity == self._ping:
            self._ping, self._asked_at, self._answers_pings = "", None, True
            return True
        if identity in self._waiting:
            self._waiting.discard(identity)
            return True
        return self._cancelled.pop(identity, identity) is None

    @contextmanager
    def time_write(self) -> Generator[None]:
        """Require that a write to the server ends in time."""
        before = self._asked_at, self._is_required
        self._asked_at, self._is_required = time.monotonic(), True
        yield
        if self._ping:
            self._asked_at, self._is_required = before
        else:
            self._asked_at = None

    def check_answers(self, now: float) -> str | None:
        """Return the id of a ping to send now, or None; raise `MisbehaviorError` if the server has stopped answering.

        The limit is `connect` seconds; while calls run it is `timeout` more, because the server may run one at a time.
        """
        connect, timeout = self._settings.connect, self._settings.timeout
        if self._asked_at is None:
            if not self._is_suspect and (self._waiting or now - self._active_at < _IDLE_SECONDS):
                return None
            self._is_required = self._is_suspect or self._answers_pings
            self._is_suspect, self._asked_at, self._pings = False, now, self._pings + 1
            self._ping = f"{_PING_ID}{self._pings}"
            return self._ping
        if self._is_suspect and not self._is_required:
            self._asked_at, self._is_required, self._is_suspect = now, True, False
        since = max(self._asked_at, self._answered_at)
        idle = now - max(since, self._cancelled_at) > connect and not self._waiting
        if self._is_required and (idle or now - since > connect + timeout):
            raise MisbehaviorError(f"it answered nothing for {connect if idle else connect + timeout:g} seconds")
        return None
