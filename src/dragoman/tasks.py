"""Start asyncio tasks: the only module that creates one.

Every task has a name and an owner. asyncio itself keeps only a weak reference to a task, so the owner holds it until it
has ended: in a variable, if the owner awaits it (`start_task`, `run_all`), or in a `TaskSet`, which logs the errors of
tasks that are not awaited. `stop` waits for cancelled tasks; a cancellation of the waiting task is never swallowed.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any, Self, TypeVar

_LOG = logging.getLogger("dragoman.tasks")
T = TypeVar("T")


def start_task(
    work: Coroutine[Any, Any, T], name: str, loop: asyncio.AbstractEventLoop | None = None
) -> asyncio.Task[T]:
    """Start a task that the caller keeps, and awaits or stops; a caller that knows the running loop passes it.

    If the caller drops it without retrieving its exception, asyncio reports that to the loop's exception handler.
    """
    return (loop or asyncio.get_running_loop()).create_task(work, name=name)


async def stop_tasks(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended, however they end."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def run_all(works: Iterable[Coroutine[Any, Any, T]], name: str) -> list[T]:
    """Run coroutines concurrently and return their results in order; the first failure cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:  # noqa: TID251  this is the helper
            tasks = [group.create_task(work, name=name) for work in works]
    except BaseExceptionGroup as failures:
        # The caller can act on one error; the others are attached as its cause.
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]


class TaskSet:
    """The tasks of one owner, which ends them with `stop` or as an `async with` block."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """Return how many tasks have not ended."""
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, T], name: str, *, awaited: bool = False) -> asyncio.Task[T]:
        """Start a task; its failure is logged, unless it is `awaited` and so raised elsewhere."""
        task = start_task(work, name)
        self._running.add(task)
        task.add_done_callback(self._running.discard if awaited else self._on_end)
        return task

    async def join(self) -> None:
        """Wait until all tasks have ended by themselves."""
        if self._running:
            await asyncio.wait(self._running)

    async def stop(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        await stop_tasks(*self._running)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("task %s failed", task.get_name(), exc_info=error)
