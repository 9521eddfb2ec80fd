"""One run, from the request to its end: model, calls, results, and the model again.

Rules: each turn of the model is one step of the runtime, and so is each call. The history is valid whenever a turn is
over; where a run is stopped inside one, what was said is kept and every call that has no result gets one.
"""

import asyncio
from collections.abc import Iterable, Sequence
from time import monotonic

from msgspec import structs

from dragoman.agent.asking import client_names, offering, relaxed, without_tools
from dragoman.agent.control import Control, StoppedError
from dragoman.agent.equipment import Equipment
from dragoman.agent.history import NO_RESULT, answers, calls_of, said, salvaged, unfolded
from dragoman.agent.limits import Statistics, StopReason, added
from dragoman.agent.model import closing
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import CallEnded, CallStarted, RunEnded, TurnEnded
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response
from dragoman.core.stream import Collector
from dragoman.tools import Execution
from dragoman.tools.execution import refused
from dragoman.tools.handler import joined

_NO_TOOLS = "{name} was not run: there are no more turns for tools. Answer with what you have."


class Run:
    """The loop."""

    def __init__(self, equipment: Equipment, request: Request, runtime: Runtime, run: str, control: Control) -> None:
        self._model, self._executor, self._limits = equipment.model, equipment.executor, equipment.limits
        self._request = offering(request, self._executor.registry)
        self._runtime = runtime
        self._run = run
        self._control = control
        self._theirs = client_names(request, self._executor.registry)
        self._history = unfolded(request.messages)
        self._statistics = Statistics()
        self._finish = Finish("other")
        self._problem: Problem | None = None
        self._keys: dict[str, int] = {}
        self._began = monotonic()
        self._collector: Collector | None = None
        """The turn that is being told."""
        self._calls: tuple[ToolCall, ...] = ()
        """Own calls of this turn."""
        self._executions: dict[int, Execution] = {}
        """What became of them, by place."""

    async def go(self) -> RunEnded:
        """Run to the end, whatever it is; the history it leaves is valid."""
        try:
            async with self._control.limited(self._limits.seconds):
                stop = await self._turns()
        except StoppedError:
            stop = await self._stopped()
        except Problem as problem:
            self._problem, stop = problem, "failed"
        except asyncio.CancelledError:
            self._close_turn()
            raise
        ended = RunEnded(
            run=self._run,
            stop=stop,
            statistics=structs.replace(self._statistics, seconds=round(monotonic() - self._began, 6)),
            history=self._history,
            finish=self._finish,
            problem=self._problem,
        )
        await self._runtime.emit(ended)
        return ended

    async def _turns(self) -> StopReason:
        while True:
            last = self._statistics.turns >= self._limits.turns
            response = await self._ask(without_tools(self._request) if last else self._request)
            calls = calls_of(response.parts)
            own = tuple(call for call in calls if not self._is_theirs(call))
            await self._answer(own, last=last)
            await self._end_turn(response)
            self._finish = response.finish
            if len(own) < len(calls):
                self._finish = Finish("tool_calls")
                return "client_calls"
            if last:
                self._finish = Finish("length") if calls else response.finish
                return "turns"
            if not calls and response.finish.reason != "paused":
                return "finished"
            if self._control.cancelled == "after_turn":
                return self._cancelled()
            if own:
                self._request = relaxed(self._request)

    def _is_theirs(self, call: ToolCall) -> bool:
        return joined(call.namespace, call.name) in self._theirs

    async def _ask(self, request: Request) -> Response:
        """Ask the model once."""
        number = self._statistics.turns + 1
        asked = structs.replace(request, messages=self._history, stream=True)
        self._collector = collector = Collector()

        async def work() -> Response:
            async with closing(self._model(asked)) as events:
                async for event in events:
                    collector.feed(event)
                    await self._runtime.emit(event)
            return collector.response()

        response = await self._runtime.step(f"model:{number}", work)
        usage = added(self._statistics.usage, response.usage)
        self._statistics = structs.replace(self._statistics, turns=number, usage=usage)
        self._history += said(response.parts)
        self._collector = None
        return response

    async def _answer(self, calls: Sequence[ToolCall], *, last: bool) -> None:
        """Give every call a result, by running it or by saying why it was not run."""
        self._calls, self._executions = tuple(calls), {}
        places = {id(call): at for at, call in enumerate(calls)}
        if last:
            for call in calls:
                await self._ended(call, places, refused(call, None, "skipped", _NO_TOOLS.format(name=call.name)))
            return
        for stretch in self._executor.stretches(calls):
            async with asyncio.TaskGroup() as group:
                for call in stretch:
                    group.create_task(self._perform(call, places))

    async def _perform(self, call: ToolCall, places: dict[int, int]) -> None:
        key = self._key(call)
        await self._runtime.emit(CallStarted(call))

        async def work() -> Execution:
            # A handler holds functions, which nobody can keep.
            return structs.replace(await self._executor.perform(call, f"{self._run}:{key}"), handler=None)

        execution = await self._runtime.step(f"tool:{key}", work)
        await self._ended(call, places, structs.replace(execution, handler=self._executor.registry.find(call)))

    async def _ended(self, call: ToolCall, places: dict[int, int], execution: Execution) -> None:
        self._executions[places[id(call)]] = execution
        await self._runtime.emit(CallEnded(call, execution))

    def _key(self, call: ToolCall) -> str:
        """Return a name for a call that no other call of the run has: some servers number from 0 in every turn."""
        count = self._keys[call.id] = self._keys.get(call.id, 0) + 1
        return call.id if count == 1 else f"{call.id}#{count}"

    async def _end_turn(self, response: Response) -> None:
        results = [self._executions[at].result for at in range(len(self._calls))]
        self._count(self._executions.values())
        self._history += answers(results)
        self._calls, self._executions = (), {}
        added_messages = (*said(response.parts), *answers(results))
        await self._runtime.emit(TurnEnded(self._statistics.turns, response, added_messages))

    def _count(self, executions: Iterable[Execution]) -> None:
        ended = tuple(executions)
        self._statistics = structs.replace(
            self._statistics,
            calls=self._statistics.calls + len(ended),
            failed=self._statistics.failed + sum(execution.result.failed for execution in ended),
        )

    def _cancelled(self) -> StopReason:
        self._problem = Problem("cancelled", "the run was cancelled")
        return "cancelled"

    async def _stopped(self) -> StopReason:
        """Leave a valid history of a turn that was stopped inside."""
        for call, execution in self._close_turn():
            await self._runtime.emit(CallEnded(call, execution))
        if self._control.cancelled == "now":
            return self._cancelled()
        self._finish = Finish("length")
        return "seconds"

    def _close_turn(self) -> list[tuple[ToolCall, Execution]]:
        """Keep what was said, answer what was called, and return the answers that were made up for it."""
        if self._collector is not None:
            parts = salvaged(self._collector.parts)
            self._history += said(parts)
            self._calls = tuple(call for call in calls_of(parts) if not self._is_theirs(call))
            self._collector = None
        made_up: list[tuple[ToolCall, Execution]] = []
        for at, call in enumerate(self._calls):
            if at not in self._executions:
                self._executions[at] = refused(call, None, "cancelled", NO_RESULT)
                made_up.append((call, self._executions[at]))
        self._count(self._executions.values())
        self._history += answers([self._executions[at].result for at in range(len(self._calls))])
        self._calls, self._executions = (), {}
        return made_up
