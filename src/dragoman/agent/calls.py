"""One turn of the model: its events, which of its calls are ours, and their results.

Each call that is run is one step. Calls run in parallel in the groups that the executor returns; nothing else happens
beside them. A result is recorded before it is reported. Of a call's progress only the newest message is reported, and
the tool never waits for that: it may report from a thread, faster than anybody reads.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec import structs

from dragoman.agent.admission import Admission, KeyedCall
from dragoman.agent.history import (
    NO_RESULT,
    build_assistant_message,
    build_result_message,
    calls_of,
    drop_incomplete_parts,
)
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import CallEnded, CallProgressed, CallStarted, Recorder
from dragoman.core.events import Event
from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.tasks import run_all, start_task
from dragoman.tools import Execution, Executor, Progress, progress_to
from dragoman.tools.results import build_refusal

_NO_TURNS_LEFT = "{name} was not run: there are no more turns for tools. Answer with what you have."
_TOOLS_FORBIDDEN = "{name} was not run: the request says that no tool may be called. Answer without."


@asynccontextmanager
async def forward_progress(runtime: Runtime) -> AsyncGenerator[None]:
    """Tell the progress of what is run within."""
    teller = _ProgressReporter(runtime)
    with progress_to(teller.report):
        try:
            yield
        finally:
            await teller.close()


class _ProgressReporter:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        self._newest: Progress | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def report(self, progress: Progress) -> None:
        """Take a word of the tool's, wherever it runs."""
        self._loop.call_soon_threadsafe(self._set_newest, progress)

    def _set_newest(self, progress: Progress) -> None:
        self._newest = progress
        if not self._closed and (self._task is None or self._task.done()):
            self._task = start_task(self._emit_newest(), "report progress")

    async def _emit_newest(self) -> None:
        while self._newest is not None:
            progress, self._newest = self._newest, None
            await self._runtime.emit(CallProgressed(progress))

    async def close(self) -> None:
        """Say what is left, and no more after that."""
        self._closed = True
        if self._task is not None:
            await self._task


def _is_empty_part(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) or (isinstance(part, Text) and not part.text.strip())


class ModelTurn:
    """From the question to the last result; `is_own` tells the calls that are answered here."""

    def __init__(self, is_own: Callable[[ToolCall], bool], key_of: Callable[[ToolCall], str]) -> None:
        self._is_own, self._key_of = is_own, key_of
        self._collector = Collector()
        self.has_no_events = True
        """Nothing was told of it yet, not even that it began."""
        self.parts: tuple[AnyPart, ...] = ()
        self.calls: tuple[KeyedCall, ...] = ()
        self._executions: dict[str, Execution] = {}
        self.is_empty = False
        """There is no text in what was said, no call, nothing but thoughts."""

    def on_event(self, event: Event) -> None:
        """Take in what the model says."""
        self.has_no_events = False
        self._collector.feed(event)

    @property
    def has_no_parts(self) -> bool:
        """Tell whether nothing was said yet."""
        return not self._collector.parts

    def collect_response(self) -> Response:
        """Return the whole reply; raise its `Problem` if it failed."""
        return self._collector.response()

    def set_parts(self, parts: Sequence[AnyPart]) -> None:
        """Take in all that the model said; of an answer in which nothing is said nothing is kept."""
        self.is_empty = all(_is_empty_part(part) for part in parts)
        self.parts = () if self.is_empty else tuple(parts)
        own = (call for call in calls_of(parts) if self._is_own(call))
        self.calls = tuple(KeyedCall(call, self._key_of(call)) for call in own)

    @property
    def has_client_calls(self) -> bool:
        """Tell whether some calls are left to whoever asked."""
        return len(self.calls) < len(calls_of(self.parts))

    def record_execution(self, keyed: KeyedCall, execution: Execution) -> None:
        """Take in what became of a call."""
        self._executions[keyed.key] = execution

    @property
    def executions(self) -> tuple[Execution, ...]:
        """What became of the calls, in their order; all of them are over."""
        return tuple(self._executions[keyed.key] for keyed in self.calls)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the turn adds to the history."""
        return (
            *build_assistant_message(self.parts),
            *build_result_message([execution.result for execution in self.executions]),
        )

    def interrupt(self) -> list[tuple[ToolCall, Execution]]:
        """Keep what was said, answer what was called, and return the answers that were made up for it."""
        if not self.parts:
            self.set_parts(drop_incomplete_parts(self._collector.parts, self._collector.open_parts))
        made_up: list[tuple[ToolCall, Execution]] = []
        for keyed in self.calls:
            if keyed.key not in self._executions:
                execution = self._executions[keyed.key] = build_refusal(keyed.call, None, "cancelled", NO_RESULT)
                made_up.append((keyed.call, execution))
        return made_up


class CallRunner:
    """Answers the calls of one run."""

    def __init__(
        self, executor: Executor, admission: Admission, runtime: Runtime, recorder: Recorder, run: str
    ) -> None:
        self._executor, self._admission = executor, admission
        self._runtime, self._recorder, self._run = runtime, recorder, run

    async def run_calls(self, turn: ModelTurn) -> None:
        """Run the calls of a turn that may be run."""
        refusals = await self._admission.find_refusals(turn.calls)
        for keyed in turn.calls:
            if keyed.key in refusals:
                await self._end_call(turn, keyed, refusals[keyed.key])
        let_in = {id(keyed.call): keyed for keyed in turn.calls if keyed.key not in refusals}
        for stretch in self._executor.group_calls([keyed.call for keyed in let_in.values()]):
            await run_all((self._run_call(turn, let_in[id(call)]) for call in stretch), "tool call")

    async def refuse_calls(self, turn: ModelTurn, *, forbidden: bool = False) -> None:
        """Run nothing: there is no turn left in which a result could be of use, or whoever asked forbids it."""
        for keyed in turn.calls:
            words = (_TOOLS_FORBIDDEN if forbidden else _NO_TURNS_LEFT).format(name=keyed.call.name)
            await self._end_call(turn, keyed, build_refusal(keyed.call, None, "skipped", words))

    async def _run_call(self, turn: ModelTurn, keyed: KeyedCall) -> None:
        call = keyed.call
        await self._runtime.emit(CallStarted(call))

        async def work() -> Execution:
            key, unswayed = f"{self._run}:{keyed.key}", self._admission.is_untainted(call)
            # A handler holds functions, which nobody can keep.
            return structs.replace(await self._executor.perform(call, key, untainted=unswayed), handler=None)

        async with forward_progress(self._runtime):
            execution = await self._runtime.step(f"tool:{keyed.key}", work)
        await self._end_call(turn, keyed, structs.replace(execution, handler=self._executor.registry.find(call)))

    async def _end_call(self, turn: ModelTurn, keyed: KeyedCall, execution: Execution) -> None:
        turn.record_execution(keyed, execution)
        await self._recorder.add(self._run, build_result_message([execution.result]))
        await self._runtime.emit(CallEnded(keyed.call, execution))
