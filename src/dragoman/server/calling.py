"""The caller's side of an intercepted session: a conversation of any dialect that is bound to one."""

from contextlib import aclosing

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.ask import Ask, unreadable
from dragoman.gateway.heard import Heard
from dragoman.gateway.pulse import Pulse
from dragoman.gateway.record import Record
from dragoman.gateway.sessions.wanted import asked_by_headers, named_conversation
from dragoman.gateway.spoken import Spoken
from dragoman.http.exchange import Exchange
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


def conversation_of(ask: Ask, request: Request) -> str:
    """Return the conversation that a request names, in its body where its dialect does, or in its header."""
    if dialect_named(ask.dialect).turns.keeps:
        try:
            named = named_conversation(json.decode_object(request.body).get("conversation"))
        except json.Malformed as error:
            raise unreadable(error) from None
        if named:
            return named
    return asked_by_headers(request.headers).conversation


async def answer_caller(  # noqa: PLR0913  what is passed on is what a request has
    bound: Bound, callers: Caller, ask: Ask, exchange: Exchange, record: Record, *, hold: float, heartbeat: float
) -> None:
    """Answer a caller with what the model says to the client, or raise the `Problem` for which that cannot be done."""
    request = dialect_named(ask.dialect).parse_request(ask.call)
    if dialect_named(ask.dialect).turns.keeps and json.peek(ask.call.body).get("background"):
        raise Problem("unsupported", "an intercepted session answers who waits for it", where="/background")
    wish = wish_of(request, ask.call.body, ask.dialect, strict=ask.strict)
    record.losses = wish.losses
    record.note_asked(bound.session.name.entry, "")
    heard = Heard(ask, record, _GEMINI)
    spoken = Spoken(dialect_named(ask.dialect), request, exchange, record, note=heard.note)
    async with aclosing(callers.answer(bound.session, wish, request, ask.dialect, bound.url)) as events:
        if not ask.call.stream:
            await spoken.whole(heard.events(events))
            return
        pulse = Pulse(ask, exchange, record)
        await pulse.during(spoken.stream(heard.events(events), pulse), hold, heartbeat)
