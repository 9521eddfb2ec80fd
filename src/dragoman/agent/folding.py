"""All turns of a run as one reply: what a client sees that asked once.

Rules: the first `Started` speaks for all; parts are numbered through; a call that is run here is the provider's, and
its result is a part that stands after the turn that made it, in the order of the calls; usage is of all turns together.
A call that nobody could read is not told: the loop has asked for it again, or has ended for it.
"""

from collections.abc import Callable, Iterator

from msgspec import structs

from dragoman.agent.limits import added
from dragoman.agent.steps import CallEnded, RunEnded, Step, TurnEnded
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
from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.core.response import Usage
from dragoman.core.stream import replay_part


class Folding:
    """Makes one reply of a run; `is_own` tells the calls that are run here."""

    def __init__(self, is_own: Callable[[ToolCall], bool]) -> None:
        self._is_own = is_own
        self._started = False
        self._count = 0
        """Parts told so far."""
        self._offset = 0
        """Parts told before this turn."""
        self._hidden: set[int] = set()
        """Parts of this turn that are not told."""
        self._open: dict[int, bool] = {}
        """Parts that have not ended, and whether they are calls."""
        self._calls: list[str] = []
        """Ids of own calls of this turn that have no result yet, in order."""
        self._ended: dict[str, list[ToolResult]] = {}
        self._native: list[Native] = []
        self._before, self._usage = Usage(), Usage()

    def feed(self, step: Step) -> Iterator[Event]:
        """Take one step, iterate what a client is told of it."""
        match step:
            case PartStarted(index, Text(unread=True)):
                self._hidden.add(index)
            case PartDelta() | PartSigned() | PartCited() | PartNative() | PartEnded() if step.index in self._hidden:
                pass
            case PartDelta() | PartSigned() | PartCited() | PartNative():
                yield structs.replace(step, index=self._place(step.index))
            case PartStarted() | PartEnded():
                yield self._bounded(step)
            case Started():
                yield from () if self._started else (step,)
                self._started = True
                self._native.clear()
            case UsageSeen(usage):
                self._usage = usage
                yield UsageSeen(added(self._before, usage))
            case Native():
                self._native.append(step)  # pointers into the whole reply mean the last turn
            case CallEnded(call, execution):
                self._ended.setdefault(call.id, []).append(execution.result)
                yield from self._results()
            case TurnEnded():
                self._turned()
            case RunEnded():
                yield from self._over(step)
            case _:
                pass

    def _place(self, index: int) -> int:
        """Return the place of a part of this turn in the whole reply."""
        return self._offset + index - sum(hidden < index for hidden in self._hidden)

    def _bounded(self, event: PartStarted | PartEnded) -> Event:
        index = self._place(event.index)
        if isinstance(event, PartEnded):
            self._open.pop(index, None)
            return structs.replace(event, index=index)
        part = event.part
        self._count += 1
        self._open[index] = isinstance(part, ToolCall)
        if isinstance(part, ToolCall) and part.executor == "client" and self._is_own(part):
            self._calls.append(part.id)
            part = structs.replace(part, executor="provider")
        return PartStarted(index, part)

    def _results(self) -> Iterator[Event]:
        """Iterate the results that no earlier call of the turn holds up."""
        while self._calls and self._ended.get(self._calls[0]):
            result = self._ended[self._calls.pop(0)].pop(0)
            yield from replay_part(self._count, structs.replace(result, executor="provider"))
            self._count += 1

    def _turned(self) -> None:
        self._calls.clear()
        self._ended.clear()
        self._hidden.clear()
        self._offset = self._count
        self._before, self._usage = added(self._before, self._usage), Usage()

    def _over(self, ended: RunEnded) -> Iterator[Event]:
        if ended.problem is not None:
            yield Failed(ended.problem)
            return
        if not self._started:
            yield Started(ended.run, "")
        for index, is_call in tuple(self._open.items()):
            yield PartEnded(index, complete=not is_call)
        yield from self._native
        yield Finished(ended.finish)
