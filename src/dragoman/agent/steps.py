"""What happens in a run, as it happens, and the record of it that is written at the same time.

Grammar: the events of a turn, then `CallStarted` and `CallEnded` of its calls as they begin and end, then `TurnEnded`;
at last one `RunEnded`, and nothing after it. A call that is not run has no `CallStarted`; one that is may report its
progress in between (`CallProgressed`). What the model said is written before its calls are run, and each result as soon
as there is one: so of an interrupted run it is known which calls may have had their effect. `history.closed` makes a
valid history of what was written.
"""

from typing import Protocol

from msgspec import Struct

from dragoman.agent.limits import Statistics, StopReason
from dragoman.agent.model import wrap_errors
from dragoman.core.events import Event
from dragoman.core.parts import Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.core.response import Finish, Response
from dragoman.tools import Execution, Progress


class CallStarted(Struct, frozen=True):
    """A call is being run."""

    call: ToolCall


class CallProgressed(Struct, frozen=True):
    """A call that is being run says how far it is."""

    progress: Progress


class CallEnded(Struct, frozen=True):
    """A call has its result, whether it was run or refused."""

    call: ToolCall
    execution: Execution


class ApprovalAsked(Struct, frozen=True, kw_only=True):
    """A call waits for somebody's word: `agent.answer(run, topic, "allow")`, or "deny"."""

    run: str
    topic: str
    call: ToolCall
    reason: str
    """Why it is asked for, in words for a person."""


class TurnEnded(Struct, frozen=True):
    """A turn of the model is over, and its calls are answered; `messages` is what it adds to the history."""

    number: int
    response: Response
    messages: tuple[Message, ...]


class Compacted(Struct, frozen=True, kw_only=True):
    """The history was made shorter."""

    before: int
    after: int
    """Messages before and after."""


class RunEnded(Struct, frozen=True, kw_only=True):
    """The run is over."""

    run: str
    stop: StopReason
    statistics: Statistics
    history: tuple[Message, ...]
    """All messages of the request and of the run; every call of ours in it has its result."""
    finish: Finish
    """How the whole run ended, in the words of one reply."""
    problem: Problem | None = None
    """What went wrong, for the stop reasons "failed" and "cancelled"."""
    untrusted: bool = False
    """Whether anything in the history may have been written by anybody."""

    @property
    def text(self) -> str:
        """What the model said at last, be it a refusal; "" if the run ended before it said anything."""
        last = self.history[-1] if self.history else None
        if last is None or last.role != "assistant":
            return ""
        said = (part for part in last.parts if isinstance(part, Text | Refusal))
        return "".join(part.text for part in said if isinstance(part, Refusal) or not part.unread)


Step = Event | CallStarted | CallProgressed | CallEnded | ApprovalAsked | TurnEnded | Compacted | RunEnded


class Recorder(Protocol):
    """Where runs are written down. What it raises as a `Problem` ends the run."""

    async def begin(self, run: str, request: Request) -> None:
        """Note that a run has begun, with its history so far."""
        ...

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Note what was said, or what came of a call; results of one turn come one by one, as the calls end."""
        ...

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Note that the whole history is now another one: it was made shorter."""
        ...

    async def end(self, ended: RunEnded) -> None:
        """Note that a run is over, and how."""
        ...


class GuardedRecorder:
    """A recorder whose mistakes are problems of the run's."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def begin(self, run: str, request: Request) -> None:
        """Note that a run has begun."""
        with wrap_errors("the recorder"):
            await self._recorder.begin(run, request)

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Note what was said."""
        with wrap_errors("the recorder"):
            await self._recorder.add(run, messages)

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Note that the history is another one."""
        with wrap_errors("the recorder"):
            await self._recorder.replace(run, messages)

    async def end(self, ended: RunEnded) -> None:
        """Note that a run is over."""
        with wrap_errors("the recorder"):
            await self._recorder.end(ended)


class NullRecorder:
    """Nothing is written down."""

    async def begin(self, run: str, request: Request) -> None:
        """Do nothing."""

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Do nothing."""

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Do nothing."""

    async def end(self, ended: RunEnded) -> None:
        """Do nothing."""
