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
from dragoman.agent.history import NO_RESULT, answers, calls_of, said, salvaged
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import CallEnded, CallProgressed, CallStarted, Recorder
from dragoman.core.events import Event
from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.tasks import run_all, start_task
from dragoman.tools import Execution, Executor, Progress, progress_to
from dragoman.tools.results import refused

_NO_TOOLS = "{name} was not run: there are no more turns for tools. Answer with what you have."
_NO_CHOICE = "{name} was not run: the request says that no tool may be called. Answer without."


@asynccontextmanager
async def progress_told(runtime: Runtime) -> AsyncGenerator[None]:
    """Tell the progress of what is run within."""
    teller = _Teller(runtime)
    with progress_to(teller.hear):
        try:
            yield
        finally:
            await teller.close()


class _Teller:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        self._newest: Progress | None = None
        self._telling: asyncio.Task[None] | None = None
        self._closed = False

    def hear(self, progress: Progress) -> None:
        """Take a word of the tool's, wherever it runs."""
        self._loop.call_soon_threadsafe(self._heard, progress)

    def _heard(self, progress: Progress) -> None:
        self._newest = progress
        if not self._closed and (self._telling is None or self._telling.done()):
            self._telling = start_task(self._tell(), "report progress")

    async def _tell(self) -> None:
        while self._newest is not None:
            progress, self._newest = self._newest, None
            await self._runtime.emit(CallProgressed(progress))

    async def close(self) -> None:
        """Say what is left, and no more after that."""
        self._closed = True
        if self._telling is not None:
            await self._telling


def _is_hollow(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) or (isinstance(part, Text) and not part.text.strip())


class ModelTurn:
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


class Calling:
    """Answers the calls of one run."""

    def __init__(
        self, executor: Executor, admission: Admission, runtime: Runtime, recorder: Recorder, run: str
    ) -> None:
        self._executor, self._admission = executor, admission
        self._runtime, self._recorder, self._run = runtime, recorder, run

    async def answer(self, turn: ModelTurn) -> None:
        """Run the calls of a turn that may be run."""
        refusals = await self._admission.refusals(turn.calls)
        for keyed in turn.calls:
            if keyed.key in refusals:
                await self._ended(turn, keyed, refusals[keyed.key])
        let_in = {id(keyed.call): keyed for keyed in turn.calls if keyed.key not in refusals}
        for stretch in self._executor.stretches([keyed.call for keyed in let_in.values()]):
            await run_all((self._perform(turn, let_in[id(call)]) for call in stretch), "tool call")

    async def refuse(self, turn: ModelTurn, *, forbidden: bool = False) -> None:
        """Run nothing: there is no turn left in which a result could be of use, or whoever asked forbids it."""
        for keyed in turn.calls:
            words = (_NO_CHOICE if forbidden else _NO_TOOLS).format(name=keyed.call.name)
            await self._ended(turn, keyed, refused(keyed.call, None, "skipped", words))

    async def _perform(self, turn: ModelTurn, keyed: KeyedCall) -> None:
        call = keyed.call
        await self._runtime.emit(CallStarted(call))

        async def work() -> Execution:
            key, unswayed = f"{self._run}:{keyed.key}", self._admission.is_unswayed(call)
            # A handler holds functions, which nobody can keep.
            return structs.replace(await self._executor.perform(call, key, unswayed=unswayed), handler=None)

        async with progress_told(self._runtime):
            execution = await self._runtime.step(f"tool:{keyed.key}", work)
        await self._ended(turn, keyed, structs.replace(execution, handler=self._executor.registry.find(call)))

    async def _ended(self, turn: ModelTurn, keyed: KeyedCall, execution: Execution) -> None:
        turn.ended(keyed, execution)
        await self._recorder.add(self._run, answers([execution.result]))
        await self._runtime.emit(CallEnded(keyed.call, execution))
