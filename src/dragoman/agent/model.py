"""What the loop calls: a function from a request to the events of its reply, and errors of such functions.

A plain upstream call has this type, and so has an agent. A function of the caller that raises anything but a `Problem`
fails the run, which keeps its history. The error's message is for whoever wrote the function: it is logged, and it is
the cause of the problem. Errors of the runtime pass: an engine may raise what it needs to stop a run.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from dragoman.core.events import Event
from dragoman.core.problems import Problem
from dragoman.core.request import Request

_LOG = logging.getLogger("dragoman.agent")


@contextmanager
def wrap_errors(source: str) -> Generator[None]:
    """Let an error of what is inside be a problem of the run's."""
    try:
        yield
    except Problem:
        raise
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
            raise  # the run is being stopped; else the function has cancelled something of its own
        _LOG.exception("%s failed", source)
        raise Problem("internal", f"{source} failed ({type(error).__name__})") from error


Model = Callable[[Request], AsyncIterator[Event]]
"""Events follow the grammar of `core.events`; a `Problem` may be raised as well as told."""


async def stream_events(model: Model, request: Request, on_event: Callable[[Event], None]) -> AsyncGenerator[Event]:
    """Ask a model, and iterate what it says once that was heard; its mistakes are problems."""
    with wrap_errors("the model"):
        async with closing(model(request)) as events:
            async for event in events:
                on_event(event)
                yield event


@asynccontextmanager
async def closing(events: AsyncIterator[Event]) -> AsyncGenerator[AsyncIterator[Event]]:
    """Close a stream after use, if it is one that can be closed."""
    try:
        yield events
    finally:
        close: Any = getattr(events, "aclose", None)
        if close is not None:
            await close()
