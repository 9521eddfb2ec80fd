"""Recognise a request that is a retry of an earlier one, and answer it with the answer of that one.

The same words twice are two turns. A retry is recognised by its headers, by results that were sent before, by a whole
history with nothing new in it, or by an answer that the client never received.
"""

import hashlib
from collections.abc import Mapping, Sequence

from msgspec import Raw

from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.conversations.history import Continuation, NewItems, read
from dragoman.gateway.conversations.options import ConversationOptions
from dragoman.gateway.conversations.recorder import Echo
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.record import Record, headers_of
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON
from dragoman.sessions.store import Store
from dragoman.sessions.values import Turn
from dragoman.wire.lookup import lookup

_HOW = frozenset({"stream", "stream_options", "store", "background", "conversation", "previous_response_id"})
"""Members that say how an answer is told and kept, not what is asked."""


def digest_of(model: str, items: Sequence[bytes], members: Mapping[str, Raw], history: str) -> str:
    """Return what is asked, in short: first how, then the items."""
    asked = [bytes(raw) for name, raw in sorted(members.items()) if name not in _HOW and name != history]
    return f"{_hashed([model.encode(), *asked])}.{_hashed(items)}"


def _hashed(pieces: Sequence[bytes]) -> str:
    told = hashlib.sha256()
    for piece in pieces:
        told.update(b"%d:" % len(piece) + piece)
    return told.hexdigest()


async def find_repeated(
    store: Store, before: Continuation, said: NewItems, wanted: ConversationOptions, digest: str
) -> Turn | None:
    """Return the turn that has answered the same already, if this is sent again."""
    last = before.history.last
    if not wanted.keeps:
        return None
    if said.answered and last is not None:
        return _asked_alike(last, digest, wanted.conversation)
    if wanted.conversation:
        earlier = last if last is not None and last.digest == digest else None
    else:
        earlier = await store.same(wanted.owner, last.key if last is not None else "", digest)
    if earlier is None or not _is_answered(earlier):
        return None
    is_sent_again = wanted.is_repeated or (bool(wanted.attempt) and wanted.attempt == earlier.attempt)
    goes_on = bool(wanted.conversation or wanted.previous)
    # Whoever has a call to answer and asks the same instead did not hear of it.
    is_unheard = goes_on and (said.has_results or not earlier.delivered or _has_calls(earlier))
    return earlier if is_sent_again or is_unheard else None


def _has_calls(turn: Turn) -> bool:
    said = [item.body for item in turn.items if item.said]
    messages = read(said, dialect_named(turn.dialect))
    return any(isinstance(part, ToolCall) for message in messages for part in message.parts)


def _is_answered(turn: Turn) -> bool:
    return turn.status == "completed" and bool(turn.reply)


def _asked_alike(last: Turn, digest: str, name: str) -> Turn:
    """Return the last turn, asked for by the same history, if that was asked in the same way."""
    if _is_answered(last) and last.digest.partition(".")[0] == digest.partition(".")[0]:
        return last
    words = f"the conversation {name!r} has an answer to this already, asked for in another way: say something new"
    raise Problem("conflict", words, code="conversation_diverged")


_TOLD = ("store", "previous_response_id", "conversation")


async def send_again(turn: Turn, ask: ClientRequest, exchange: Exchange, record: Record) -> None:
    """Send the answer of a turn once more, whole or as a stream."""
    record.status = 200
    record.note_first()
    if ask.call.stream:
        heartbeat = Heartbeat(ask, exchange, record)
        heartbeat.start_stream()
        await exchange.end(heartbeat.frame_end(streamed(turn)))
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
