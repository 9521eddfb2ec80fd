"""Execute the tool calls of a model; every call produces exactly one result.

Errors of the model or of a tool never raise: they become a failed result with advice for the model. Only cancellation
propagates, and it cancels the running calls. Every call writes one log record, without its arguments and its output.
"""

import asyncio
import inspect
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import copy_context
from copy import copy
from itertools import groupby
from typing import Any, Self
from weakref import WeakKeyDictionary

from msgspec import structs

from dragoman.core.parts import Content, Text, ToolCall, ToolResult
from dragoman.guard import Attempt, attempt, attempt_async
from dragoman.interpreter.schema.validation import MAX_TOOL_NAME_LENGTH
from dragoman.tasks import run_all
from dragoman.tools.arguments import InvalidArgumentsError, read_arguments
from dragoman.tools.handler import Handler, Invocation, ToolFailure, enter_invocation, invocation, qualify_name
from dragoman.tools.registry import Registry
from dragoman.tools.results import (
    Execution,
    IdempotencyCache,
    Outcome,
    build_refusal,
    build_result,
    parse_output,
    reads_files,
    trim_output,
)
from dragoman.tools.workers import CallRecord, CallTimeoutError, StuckError, WorkerPool

TIMEOUT = 30.0
CONCURRENCY = 16
MAX_OUTPUT = 256 << 10
MAX_MEDIA = 20 << 20
MAX_CACHED_RESULTS = 1024
MAX_CACHED_BYTES = 16 << 20
MAX_STUCK = 128
"""Number of abandoned calls of one tool that still hang at which further calls are rejected."""
_MAX_MESSAGE = 2000
_MAX_LISTED = 20
Spill = Callable[[ToolCall, tuple[Content, ...]], str | Awaitable[str]]
"""Stores an output that is too large for the model and returns its location: a path, a URL, or an id for a tool."""


