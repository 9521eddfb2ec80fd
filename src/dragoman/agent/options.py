"""What the ways to run an agent share: their options, waiting without an event loop, and the text of a stream."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from contextvars import copy_context
from typing import Any, TypedDict, TypeVar

from dragoman.agent.run import FirstCall
from dragoman.agent.steps import RunEnded, Step
from dragoman.core import events
from dragoman.core.parts import Refusal, Text
from dragoman.core.request import Message, Sampling
from dragoman.guard import start_thread

T = TypeVar("T")


class RunOptions(TypedDict, total=False):
    """Keyword arguments of the methods that run an agent."""

    history: Sequence[Message]
    """The messages before the prompt, such as the history of an earlier run."""
    system: str
    """The system prompt of this run, instead of the agent's."""
    model: str
    """The model of this run, instead of the agent's."""
    sampling: Sampling | None
    first_call: FirstCall
    deps: object
    """The dependencies that tools get by type: one object, or a tuple of several."""


def run_blocking(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end: here, or in a thread of its own if this thread already runs an event loop."""
    if not _has_running_loop():
        return asyncio.run(start())
    ready: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def work() -> T:
        task = asyncio.current_task()
        if task is not None:
            ready.append((asyncio.get_running_loop(), task))
        return await start()

    context = copy_context()
    future = start_thread(lambda: context.run(asyncio.run, work()), "agent run")
    try:
        return future.result()
    except KeyboardInterrupt:
        for loop, task in ready:
            loop.call_soon_threadsafe(task.cancel)
        raise


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def visible_text(steps: AsyncGenerator[Any]) -> AsyncGenerator[str]:
    """Yield the text in the steps of a run that a reader sees; raises the `Problem` of a failed run."""
    shown: set[int] = set()
    async with aclosing(steps):
        async for step in steps:
            text = _text_of(step, shown)
            if text:
                yield text
            if isinstance(step, RunEnded) and step.stop == "failed" and step.problem is not None:
                raise step.problem


def _text_of(step: Step, shown: set[int]) -> str:
    match step:
        case events.Started():
            shown.clear()
        case events.PartStarted(index, Text(text=text, unread=False) | Refusal(text=text)):
            shown.add(index)
            return text
        case events.PartDelta(index, text) if index in shown:
            return text
        case _:
            pass
    return ""
