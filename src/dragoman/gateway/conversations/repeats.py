"""Recognises a retry of an earlier request, and repeats the reply to that.

The same input twice is normally two turns. A retry is recognised by its headers, by results that were sent before, by a
whole history without anything new, or because the client never received the earlier reply.
"""

import hashlib
from collections.abc import Mapping, Sequence

from msgspec import Raw

from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversation_recorder import MemberInjector, parse_messages
from dragoman.gateway.conversations.history import Continuation, NewItems
from dragoman.gateway.conversations.options import ConversationOptions
from dragoman.gateway.record import build_response_headers
from dragoman.gateway.response_writer import StreamWriter
from dragoman.http.message import JSON_HEADERS
from dragoman.sessions.store import Store
from dragoman.sessions.values import Turn
from dragoman.wire.lookup import lookup

_DELIVERY_MEMBERS = frozenset(
    {"stream", "stream_options", "store", "background", "conversation", "previous_response_id"}
)
"""Fields that control how a reply is sent and stored, not what is requested."""


def digest_of(model: str, items: Sequence[bytes], members: Mapping[str, Raw], history: str) -> str:
    """Return a digest of a request in two parts: of its settings, and of its items."""
    settings = [
        bytes(raw) for name, raw in sorted(members.items()) if name not in _DELIVERY_MEMBERS and name != history
    ]
    return f"{_hash([model.encode(), *settings])}.{_hash(items)}"


def _hash(pieces: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(b"%d:" % len(piece) + piece)
    return digest.hexdigest()


async def find_repeated_turn(
    store: Store, continuation: Continuation, new_items: NewItems, options: ConversationOptions, digest: str
) -> Turn | None:
    """Return the stored turn that a request repeats; None if it is a new request."""
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
    is_marked_retry = options.is_retry or (bool(options.attempt) and options.attempt == earlier.attempt)
    continues = bool(options.conversation or options.previous)
    # A client that repeats a request instead of sending the results of its calls has not received the reply.
    is_undelivered = continues and (new_items.has_results or not earlier.delivered or _has_calls(earlier))
    return earlier if is_marked_retry or is_undelivered else None


def _has_calls(turn: Turn) -> bool:
    output = [item.body for item in turn.items if item.is_output]
    messages = parse_messages(output, dialect_named(turn.dialect))
    return any(isinstance(part, ToolCall) for message in messages for part in message.parts)


def _is_answered(turn: Turn) -> bool:
    return turn.status == "completed" and bool(turn.reply)


def _require_same_request(last: Turn, digest: str, name: str) -> Turn:
    """Return the last turn for a repeated history, if the settings of the request are the same too."""
    if _is_answered(last) and last.digest.partition(".")[0] == digest.partition(".")[0]:
        return last
    message = f"the conversation {name!r} already has a reply to this input with other settings; send a new message"
    raise Problem("conflict", message, code="conversation_diverged")


_ECHOED_MEMBERS = ("store", "previous_response_id", "conversation")


async def resend_answer(turn: Turn, context: RequestContext) -> None:
    """Send the reply of a turn again, whole or as a stream."""
    exchange, record = context.exchange, context.record
    record.status = 200
    record.note_first_token()
    if context.request.call.stream:
        await StreamWriter(None, context).end(render_stream(turn), None)
    else:
        await exchange.send(200, build_response_headers(record, JSON_HEADERS), turn.reply)
    record.outcome = "answered"


def render_stream(turn: Turn) -> bytes:
    """Render the reply of a turn as the events of a stream."""
    dialect = dialect_named(turn.dialect)
    encoder = dialect.encoder(None)
    events = b"".join(encoder.feed(event) for event in replay(dialect.parse_response(turn.reply)))
    found = {name: lookup(turn.reply, f"/{name}") for name in _ECHOED_MEMBERS}
    return MemberInjector(
        {name: member[1] for name, member in found.items() if member is not None}, dialect.turns.reply_member
    ).add_to_events(events)
