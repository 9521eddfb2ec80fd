"""Hooks of an agent: functions called before and after each model turn and each tool call.

A hook may be a coroutine function. What it returns replaces what it got; None leaves it as it is. An exception ends the
run as failed.
"""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

from msgspec import Struct, structs

from dragoman.agent.model import Model, closing, wrap_errors
from dragoman.core.events import Event
from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.request import Request
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.tools import Execution

T = TypeVar("T")


class Hooks(Struct, frozen=True, kw_only=True):
    """Functions that observe or change a run."""

    before_model: Callable[[Request], Request | Awaitable[Request | None] | None] | None = None
    """Gets each request; may return another one, which changes what is sent but not the history."""
    after_model: Callable[[Response], Awaitable[object] | object] | None = None
    """Gets each complete reply; its return value is ignored, because the reply was already streamed."""
    before_call: Callable[[ToolCall], ToolCall | ToolResult | Awaitable[ToolCall | ToolResult | None] | None] | None = (
        None
    )
    """Gets each call before it runs; may return a call with other arguments, or a result instead of running it."""
    after_call: Callable[[ToolCall, ToolResult], ToolResult | Awaitable[ToolResult | None] | None] | None = None
    """Gets each call and its result; may return another result."""


async def _call_hook(name: str, hook: Callable[..., Any], *arguments: Any) -> Any:
    with wrap_errors(f"the hook {name}"):
        value = hook(*arguments)
        return await value if inspect.isawaitable(value) else value


def hook_model(model: Model, hooks: Hooks | None) -> Model:
    """Return a model that calls the hooks before and after each turn."""
    if hooks is None or (hooks.before_model is None and hooks.after_model is None):
        return model
    before, after = hooks.before_model, hooks.after_model

    async def call_model(request: Request) -> AsyncGenerator[Event]:
        if before is not None:
            request = await _call_hook("before_model", before, request) or request
        collector = Collector()
        async with closing(model(request)) as events:
            async for event in events:
                collector.feed(event)
                yield event
        if after is not None:
            await _call_hook("after_model", after, collector.response())

    return call_model


async def perform_with_hooks(
    hooks: Hooks | None, call: ToolCall, perform: Callable[[ToolCall], Awaitable[Execution]]
) -> Execution:
    """Run a call with the hooks before and after it; its id and its name stay those of the model."""
    if hooks is None:
        return await perform(call)
    replaced = None if hooks.before_call is None else await _call_hook("before_call", hooks.before_call, call)
    if isinstance(replaced, ToolResult):
        execution = Execution(result=replaced, outcome="failed" if replaced.failed else "succeeded")
    else:
        changed: ToolCall = call if replaced is None else replaced
        execution = await perform(structs.replace(changed, id=call.id, name=call.name, namespace=call.namespace))
    if hooks.after_call is not None:
        result = await _call_hook("after_call", hooks.after_call, call, execution.result) or execution.result
        execution = structs.replace(execution, result=result)
    result = structs.replace(execution.result, call_id=call.id, name=call.name, form=call.form)
    return structs.replace(execution, result=result)
