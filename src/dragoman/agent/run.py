"""One run, from the request to its end: model, calls, results, and the model again.

Each turn of the model is one step of the runtime, and so is each call. In each turn the model gets the caller's request
with the agent's tools added to the client's. The history is valid after every turn; if a run is stopped inside a turn,
its complete parts are kept, and every call without a result gets one.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from contextlib import aclosing
from time import monotonic
from typing import Literal

from msgspec import Struct, structs

from dragoman.agent.admission import Admission
from dragoman.agent.calls import CallRunner, ModelTurn
from dragoman.agent.config import AgentConfig
from dragoman.agent.history import (
    answer_own_calls,
    build_assistant_message,
    build_result_message,
    find_cut,
    read_summary,
    replace_with_summary,
    summarise_messages,
    unfold_turns,
)
from dragoman.agent.limits import Control, Statistics, StoppedError, StopReason
from dragoman.agent.model import stream_events, wrap_errors
from dragoman.agent.request_tools import (
    add_tools,
    find_client_tools,
    forbid_tools,
    refresh_tools,
    relax_tool_choice,
)
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import CallEnded, Compacted, GuardedRecorder, RunEnded, TurnEnded
from dragoman.core.parts import AnyPart, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, count_leading_systems
from dragoman.core.response import Finish, Response, add_usage
from dragoman.core.stream import replay
from dragoman.tools import Execution
from dragoman.tools.handler import qualify_name

FirstCall = Literal["auto", "required"]
"""Whether the model must start with a call; after the first result it may always answer."""
_LOG = logging.getLogger("dragoman.agent")
_MIN_CUT = 2
"""The minimum number of messages for which a summary is worth it."""


def build_request(prompt: str | Sequence[AnyPart], history: Sequence[Message], system: str, model: str) -> Request:
    """Return a request with the prompt after a history; a new system text replaces the old one."""
    parts = (Text(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
    before = tuple(history[count_leading_systems(history) :] if system else history)
    instructions = (Message(role="system", parts=(Text(text=system),)),) if system else ()
    return Request(model=model, messages=(*instructions, *before, Message(role="user", parts=parts)))


class RunInput(Struct, frozen=True):
    """The input of one run."""

    run: str
    request: Request
    untrusted: bool = False
    """Untrusted content was read earlier that is no longer in the history."""


class Run:
    """Executes one run of the agent loop."""

    def __init__(self, config: AgentConfig, run_input: RunInput, runtime: Runtime, control: Control) -> None:
        run, request = run_input.run, run_input.request
        self._config, self._runtime, self._run, self._control = config, runtime, run, control
        self._executor, self._limits = config.executor, config.limits
        self._recorder = GuardedRecorder(config.recorder)
        self._request = add_tools(request, self._executor.registry)
        if request.output is None and config.output_format is not None:
            self._request = structs.replace(self._request, output=config.output_format)
        self._client_tools = find_client_tools(request, self._executor.registry)
        self._is_forbidden = request.tool_choice is not None and request.tool_choice.mode == "none"
        """Whether the request forbids tool calls; if a server ignores that, its calls are not run."""
        self._history = answer_own_calls(unfold_turns(request.messages), self._is_own)
        self._admission = Admission(config, self._history, runtime, run)
        self._admission.untrusted |= run_input.untrusted
        self._call_runner = CallRunner(config, self._admission, runtime, self._recorder, run)
        self._statistics = Statistics()
        self._finish = Finish("other")
        self._problem: Problem | None = None
        self._last_turn_reason: StopReason | None = "turns" if self._limits.turns < 1 else None
        """Why the next turn is the last one, without tools."""
        self._id_counts: dict[str, int] = {}
        self._malformed_count = 0
        self._retried_empty_turn = self._retried_refused_calls = self._corrected_output = False
        self._start_time = monotonic()
        self._turn: ModelTurn | None = None
        """The current turn."""

    async def execute(self) -> RunEnded:
        """Run to the end, however it ends; the resulting history is valid."""
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
                # The caller or the runtime is gone: record the end, but emit nothing.
                with contextlib.suppress(Problem):
                    await self._close_turn()
                    await self._record_end(abandoned)
        try:
            ended = await self._record_end(stop)
        except Problem as problem:
            self._problem = problem
            ended = self._build_end("failed")
        await self._runtime.emit(ended)
        return ended

    async def _run_turns(self) -> StopReason:
        """Run all turns; return why they ended."""
        try:
            async with self._control.enforce_deadline(self._limits.seconds):
                await self._recorder.begin(self._run, structs.replace(self._request, messages=self._history))
                return await self._run_loop()
        except StoppedError:
            return await self._stop()
        except Problem as problem:
            return await self._fail(problem)

    async def _record_end(self, stop: StopReason) -> RunEnded:
        ended = self._build_end(stop)
        _log_end(ended)
        await self._recorder.end(ended)
        return ended

    def _build_end(self, stop: StopReason) -> RunEnded:
        return RunEnded(
            run=self._run,
            stop=stop,
            statistics=structs.replace(self._statistics, seconds=round(monotonic() - self._start_time, 6)),
            history=self._history,
            finish=self._finish,
            problem=self._problem,
            untrusted=self._admission.untrusted,
        )

    async def _run_loop(self) -> StopReason:
        while True:
            last = self._last_turn_reason
            turn, response = await self._ask_model(forbid_tools(self._request) if last else self._request)
            spent = self._find_spent_budget() if turn.calls and not turn.has_client_calls else None
            if last or spent or self._is_forbidden:
                await self._call_runner.refuse_calls(turn, forbidden=self._is_forbidden)
            else:
                await self._call_runner.run_calls(turn)
            await self._end_turn(turn, response)
            if turn.has_client_calls:
                self._finish = Finish("tool_calls")
                return "client_calls"
            # A call in the last turn ends the run like a refused call, even if it could not be parsed.
            is_short = bool(turn.calls) or (last is not None and response.finish.reason == "malformed_call")
            self._finish = Finish("length") if is_short else response.finish
            if spent or (last and not self._should_retry_refused(turn)):
                return last or spent or "turns"
            if not turn.calls and not self._should_ask_again(turn, response) and not await self._correct_output(turn):
                return "finished"
            if self._control.cancelled:
                return self._cancel()
            self._last_turn_reason = last or self._find_stop_reason()
            await self._compact_if_due(response)
            self._request = relax_tool_choice(self._request) if turn.calls else self._request
            self._request = refresh_tools(self._request, self._executor.registry, self._client_tools)

    def _should_ask_again(self, turn: ModelTurn, response: Response) -> bool:
        """Check whether to call the model again after a reply without calls: it was paused or unusable."""
        if response.finish.reason == "malformed_call":
            self._malformed_count += 1
            return self._limits.repairs is None or self._malformed_count <= self._limits.repairs
        if turn.is_empty and response.finish.reason == "stop":
            # Some models occasionally send an empty reply after a result, and answer when called again.
            was_retried, self._retried_empty_turn = self._retried_empty_turn, True
            return not was_retried
        return response.finish.reason == "paused"

    async def _correct_output(self, turn: ModelTurn) -> bool:
        """Send the errors of an invalid answer to the model, once; return whether it answers again."""
        find = self._config.find_correction
        if find is None or self._corrected_output:
            return False
        correction = find("".join(part.text for part in turn.parts if isinstance(part, Text) and not part.unread))
        if correction:
            self._corrected_output = True
            messages = (Message(role="user", parts=(Text(text=correction),)),)
            self._history += messages
            await self._recorder.add(self._run, messages)
        return bool(correction)

    def _should_retry_refused(self, turn: ModelTurn) -> bool:
        """Check whether to call the model one last time after its calls in the last turn were refused.

        Not every server respects tool choice "none", but every model reads the results of its calls.
        """
        was_retried, self._retried_refused_calls = self._retried_refused_calls, True
        return bool(turn.calls) and not was_retried

    def _find_stop_reason(self) -> StopReason | None:
        if self._admission.is_repeating:
            return "repetition"
        if self._admission.is_exhausted or self._is_forbidden:
            return "calls"
        return "turns" if self._statistics.turns >= self._limits.turns else None

    def _find_spent_budget(self) -> StopReason | None:
        """Return which budget is used up, so that running calls for another turn makes no sense."""
        if self._limits.tokens is not None and self._statistics.tokens >= self._limits.tokens:
            return "tokens"
        if self._limits.cost is not None and (self._statistics.cost or 0) >= self._limits.cost:
            return "cost"
        return None

    def _is_own(self, call: ToolCall) -> bool:
        return qualify_name(call.namespace, call.name) not in self._client_tools

    def _make_call_key(self, call: ToolCall) -> str:
        """Return a key for a call that is unique in the run: some servers number call ids from 0 in every turn."""
        count = self._id_counts[call.id] = self._id_counts.get(call.id, 0) + 1
        return call.id if count == 1 else f"{call.id}#{count}"

    async def _ask_model(self, request: Request) -> tuple[ModelTurn, Response]:
        """Call the model; if the context is too long, compact the history and retry once."""
        turn = self._turn = ModelTurn(self._is_own, self._make_call_key)
        try:
            return turn, await self._run_model_step(turn, request)
        except Problem as problem:
            if problem.kind != "context_length" or not turn.has_no_parts or not await self._compact_history("again"):
                raise
        turn = self._turn = ModelTurn(self._is_own, self._make_call_key)
        return turn, await self._run_model_step(turn, request, "again")

    async def _run_model_step(self, turn: ModelTurn, request: Request, *again: str) -> Response:
        number = self._statistics.turns + 1
        turn_request = structs.replace(request, messages=self._history, stream=True)

        async def work() -> Response:
            async with aclosing(stream_events(self._config.model, turn_request, turn.on_event)) as events:
                async for event in events:
                    await self._runtime.emit(event)
            return turn.collect_response()

        response = await self._runtime.step(":".join(("model", str(number), *again)), work)
        if turn.has_no_events:
            # The step was replayed: it ran in another process, and observers of this one have not seen its events.
            for event in replay(response):
                await self._runtime.emit(event)
        turn.set_parts(response.parts)
        await self._recorder.add(self._run, build_assistant_message(turn.parts))
        self._statistics = structs.replace(self._statistics, turns=number)
        self._count_usage(response)
        return response

    def _count_usage(self, response: Response) -> None:
        """Add the tokens and the cost of a turn or a summary."""
        usage, price = response.usage, self._config.price
        with wrap_errors("the price"):
            cost = price(response.model, usage) if price is not None and usage is not None else None
        self._statistics = structs.replace(
            self._statistics,
            usage=add_usage(self._statistics.usage, usage),
            cost=self._statistics.cost if cost is None else (self._statistics.cost or 0) + cost,
        )

    async def _end_turn(self, turn: ModelTurn, response: Response) -> None:
        self._add_to_history(turn)
        await self._runtime.emit(TurnEnded(self._statistics.turns, response, turn.messages))

    def _add_to_history(self, turn: ModelTurn) -> None:
        """Append a turn to the history."""
        self._turn = None
        executions = turn.executions
        self._admission.record_turn(turn.parts, turn.calls, executions)
        self._history += turn.messages
        self._statistics = structs.replace(
            self._statistics,
            calls=self._statistics.calls + len(executions),
            failed=self._statistics.failed + sum(execution.result.failed for execution in executions),
        )

    async def _compact_if_due(self, response: Response) -> None:
        """Compact the history if it is nearly too long."""
        compaction = self._config.compaction
        if compaction is not None and compaction.is_due(response, self._history):
            await self._compact_history()

    async def _compact_history(self, *again: str) -> bool:
        """Compact the history if it can be cut; return whether it was compacted."""
        compaction, before = self._config.compaction, self._history
        begin, end = find_cut(before, compaction.keep) if compaction is not None else (0, 0)
        if compaction is None or end - begin < _MIN_CUT:
            return False
        middle = before[begin:end]
        key = ":".join(("compact", str(self._statistics.turns), *again))
        try:
            summary = await self._runtime.step(key, lambda: summarise_messages(middle, compaction.summarise))
        except Problem:
            return False  # the history is still complete; the model may accept it, or reject it itself
        if isinstance(summary, Response):
            self._count_usage(summary)
        text = read_summary(summary)
        self._history = replace_with_summary(before, (begin, end), text, untrusted=self._admission.untrusted)
        await self._recorder.replace(self._run, self._history)
        await self._runtime.emit(Compacted(before=len(before), after=len(self._history)))
        return True

    async def _fail(self, problem: Problem) -> StopReason:
        """End a failed run with a valid history; further errors while recording it are ignored."""
        self._problem = problem
        with contextlib.suppress(Problem):
            for call, execution in await self._close_turn():
                await self._runtime.emit(CallEnded(call, execution))
        return "failed"

    def _cancel(self) -> StopReason:
        self._problem = Problem("cancelled", "the run was cancelled")
        return "cancelled"

    async def _stop(self) -> StopReason:
        """End a run that was stopped inside a turn, with a valid history."""
        for call, execution in await self._close_turn():
            await self._runtime.emit(CallEnded(call, execution))
        if self._control.cancelled == "now":
            return self._cancel()
        self._finish = Finish("length")
        return "seconds"

    async def _close_turn(self) -> list[tuple[ToolCall, Execution]]:
        """Append the current turn to the history; return the placeholder results that were added to it."""
        turn = self._turn
        if turn is None:
            return []
        was_recorded = bool(turn.parts)
        added = turn.interrupt()
        self._add_to_history(turn)
        if not was_recorded:
            await self._recorder.add(self._run, build_assistant_message(turn.parts))
        await self._recorder.add(self._run, build_result_message([execution.result for _, execution in added]))
        return added


def _log_end(ended: RunEnded) -> None:
    """Log one line per run: statistics and stop reason, never content."""
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
