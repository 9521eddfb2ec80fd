"""The steps of a run as they happen, and the recorder that stores them at the same time.

Order: the events of a turn, then `CallStarted` and `CallEnded` for each of its calls as they start and end, then
`TurnEnded`; finally one `RunEnded`, and nothing after it. A call that is not run has no `CallStarted`; one that is run
may report progress in between (`CallProgressed`). The model's parts are recorded before its calls are run, and each
result as soon as there is one, so that after an interruption it is known which calls may have had side effects.
`history.closed` turns the recorded messages into a valid history.
"""

from collections.abc import Awaitable, Callable
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
    """A call has started."""

    call: ToolCall


class CallProgressed(Struct, frozen=True):
    """A running call has reported progress."""

    progress: Progress


class CallEnded(Struct, frozen=True):
    """A call has a result, whether it was run or refused."""

    call: ToolCall
    execution: Execution


class ApprovalAsked(Struct, frozen=True, kw_only=True):
    """A call waits for approval: answer with `agent.answer(run, topic, "allow")`, or "deny"."""

    run: str
    topic: str
    call: ToolCall
    reason: str
    """Why approval is needed, as text for the user."""


class TurnEnded(Struct, frozen=True):
    """A turn of the model has ended, and its calls have results; `messages` is what it adds to the history."""

    number: int
    response: Response
    messages: tuple[Message, ...]


class Compacted(Struct, frozen=True, kw_only=True):
    """The history was compacted."""

    before: int
    after: int
    """The number of messages before and after."""


class RunEnded(Struct, frozen=True, kw_only=True):
    """The run has ended."""

    run: str
    stop: StopReason
    statistics: Statistics
    history: tuple[Message, ...]
    """All messages of the request and of the run; every call that is run here has its result."""
    finish: Finish
    """The finish reason of the whole run, as if it were one reply."""
    problem: Problem | None = None
    """The error, for the stop reasons "failed" and "cancelled"."""
    untrusted: bool = False
    """Whether the history may contain text from an untrusted author."""

    @property
    def text(self) -> str:
        """The text or refusal of the last reply; "" if the run ended without one."""
        last = self.history[-1] if self.history else None
        if last is None or last.role != "assistant":
            return ""
        parts = (part for part in last.parts if isinstance(part, Text | Refusal))
        return "".join(part.text for part in parts if isinstance(part, Refusal) or not part.unread)


Step = Event | CallStarted | CallProgressed | CallEnded | ApprovalAsked | TurnEnded | Compacted | RunEnded


class Recorder(Protocol):
    """Stores runs; a `Problem` that it raises ends the run."""

    async def begin(self, run: str, request: Request) -> None:
        """Record the start of a run, with its history so far."""
        ...

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Record a reply of the model, or results; results of one turn arrive one by one, as the calls end."""
        ...

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Record that the whole history was replaced, because it was compacted."""
        ...

    async def end(self, ended: RunEnded) -> None:
        """Record the end of a run."""
        ...


class GuardedRecorder:
    """The recorder of a run, if there is one: its unexpected errors become problems of the run."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder

    async def begin(self, run: str, request: Request) -> None:
        """Record the start of a run."""
        await self._record(lambda recorder: recorder.begin(run, request))

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Record messages."""
        await self._record(lambda recorder: recorder.add(run, messages))

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Record a replaced history."""
        await self._record(lambda recorder: recorder.replace(run, messages))

    async def end(self, ended: RunEnded) -> None:
        """Record the end of a run."""
        await self._record(lambda recorder: recorder.end(ended))

    async def _record(self, write: Callable[[Recorder], Awaitable[None]]) -> None:
        if self._recorder is not None:
            with wrap_errors("the recorder"):
                await write(self._recorder)
