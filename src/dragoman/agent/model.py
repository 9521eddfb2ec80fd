"""What the loop asks: a function from a request to the events of its reply.

A plain upstream call has this type, and so has an agent: whatever works with one works with the other.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dragoman.core.events import Event
from dragoman.core.request import Request

Model = Callable[[Request], AsyncIterator[Event]]
"""Events follow the grammar of `core.events`; a `Problem` may be raised as well as told."""


@asynccontextmanager
async def closing(events: AsyncIterator[Event]) -> AsyncGenerator[AsyncIterator[Event]]:
    """Close a stream after use, if it is one that can be closed."""
    try:
        yield events
    finally:
        close: Any = getattr(events, "aclose", None)
        if close is not None:
            await close()
