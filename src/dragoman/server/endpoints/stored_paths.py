"""Which question about what is kept a path asks, and how it is answered."""

from typing import Any

from dragoman.core.problems import Problem
from dragoman.gateway.ask import unreadable
from dragoman.gateway.sessions.background import Background
from dragoman.gateway.sessions.keeping import unavailable
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON
from dragoman.server.endpoints import conversations, stored
from dragoman.server.paths import Path
from dragoman.sessions.values import Conflict, Unavailable
from dragoman.wire import json

_EVENTS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


async def answer(background: Background, path: Path, owner: str, exchange: Exchange) -> None:
    """Answer a question about what is kept."""
    store = background.store
    try:
        if path.action == "responses.retrieve" and exchange.request.query.get("stream") == "true":
            await exchange.send(200, _EVENTS, await stored.replayed(store, owner, path.name))
            return
        await exchange.send(200, JSON, json.encode(await _told(background, path, owner, exchange)))
    except Unavailable:
        raise unavailable() from None
    except Conflict:
        raise Problem("conflict", f"the conversation {path.name!r} has changed meanwhile: ask again") from None
    except json.Malformed as error:
        raise unreadable(error) from None


async def _told(background: Background, path: Path, owner: str, exchange: Exchange) -> Any:
    store = background.store
    name, body, query = path.name, exchange.request.body, exchange.request.query
    match path.action:
        case "responses.retrieve":
            return await stored.retrieved(store, owner, name)
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
