"""Answer a question that is asked again with the answer it got."""

from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.heartbeat import make_framer
from dragoman.gateway.record import Record
from dragoman.gateway.sessions.echo import Echo
from dragoman.gateway.telling import headers_of
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON
from dragoman.sessions.values import Turn
from dragoman.wire.lookup import lookup

_TOLD = ("store", "previous_response_id", "conversation")


async def send_again(turn: Turn, ask: ClientRequest, exchange: Exchange, record: Record) -> None:
    """Send the answer of a turn once more, whole or as a stream."""
    record.status = 200
    record.note_first()
    if ask.call.stream:
        frames = make_framer(ask.framing)
        headers = headers_of(record, {"content-type": frames.kind, "cache-control": "no-cache"})
        exchange.start(200, headers)
        await exchange.write(frames.feed(streamed(turn)) + frames.close())
        await exchange.end()
    else:
        await exchange.send(200, headers_of(record, JSON), turn.reply)
    record.outcome = "answered"


def streamed(turn: Turn) -> bytes:
    """Return the answer of a turn as the events of a stream."""
    dialect = dialect_named(turn.dialect)
    encoder = dialect.encoder(None)
    told = b"".join(encoder.feed(event) for event in replay(dialect.parse_response(turn.reply)))
    found = {name: lookup(turn.reply, f"/{name}") for name in _TOLD}
    return Echo({name: said[1] for name, said in found.items() if said is not None}, dialect.turns.below).events(told)
