"""What happens in a run, as it happens: the events of each turn of the model, and between them what the loop does.

Grammar: the events of a turn, then `CallStarted` and `CallEnded` of its calls as they begin and end, then `TurnEnded`;
at last one `RunEnded`, and nothing after it. A call that is not run has no `CallStarted`; one that is may tell between
the two how far it is (`CallProgressed`).
"""

from msgspec import Struct

from dragoman.agent.limits import Statistics, StopReason
from dragoman.core.events import Event
from dragoman.core.parts import Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message
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
