"""Saves a reply before the client receives its end, under the ids of its conversation.

The recorder decodes what is sent to the client, whatever its source. It holds the end of a stream back until the turn
is saved, so that a reply that the client has received is never lost.
"""

import contextlib
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from time import time
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct, structs

from dragoman.core.events import Failed, Started
from dragoman.core.parts import AnyPart, Opaque, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Conversation, Item, Turn, Unavailable
from dragoman.wire import json
from dragoman.wire.splice import set_member

_ID_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "reasoning": "rs",
}


class _ItemHead(Struct):
    id: Any = None
    type: Any = "message"


_HEAD_DECODER = msgspec.json.Decoder(_ItemHead)


def find_or_generate_id(body: bytes) -> str:
    """Return the id of an item, or generate one."""
    head = _decode_head(body)
    if isinstance(head.id, str) and head.id:
        return head.id
    return _generate_id(head)


def _generate_id(head: _ItemHead) -> str:
    prefix = _ID_PREFIXES.get(head.type, "item") if isinstance(head.type, str) else "item"
    return f"{prefix}_{uuid4().hex}"


def build_items(bodies: Iterable[bytes], taken: Container[str] = (), *, is_output: bool = False) -> tuple[Item, ...]:
    """Return items with unique ids: an upstream may repeat its own, so one that is `taken` is replaced."""
    items: dict[str, Item] = {}
    for body in bodies:
        item_id = find_or_generate_id(body)
        if item_id in taken or item_id in items:
            item_id = _generate_id(_decode_head(body))
        items[item_id] = Item(item_id, body, is_output=is_output)
    return tuple(items.values())


def parse_messages(items: Sequence[bytes], dialect: Dialect) -> tuple[Message, ...]:
    """Parse items with the dialect's parser, in a request without other content."""
    if not items:
        return ()
    body = b'{"model":"","' + dialect.history.encode() + b'":[' + b",".join(items) + b"]}"
    return dialect.parse_request(Call(body)).messages


def list_calls(parts: Iterable[AnyPart], output: Sequence[Item], dialect: Dialect) -> dict[str, str]:
    """Return the names of the calls in a reply by their ids; `output` has the reply's items."""
    found = list(parts)
    if any(isinstance(part, Opaque) for part in found):
        # The calls of a vendor's own tools are kept as they are in a reply: the parser of requests knows them.
        with contextlib.suppress(Problem, json.Malformed):  # an item that cannot be parsed has no result either
            messages = parse_messages([item.body for item in output], dialect)
            found += [part for message in messages for part in message.parts]
    return {part.id: part.name for part in found if isinstance(part, ToolCall)}


def response_id_of(reply: bytes) -> str:
    """Return the id of a reply."""
    name = _decode_head(reply).id
    return name if isinstance(name, str) else ""


def generate_response_id() -> str:
    """Return a new id for a reply that the gateway stores."""
    return f"resp_{uuid4().hex}"


def generate_conversation_id() -> str:
    """Return a new id for a conversation that the client did not name."""
    return f"conv_{uuid4().hex}"


def _decode_head(body: bytes) -> _ItemHead:
    try:
        return json.decode_with(_HEAD_DECODER, body)
    except json.Malformed:
        return _ItemHead()


_DATA = re.compile(rb"^data:[ ]?(.*)$", re.MULTILINE)
_FRAMES = re.compile(rb".*?\n\r?\n", re.DOTALL)


class MemberInjector:
    """Adds fields to replies; `reply_member` is the field of an event with the reply, "" if the event is the reply."""

    def __init__(self, members: Mapping[str, bytes], reply_member: str) -> None:
        self._members = members
        self._reply_member = reply_member

    def add_to_reply(self, body: bytes) -> bytes:
        """Return a whole reply with the fields added."""
        for name, raw in self._members.items():
            body = set_member(body, name, raw)
        return body

    def add_to_events(self, events: bytes) -> bytes:
        """Return events with the fields added to every reply in them."""
        if not self._members or (self._reply_member and b'"%b"' % self._reply_member.encode() not in events):
            return events
        return _FRAMES.sub(lambda frame: _DATA.sub(self._add_to_line, frame.group(), count=1), events)

    def _add_to_line(self, line: re.Match[bytes]) -> bytes:
        data = line.group(1)
        if not json.is_object(data):
            return line.group()
        if not self._reply_member:
            return b"data: " + self.add_to_reply(data)
        inner = json.decode_object(data).get(self._reply_member)
        if inner is None or not json.is_object(bytes(inner)):
            return line.group()
        return b"data: " + set_member(data, self._reply_member, self.add_to_reply(bytes(inner)))


