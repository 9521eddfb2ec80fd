"""One run, from the request to its end: model, calls, results, and the model again.

Each turn of the model is one step of the runtime, and so is each call. In each turn the model gets the caller's request
with the loop's own tools beside the client's. The history is valid whenever a turn is over; if a run is stopped inside
one, what was said is kept and every call without a result gets one.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Literal

from msgspec import Struct, structs

from dragoman.agent.admission import Admission
from dragoman.agent.calls import Calling, ModelTurn
from dragoman.agent.equipment import Equipment
from dragoman.agent.history import answered, answers, compacted, cut, said, summed_up, unfolded
from dragoman.agent.limits import Control, Statistics, StoppedError, StopReason, added
from dragoman.agent.model import heard, mistakes_of
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import CallEnded, Compacted, Recording, RunEnded, TurnEnded, Unrecorded
from dragoman.core.parts import AnyPart, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Request, Tool, ToolChoice, leading_systems
from dragoman.core.response import Finish, Response
from dragoman.core.stream import replay
from dragoman.tools import Execution, Registry
from dragoman.tools.handler import joined

FirstCall = Literal["auto", "required"]
"""Whether the model must begin with a call. After the first result it is free in any case."""
_LOG = logging.getLogger("dragoman.agent")
_WORTH_CUTTING = 2
"""Messages below which a summary is no shorter."""


def question(prompt: str | Sequence[AnyPart], history: Sequence[Message], system: str, model: str) -> Request:
    """Return the request that asks something after a history; a new system text stands in place of the old one."""
    parts = (Text(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
    before = tuple(history[leading_systems(history) :] if system else history)
    told = (Message(role="system", parts=(Text(text=system),)),) if system else ()
    return Request(model=model, messages=(*told, *before, Message(role="user", parts=parts)))


def client_names(request: Request, registry: Registry) -> frozenset[str]:
    """Return the names of the tools that whoever asked runs; a name that is ours too is ours."""
    declared = (joined(tool.namespace, tool.name) for tool in request.tools if isinstance(tool, Tool))
    return frozenset(name for name in declared if not registry.has(name))


def offering(request: Request, registry: Registry) -> Request:
    """Return the request with the tools of the registry after the client's."""
    theirs = tuple(
        tool
        for tool in request.tools
        if not isinstance(tool, Tool) or not registry.has(joined(tool.namespace, tool.name))
    )
    return structs.replace(request, tools=(*theirs, *registry.definitions))


def renewed(request: Request, registry: Registry, theirs: Collection[str]) -> Request:
    """Return the request with tools that have come, or are described otherwise, since it was made.

    What was offered before stays, in its place: the history may have calls of it, and a model's cache begins with it.
    """
    now = {joined(tool.namespace, tool.name): tool for tool in registry.definitions}
    tools: list[Tool | NativeTool] = []
    for tool in request.tools:
        name = joined(tool.namespace, tool.name) if isinstance(tool, Tool) else ""
        tools.append(now.pop(name, tool) if name not in theirs else tool)
    tools += [tool for name, tool in now.items() if name not in theirs]
    return structs.replace(request, tools=tuple(tools))


def relaxed(request: Request) -> Request:
    """Return the request with a free choice of tools: a call that is forced after every result would never end."""
    choice = request.tool_choice
    if choice is None or choice.mode != "required":
        return request
    # A choice of one tool is how it is forced; to allow only that one from now on is not what was meant.
    names = choice.names if len(choice.names) > 1 else ()
    return structs.replace(request, tool_choice=structs.replace(choice, mode="auto", names=names))


def without_tools(request: Request) -> Request:
    """Return the request with tools that are declared, for the history has calls of them, but may not be called."""
    parallel = request.tool_choice.parallel if request.tool_choice is not None else None
    return structs.replace(request, tool_choice=ToolChoice(mode="none", parallel=parallel))


class RunInput(Struct, frozen=True):
    """What one run begins with."""

    run: str
    request: Request
    untrusted: bool = False
    """Something was read earlier that the history does not show any more."""


