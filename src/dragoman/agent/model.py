"""What the loop asks: a function from a request to the events of its reply.

A plain upstream call has this type, and so has an agent: whatever works with one works with the other.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dragoman.agent.mistakes import mistakes_of
from dragoman.core.events import Event
from dragoman.core.request import Request

Model = Callable[[Request], AsyncIterator[Event]]
"""Events follow the grammar of `core.events`; a `Problem` may be raised as well as told."""


async def heard(model: Model, request: Request, hear: Callable[[Event], None]) -> AsyncGenerator[Event]:
    """Ask a model, and iterate what it says once that was heard; its mistakes are problems."""
    with mistakes_of("the model"):
        async with closing(model(request)) as events:
            async for event in events:
                hear(event)
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
