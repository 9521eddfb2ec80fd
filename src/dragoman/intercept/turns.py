"""One turn of a caller: what it is told, as the client's exchanges with the model bring it.

A client may ask more than once in a turn, when it runs tools of its own: what the model says in all of them is told as
one reply. What was told is kept until the caller has heard its end, so that one who lost the answer can ask again.
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
    """What a caller is told, and who waits for it."""

    def __init__(self, digest: bytes = b"") -> None:
        self.digest = digest
        """What was asked."""
        self.is_over = False
        self.is_delivered = False
        """The caller has heard all of it."""
        self.is_followed = False
        """Somebody listens."""
        self.left = monotonic()
        """When the last who listened went."""
        self._open: list[bytes] = []
        """Requests of the client that are not answered yet."""
        self.problem: Problem | None = None
        """What went wrong with the client's last exchange: told if no other follows."""
        self._finish: Finish | None = None
        """How an exchange ended while one of another request was open, which may still bring calls."""
        self._told: list[Event] = []
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._started = False
        self._parts = 0
        self._begun: set[int] = set()
        """Parts that have not ended."""
        self._later: list[tuple[Telling, list[Event]]] = []
        """What was said while somebody else had the word."""

    def is_awaited(self, seconds: float) -> bool:
        """Tell whether somebody waits for an answer, or did not so many seconds ago and may come back."""
        return not self.is_over and (self.is_followed or bool(self.busy) or monotonic() - self.left < seconds)

    @property
    def busy(self) -> int:
        """Exchanges of the client that are open."""
        return len(self._open)

    def open_as(self, asked: bytes) -> int:
        """Return how many exchanges with this very request are open."""
        return self._open.count(asked)

    def begin(self, asked: bytes = b"") -> None:
        """The client asks."""
        self._open.append(asked)
        self._idle.clear()
        self._news.set()

    def end(self, asked: bytes = b"") -> None:
        """An exchange of the client's is over."""
        self._open.remove(asked)
        if not self._open:
            self._conclude()
            self._idle.set()
        self._news.set()

    def finish(self, finish: Finish, asked: bytes) -> None:
        """An exchange has ended, and the turn with it, once no other request is open; a retry is no other."""
        self._finish = finish
        if all(other == asked for other in self._open):
            self._conclude()

    def postpone(self, telling: "Telling", said: list[Event]) -> None:
        """Keep what an exchange said until nobody else has the word."""
        self._later.append((telling, said))

    def end_parts(self) -> None:
        """Let nobody else have the word: what was begun has ended."""
        self.tell([PartEnded(place, complete=False) for place in sorted(self._begun)])

    def _conclude(self) -> None:
        later, self._later = self._later, []
        for telling, said in later:
            telling.feed(said)
        if self._finish is not None:
            self.tell([Finished(self._finish)])

    async def settled(self) -> None:
        """Return when no exchange of the client's is open."""
        await self._idle.wait()

    def tell(self, events: Iterable[Event]) -> None:
        """Tell what one exchange brings, all at once or piece by piece; parts are counted on from those before."""
        if self.is_over:
            return
        for event in events:
            match event:
                case Started():
                    if not self._started:
                        self._told.append(event)
                    self._started = True
                case Finished() | Failed():
                    self._told.append(event)
                    self.is_over = True
                    break
                case _:
                    self._told.append(event)
                    if isinstance(event, PartStarted):
                        self._begun.add(event.index)
                    elif isinstance(event, PartEnded):
                        self._begun.discard(event.index)
        self._news.set()

    def fail(self, problem: Problem) -> None:
        """There will be no answer."""
        self.tell([Failed(problem)])

    def room(self, count: int) -> int:
        """Return the index of the first of `count` new parts."""
        first, self._parts = self._parts, self._parts + count
        return first

    async def follow(self, seconds: float, late: Problem) -> AsyncGenerator[Event]:
        """Iterate what is told; `late` is told if the client does not ask for so many seconds."""
        self.is_followed = True
        at = 0
        try:
            while True:
                while at < len(self._told):
                    at += 1
                    yield self._told[at - 1]
                if self.is_over:
                    self.is_delivered = True
                    return
                self._news.clear()
                try:
                    async with asyncio.timeout(None if self.busy else seconds):
                        await self._news.wait()
                except TimeoutError:
                    self.fail(self.problem or late)
        finally:
            self.is_followed = False
            self.left = monotonic()


class Telling:
    """One exchange as a caller is told of it: the model's words as they come, and at its end the captured calls."""

    def __init__(self, turn: CallerTurn, asked: bytes = b"") -> None:
        self._turn = turn
        self._asked = asked
        self._held: list[Event] = []
        self._is_held = bool(turn.busy)
        """Somebody else has the word: one who hears two at once understands neither."""
        self._places: dict[int, int | None] = {}
        self._open: set[int] = set()
        self._finish: Finish | None = None
        self.problem: Problem | None = None

    def feed(self, events: Iterable[Event]) -> None:
        """Take what the model's reply says."""
        if self._is_held and self._turn.busy > 1:
            self._held += events
            return
        said, self._held, self._is_held = [*self._held, *events], [], False
        for event in said:
            self._turn.tell(self._told(event))

    def _told(self, event: Event) -> list[Event]:
        match event:
            case PartStarted(index, part):
                # Calls are told at the end: by then it is known which of them are for the caller.
                if isinstance(part, ToolCall) and part.executor == "client":
                    self._places[index] = None
                    return []
                place = self._places[index] = self._turn.room(1)
                self._open.add(place)
                return [PartStarted(place, part)]
            case PartDelta(index) | PartSigned(index) | PartCited(index) | PartNative(index) | PartEnded(index):
                return self._inner(event, self._places.get(index))
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

    def _inner(self, event: _Inner, place: int | None) -> list[Event]:
        if place is None:
            return []
        if isinstance(event, PartEnded):
            self._open.discard(place)
        return [structs.replace(event, index=place)]

    def close(self, calls: Iterable[ToolCall], *, goes_on: bool) -> None:
        """The reply is over: tell its calls, and that the turn ends, unless the client goes on by itself."""
        turn, calls = self._turn, tuple(calls)
        self._give_word(is_calling=bool(calls))
        turn.tell([PartEnded(place, complete=False) for place in sorted(self._open)])
        self._open.clear()
        for call in calls:
            turn.tell(replay_part(turn.room(1), call))
        if calls:
            turn.tell([Finished(Finish("tool_calls"))])
        elif self.problem is not None and not goes_on:
            turn.problem = self.problem
            if self._places:
                turn.fail(self.problem)
        elif self._finish is not None and not goes_on:
            turn.finish(self._finish, self._asked)

    def _give_word(self, *, is_calling: bool) -> None:
        """Tell what was held: at once if there are calls, or if it is a retry that has overtaken what it repeats."""
        turn, held = self._turn, self._held
        is_busy, self._held, self._is_held = self._is_held and turn.busy > 1, [], False
        is_retry = turn.open_as(self._asked) > 1
        if is_calling or (is_busy and is_retry and self.problem is None):
            turn.end_parts()
            self.feed(held)
        elif is_busy and not is_retry:
            self._finish = next((event.finish for event in held if isinstance(event, Finished)), None)
            turn.postpone(self, [event for event in held if not isinstance(event, Finished)])
        elif not is_busy:
            self.feed(held)