class Run:
    """The loop."""

    def __init__(self, equipment: Equipment, begun: RunInput, runtime: Runtime, control: Control) -> None:
        run, request = begun.run, begun.request
        self._equipment, self._runtime, self._run, self._control = equipment, runtime, run, control
        self._executor, self._limits = equipment.executor, equipment.limits
        self._recorder = Recording(equipment.recorder) if equipment.recorder is not None else Unrecorded()
        self._request = offering(request, self._executor.registry)
        self._theirs = client_names(request, self._executor.registry)
        self._is_forbidden = request.tool_choice is not None and request.tool_choice.mode == "none"
        """Whether no tool may be called at all: a server may not heed that, and then its calls are not run."""
        self._history = answered(unfolded(request.messages), self._is_own)
        self._admission = Admission(equipment, self._history, runtime, run)
        self._admission.untrusted |= begun.untrusted
        self._calling = Calling(self._executor, self._admission, runtime, self._recorder, run)
        self._statistics = Statistics()
        self._finish = Finish("other")
        self._problem: Problem | None = None
        self._last: StopReason | None = "turns" if self._limits.turns < 1 else None
        """Why the next turn is the last one, without tools."""
        self._names: dict[str, int] = {}
        self._malformed = 0
        self._asked_again = self._was_told = False
        self._began = monotonic()
        self._turn: ModelTurn | None = None
        """The turn that is under way."""

    async def go(self) -> RunEnded:
        """Run to the end, whatever it is; the history it leaves is valid."""
        is_over = False
        abandoned: StopReason = "failed"
        try:
            stop = await self._run_turns()
            is_over = True
        except (asyncio.CancelledError, GeneratorExit):
            abandoned = "cancelled"
            raise
        finally:
            if not is_over:
                # Whoever waited is gone, or what carries the run is: it is written down, and told to nobody.
                with contextlib.suppress(Problem):
                    await self._close_turn()
                    await self._written(abandoned)
        try:
            ended = await self._written(stop)
        except Problem as problem:
            self._problem = problem
            ended = self._ended_as("failed")
        await self._runtime.emit(ended)
        return ended

    async def _run_turns(self) -> StopReason:
        """Run all turns and return why they ended."""
        try:
            async with self._control.limited(self._limits.seconds):
                await self._recorder.begin(self._run, structs.replace(self._request, messages=self._history))
                return await self._turns()
        except StoppedError:
            return await self._stopped()
        except Problem as problem:
            return await self._failed(problem)

    async def _written(self, stop: StopReason) -> RunEnded:
        ended = self._ended_as(stop)
        _noted(ended)
        await self._recorder.end(ended)
        return ended

    def _ended_as(self, stop: StopReason) -> RunEnded:
        return RunEnded(
            run=self._run,
            stop=stop,
            statistics=structs.replace(self._statistics, seconds=round(monotonic() - self._began, 6)),
            history=self._history,
            finish=self._finish,
            problem=self._problem,
            untrusted=self._admission.untrusted,
        )

    async def _turns(self) -> StopReason:
        while True:
            last = self._last
            turn, response = await self._asked(without_tools(self._request) if last else self._request)
            spent = self._spent() if turn.calls and not turn.is_mixed else None
            if last or spent or self._is_forbidden:
                await self._calling.refuse(turn, forbidden=self._is_forbidden)
            else:
                await self._calling.answer(turn)
            await self._end(turn, response)
            if turn.is_mixed:
                self._finish = Finish("tool_calls")
                return "client_calls"
            # A call that may not be made any more ends a run like one that was not run, whether it can be read or not.
            is_short = bool(turn.calls) or (last is not None and response.finish.reason == "malformed_call")
            self._finish = Finish("length") if is_short else response.finish
            if spent or (last and not self._insists(turn)):
                return last or spent or "turns"
            if not turn.calls and not self._goes_on(turn, response):
                return "finished"
            if self._control.cancelled:
                return self._cancelled()
            self._last = last or self._reason_to_end()
            await self._compact(response)
            self._request = relaxed(self._request) if turn.calls else self._request
            self._request = renewed(self._request, self._executor.registry, self._theirs)

    def _goes_on(self, turn: ModelTurn, response: Response) -> bool:
        """Tell whether a model that made no call is asked again: it was paused, or nothing came that can be used."""
        if response.finish.reason == "malformed_call":
            self._malformed += 1
            return self._limits.repairs is None or self._malformed <= self._limits.repairs
        if turn.is_hollow and response.finish.reason == "stop":
            # Some models say nothing after a result now and then, and something when they are asked once more.
            was_asked, self._asked_again = self._asked_again, True
            return not was_asked
        return response.finish.reason == "paused"

    def _insists(self, turn: ModelTurn) -> bool:
        """Tell whether a model that calls in its last turn is asked a very last time, now that it was refused.

        Not every server heeds that no tool may be called; every model reads what its calls came to.
        """
        was_told, self._was_told = self._was_told, True
        return bool(turn.calls) and not was_told

    def _reason_to_end(self) -> StopReason | None:
        if self._admission.circling:
            return "repetition"
        if self._admission.exhausted or self._is_forbidden:
            return "calls"
        return "turns" if self._statistics.turns >= self._limits.turns else None

    def _spent(self) -> StopReason | None:
        """Return what of the budget is spent, so that there is no use in running calls for another turn."""
        if self._limits.tokens is not None and self._statistics.tokens >= self._limits.tokens:
            return "tokens"
        if self._limits.cost is not None and (self._statistics.cost or 0) >= self._limits.cost:
            return "cost"
        return None

    def _is_own(self, call: ToolCall) -> bool:
        return joined(call.namespace, call.name) not in self._theirs

    def _named(self, call: ToolCall) -> str:
        """Return a name for a call that no other call of the run has: some servers number from 0 in every turn."""
        count = self._names[call.id] = self._names.get(call.id, 0) + 1
        return call.id if count == 1 else f"{call.id}#{count}"

    async def _asked(self, request: Request) -> tuple[ModelTurn, Response]:
        """Ask the model; a history that it says is too long is made shorter, once."""
        turn = self._turn = ModelTurn(self._is_own, self._named)
        try:
            return turn, await self._ask(turn, request)
        except Problem as problem:
            if problem.kind != "context_length" or not turn.is_silent or not await self._shorten("again"):
                raise
        turn = self._turn = ModelTurn(self._is_own, self._named)
        return turn, await self._ask(turn, request, "again")

    async def _ask(self, turn: ModelTurn, request: Request, *again: str) -> Response:
        number = self._statistics.turns + 1
        asked = structs.replace(request, messages=self._history, stream=True)

        async def work() -> Response:
            async with aclosing(heard(self._equipment.model, asked, turn.hear)) as events:
                async for event in events:
                    await self._runtime.emit(event)
            return turn.response()

        response = await self._runtime.step(":".join(("model", str(number), *again)), work)
        if turn.is_unheard:
            # It was said before, to another process: whoever watches this one has not heard it.
            for event in replay(response):
                await self._runtime.emit(event)
        turn.spoken(response.parts)
        await self._recorder.add(self._run, said(turn.parts))
        usage, price = response.usage, self._equipment.price
        with mistakes_of("the price"):
            cost = price(response.model, usage) if price is not None and usage is not None else None
        self._statistics = structs.replace(
            self._statistics,
            turns=number,
            usage=added(self._statistics.usage, usage),
            cost=self._statistics.cost if cost is None else (self._statistics.cost or 0) + cost,
        )
        return response

    async def _end(self, turn: ModelTurn, response: Response) -> None:
        self._keep(turn)
        await self._runtime.emit(TurnEnded(self._statistics.turns, response, turn.messages))

    def _keep(self, turn: ModelTurn) -> None:
        """Make a turn part of the history."""
        self._turn = None
        executions = turn.executions
        self._admission.learn(turn.parts, turn.calls, executions)
        self._history += turn.messages
        self._statistics = structs.replace(
            self._statistics,
            calls=self._statistics.calls + len(executions),
            failed=self._statistics.failed + sum(execution.result.failed for execution in executions),
        )

    async def _compact(self, response: Response) -> None:
        """Make the history shorter, if it is time."""
        compaction = self._equipment.compaction
        if compaction is not None and compaction.is_due(response, self._history):
            await self._shorten()

    async def _shorten(self, *again: str) -> bool:
        """Make the history shorter, if there is a place to cut it; tell whether that was done."""
        compaction, before = self._equipment.compaction, self._history
        begin, end = cut(before, compaction.keep) if compaction is not None else (0, 0)
        if compaction is None or end - begin < _WORTH_CUTTING:
            return False
        middle = before[begin:end]
        key = ":".join(("compact", str(self._statistics.turns), *again))
        try:
            summary = await self._runtime.step(key, lambda: summed_up(middle, compaction.summarise))
        except Problem:
            return False  # the history still says everything: the model may take it, or say itself that it does not
        self._history = compacted(before, (begin, end), summary, untrusted=self._admission.untrusted)
        await self._recorder.replace(self._run, self._history)
        await self._runtime.emit(Compacted(before=len(before), after=len(self._history)))
        return True

    async def _failed(self, problem: Problem) -> StopReason:
        """Leave a valid history of a run in which something went wrong; that it cannot be written down goes with it."""
        self._problem = problem
        with contextlib.suppress(Problem):
            for call, execution in await self._close_turn():
                await self._runtime.emit(CallEnded(call, execution))
        return "failed"

    def _cancelled(self) -> StopReason:
        self._problem = Problem("cancelled", "the run was cancelled")
        return "cancelled"

    async def _stopped(self) -> StopReason:
        """Leave a valid history of a turn that was stopped inside."""
        for call, execution in await self._close_turn():
            await self._runtime.emit(CallEnded(call, execution))
        if self._control.cancelled == "now":
            return self._cancelled()
        self._finish = Finish("length")
        return "seconds"

    async def _close_turn(self) -> list[tuple[ToolCall, Execution]]:
        """Make what there is of a turn part of the history; return the answers that were made up for it."""
        turn = self._turn
        if turn is None:
            return []
        was_spoken = bool(turn.parts)
        made_up = turn.interrupt()
        self._keep(turn)
        if not was_spoken:
            await self._recorder.add(self._run, said(turn.parts))
        await self._recorder.add(self._run, answers([execution.result for _, execution in made_up]))
        return made_up


def _noted(ended: RunEnded) -> None:
    """Leave one record of a run: how far it went and why it ended, never what was said."""
    statistics = ended.statistics
    _LOG.info(
        "run %s: %s after %d turns and %d calls, %d tokens, %.1f s",
        ended.run,
        ended.stop,
        statistics.turns,
        statistics.calls,
        statistics.tokens,
        statistics.seconds,
        extra={
            "run": ended.run,
            "stop": ended.stop,
            "turns": statistics.turns,
            "calls": statistics.calls,
            "failed": statistics.failed,
            "tokens": statistics.tokens,
            "seconds": statistics.seconds,
        },
    )
