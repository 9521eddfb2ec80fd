"""Giving the calls of a turn their results: by running them, or by saying why they were not run.

Rules: each call that is run is one step. Calls run at once in the stretches that the executor says; nothing else
happens beside them. A result is written down before it is told.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from msgspec import structs

from dragoman.agent.admission import Admission, KeyedCall
from dragoman.agent.history import answers
from dragoman.agent.progress import progress_told
from dragoman.agent.recording import Recorder
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import CallEnded, CallStarted
from dragoman.agent.turn import Turn
from dragoman.core.problems import Problem
from dragoman.tools import Execution, Executor
from dragoman.tools.execution import refused

_NO_TOOLS = "{name} was not run: there are no more turns for tools. Answer with what you have."
_NO_CHOICE = "{name} was not run: the request says that no tool may be called. Answer without."


class Calling:
    """Answers the calls of one run."""

    def __init__(
        self, executor: Executor, admission: Admission, runtime: Runtime, recorder: Recorder, run: str
    ) -> None:
        self._executor, self._admission = executor, admission
        self._runtime, self._recorder, self._run = runtime, recorder, run

    async def answer(self, turn: Turn) -> None:
        """Run the calls of a turn that may be run."""
        refusals = await self._admission.refusals(turn.calls)
        for keyed in turn.calls:
            if keyed.key in refusals:
                await self._ended(turn, keyed, refusals[keyed.key])
        let_in = {id(keyed.call): keyed for keyed in turn.calls if keyed.key not in refusals}
        for stretch in self._executor.stretches([keyed.call for keyed in let_in.values()]):
            await _together(self._perform(turn, let_in[id(call)]) for call in stretch)

    async def refuse(self, turn: Turn, *, forbidden: bool = False) -> None:
        """Run nothing: there is no turn left in which a result could be of use, or whoever asked forbids it."""
        for keyed in turn.calls:
            words = (_NO_CHOICE if forbidden else _NO_TOOLS).format(name=keyed.call.name)
            await self._ended(turn, keyed, refused(keyed.call, None, "skipped", words))

    async def _perform(self, turn: Turn, keyed: KeyedCall) -> None:
        call = keyed.call
        await self._runtime.emit(CallStarted(call))

        async def work() -> Execution:
            key, unswayed = f"{self._run}:{keyed.key}", self._admission.is_unswayed(call)
            # A handler holds functions, which nobody can keep.
            return structs.replace(await self._executor.perform(call, key, unswayed=unswayed), handler=None)

        async with progress_told(self._runtime):
            execution = await self._runtime.step(f"tool:{keyed.key}", work)
        await self._ended(turn, keyed, structs.replace(execution, handler=self._executor.registry.find(call)))

    async def _ended(self, turn: Turn, keyed: KeyedCall, execution: Execution) -> None:
        turn.ended(keyed, execution)
        await self._recorder.add(self._run, answers([execution.result]))
        await self._runtime.emit(CallEnded(keyed.call, execution))


async def _together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do several things at once; of several problems, which are the recorder's, one is as good as all."""
    problem: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except* Problem as problems:
        problem = problems.exceptions[0]
    if problem is not None:
        raise problem
