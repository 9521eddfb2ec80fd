"""Answers that are kept, asked for by their ids: `/v1/responses/{id}` and what stands below it."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.gateway.sessions.again import streamed
from dragoman.gateway.sessions.background import Background, behind
from dragoman.server.endpoints.listing import page
from dragoman.sessions.store import Store
from dragoman.sessions.values import Turn


async def found(store: Store, owner: str, name: str) -> Turn:
    """Return a kept answer, or refuse in OpenAI's words."""
    turn = await store.turn(owner, name)
    if turn is None:
        raise Problem("not_found", f"Response with id '{name}' not found.", where="/response_id")
    return turn


async def retrieved(store: Store, owner: str, name: str, background: Background) -> Raw:
    """Show an answer as its client got it."""
    return Raw((await background.as_it_is(await found(store, owner, name))).reply)


def place(said: str) -> int:
    """Return the number of the event behind which a client wants to go on."""
    if not said.removeprefix("-").isdecimal():
        words = "starting_after must be the sequence_number of an event"
        raise Problem("invalid_request", words, where="/starting_after")
    return int(said)


async def replayed(store: Store, owner: str, name: str, background: Background, after: int) -> AsyncGenerator[bytes]:
    """Tell an answer as a stream, from its beginning or behind an event; one that is being made, until it is whole."""
    turn = await background.as_it_is(await found(store, owner, name))
    if turn.status == "in_progress":
        return _live(store, turn, background, after)
    events = background.events(turn, after)
    first = await anext(events, b"")
    if first:
        return _following(first, events)
    if turn.status != "completed":
        raise Problem("unsupported", f"Response with id '{name}' was not streamed: ask for it without stream.")
    return behind(streamed(turn), after)


async def _live(store: Store, turn: Turn, background: Background, after: int) -> AsyncGenerator[bytes]:
    """Tell an answer while it is made; one that comes whole, when it is there."""
    is_streamed = False
    async for event in background.events(turn, after):
        is_streamed = True
        yield event
    done = await store.turn(turn.owner, turn.id)
    if not is_streamed and done is not None and done.status == "completed":
        async for event in behind(streamed(done), after):
            yield event


async def _following(first: bytes, events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for event in events:
        yield event


async def deleted(store: Store, owner: str, name: str, background: Background) -> dict[str, Any]:
    """Forget an answer; one that is being made is made no more."""
    turn = await found(store, owner, name)
    await background.stop(turn)
    await store.forget_turn(turn)
    await store.runs.forget(owner, name)
    return {"id": name, "object": "response", "deleted": True}


async def cancelled(store: Store, owner: str, name: str, background: Background) -> Raw:
    """Stop an answer that is made in the background."""
    return Raw(await background.cancel(await found(store, owner, name)))


async def input_items(store: Store, owner: str, name: str, query: Mapping[str, str]) -> dict[str, Any]:
    """List what an answer was given to."""
    turn = await found(store, owner, name)
    return page([item for item in turn.items if not item.said], query)
