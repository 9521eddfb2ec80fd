"""The agent: a model and tools that work until the model is done, as a function with the type of a model.

Rules: an agent holds nothing between runs but what it is made of, and the runs that are under way, by their ids.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from msgspec import structs

from dragoman.agent.approvals import Approve
from dragoman.agent.asking import FirstCall, client_names, question
from dragoman.agent.compaction import Compaction
from dragoman.agent.control import Control, When
from dragoman.agent.equipment import Equipment, Price
from dragoman.agent.folding import Folding
from dragoman.agent.limits import Limits
from dragoman.agent.model import Model
from dragoman.agent.recording import Recorder
from dragoman.agent.run import Run
from dragoman.agent.runtime import InProcess, Runtime, WatchedRuntime
from dragoman.agent.steps import RunEnded, Step
from dragoman.core.events import Event
from dragoman.core.parts import AnyPart
from dragoman.core.request import Message, Request, Sampling, ToolChoice
from dragoman.http.destinations import destination_of
from dragoman.tools import Executor
from dragoman.tools.handler import joined


class Agent:
    """A model that may use the tools of an executor."""

    def __init__(  # noqa: PLR0913  what it is made of, each with its name
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
        self._equipment = Equipment(
            model=model,
            executor=executor,
            limits=limits or Limits(),
            approve=approve,
            destinations=tuple(map(destination_of, destinations)),
            price=price,
            compaction=compaction,
            recorder=recorder,
        )
        self._runtime = runtime
        self._under_way: dict[str, tuple[WatchedRuntime, Control]] = {}

    def __repr__(self) -> str:
        return f"<Agent with {self._equipment.executor!r}>"

    async def __call__(self, request: Request) -> AsyncGenerator[Event]:
        """Run, and tell all turns as one reply."""
        theirs = client_names(request, self._equipment.executor.registry)
        folding = Folding(lambda call: joined(call.namespace, call.name) not in theirs)
        # Who reads one reply sees no question, and cannot answer it.
        async with aclosing(self._steps(_unasked(self._equipment), request)) as steps:
            async for step in steps:
                for event in folding.feed(step):
                    yield event

    async def run(  # noqa: PLR0913  what can be asked, each with its name
        self,
        prompt: str | Sequence[AnyPart],
        *,
        history: Sequence[Message] = (),
        system: str = "",
        model: str = "",
        sampling: Sampling | None = None,
        first_call: FirstCall = "auto",
    ) -> RunEnded:
        """Run to the end and return it; `history` is what an earlier run left."""
        request = question(prompt, history, system, model)
        choice = ToolChoice(mode="required") if first_call == "required" else None
        request = structs.replace(request, sampling=sampling or Sampling(), tool_choice=choice)
        async with aclosing(self._steps(_unasked(self._equipment), request)) as steps:
            ended = [step async for step in steps if isinstance(step, RunEnded)]
        return ended[-1]

    def steps(self, request: Request, *, run: str = "", untrusted: bool = False) -> AsyncGenerator[Step]:
        """Run, and tell everything as it happens. Who stops reading stops the run.

        `untrusted` says that something was read earlier that the history does not show any more.
        """
        return self._steps(self._equipment, request, run, untrusted=untrusted)

    async def _steps(
        self, equipment: Equipment, request: Request, run: str = "", *, untrusted: bool = False
    ) -> AsyncGenerator[Step]:
        run = run or f"run_{uuid4().hex}"
        if run in self._under_way:
            raise ValueError(f"a run {run!r} is under way")
        runtime, control = self._runtime(run), Control()
        self._under_way[run] = (runtime, control)
        begun = Run(equipment, request, runtime, run, control, untrusted=untrusted)
        task = asyncio.create_task(_carried(begun, runtime))
        try:
            async with aclosing(runtime.watch()) as steps:
                async for step in steps:
                    yield step
            await task
        finally:
            del self._under_way[run]
            runtime.close()
            task.cancel()
            await asyncio.wait([task])

    async def carry(
        self, request: Request, runtime: Runtime, *, run: str, control: Control | None = None, untrusted: bool = False
    ) -> RunEnded:
        """Run on a runtime of the caller's: this is what an engine calls that outlives the process."""
        return await Run(self._equipment, request, runtime, run, control or Control(), untrusted=untrusted).go()

    def cancel(self, run: str, when: When = "now") -> bool:
        """Stop a run that is under way; False if there is none of that id."""
        if run not in self._under_way:
            return False
        self._under_way[run][1].cancel(when)
        return True

    def answer(self, run: str, topic: str, value: Any) -> bool:
        """Answer what a run waits for; False if there is none of that id."""
        if run not in self._under_way:
            return False
        self._under_way[run][0].tell(topic, value)
        return True


def _unasked(equipment: Equipment) -> Equipment:
    return structs.replace(equipment, limits=structs.replace(equipment.limits, approval=0.0))


async def _carried(run: Run, runtime: WatchedRuntime) -> None:
    try:
        await run.go()
    finally:
        runtime.close()
