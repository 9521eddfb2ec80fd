"""The agent: runs a model with tools until the model is done; itself a function with the type of a model.

Between runs an agent keeps only its configuration, and the active runs by id. All turns of a run are merged into one
reply for the client: the first `Started` counts for all, parts are numbered consecutively, calls that are run here are
marked as the provider's, each result is a part after the turn of its call, in the order of the calls, and usage is
summed. A call that could not be parsed is left out: the loop has retried it, or has ended because of it.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, assert_never
from uuid import uuid4

from msgspec import structs

from dragoman.agent.config import AgentConfig, Approve, Price
from dragoman.agent.history import Compaction
from dragoman.agent.limits import CancelMode, Control, Limits, add_usage
from dragoman.agent.model import Model
from dragoman.agent.run import FirstCall, Run, RunInput, build_request, find_client_tools
from dragoman.agent.runtime import InProcess, Runtime, WatchedRuntime
from dragoman.agent.steps import (
    ApprovalAsked,
    CallEnded,
    CallProgressed,
    CallStarted,
    Compacted,
    Recorder,
    RunEnded,
    Step,
    TurnEnded,
)
from dragoman.core import events
from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.request import Message, Request, Sampling, ToolChoice
from dragoman.core.response import Usage
from dragoman.core.stream import replay_part
from dragoman.http.addresses import parse_destination
from dragoman.tasks import start_task, stop_tasks
from dragoman.tools import Executor
from dragoman.tools.handler import qualify_name


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


class Agent:
    """A model that uses the tools of an executor."""

    def __init__(  # noqa: PLR0913  keyword arguments
        self,
        model: Model,
        executor: Executor,
        *,
        limits: Limits | None = None,
        approve: Approve | None = None,
        destinations: Iterable[str] = (),
        price: Price | None = None,
        compaction: Compaction | None = None,
        recorder: Recorder | None = None,
        runtime: Callable[[str], WatchedRuntime] = InProcess,
    ) -> None:
        self._config = AgentConfig(
            model=model,
            executor=executor,
            limits=limits or Limits(),
            approve=approve,
            destinations=tuple(map(parse_destination, destinations)),
            price=price,
            compaction=compaction,
            recorder=recorder,
        )
        self._runtime = runtime
        self._runs: dict[str, tuple[WatchedRuntime, Control]] = {}

    def __repr__(self) -> str:
        return f"<Agent with {self._config.executor!r}>"

    async def __call__(self, request: Request) -> AsyncGenerator[events.Event]:
        """Run, and stream all turns as one reply."""
        client_tools = find_client_tools(request, self._config.executor.registry)
        merger = ReplyMerger(lambda call: qualify_name(call.namespace, call.name) not in client_tools)
        # The reader of a single reply does not see approval requests, so it cannot answer them.
        async with aclosing(self._run_steps(_disable_approval(self._config), request)) as steps:
            async for step in steps:
                for event in merger.feed(step):
                    yield event

    async def run(  # noqa: PLR0913  keyword arguments
        self,
        prompt: str | Sequence[AnyPart],
        *,
        history: Sequence[Message] = (),
        system: str = "",
        model: str = "",
        sampling: Sampling | None = None,
        first_call: FirstCall = "auto",
    ) -> RunEnded:
        """Run to the end and return it; `history` is the history of an earlier run."""
        request = build_request(prompt, history, system, model)
        choice = ToolChoice(mode="required") if first_call == "required" else None
        request = structs.replace(request, sampling=sampling or Sampling(), tool_choice=choice)
        async with aclosing(self._run_steps(_disable_approval(self._config), request)) as steps:
            ended = [step async for step in steps if isinstance(step, RunEnded)]
        return ended[-1]

    def steps(self, request: Request, *, run: str = "", untrusted: bool = False) -> AsyncGenerator[Step]:
        """Run, and yield every step as it happens; closing the iterator stops the run.

        Set `untrusted` if untrusted content was read earlier that is no longer in the history.
        """
        return self._run_steps(self._config, request, run, untrusted=untrusted)

    async def _run_steps(
        self, config: AgentConfig, request: Request, run: str = "", *, untrusted: bool = False
    ) -> AsyncGenerator[Step]:
        run = run or f"run_{uuid4().hex}"
        if run in self._runs:
            raise ValueError(f"the run {run!r} is already active; use another id")
        runtime, control = self._runtime(run), Control()
        self._runs[run] = (runtime, control)
        active = Run(config, RunInput(run, request, untrusted), runtime, control)
        task = start_task(_run_to_end(active, runtime), f"agent run {run}")
        try:
            async with aclosing(runtime.watch()) as steps:
                async for step in steps:
                    yield step
            await task
        finally:
            del self._runs[run]
            runtime.close()
            await stop_tasks(task)

    async def run_on(
        self, request: Request, runtime: Runtime, *, run: str, control: Control | None = None, untrusted: bool = False
    ) -> RunEnded:
        """Run on the caller's runtime, for example on a durable engine that outlives the process."""
        return await Run(self._config, RunInput(run, request, untrusted), runtime, control or Control()).execute()

    def cancel(self, run: str, when: CancelMode = "now") -> bool:
        """Cancel an active run; return False if there is none with this id."""
        if run not in self._runs:
            return False
        self._runs[run][1].cancel(when)
        return True

    def answer(self, run: str, topic: str, value: Any) -> bool:
        """Answer a question of an active run; return False if there is none with this id."""
        if run not in self._runs:
            return False
        self._runs[run][0].tell(topic, value)
        return True


def _disable_approval(config: AgentConfig) -> AgentConfig:
    return structs.replace(config, limits=structs.replace(config.limits, approval=0.0))


async def _run_to_end(run: Run, runtime: WatchedRuntime) -> None:
    try:
        await run.execute()
    finally:
        runtime.close()
