"""Answers that are kept, asked for by their ids: `/v1/responses/{id}` and what stands below it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.gateway.sessions.again import streamed
from dragoman.gateway.sessions.background import Background, as_it_is
from dragoman.server.endpoints.listing import page
from dragoman.sessions.store import Store
from dragoman.sessions.values import Turn


async def found(store: Store, owner: str, name: str) -> Turn:
    """Return a kept answer, or refuse in OpenAI's words."""
    turn = await store.turn(owner, name)
    if turn is None:
        raise Problem("not_found", f"Response with id '{name}' not found.", where="/response_id")
    return turn


async def retrieved(store: Store, owner: str, name: str) -> Raw:
    """Show an answer as its client got it."""
    return Raw(as_it_is(await found(store, owner, name)))


async def replayed(store: Store, owner: str, name: str) -> bytes:
    """Tell an answer as a stream, from its beginning."""
    turn = await found(store, owner, name)
    if turn.status != "completed":
        raise Problem("unsupported", f"Response with id '{name}' is not completed: ask for it without stream.")
    return streamed(turn)


async def deleted(store: Store, owner: str, name: str, background: Background) -> dict[str, Any]:
    """Forget an answer; one that is being made is made no more."""
    turn = await found(store, owner, name)
    background.stop(turn)
    await store.forget_turn(turn)
    return {"id": name, "object": "response", "deleted": True}


async def cancelled(store: Store, owner: str, name: str, background: Background) -> Raw:
    """Stop an answer that is made in the background."""
    return Raw(await background.cancel(await found(store, owner, name)))


async def input_items(store: Store, owner: str, name: str, query: Mapping[str, str]) -> dict[str, Any]:
    """List what an answer was given to."""
    turn = await found(store, owner, name)
    return page([item for item in turn.items if not item.said], query)
