"""Writes a whole upstream reply, or a reply given as events, to the client."""

from collections.abc import AsyncIterator, Callable

from dragoman.core.events import Event, Failed, PartStarted
from dragoman.core.problems import EMPTY_REPLY_CODE, Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response
from dragoman.core.stream import Collector
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_stream import StreamWriter
from dragoman.gateway.context import RequestContext
from dragoman.gateway.errors import add_id_to_event, map_failure
from dragoman.gateway.record import build_response_headers
from dragoman.gateway.upstream_call import UpstreamReply
from dragoman.http.message import JSON_HEADERS
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signatures import find_signed_calls


async def write_reply(reply: UpstreamReply, context: RequestContext) -> None:
    """Translate a whole upstream reply and send it."""
    request, record = context.request, context.record
    try:
        body = await reply.incoming.read()
    except ConnectionFailure as failure:
        raise map_failure(failure, record.upstream) from None
    source = reply.target.upstream.dialect
    rendered = translate_response(body, source, request.dialect, reply.context)
    response = rendered.response or _parse_untranslated(body, source)
    record.reply_losses = rendered.losses
    if reply.signature_store is not None and (calls := find_signed_calls(response)):
        await reply.signature_store.save(request.owner, calls)
    await _send_whole(rendered.body, response, context)


async def write_events(
    events: AsyncIterator[Event], request: Request, context: RequestContext, on_end: Callable[[], None]
) -> None:
    """Send a reply given as events in the client's dialect; `on_end` is called after the last event.

    Raises the error that the events end with if nothing has been sent to the client yet.
    """
    record, dialect, collector = context.record, dialect_named(context.request.dialect), Collector()
    if context.heartbeat is None:
        async for event in events:
            collector.feed(event)
        response = collector.response()
        on_end()
        await _send_whole(dialect.build_response(response, request), response, context)
        return
    writer, encoder = StreamWriter(request, context, context.heartbeat), dialect.encoder(request)
    problem: Problem | None = None
    async for event in events:
        if isinstance(event, Failed):
            problem = event.problem
            if not context.exchange.started:
                raise problem
        collector.feed(event)
        rendered = encoder.feed(event)
        rendered = rendered if problem is None else add_id_to_event(rendered, record)
        await writer.write(rendered, has_begun=isinstance(event, PartStarted))
    on_end()
    if problem is None:
        response = collector.response()
        record.usage, record.finish = response.usage, response.finish.reason
    record.note_first_token()
    record.problem = await writer.end(b"", problem)


async def _send_whole(body: bytes, response: Response, context: RequestContext) -> None:
    record, recorder = context.record, context.recorder
    record.usage, record.finish = response.usage, response.finish.reason
    if recorder is not None:
        body = await recorder.save_reply(body, response)
    record.status = 200
    record.note_first_token()
    await context.exchange.send(200, build_response_headers(record, JSON_HEADERS), body)
    record.outcome = "answered"


def _parse_untranslated(body: bytes, dialect: str) -> Response:
    """Parse a reply that is forwarded unchanged; an error, an HTML page or half a reply raises a `Problem`."""
    try:
        return dialect_named(dialect).parse_response(body)
    except Problem as problem:
        if problem.code != EMPTY_REPLY_CODE:
            raise
        return Response(id="", model="", parts=(), finish=Finish("other", ""))
