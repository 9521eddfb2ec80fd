"""Stored responses by id (`/v1/responses/{id}` and below), and the dispatch of conversation paths."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.dialects.api import Endpoint
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversation_recorder import build_unavailable_error
from dragoman.gateway.conversations.background import Background, iter_events_after
from dragoman.gateway.conversations.repeats import render_stream
from dragoman.gateway.errors import build_body_error
from dragoman.gateway.record import build_response_headers
from dragoman.gateway.response_writer import SSE_HEADERS
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON_HEADERS
from dragoman.server.endpoints import conversations
from dragoman.server.endpoints.conversations import render_page
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Turn, Unavailable
from dragoman.tasks import start_task, stop_tasks
from dragoman.wire import json


async def find_turn(store: Store, owner: str, name: str) -> Turn:
    """Return a stored response; raises a `Problem` with OpenAI's message if there is none."""
    turn = await store.find_turn(owner, name)
    if turn is None:
        raise Problem("not_found", f"Response with id '{name}' not found.", where="/response_id")
    return turn


async def show_response(store: Store, owner: str, name: str, background: Background) -> Raw:
    """Return a response as its client received it."""
    return Raw((await background.refresh_turn(await find_turn(store, owner, name))).reply)


def parse_starting_after(value: str) -> int:
    """Parse `starting_after`: the sequence number of the event after which a stream resumes."""
    if not value.removeprefix("-").isdecimal():
        message = "starting_after must be the sequence_number of an event"
        raise Problem("invalid_request", message, where="/starting_after")
    return int(value)


async def replay_events(
    store: Store, owner: str, name: str, background: Background, after: int
) -> AsyncGenerator[bytes]:
    """Return the events of a response after the event `after`; for one in progress, until it is complete."""
    turn = await background.refresh_turn(await find_turn(store, owner, name))
    if turn.status == "in_progress":
        return _stream_live(store, turn, background, after)
    events = background.watch_events(turn, after)
    first = await anext(events, b"")
    if first:
        return _prepend_event(first, events)
    if turn.status != "completed":
        raise Problem("unsupported", f"Response with id '{name}' was not streamed; request it without `stream`.")
    return iter_events_after(render_stream(turn), after)


async def _stream_live(store: Store, turn: Turn, background: Background, after: int) -> AsyncGenerator[bytes]:
    """Yield the events of a response in progress; of one that is not streamed, after it is complete."""
    is_streamed = False
    async for event in background.watch_events(turn, after):
        is_streamed = True
        yield event
    done = await store.find_turn(turn.owner, turn.id)
    if not is_streamed and done is not None and done.status == "completed":
        async for event in iter_events_after(render_stream(done), after):
            yield event


async def _prepend_event(first: bytes, events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for event in events:
        yield event


async def delete_response(store: Store, owner: str, name: str, background: Background) -> dict[str, Any]:
    """Delete a response; one in progress is stopped."""
    turn = await find_turn(store, owner, name)
    await background.stop(turn)
    await store.delete_turn(turn)
    await store.runs.delete(owner, name)
    return {"id": name, "object": "response", "deleted": True}


async def cancel_response(store: Store, owner: str, name: str, background: Background) -> Raw:
    """Cancel a background response."""
    return Raw(await background.cancel(await find_turn(store, owner, name)))


async def list_input_items(store: Store, owner: str, name: str, query: Mapping[str, str]) -> dict[str, Any]:
    """List the input items of a response."""
    turn = await find_turn(store, owner, name)
    return render_page([item for item in turn.items if not item.is_output], query)


_HEARTBEAT_SECONDS = 15.0
"""Seconds without an event after which a heartbeat is sent."""


async def handle_request(background: Background, path: Endpoint, owner: str, exchange: Exchange) -> None:
    """Handle a request for a stored response or a conversation."""
    store = background.store
    try:
        if path.action == "responses.retrieve" and exchange.request.query.get("stream") == "true":
            after = exchange.request.query.get("starting_after", "-1")
            events = await replay_events(store, owner, path.name, background, parse_starting_after(after))
            await _send_stream(events, exchange, SSE_HEADERS)
            return
        await exchange.send(200, JSON_HEADERS, json.encode(await _run_action(background, path, owner, exchange)))
    except Unavailable:
        raise build_unavailable_error() from None
    except Conflict:
        raise Problem("conflict", f"conversation {path.name!r} was changed by another request; try again") from None
    except json.Malformed as error:
        raise build_body_error(error) from None


async def send_queued(background: Background, turn: Turn, context: RequestContext) -> None:
    """Send a background response: its events as they come, or its queued state."""
    exchange, record = context.exchange, context.record
    record.status, record.outcome = 200, "answered"
    if record.stream:
        await _send_stream(background.watch_events(turn), exchange, build_response_headers(record, SSE_HEADERS))
    else:
        await exchange.send(200, build_response_headers(record, JSON_HEADERS), turn.reply)


async def _send_stream(events: AsyncGenerator[bytes], exchange: Exchange, headers: Mapping[str, str]) -> None:
    """Send events as they come, with heartbeats in between."""
    exchange.start(200, headers)
    pending: asyncio.Task[bytes] | None = None
    try:
        while True:
            pending = pending or start_task(_next_event(events), "next event")
            await asyncio.wait([pending], timeout=_HEARTBEAT_SECONDS)
            if not pending.done():
                await exchange.write(b"\n")
                continue
            event, pending = pending.result(), None
            if not event:
                break
            await exchange.write(event)
        await exchange.end()
    finally:
        if pending is not None:
            await stop_tasks(pending)
        await events.aclose()


async def _next_event(events: AsyncGenerator[bytes]) -> bytes:
    return await anext(events, b"")


async def _run_action(background: Background, path: Endpoint, owner: str, exchange: Exchange) -> Any:
    store = background.store
    name, body, query = path.name, exchange.request.body, exchange.request.query
    match path.action:
        case "responses.retrieve":
            return await show_response(store, owner, name, background)
        case "responses.delete":
            return await delete_response(store, owner, name, background)
        case "responses.cancel":
            return await cancel_response(store, owner, name, background)
        case "responses.input_items":
            return await list_input_items(store, owner, name, query)
        case "conversations.create":
            return await conversations.create_conversation(store, owner, body)
        case "conversations.retrieve":
            return await conversations.show_conversation(store, owner, name)
        case "conversations.update":
            return await conversations.update_conversation(store, owner, name, body)
        case "conversations.delete":
            return await conversations.delete_conversation(store, owner, name)
        case "conversations.items":
            return await conversations.list_items(store, owner, name, query)
        case "conversations.add":
            return await conversations.add_items(store, owner, name, body)
        case "conversations.item":
            return await conversations.show_item(store, owner, name, path.item)
        case _:
            return await conversations.delete_item(store, owner, name, path.item)
