"""One turn of the model while it is under way: what it says, which calls are ours, and what became of them."""

from collections.abc import Callable, Sequence

from dragoman.agent.admission import KeyedCall
from dragoman.agent.history import NO_RESULT, answers, calls_of, said, salvaged
from dragoman.core.events import Event
from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.tools import Execution
from dragoman.tools.execution import refused


def _is_hollow(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) or (isinstance(part, Text) and not part.text.strip())


class Turn:
    """From the question to the last result; `is_own` tells the calls that are answered here."""

    def __init__(self, is_own: Callable[[ToolCall], bool], named: Callable[[ToolCall], str]) -> None:
        self._is_own, self._named = is_own, named
        self._collector = Collector()
        self.is_unheard = True
        """Nothing was told of it yet, not even that it began."""
        self.parts: tuple[AnyPart, ...] = ()
        self.calls: tuple[KeyedCall, ...] = ()
        self._executions: dict[str, Execution] = {}
        self.is_hollow = False
        """There is no text in what was said, no call, nothing but thoughts."""

    def hear(self, event: Event) -> None:
        """Take in what the model says."""
        self.is_unheard = False
        self._collector.feed(event)

    @property
    def is_silent(self) -> bool:
        """Tell whether nothing was said yet."""
        return not self._collector.parts

    def response(self) -> Response:
        """Return the whole reply; raise its `Problem` if it failed."""
        return self._collector.response()

    def spoken(self, parts: Sequence[AnyPart]) -> None:
        """Take in all that the model said; of an answer in which nothing is said nothing is kept."""
        self.is_hollow = all(_is_hollow(part) for part in parts)
        self.parts = () if self.is_hollow else tuple(parts)
        own = (call for call in calls_of(parts) if self._is_own(call))
        self.calls = tuple(KeyedCall(call, self._named(call)) for call in own)

    @property
    def is_mixed(self) -> bool:
        """Tell whether some calls are left to whoever asked."""
        return len(self.calls) < len(calls_of(self.parts))

    def ended(self, keyed: KeyedCall, execution: Execution) -> None:
        """Take in what became of a call."""
        self._executions[keyed.key] = execution

    @property
    def executions(self) -> tuple[Execution, ...]:
        """What became of the calls, in their order; all of them are over."""
        return tuple(self._executions[keyed.key] for keyed in self.calls)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the turn adds to the history."""
        return (*said(self.parts), *answers([execution.result for execution in self.executions]))

    def interrupt(self) -> list[tuple[ToolCall, Execution]]:
        """Keep what was said, answer what was called, and return the answers that were made up for it."""
        if not self.parts:
            self.spoken(salvaged(self._collector.parts, self._collector.growing))
        made_up: list[tuple[ToolCall, Execution]] = []
        for keyed in self.calls:
            if keyed.key not in self._executions:
                execution = self._executions[keyed.key] = refused(keyed.call, None, "cancelled", NO_RESULT)
                made_up.append((keyed.call, execution))
        return made_up