class Executor:
    """Runs the tools of a registry, with limits on concurrency, time and output size."""

    def __init__(  # noqa: PLR0913  limits, each with its name and its default
        self,
        registry: Registry,
        *,
        timeout: float = TIMEOUT,
        concurrency: int = CONCURRENCY,
        max_output: int = MAX_OUTPUT,
        max_media: int = MAX_MEDIA,
        spill: Spill | None = None,
        max_cached_results: int = MAX_CACHED_RESULTS,
        explain_missing: Callable[[str], str] | None = None,
    ) -> None:
        if concurrency < 1 or not timeout > 0:
            raise ValueError("timeout must be greater than 0 seconds and concurrency at least 1")
        if min(max_output, max_media, max_cached_results) < 0:
            raise ValueError("max_output, max_media and max_cached_results must not be negative")
        self.registry = registry
        self._timeout = timeout
        self._concurrency = concurrency
        self._max_output = max_output
        self._max_media = max_media
        self._spill = spill
        self.owner = ""
        """The caller that calls are run for (`Invocation.owner`)."""
        self.deps: tuple[Any, ...] = ()
        """The dependencies that tools get through a `RunContext` parameter (`Invocation.deps`)."""
        self._explain_missing = explain_missing
        """Returns why the tool of that name is not available at present; "" if it does not know the name."""
        self._workers = WorkerPool(MAX_STUCK)
        self._idempotency_cache = IdempotencyCache(max_cached_results, MAX_CACHED_BYTES)
        self._semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"<Executor of {self.registry!r}, {self._concurrency} at once, {self._timeout:g} s each>"

    def of(self, registry: Registry | None = None, owner: str = "", deps: tuple[Any, ...] = ()) -> Self:
        """Return an executor for another registry, owner or dependencies that shares the limits and the cache."""
        other = copy(self)
        other.registry = self.registry if registry is None else registry
        other.owner = owner or self.owner
        other.deps = deps or self.deps
        return other

    async def execute(self, call: ToolCall, key: str = "") -> ToolResult:
        """Run one call and return its result. A tool with side effects runs only once for each `key`."""
        return (await self.perform(call, key)).result

    async def execute_all(self, calls: Sequence[ToolCall], run: str = "") -> tuple[ToolResult, ...]:
        """Run the calls of one turn concurrently and return the results in the order of the calls.

        With the id of a run, the idempotency key of a call is `run:call_id`; a repeated id gets the suffix `#2`, `#3`.
        """
        return tuple(execution.result for execution in await self.perform_all(calls, run))

    async def perform_all(self, calls: Sequence[ToolCall], run: str = "") -> tuple[Execution, ...]:
        """Run calls as `execute_all` does and return their `Execution` records."""
        ended: list[Execution] = []
        keys = _make_keys(calls, run)
        for group in self.group_calls(calls):
            ended += await run_all((self.perform(call, next(keys)) for call in group), "tool call")
        return tuple(ended)

    def group_calls(self, calls: Sequence[ToolCall]) -> Iterator[tuple[ToolCall, ...]]:
        """Yield the calls of one turn in groups: calls in a group may run concurrently, groups run in sequence."""
        for _, group in groupby(enumerate(calls), self._group_of):
            yield tuple(call for _, call in group)

    def _group_of(self, numbered: tuple[int, ToolCall]) -> int:
        """Return one common number for calls that may run concurrently, and a unique one for a sequential call."""
        at, call = numbered
        handler = self.registry.find(call)
        return at if handler is not None and handler.sequential else -1

    async def perform(self, call: ToolCall, key: str = "", *, untainted: bool = False) -> Execution:
        """Run one call as `execute` does and return its `Execution`; `untainted` is passed on in the `Invocation`."""
        handler = self.registry.find(call)
        record = CallRecord(call, handler)
        try:
            current = self._build_invocation(call, key, untainted)
            performed = await attempt_async(self._run_call, current, handler, record)
        except asyncio.CancelledError:
            record.end("cancelled")
            raise
        if performed.error is None:
            execution, error = performed.value
        else:
            # A bug in this package or in the tool's `convert` must not end the conversation.
            execution, error = build_refusal(call, handler, "error", "the tool could not be run"), performed.error
        milliseconds = record.end(execution.outcome, execution.size, error, repeated=execution.repeated)
        return structs.replace(execution, milliseconds=milliseconds)

    def _build_invocation(self, call: ToolCall, key: str, untainted: bool) -> Invocation:
        outer = invocation()
        if outer is None:
            return Invocation(call, key, 0, untainted, self.owner, self.deps)
        return Invocation(call, key, outer.depth + 1, untainted, self.owner or outer.owner, self.deps or outer.deps)

    def can_run(self, call: ToolCall) -> bool:
        """Return whether the tool of a call exists and accepts its arguments."""
        handler = self.registry.find(call)
        # The error itself is reported when the call is run.
        return handler is not None and attempt(_parse_call, handler, call).error is None

    async def _run_call(
        self, current: Invocation, handler: Handler | None, record: CallRecord
    ) -> tuple[Execution, BaseException | None]:
        """Return the execution of a call, and the unexpected exception of the tool, if any."""
        call, key = current.call, current.key
        if handler is None:
            return build_refusal(call, None, "unknown", self._explain_unknown(call)), None
        try:
            arguments = _parse_call(handler, call)
        except InvalidArgumentsError as error:
            return build_refusal(call, handler, "invalid", f"{handler.name} was not run: {error}"), None
        raised: list[BaseException] = []

        async def work() -> Execution:
            return await self._run_tool(current, handler, arguments, raised)

        async with self._semaphore_for(current.depth):
            record.begin()
            once = bool(key) and handler.side_effects
            execution = await (self._idempotency_cache.run(key, call, handler, work) if once else work())
        return execution, raised[0] if raised else None

    def _semaphore_for(self, depth: int) -> asyncio.Semaphore:
        """Return the semaphore that limits concurrent calls at a nesting depth.

        A tool may run other tools: with one semaphore for all depths it could deadlock, waiting for the slot it holds.
        """
        semaphores = self._semaphores.setdefault(asyncio.get_running_loop(), {})
        return semaphores.setdefault(depth, asyncio.Semaphore(self._concurrency))

    async def _run_tool(
        self, current: Invocation, handler: Handler, arguments: Any, errors: list[BaseException]
    ) -> Execution:
        call = current.call
        seconds = self._timeout if handler.timeout is None else handler.timeout
        try:
            ended = await self._workers.run(handler, arguments, current, None if seconds == math.inf else seconds)
        except CallTimeoutError:
            message = f"{handler.name} took longer than {seconds:g} seconds and was stopped."
            return build_refusal(call, handler, "timeout", f"{message} Ask for less, or go on without it.")
        except StuckError:
            count = self._workers.count_stuck(handler.name)
            message = f"{handler.name} was not run: {count} earlier calls of it have not ended. Go on without it."
            return build_refusal(call, handler, "stuck", message)
        if ended.error is not None:
            return _build_failure(call, handler, ended.error, errors)
        return await self._build_execution(current, handler, ended, errors)

    async def _build_execution(
        self, current: Invocation, handler: Handler, ended: Attempt, errors: list[BaseException]
    ) -> Execution:
        """Return the execution of a call that ended, with its output cut to the limits."""
        call = current.call
        try:
            reads = reads_files(ended.value)
            value = await asyncio.to_thread(parse_output, ended.value) if reads else parse_output(ended.value)
        except (TypeError, ValueError, RecursionError, OSError) as error:
            errors.append(error)
            message = f"{handler.name} ran, but what it returned cannot be told: {_error_message(error)}"
            return build_refusal(call, handler, "error", message)
        most = self._max_output if handler.max_output is None else handler.max_output
        trimmed = trim_output(value.content, most, self._max_media)
        outcome: Outcome = "failed" if value.failed else "succeeded"
        content, failed = trimmed.content, value.failed
        if trimmed.is_cut:
            outcome = "oversized"
            kept = await self._spill_output(current, value.content, errors)
            content = (*content, Text(text=_format_cut_note(trimmed.size, most, kept)))
            failed = failed or not kept
        result = build_result(call, content, failed=failed)
        return Execution(result=result, outcome=outcome, handler=handler, size=trimmed.size)

    async def _spill_output(
        self, current: Invocation, content: tuple[Content, ...], errors: list[BaseException]
    ) -> str:
        """Store the whole output and return its location; "" if it is not stored."""
        if self._spill is None:
            return ""
        context = copy_context()
        context.run(enter_invocation, current)
        kept = attempt(context.run, self._spill, current.call, content)
        waiting = kept.value
        if inspect.isawaitable(waiting):
            kept = await attempt_async(lambda: waiting)
        if kept.error is not None:
            errors.append(kept.error)  # the model still gets the result, cut
            return ""
        return kept.value

    def _explain_unknown(self, call: ToolCall) -> str:
        name = _clip(qualify_name(call.namespace, call.name), MAX_TOOL_NAME_LENGTH)
        if self._explain_missing is not None and (reason := self._explain_missing(name)):
            return f"{name} was not run: {reason}. Go on without it, or try again later."
        near = self.registry.nearest(name)
        if near:
            return f"there is no tool named {name!r}. Did you mean {' or '.join(map(repr, near))}?"
        names = self.registry.names
        if not names:
            return f"there is no tool named {name!r}, and no other. Answer without tools."
        more = f", and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        return f"there is no tool named {name!r}. There are: {', '.join(names[:_MAX_LISTED])}{more}."


