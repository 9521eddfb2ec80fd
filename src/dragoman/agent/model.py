"""The type of a model: a function from a request to the events of its reply; and error handling for such functions.

A simple upstream call has this type, and so has an agent. If a function of the caller raises anything but a `Problem`,
the run fails and keeps its history. The error's message is for the author of the function: it is logged, and it is the
cause of the problem. Errors of the runtime pass through: a durable engine may raise its own to stop a run.
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
    """Turn an error inside the block into a `Problem` of the run."""
    try:
        yield
    except Problem:
        raise
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
            raise  # the run is being cancelled; otherwise the function has cancelled something itself
        _LOG.exception("%s failed", source)
        raise Problem("internal", f"{source} failed ({type(error).__name__})") from error


Model = Callable[[Request], AsyncIterator[Event]]
"""Events follow the order defined in `core.events`; a `Problem` may be raised or sent as a `Failed` event."""


async def stream_events(model: Model, request: Request, on_event: Callable[[Event], None]) -> AsyncGenerator[Event]:
    """Call a model and yield its events, each after `on_event`; unexpected errors become problems."""
    with wrap_errors("the model"):
        async with closing(model(request)) as events:
            async for event in events:
                on_event(event)
                yield event


@asynccontextmanager
async def closing(events: AsyncIterator[Event]) -> AsyncGenerator[AsyncIterator[Event]]:
    """Close a stream after use, if it can be closed."""
    try:
        yield events
    finally:
        close: Any = getattr(events, "aclose", None)
        if close is not None:
            await close()
