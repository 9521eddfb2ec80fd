"""One turn of the model: its events, the calls to run here, and their results.

Each call that is run is one step of the runtime. Calls run in parallel in the groups that the executor returns, and
nothing else runs at the same time. A result is recorded before it is reported. Only the newest progress message of a
call is reported, and the tool never waits for that: it may report from a thread, faster than the messages are read.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec import structs

from dragoman.agent.admission import Admission, KeyedCall
from dragoman.agent.config import AgentConfig
from dragoman.agent.history import (
    NO_RESULT,
    build_assistant_message,
    build_result_message,
    calls_of,
    drop_incomplete_parts,
)
from dragoman.agent.hooks import perform_with_hooks
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import CallEnded, CallProgressed, CallStarted, Recorder
from dragoman.core.events import Event
from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.tasks import run_all, start_task
from dragoman.tools import Execution, Progress, progress_to
from dragoman.tools.results import build_refusal

_NO_TURNS_LEFT = "{name} was not run: there are no more turns for tools. Answer with what you have."
_TOOLS_FORBIDDEN = "{name} was not run: the request says that no tool may be called. Answer without."


@asynccontextmanager
async def forward_progress(runtime: Runtime) -> AsyncGenerator[None]:
    """Forward the progress reports of the tools that run inside the block."""
    reporter = _ProgressReporter(runtime)
    with progress_to(reporter.report):
        try:
            yield
        finally:
            await reporter.close()


class _ProgressReporter:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        self._newest: Progress | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def report(self, progress: Progress) -> None:
        """Accept a progress report from any thread."""
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
        """Emit the last report, and accept no more."""
        self._closed = True
        if self._task is not None:
            await self._task


def _is_empty_part(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) or (isinstance(part, Text) and not part.text.strip())


class ModelTurn:
    """One turn, from the model request to the last result; `is_own` selects the calls that are run here."""

    def __init__(self, is_own: Callable[[ToolCall], bool], key_of: Callable[[ToolCall], str]) -> None:
        self._is_own, self._key_of = is_own, key_of
        self._collector = Collector()
        self.has_no_events = True
        """No event has arrived yet, not even the start."""
        self.parts: tuple[AnyPart, ...] = ()
        self.calls: tuple[KeyedCall, ...] = ()
        self._executions: dict[str, Execution] = {}
        self.is_empty = False
        """The reply has no text and no call, at most reasoning."""

    def on_event(self, event: Event) -> None:
        """Collect an event of the model's reply."""
        self.has_no_events = False
        self._collector.feed(event)

    @property
    def has_no_parts(self) -> bool:
        """Check whether the reply has no parts yet."""
        return not self._collector.parts

    def collect_response(self) -> Response:
        """Return the complete reply; raise its `Problem` if it failed."""
        return self._collector.response()

    def set_parts(self, parts: Sequence[AnyPart]) -> None:
        """Store the parts of the complete reply; the parts of an empty reply are dropped."""
        self.is_empty = all(_is_empty_part(part) for part in parts)
        self.parts = () if self.is_empty else tuple(parts)
        own = (call for call in calls_of(parts) if self._is_own(call))
        self.calls = tuple(KeyedCall(call, self._key_of(call)) for call in own)

    @property
    def has_client_calls(self) -> bool:
        """Check whether some calls are left to the client."""
        return len(self.calls) < len(calls_of(self.parts))

    def record_execution(self, keyed: KeyedCall, execution: Execution) -> None:
        """Store the result of a call."""
        self._executions[keyed.key] = execution

    @property
    def executions(self) -> tuple[Execution, ...]:
        """The results of the calls, in the order of the calls; all calls must have ended."""
        return tuple(self._executions[keyed.key] for keyed in self.calls)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that the turn adds to the history."""
        return (
            *build_assistant_message(self.parts),
            *build_result_message([execution.result for execution in self.executions]),
        )

    def interrupt(self) -> list[tuple[ToolCall, Execution]]:
        """Keep the complete parts, add a placeholder result to each unanswered call, and return these results."""
        if not self.parts:
            self.set_parts(drop_incomplete_parts(self._collector.parts, self._collector.open_parts))
        added: list[tuple[ToolCall, Execution]] = []
        for keyed in self.calls:
            if keyed.key not in self._executions:
                execution = self._executions[keyed.key] = build_refusal(keyed.call, None, "cancelled", NO_RESULT)
                added.append((keyed.call, execution))
        return added


class CallRunner:
    """Runs the calls of one run, or refuses them."""

    def __init__(
        self, config: AgentConfig, admission: Admission, runtime: Runtime, recorder: Recorder, run: str
    ) -> None:
        self._executor, self._hooks, self._admission = config.executor, config.hooks, admission
        self._runtime, self._recorder, self._run = runtime, recorder, run

    async def run_calls(self, turn: ModelTurn) -> None:
        """Run the calls of a turn that are admitted."""
        refusals = await self._admission.find_refusals(turn.calls)
        for keyed in turn.calls:
            if keyed.key in refusals:
                await self._end_call(turn, keyed, refusals[keyed.key])
        admitted = {id(keyed.call): keyed for keyed in turn.calls if keyed.key not in refusals}
        for group in self._executor.group_calls([keyed.call for keyed in admitted.values()]):
            await run_all((self._run_call(turn, admitted[id(call)]) for call in group), "tool call")

    async def refuse_calls(self, turn: ModelTurn, *, forbidden: bool = False) -> None:
        """Refuse all calls of a turn: there is no turn left to use a result, or the request forbids tools."""
        for keyed in turn.calls:
            text = (_TOOLS_FORBIDDEN if forbidden else _NO_TURNS_LEFT).format(name=keyed.call.name)
            await self._end_call(turn, keyed, build_refusal(keyed.call, None, "skipped", text))

    async def _run_call(self, turn: ModelTurn, keyed: KeyedCall) -> None:
        call = keyed.call
        await self._runtime.emit(CallStarted(call))

        async def work() -> Execution:
            key, untainted = f"{self._run}:{keyed.key}", self._admission.is_untainted(call)
            execution = await perform_with_hooks(
                self._hooks, call, lambda call: self._executor.perform(call, key, untainted=untainted)
            )
            # A handler contains functions, which a durable engine cannot store.
            return structs.replace(execution, handler=None)

        async with forward_progress(self._runtime):
            execution = await self._runtime.step(f"tool:{keyed.key}", work)
        await self._end_call(turn, keyed, structs.replace(execution, handler=self._executor.registry.find(call)))

    async def _end_call(self, turn: ModelTurn, keyed: KeyedCall, execution: Execution) -> None:
        turn.record_execution(keyed, execution)
        await self._recorder.add(self._run, build_result_message([execution.result]))
        await self._runtime.emit(CallEnded(keyed.call, execution))
