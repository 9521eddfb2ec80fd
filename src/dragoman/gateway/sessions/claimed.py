"""Something that one process at a time works at: a conversation in which tools are run.

A claim is taken before anything is done, and renewed while the work goes on; one whose process is gone is free after
half a minute.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import monotonic
from uuid import uuid4

from dragoman.core.problems import Problem
from dragoman.gateway.sessions.keeping import unavailable
from dragoman.sessions.claims import Claims
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conversation, Unavailable

_BETWEEN_SIGNS = 5.0
_BETWEEN_TRIES = 0.1


@asynccontextmanager
async def claimed(claims: Claims, owner: str, name: str, *, words: str, patience: float = 0.0) -> AsyncGenerator[None]:
    """Hold a claim as long as the block runs; a `Problem` with these words if it was not free in time."""
    holder, end = uuid4().hex, monotonic() + patience
    while not await claims.take(owner, name, holder):
        if monotonic() >= end:
            raise Problem("conflict", words, code="conversation_locked")
        await asyncio.sleep(_BETWEEN_TRIES)
    renewing = asyncio.create_task(_renew(claims, owner, name, holder))
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])
        with contextlib.suppress(Unavailable):
            await claims.drop(owner, name, holder)


@asynccontextmanager
async def held(store: Store, conversation: Conversation) -> AsyncGenerator[None]:
    """Hold a conversation of a client's while tools are run in it.

    A `Problem` if another request is at work in it, or has gone on with it since it was read: before any tool is run.
    """
    owner, name = conversation.owner, conversation.id
    words = f"another request is at work in the conversation {name!r}: ask again when it has ended"
    try:
        async with claimed(store.claims, owner, name, words=words):
            now = await store.conversation(owner, name)
            if (0 if now is None else now.revision) != conversation.revision:
                words = f"the conversation {name!r} has gone on meanwhile: ask again"
                raise Problem("conflict", words, code="conversation_changed")
            yield
    except Unavailable:
        raise unavailable() from None


async def _renew(claims: Claims, owner: str, name: str, holder: str) -> None:
    while True:
        await asyncio.sleep(_BETWEEN_SIGNS)
        with contextlib.suppress(Unavailable):
            await claims.take(owner, name, holder)
