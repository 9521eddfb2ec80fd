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
from dragoman.gateway.conversations.history import Continuation, NewItems, parse_messages
from dragoman.gateway.conversations.options import ConversationOptions
from dragoman.gateway.conversations.recorder import MemberInjector
from dragoman.gateway.heartbeat import Heartbeat
from dragoman.gateway.record import Record, build_response_headers
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON_HEADERS
from dragoman.sessions.store import Store
from dragoman.sessions.values import Turn
from dragoman.wire.lookup import lookup

_DELIVERY_MEMBERS = frozenset(
    {"stream", "stream_options", "store", "background", "conversation", "previous_response_id"}
)
"""Members that say how an answer is told and kept, not what is asked."""


def digest_of(model: str, items: Sequence[bytes], members: Mapping[str, Raw], history: str) -> str:
    """Return what is asked, in short: first how, then the items."""
    asked = [bytes(raw) for name, raw in sorted(members.items()) if name not in _DELIVERY_MEMBERS and name != history]
    return f"{_hash([model.encode(), *asked])}.{_hash(items)}"


def _hash(pieces: Sequence[bytes]) -> str:
    told = hashlib.sha256()
    for piece in pieces:
        told.update(b"%d:" % len(piece) + piece)
    return told.hexdigest()


async def find_repeated_turn(
    store: Store, continuation: Continuation, new_items: NewItems, options: ConversationOptions, digest: str
) -> Turn | None:
    """Return the turn that has answered the same already, if this is sent again."""
    last = continuation.history.last
    if not options.is_saved:
        return None
    if new_items.is_repeat and last is not None:
        return _require_same_request(last, digest, options.conversation)
    if options.conversation:
        earlier = last if last is not None and last.digest == digest else None
    else:
        earlier = await store.find_same_turn(options.owner, last.key if last is not None else "", digest)
    if earlier is None or not _is_answered(earlier):
        return None
    is_sent_again = options.is_retry or (bool(options.attempt) and options.attempt == earlier.attempt)
    goes_on = bool(options.conversation or options.previous)
    # Whoever has a call to answer and asks the same instead did not hear of it.
    is_unheard = goes_on and (new_items.has_results or not earlier.delivered or _has_calls(earlier))
    return earlier if is_sent_again or is_unheard else None


def _has_calls(turn: Turn) -> bool:
    said = [item.body for item in turn.items if item.said]
    messages = parse_messages(said, dialect_named(turn.dialect))
    return any(isinstance(part, ToolCall) for message in messages for part in message.parts)


def _is_answered(turn: Turn) -> bool:
    return turn.status == "completed" and bool(turn.reply)


def _require_same_request(last: Turn, digest: str, name: str) -> Turn:
    """Return the last turn, asked for by the same history, if that was asked in the same way."""
    if _is_answered(last) and last.digest.partition(".")[0] == digest.partition(".")[0]:
        return last
    words = f"the conversation {name!r} has an answer to this already, asked for in another way: say something new"
    raise Problem("conflict", words, code="conversation_diverged")


_ECHOED_MEMBERS = ("store", "previous_response_id", "conversation")


async def resend_answer(turn: Turn, client_request: ClientRequest, exchange: Exchange, record: Record) -> None:
    """Send the answer of a turn once more, whole or as a stream."""
    record.status = 200
    record.note_first_token()
    if client_request.call.stream:
        heartbeat = Heartbeat(client_request, exchange, record)
        heartbeat.start_stream()
        await exchange.end(heartbeat.frame_end(render_stream(turn)))
    else:
        await exchange.send(200, build_response_headers(record, JSON_HEADERS), turn.reply)
    record.outcome = "answered"


def render_stream(turn: Turn) -> bytes:
    """Return the answer of a turn as the events of a stream."""
    dialect = dialect_named(turn.dialect)
    encoder = dialect.encoder(None)
    told = b"".join(encoder.feed(event) for event in replay(dialect.parse_response(turn.reply)))
    found = {name: lookup(turn.reply, f"/{name}") for name in _ECHOED_MEMBERS}
    return MemberInjector(
        {name: said[1] for name, said in found.items() if said is not None}, dialect.turns.reply_member
    ).add_to_events(told)
