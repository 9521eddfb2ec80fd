"""The caller's side of an intercepted session: a conversation of any dialect that is bound to one."""

from contextlib import aclosing

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest, malformed_body
from dragoman.gateway.context import RequestContext
from dragoman.gateway.heard import Heard
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.response_writer import write_events
from dragoman.gateway.sessions.wanted import asked_by_headers, named_conversation
from dragoman.http.message import Request
from dragoman.intercept.asking import wish_of
from dragoman.intercept.caller import Caller
from dragoman.intercept.sessions import Session
from dragoman.wire import json

_GEMINI = "gemini"


class Bound(Struct, frozen=True):
    """A session that a caller's conversation is bound to, and where its client asks."""

    session: Session
    url: str


def conversation_of(ask: ClientRequest, request: Request) -> str:
    """Return the conversation that a request names, in its body where its dialect does, or in its header."""
    if dialect_named(ask.dialect).turns.keeps:
        try:
            named = named_conversation(json.decode_object(request.body).get("conversation"))
        except json.Malformed as error:
            raise malformed_body(error) from None
        if named:
            return named
    return asked_by_headers(request.named).conversation


async def answer_caller(
    bound: Bound, callers: Caller, context: RequestContext, *, hold: float, heartbeat: float
) -> None:
    """Answer a caller with what the model says to the client, or raise the `Problem` for which that is not possible."""
    ask, record, dialect = context.request, context.record, dialect_named(context.request.dialect)
    request = dialect.parse_request(ask.call)
    if dialect.turns.keeps and json.peek(ask.call.body).get("background"):
        raise Problem("unsupported", "an intercepted session answers who waits for it", where="/background")
    wish = wish_of(request, ask.call.body, ask.dialect, strict=ask.strict)
    record.losses = wish.losses
    record.note_asked(bound.session.name.entry, "")
    heard = Heard(ask, record, _GEMINI)
    if ask.call.stream:
        context.heartbeat = Heartbeat(ask, context.exchange, record)
    async with aclosing(callers.answer(bound.session, wish, request, ask.dialect, bound.url)) as events:
        work = write_events(heard.events(events), request, context, heard.note)
        await (work if context.heartbeat is None else context.heartbeat.run(work, hold, heartbeat))
