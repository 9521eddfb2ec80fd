"""Which question about what is kept a path asks, and how it is answered."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from dragoman.core.problems import Problem
from dragoman.gateway.client_request import malformed_body
from dragoman.gateway.record import Record
from dragoman.gateway.sessions.background import Background
from dragoman.gateway.sessions.keeping import unavailable
from dragoman.gateway.telling import headers_of
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON
from dragoman.server.endpoints import conversations, stored
from dragoman.server.paths import Path
from dragoman.sessions.values import Conflict, Turn, Unavailable
from dragoman.wire import json

_BEAT = 15.0
"""Seconds without an event after which a client is told that it still waits."""
_EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


async def answer(background: Background, path: Path, owner: str, exchange: Exchange) -> None:
    """Answer a question about what is kept."""
    store = background.store
    try:
        if path.action == "responses.retrieve" and exchange.request.query.get("stream") == "true":
            after = exchange.request.query.get("starting_after", "-1")
            told = await stored.replayed(store, owner, path.name, background, stored.place(after))
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
    coming: asyncio.Future[bytes] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(events, b""))
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
            coming.cancel()
            await asyncio.wait([coming])
        await events.aclose()


async def _told(background: Background, path: Path, owner: str, exchange: Exchange) -> Any:
    store = background.store
    name, body, query = path.name, exchange.request.body, exchange.request.query
    match path.action:
        case "responses.retrieve":
            return await stored.retrieved(store, owner, name, background)
        case "responses.delete":
            return await stored.deleted(store, owner, name, background)
        case "responses.cancel":
            return await stored.cancelled(store, owner, name, background)
        case "responses.input_items":
            return await stored.input_items(store, owner, name, query)
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
