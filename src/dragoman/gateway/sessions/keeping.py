"""Keep an answer before its client hears the end of it.

What goes to the client is listened to, so that it does not matter where it came from. Of a stream the end is held back
until the turn is kept: an answer that the client has heard is never lost.
"""

import contextlib
from collections.abc import Mapping
from time import time

from msgspec import Struct, structs

from dragoman.core.events import Failed, Started
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Response
from dragoman.core.stream import Collector
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.sessions.echo import Echo
from dragoman.gateway.sessions.naming import item_id, response_name
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Conversation, Item, Turn, Unavailable


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


class Keeper:
    """Keeps the answer to one question."""

    def __init__(self, store: Store, question: Question) -> None:
        self._store = store
        self._question = question
        self._dialect = dialect_named(question.turn.dialect)
        self._echo = Echo(question.members, question.below)
        self._kept: Turn | None = None
        self.begin()

    @property
    def conversation(self) -> Conversation | None:
        """The conversation in which the answer is kept, as it was when the question came."""
        return self._question.conversation

    def begin(self) -> None:
        """Listen from the beginning: an attempt that came to nothing is forgotten."""
        self._decoder = self._dialect.decoder()
        self._collector = Collector()
        self._held = b""
        self._holds = False

    async def whole(self, body: bytes, response: Response) -> bytes:
        """Keep a whole answer; return what the client is sent."""
        told = self._echo.whole(body)
        await self._keep(told, response)
        return told

    def passing(self, told: bytes) -> bytes:
        """Take the next events of a stream; return those that may be sent already."""
        if not told:
            return told
        for event in self._decoder.feed(told):
            self._collector.feed(event)
        told = self._echo.events(told)
        if not self._holds and self._dialect.turns.last.search(told) is None:
            return told
        self._holds = True
        self._held += told
        return b""

    async def ended(self, request: Request | None) -> bytes:
        """Keep a stream that has come to its end; return what was held back of it."""
        for event in self._decoder.close():
            self._collector.feed(event)
        response = self._collector.response()
        body = self._dialect.build_response(response, request)
        await self._keep(self._echo.whole(body), response)
        return self.let_go()

    def failed(self, problem: Problem, request: Request | None) -> bytes:
        """Return what ends a stream that has begun and cannot be kept, in place of what was held back."""
        encoder = self._dialect.encoder(request)
        encoder.feed(Started("", self._question.turn.model))
        return self._echo.events(encoder.feed(Failed(problem)))

    def let_go(self) -> bytes:
        """Return what was held back, once."""
        held, self._held = self._held, b""
        return held

    async def delivered(self) -> None:
        """Note that the client has got the whole answer."""
        if self._kept is not None:
            # Without this note an answer that is asked for again is told again: nothing is lost.
            with contextlib.suppress(Unavailable):
                await self._store.delivered(self._kept)

    async def _keep(self, reply: bytes, response: Response) -> None:
        question = self._question
        if not question.keeps:
            return
        turn = answered(question, reply, response)
        # A turn in which nothing was said is none of its conversation: the next goes on from the one before.
        conversation = question.conversation if any(item.said for item in turn.items) else None
        try:
            if question.turn.status == "in_progress":
                await self._store.finish(turn, conversation)
            elif conversation is not None or question.is_named:
                await self._store.add(turn, conversation)
        except Conflict:
            words = f"the conversation {question.turn.conversation!r} has gone on meanwhile: ask again"
            raise Problem("conflict", words, code="conversation_changed") from None
        except Unavailable:
            raise unavailable() from None
        self._kept = turn


def answered(question: Question, reply: bytes, response: Response) -> Turn:
    """Return a turn with its answer."""
    turn = question.turn
    said = [Item(item_id(body), body, said=True) for body in dialect_named(turn.dialect).turns.said(reply)]
    calls = {part.id: part.name for part in response.parts if isinstance(part, ToolCall)}
    return structs.replace(
        turn,
        id=response_name(reply) if question.is_named else "",
        items=(*turn.items, *said),
        calls={**turn.calls, **calls},
        reply=reply,
        status="completed",
        created=turn.created or int(time()),
    )


def unavailable() -> Problem:
    """Say that what is kept cannot be reached, without where that is."""
    return Problem("overloaded", "the store of conversations cannot be reached now", code="sessions_unavailable")
