"""Merges all turns of a run into one reply for the client.

The first `Started` counts for all, parts are numbered consecutively, calls that are run here are marked as the
provider's, each result is a part after the turn of its call, in the order of the calls, and usage is summed. A call
that could not be parsed is left out: the loop has retried it, or has ended because of it.
"""

from collections.abc import Callable, Iterator
from typing import assert_never

from msgspec import structs

from dragoman.agent.steps import (
    ApprovalAsked,
    CallEnded,
    CallProgressed,
    CallStarted,
    Compacted,
    RunEnded,
    Step,
    TurnEnded,
)
from dragoman.core import events
from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.core.response import Usage, add_usage
from dragoman.core.stream import replay_part


class ReplyMerger:
    """Merges the turns of a run into one reply; `is_own` selects the calls that are run here."""

    def __init__(self, is_own: Callable[[ToolCall], bool]) -> None:
        self._is_own = is_own
        self._started = False
        self._count = 0
        """Parts sent so far."""
        self._offset = 0
        """Parts sent before this turn."""
        self._hidden_parts: set[int] = set()
        """Parts of this turn that are not sent."""
        self._open: dict[int, bool] = {}
        """Parts that have not ended, and whether they are calls."""
        self._calls: list[str] = []
        """Ids of our own calls of this turn that have no result yet, in order."""
        self._pending_results: dict[str, list[ToolResult]] = {}
        self._native: list[events.Native] = []
        self._earlier_usage, self._usage = Usage(), Usage()

    def feed(self, step: Step) -> Iterator[events.Event]:
        """Process one step; yield the events for the client."""
        match step:
            case events.PartStarted(index, Text(unread=True)):
                self._hidden_parts.add(index)
            case (
                events.PartDelta() | events.PartSigned() | events.PartCited() | events.PartNative() | events.PartEnded()
            ) if step.index in self._hidden_parts:
                pass
            case events.PartDelta() | events.PartSigned() | events.PartCited() | events.PartNative():
                yield structs.replace(step, index=self._reply_index(step.index))
            case events.PartStarted() | events.PartEnded():
                yield self._renumber_part(step)
            case events.Started():
                yield from () if self._started else (step,)
                self._started = True
                self._native.clear()
            case events.UsageSeen(usage):
                self._usage = usage
                yield events.UsageSeen(add_usage(self._earlier_usage, usage))
            case events.Native():
                self._native.append(step)  # fields about the whole reply are taken from the last turn
            case CallEnded(call, execution):
                self._pending_results.setdefault(call.id, []).append(execution.result)
                yield from self._release_results()
            case TurnEnded():
                self._end_turn()
            case RunEnded():
                yield from self._end_run(step)
            case events.Finished() | events.Failed() | CallStarted() | CallProgressed() | ApprovalAsked() | Compacted():
                pass  # the client gets one reply, with one end and without steps
            case _:
                assert_never(step)

    def _reply_index(self, index: int) -> int:
        """Return the index in the whole reply of a part of this turn."""
        return self._offset + index - sum(hidden < index for hidden in self._hidden_parts)

    def _renumber_part(self, event: events.PartStarted | events.PartEnded) -> events.Event:
        index = self._reply_index(event.index)
        if isinstance(event, events.PartEnded):
            self._open.pop(index, None)
            return structs.replace(event, index=index)
        part = event.part
        self._count += 1
        self._open[index] = isinstance(part, ToolCall)
        if isinstance(part, ToolCall) and part.executor == "client" and self._is_own(part):
            self._calls.append(part.id)
            part = structs.replace(part, executor="provider")
        return events.PartStarted(index, part)

    def _release_results(self) -> Iterator[events.Event]:
        """Yield the results that do not wait for an earlier call of the turn."""
        while self._calls and self._pending_results.get(self._calls[0]):
            result = self._pending_results[self._calls.pop(0)].pop(0)
            yield from replay_part(self._count, structs.replace(result, executor="provider"))
            self._count += 1

    def _end_turn(self) -> None:
        self._calls.clear()
        self._pending_results.clear()
        self._hidden_parts.clear()
        self._offset = self._count
        self._earlier_usage, self._usage = add_usage(self._earlier_usage, self._usage), Usage()

    def _end_run(self, ended: RunEnded) -> Iterator[events.Event]:
        if ended.problem is not None:
            yield events.Failed(ended.problem)
            return
        if not self._started:
            yield events.Started(ended.run, "")
        for index, is_call in tuple(self._open.items()):
            yield events.PartEnded(index, complete=not is_call)
        yield from self._native
        yield events.Finished(ended.finish)
