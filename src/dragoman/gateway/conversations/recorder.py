"""Save an answer before the client receives the end of it, under the ids that its conversation gives.

The recorder decodes what is sent to the client, wherever it came from. It holds the end of a stream back until the turn
is saved: an answer that the client has received is never lost.
"""

import contextlib
import re
from collections.abc import Mapping
from time import time
from typing import Any
from uuid import uuid4

import msgspec
from msgspec import Struct, structs

from dragoman.core.events import Failed, Started
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Response
from dragoman.core.stream import Collector
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
    """Return the id an item has, or one for it."""
    named = _decode_head(body)
    if isinstance(named.id, str) and named.id:
        return named.id
    prefix = _ID_PREFIXES.get(named.type, "item") if isinstance(named.type, str) else "item"
    return f"{prefix}_{uuid4().hex}"


def response_id_of(reply: bytes) -> str:
    """Return the id of an answer."""
    name = _decode_head(reply).id
    return name if isinstance(name, str) else ""


def generate_response_id() -> str:
    """Return an id for an answer that the gateway keeps."""
    return f"resp_{uuid4().hex}"


def generate_conversation_id() -> str:
    """Return an id for a conversation that its client did not name."""
    return f"conv_{uuid4().hex}"


def _decode_head(body: bytes) -> _ItemHead:
    try:
        return json.decode_with(_HEAD_DECODER, body)
    except json.Malformed:
        return _ItemHead()


_DATA = re.compile(rb"^data:[ ]?(.*)$", re.MULTILINE)
_FRAMES = re.compile(rb".*?\n\r?\n", re.DOTALL)


class MemberInjector:
    """Puts members into replies; `below` is the member of an event that holds the reply, "" if it is the event."""

    def __init__(self, members: Mapping[str, bytes], below: str) -> None:
        self._members = members
        self._below = below

    def add_to_reply(self, body: bytes) -> bytes:
        """Return a whole reply with the members in it."""
        for name, raw in self._members.items():
            body = set_member(body, name, raw)
        return body

    def add_to_events(self, events: bytes) -> bytes:
        """Return events with the members in every reply they hold."""
        if not self._members or (self._below and b'"%b"' % self._below.encode() not in events):
            return events
        return _FRAMES.sub(lambda frame: _DATA.sub(self._add_to_line, frame.group(), count=1), events)

    def _add_to_line(self, line: re.Match[bytes]) -> bytes:
        data = line.group(1)
        if not json.is_object(data):
            return line.group()
        if not self._below:
            return b"data: " + self.add_to_reply(data)
        inner = json.decode_object(data).get(self._below)
        if inner is None or not json.is_object(bytes(inner)):
            return line.group()
        return b"data: " + set_member(data, self._below, self.add_to_reply(bytes(inner)))


class Question(Struct, frozen=True, kw_only=True):
    """What a client asked, and where that belongs."""

    turn: Turn
    """The turn as far as it is known: all but the answer."""
    conversation: Conversation | None = None
    """The conversation as it was when the question came."""
    keeps: bool = True
    is_named: bool = False
    """The answer has a name of its own, under which it can be asked for."""
    members: Mapping[str, bytes] = {}
    """What the answer says of its conversation."""
    is_background: bool = False
    """Nobody waits for the answer."""
    below: str = ""
    """The member of a streamed event that holds the answer, "" if that is the whole event."""


class ConversationRecorder:
    """Keeps the answer to one question."""

    def __init__(self, store: Store, question: Question) -> None:
        self._store = store
        self._question = question
        self._dialect = dialect_named(question.turn.dialect)
        self._injector = MemberInjector(question.members, question.below)
        self._saved_turn: Turn | None = None
        self.reset()

    @property
    def conversation(self) -> Conversation | None:
        """The conversation in which the answer is kept, as it was when the question came."""
        return self._question.conversation

    def reset(self) -> None:
        """Listen from the beginning: an attempt that came to nothing is forgotten."""
        self._decoder = self._dialect.decoder()
        self._collector = Collector()
        self._held_events = b""
        self._is_holding = False

    async def save_reply(self, body: bytes, response: Response) -> bytes:
        """Keep a whole answer; return what the client is sent."""
        told = self._injector.add_to_reply(body)
        await self._save_turn(told, response)
        return told

    def feed(self, events: bytes) -> bytes:
        """Take the next events of a stream; return those that may be sent already."""
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
        """Keep a stream that has come to its end; return what was held back of it."""
        for event in self._decoder.close():
            self._collector.feed(event)
        response = self._collector.response()
        body = self._dialect.build_response(response, request)
        await self._save_turn(self._injector.add_to_reply(body), response)
        return self.take_held()

    def render_failure(self, problem: Problem, request: Request | None) -> bytes:
        """Return what ends a stream that has begun and cannot be kept, in place of what was held back."""
        encoder = self._dialect.encoder(request)
        encoder.feed(Started("", self._question.turn.model))
        return self._injector.add_to_events(encoder.feed(Failed(problem)))

    def take_held(self) -> bytes:
        """Return what was held back, once."""
        held, self._held_events = self._held_events, b""
        return held

    async def mark_delivered(self) -> None:
        """Note that the client has got the whole answer."""
        if self._saved_turn is not None:
            # Without this note an answer that is asked for again is told again: nothing is lost.
            with contextlib.suppress(Unavailable):
                await self._store.mark_delivered(self._saved_turn)

    async def _save_turn(self, reply: bytes, response: Response) -> None:
        question = self._question
        if not question.keeps:
            return
        turn = build_answered_turn(question, reply, response)
        # A turn in which nothing was said is none of its conversation: the next goes on from the one before.
        conversation = question.conversation if any(item.said for item in turn.items) else None
        try:
            if question.turn.status == "in_progress":
                await self._store.finish_turn(turn, conversation)
            elif conversation is not None or question.is_named:
                await self._store.add_turn(turn, conversation)
        except Conflict:
            words = f"the conversation {question.turn.conversation!r} has gone on meanwhile: ask again"
            raise Problem("conflict", words, code="conversation_changed") from None
        except Unavailable:
            raise build_unavailable_error() from None
        self._saved_turn = turn


def build_answered_turn(question: Question, reply: bytes, response: Response) -> Turn:
    """Return a turn with its answer."""
    turn = question.turn
    said = [
        Item(find_or_generate_id(body), body, said=True)
        for body in dialect_named(turn.dialect).turns.read_reply_items(reply)
    ]
    calls = {part.id: part.name for part in response.parts if isinstance(part, ToolCall)}
    return structs.replace(
        turn,
        id=response_id_of(reply) if question.is_named else "",
        items=(*turn.items, *said),
        calls={**turn.calls, **calls},
        reply=reply,
        status="completed",
        created=turn.created or int(time()),
    )


def build_unavailable_error() -> Problem:
    """Say that what is kept cannot be reached, without where that is."""
    return Problem("overloaded", "the store of conversations cannot be reached now", code="sessions_unavailable")
