"""Writes a reply that is given as events: the steps of a run, or a reply of an intercepted program's caller."""

from collections.abc import AsyncIterator, Callable

from dragoman.core.events import Event, Failed, Finished, PartStarted
from dragoman.core.request import Request
from dragoman.core.stream import Collector
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.context import RequestContext
from dragoman.gateway.errors import add_id_to_event
from dragoman.gateway.response_writer import StreamWriter, send_whole


async def write_events(
    events: AsyncIterator[Event], request: Request, context: RequestContext, on_end: Callable[[], None]
) -> None:
    """Send a reply given as events in the client's dialect; `on_end` is called after the last event.

    Raises the error that the events end with if nothing has been sent to the client yet.
    """
    record, dialect, collector = context.record, dialect_named(context.request.dialect), Collector()
    if not context.request.call.stream:
        async for event in events:
            collector.feed(event)
        response = collector.response()
        on_end()
        await send_whole(dialect.build_response(response, request), response, context)
        return
    writer, encoder = StreamWriter(request, context), dialect.encoder(request)
    problem = None
    last = b""
    async for event in events:
        if isinstance(event, Failed):
            problem = event.problem
            if not context.exchange.started:
                raise problem
        collector.feed(event)
        rendered = encoder.feed(event)
        rendered = rendered if problem is None else add_id_to_event(rendered, record)
        if isinstance(event, Finished):
            # A client may disconnect as soon as it has the last bytes: they are sent together with the end.
            last = rendered
        else:
            await writer.write(rendered, has_begun=isinstance(event, PartStarted))
    on_end()
    if problem is None:
        response = collector.response()
        record.usage, record.finish = response.usage, response.finish.reason
    record.note_first_token()
    record.problem = await writer.end(last, problem)