class Question(Struct, frozen=True, kw_only=True):
    """A turn without its reply, and how the reply is saved."""

    turn: Turn
    """The turn, except for its reply."""
    conversation: Conversation | None = None
    """The conversation when the request came."""
    is_saved: bool = True
    is_named: bool = False
    """Whether the reply has an id by which it can be retrieved."""
    earlier_ids: frozenset[str] = frozenset()
    """The ids of the items before the turn."""
    members: Mapping[str, bytes] = {}
    """Fields of the reply that describe its conversation."""
    is_background: bool = False
    """Whether the reply is generated in the background."""
    reply_member: str = ""
    """The field of a streamed event that has the reply, "" if the event is the reply."""


class ConversationRecorder:
    """Saves the reply to one request."""

    def __init__(self, store: Store, question: Question) -> None:
        self._store = store
        self._question = question
        self._dialect = dialect_named(question.turn.dialect)
        self._injector = MemberInjector(question.members, question.reply_member)
        self._saved_turn: Turn | None = None
        self.reset()

    @property
    def conversation(self) -> Conversation | None:
        """The conversation in which the reply is saved, as it was when the request came."""
        return self._question.conversation

    def reset(self) -> None:
        """Start again: drop what was recorded of a failed attempt."""
        self._decoder = self._dialect.decoder()
        self._collector = Collector()
        self._held_events = b""
        self._is_holding = False

    async def save_reply(self, body: bytes, response: Response) -> bytes:
        """Save a whole reply; return the body to send to the client."""
        reply = self._injector.add_to_reply(body)
        await self._save_turn(reply, response)
        return reply

    def feed(self, events: bytes) -> bytes:
        """Process the next events of a stream; return those that can be sent now."""
        if not events:
            return events
        for event in self._decoder.feed(events):
            self._collector.feed(event)
        events = self._injector.add_to_events(events)
        if not self._is_holding and self._dialect.turns.end_pattern.search(events) is None:
            return events
        self._is_holding = True
        self._held_events += events
        return b""

    async def save_stream(self, request: Request | None) -> bytes:
        """Save a stream that has ended; return the events that were held back."""
        for event in self._decoder.close():
            self._collector.feed(event)
        response = self._collector.response()
        body = self._dialect.build_response(response, request)
        await self._save_turn(self._injector.add_to_reply(body), response)
        return self.take_held()

    def render_failure(self, problem: Problem, request: Request | None) -> bytes:
        """Return the events that end a stream that cannot be saved, in place of those that were held back."""
        encoder = self._dialect.encoder(request)
        encoder.feed(Started("", self._question.turn.model))
        return self._injector.add_to_events(encoder.feed(Failed(problem)))

    def take_held(self) -> bytes:
        """Return the events that were held back, and forget them."""
        held, self._held_events = self._held_events, b""
        return held

    async def mark_delivered(self) -> None:
        """Record that the client has received the whole reply."""
        if self._saved_turn is not None:
            # If this fails, a repeated request gets the same reply again, which is harmless.
            with contextlib.suppress(Unavailable):
                await self._store.mark_delivered(self._saved_turn)

    async def _save_turn(self, reply: bytes, response: Response) -> None:
        question = self._question
        if not question.is_saved:
            return
        turn = build_answered_turn(question, reply, response)
        # A turn without output does not become part of its conversation: the next turn continues from the one before.
        conversation = question.conversation if any(item.is_output for item in turn.items) else None
        try:
            if question.turn.status == "in_progress":
                await self._store.finish_turn(turn, conversation)
            elif conversation is not None or question.is_named:
                await self._store.add_turn(turn, conversation)
        except Conflict:
            message = f"the conversation {question.turn.conversation!r} was changed by another request; retry"
            raise Problem("conflict", message, code="conversation_changed") from None
        except Unavailable:
            raise build_unavailable_error() from None
        self._saved_turn = turn


def build_answered_turn(question: Question, reply: bytes, response: Response) -> Turn:
    """Return a turn with its reply."""
    turn = question.turn
    dialect = dialect_named(turn.dialect)
    taken = question.earlier_ids.union(item.id for item in turn.items)
    output = build_items(dialect.turns.read_reply_items(reply), taken, is_output=True)
    calls = list_calls(response.parts, output, dialect)
    return structs.replace(
        turn,
        id=response_id_of(reply) if question.is_named else "",
        items=(*turn.items, *output),
        calls={**turn.calls, **calls},
        reply=reply,
        status="completed",
        created=turn.created or int(time()),
    )


def build_unavailable_error() -> Problem:
    """Return the error for an unavailable store, without its address."""
    return Problem("overloaded", "the session store cannot be reached at the moment", code="sessions_unavailable")
