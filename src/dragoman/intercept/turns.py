"""One turn of a caller: the events for the caller, collected from the client's exchanges with the model.

A client may send several requests in a turn, when it runs its own tools: the model's replies to all of them are merged
into one reply. Events are kept until the caller has received the end, so that a caller that lost the answer can retry.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from time import monotonic
from typing import assert_never

from msgspec import structs

from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish
from dragoman.core.stream import replay_part

_Inner = PartDelta | PartSigned | PartCited | PartNative | PartEnded


class CallerTurn:
    """The events of one turn, and whether a caller is reading them."""

    def __init__(self, digest: bytes = b"") -> None:
        self.digest = digest
        """The digest of the caller's request."""
        self.is_over = False
        self.is_delivered = False
        """The caller has received all events."""
        self.is_followed = False
        """A caller is reading the events."""
        self.left_at = monotonic()
        """When the last reader disconnected."""
        self._open: list[bytes] = []
        """Requests of the client that have no complete reply yet."""
        self.problem: Problem | None = None
        """The error of the client's last exchange; sent if the client sends no other request."""
        self._finish: Finish | None = None
        """The finish reason of an exchange that ended while another request was open, which may still bring calls."""
        self._events: list[Event] = []
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._started = False
        self._parts = 0
        self._open_parts: set[int] = set()
        """The indexes of parts that have not ended."""
        self._postponed: list[tuple[EventForwarder, list[Event]]] = []
        """Events of exchanges that ended while another exchange was being forwarded."""

    def is_awaited(self, seconds: float) -> bool:
        """Check whether a caller reads the events, or disconnected less than `seconds` ago and may return."""
        return not self.is_over and (self.is_followed or bool(self.open_count) or monotonic() - self.left_at < seconds)

    @property
    def open_count(self) -> int:
        """The number of open exchanges of the client."""
        return len(self._open)

    def count_open(self, request: bytes) -> int:
        """Return the number of open exchanges with exactly this request."""
        return self._open.count(request)

    def begin(self, request: bytes = b"") -> None:
        """Record that the client has sent a request."""
        self._open.append(request)
        self._idle.clear()
        self._changed.set()

    def end(self, request: bytes = b"") -> None:
        """Record that an exchange of the client has ended."""
        self._open.remove(request)
        if not self._open:
            self._conclude()
            self._idle.set()
        self._changed.set()

    def finish(self, finish: Finish, request: bytes) -> None:
        """End the turn with this exchange, as soon as no different request is open; retries of it do not count."""
        self._finish = finish
        if all(other == request for other in self._open):
            self._conclude()

    def postpone(self, forwarder: "EventForwarder", events: list[Event]) -> None:
        """Keep the events of an exchange until the other exchanges have ended."""
        self._postponed.append((forwarder, events))

    def end_parts(self) -> None:
        """End all open parts, so that another exchange can be forwarded."""
        self.add_events([PartEnded(place, complete=False) for place in sorted(self._open_parts)])

    def _conclude(self) -> None:
        later, self._postponed = self._postponed, []
        for forwarder, events in later:
            forwarder.feed(events)
        if self._finish is not None:
            self.add_events([Finished(self._finish)])

    async def wait_until_idle(self) -> None:
        """Wait until the client has no open exchange."""
        await self._idle.wait()

    def add_events(self, events: Iterable[Event]) -> None:
        """Add events of an exchange; part indexes continue those of earlier exchanges."""
        if self.is_over:
            return
        for event in events:
            match event:
                case Started():
                    if not self._started:
                        self._events.append(event)
                    self._started = True
                case Finished() | Failed():
                    self._events.append(event)
                    self.is_over = True
                    break
                case _:
                    self._events.append(event)
                    if isinstance(event, PartStarted):
                        self._open_parts.add(event.index)
                    elif isinstance(event, PartEnded):
                        self._open_parts.discard(event.index)
        self._changed.set()

    def fail(self, problem: Problem) -> None:
        """End the turn with an error."""
        self.add_events([Failed(problem)])

    def reserve_parts(self, count: int) -> int:
        """Return the index of the first of `count` new parts."""
        first, self._parts = self._parts, self._parts + count
        return first

    async def follow(self, seconds: float, timeout_problem: Problem) -> AsyncGenerator[Event]:
        """Yield all events; fail with `timeout_problem` if the client sends no request for `seconds` seconds."""
        self.is_followed = True
        at = 0
        try:
            while True:
                while at < len(self._events):
                    at += 1
                    yield self._events[at - 1]
                if self.is_over:
                    self.is_delivered = True
                    return
                self._changed.clear()
                try:
                    async with asyncio.timeout(None if self.open_count else seconds):
                        await self._changed.wait()
                except TimeoutError:
                    self.fail(self.problem or timeout_problem)
        finally:
            self.is_followed = False
            self.left_at = monotonic()


