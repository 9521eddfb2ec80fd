"""Stored answers by id: `/v1/responses/{id}` and below, and the paths of conversations."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.gateway.conversations.background import Background, behind
from dragoman.gateway.conversations.recorder import unavailable
from dragoman.gateway.conversations.repeats import streamed
from dragoman.gateway.errors import malformed_body
from dragoman.gateway.record import Record, headers_of
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON
from dragoman.server.endpoints import conversations
from dragoman.server.endpoints.conversations import page
from dragoman.server.routes import Path
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Turn, Unavailable
from dragoman.tasks import start_task, stop_tasks
from dragoman.wire import json


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


_BEAT = 15.0
"""Seconds without an event after which a client is told that it still waits."""
_EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


async def answer(background: Background, path: Path, owner: str, exchange: Exchange) -> None:
    """Answer a question about what is kept."""
    store = background.store
    try:
        if path.action == "responses.retrieve" and exchange.request.query.get("stream") == "true":
            after = exchange.request.query.get("starting_after", "-1")
            told = await replayed(store, owner, path.name, background, place(after))
            await _stream(told, exchange, _EVENTS)
            return
        await exchange.send(200, JSON, json.encode(await _told(background, path, owner, exchange)))
    except Unavailable:
        raise unavailable() from None
    except Conflict:
        raise Problem("conflict", f"the conversation {path.name!r} has changed meanwhile: ask again") from None
    except json.Malformed as error:
        raise malformed_body(error) from None


async def tell_begun(background: Background, turn: Turn, exchange: Exchange, record: Record) -> None:
    """Tell a client of an answer that is made from now on, whether it listens or not."""
    record.status, record.outcome = 200, "answered"
    if record.stream:
        await _stream(background.events(turn), exchange, headers_of(record, _EVENTS))
    else:
        await exchange.send(200, headers_of(record, JSON), turn.reply)


async def _stream(events: AsyncGenerator[bytes], exchange: Exchange, headers: Mapping[str, str]) -> None:
    """Send events as they come, with a sign of life while none do."""
    exchange.start(200, headers)
    coming: asyncio.Task[bytes] | None = None
    try:
        while True:
            coming = coming or start_task(_next_event(events), "next event")
            await asyncio.wait([coming], timeout=_BEAT)
            if not coming.done():
                await exchange.write(b"\n")
                continue
            told, coming = coming.result(), None
            if not told:
                break
            await exchange.write(told)
        await exchange.end()
    finally:
        if coming is not None:
            await stop_tasks(coming)
        await events.aclose()


async def _next_event(events: AsyncGenerator[bytes]) -> bytes:
    return await anext(events, b"")


async def _told(background: Background, path: Path, owner: str, exchange: Exchange) -> Any:
    store = background.store
    name, body, query = path.name, exchange.request.body, exchange.request.query
    match path.action:
        case "responses.retrieve":
            return await retrieved(store, owner, name, background)
        case "responses.delete":
            return await deleted(store, owner, name, background)
        case "responses.cancel":
            return await cancelled(store, owner, name, background)
        case "responses.input_items":
            return await input_items(store, owner, name, query)
        case "conversations.create":
            return await conversations.made(store, owner, body)
        case "conversations.retrieve":
            return await conversations.shown(store, owner, name)
        case "conversations.update":
            return await conversations.updated(store, owner, name, body)
        case "conversations.delete":
            return await conversations.deleted(store, owner, name)
        case "conversations.items":
            return await conversations.items(store, owner, name, query)
        case "conversations.add":
            return await conversations.added(store, owner, name, body)
        case "conversations.item":
            return await conversations.item(store, owner, name, path.item)
        case _:
            return await conversations.removed(store, owner, name, path.item)