def _make_keys(calls: Sequence[ToolCall], run: str) -> Iterator[str]:
    """Yield the idempotency keys of the calls of one turn; some servers give several calls the same id, or none."""
    seen: Counter[str] = Counter()
    for call in calls:
        seen[call.id] += 1
        again = f"#{seen[call.id]}" if seen[call.id] > 1 else ""
        yield f"{run}:{call.id}{again}" if run else ""


def _parse_call(handler: Handler, call: ToolCall) -> Any:
    if not call.complete:
        raise InvalidArgumentsError("the arguments are cut off in the middle. Call again with shorter ones.")
    arguments = read_arguments(handler.definition, call.arguments)
    if handler.convert is None:
        return arguments
    try:
        return handler.convert(arguments)
    except InvalidArgumentsError:
        raise
    except ValueError as error:
        raise InvalidArgumentsError(_clip(str(error))) from None


def _build_failure(call: ToolCall, handler: Handler, error: BaseException, errors: list[BaseException]) -> Execution:
    """Return a failed result with the class and the message of an exception, never its traceback."""
    if isinstance(error, ToolFailure):
        return build_refusal(call, handler, "failed", _error_message(error) or f"{handler.name} failed")
    errors.append(error)
    detail = f": {message}" if (message := _error_message(error)) else ""
    return build_refusal(call, handler, "error", f"{handler.name} failed: {type(error).__name__}{detail}")


def _error_message(error: BaseException) -> str:
    """Return the message of an error; "" if its `__str__` raises."""
    message = attempt(str, error)  # `__str__` is code of the tool
    return _clip(message.value) if message.error is None else ""


def _format_cut_note(size: int, limit: int, location: str) -> str:
    then = f"All of it is kept: {location}" if location else "The tool ran; to see the rest, ask it for less at a time."
    return f"[cut: the output has {size:,} bytes, and {limit:,} are shown at most. {then}]"


def _clip(text: str, limit: int = _MAX_MESSAGE) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