class EventForwarder:
    """Forwards one exchange to the caller: the model's reply as it streams, and at its end the captured calls."""

    def __init__(self, turn: CallerTurn, request: bytes = b"") -> None:
        self._turn = turn
        self._request = request
        self._held: list[Event] = []
        self._is_held = bool(turn.open_count)
        """Another exchange is being forwarded, so events are held back: interleaved replies are unreadable."""
        self._indexes: dict[int, int | None] = {}
        self._open: set[int] = set()
        self._finish: Finish | None = None
        self.problem: Problem | None = None

    def feed(self, events: Iterable[Event]) -> None:
        """Forward events of the model's reply, or hold them back."""
        if self._is_held and self._turn.open_count > 1:
            self._held += events
            return
        ready, self._held, self._is_held = [*self._held, *events], [], False
        for event in ready:
            self._turn.add_events(self._convert_event(event))

    def _convert_event(self, event: Event) -> list[Event]:
        match event:
            case PartStarted(index, part):
                # Calls are sent at the end, when it is known which of them are for the caller.
                if isinstance(part, ToolCall) and part.executor == "client":
                    self._indexes[index] = None
                    return []
                place = self._indexes[index] = self._turn.reserve_parts(1)
                self._open.add(place)
                return [PartStarted(place, part)]
            case PartDelta(index) | PartSigned(index) | PartCited(index) | PartNative(index) | PartEnded(index):
                return self._convert_inner(event, self._indexes.get(index))
            case Finished(finish):
                self._finish = finish
                return []
            case Failed(problem):
                self.problem = problem
                return []
            case Native():
                return []
            case Started() | UsageSeen():
                return [event]
            case _:
                assert_never(event)

    def _convert_inner(self, event: _Inner, place: int | None) -> list[Event]:
        if place is None:
            return []
        if isinstance(event, PartEnded):
            self._open.discard(place)
        return [structs.replace(event, index=place)]

    def close(self, calls: Iterable[ToolCall], *, goes_on: bool) -> None:
        """End the reply: send its calls and end the turn, unless the client continues by itself (`goes_on`)."""
        turn, calls = self._turn, tuple(calls)
        self._release_held(is_calling=bool(calls))
        turn.add_events([PartEnded(place, complete=False) for place in sorted(self._open)])
        self._open.clear()
        for call in calls:
            turn.add_events(replay_part(turn.reserve_parts(1), call))
        if calls:
            turn.add_events([Finished(Finish("tool_calls"))])
        elif self.problem is not None and not goes_on:
            turn.problem = self.problem
            if self._indexes:
                turn.fail(self.problem)
        elif self._finish is not None and not goes_on:
            turn.finish(self._finish, self._request)

    def _release_held(self, *, is_calling: bool) -> None:
        """Release the held events: at once if there are calls, or if a retry has overtaken the request it repeats."""
        turn, held = self._turn, self._held
        is_busy, self._held, self._is_held = self._is_held and turn.open_count > 1, [], False
        is_retry = turn.count_open(self._request) > 1
        if is_calling or (is_busy and is_retry and self.problem is None):
            turn.end_parts()
            self.feed(held)
        elif is_busy and not is_retry:
            self._finish = next((event.finish for event in held if isinstance(event, Finished)), None)
            turn.postpone(self, [event for event in held if not isinstance(event, Finished)])
        elif not is_busy:
            self.feed(held)
