"""Filter one reply: take the calls of the caller's tools out of it, and send them to the caller."""

from typing import TYPE_CHECKING

from dragoman.core.events import Event
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.intercept.captured import Captured, Group, digest_of
from dragoman.intercept.replies import Capture, TurnRequest, form_of, tool_call
from dragoman.intercept.rewrite import Going
from dragoman.intercept.sessions import Session
from dragoman.intercept.settings import DIALECT
from dragoman.intercept.turns import CallerTurn, Telling
from dragoman.interpreter.undo import restore_call
from dragoman.wire import json

if TYPE_CHECKING:
    from dragoman.dialects.record import Decoder


_GEMINI = dialect_named(DIALECT)
_MOST_REMEMBERED = 8 << 20
"""Bytes of a conversation that can be put back."""


class ReplyFilter:
    """One reply on its way to the client."""

    def __init__(self, session: Session, caller: CallerTurn, going: Going, mark: str) -> None:
        self._session = session
        self._mark = mark
        self._going = going
        self._capture = Capture(session.tools.names, session.placeholder(mark), session.ids)
        self._turn = caller
        self._telling = Telling(caller, going.body)
        self._group: Group | None = None
        self._decoder: Decoder | None = None
        self._body = bytearray()
        self._turn.begin(going.body)

    @property
    def captured(self) -> tuple[Captured, ...]:
        """The calls that were taken out."""
        return tuple(self._capture.calls)

    def begin(self, turn: TurnRequest, kind: str) -> None:
        """A reply of this content type begins."""
        self._form = form_of(turn, kind, self._capture)
        self._decoder = _GEMINI.decoder() if turn.stream else None

    def feed(self, piece: bytes) -> bytes:
        """Take the next bytes, return what the client is told."""
        told = self._form.feed(piece)
        self._note()
        if self._decoder is not None:
            self._telling.feed(self._decoder.feed(piece))
        else:
            self._body += piece
        return told

    def close(self) -> bytes:
        """The reply is whole; return the rest of what the client is told."""
        told = self._form.close()
        self._note()
        self._telling.feed(self._decoder.close() if self._decoder is not None else self._events())
        calls, goes_on = self._known(), self._capture.passes_calls
        if self._group is not None:
            self._group.calls, self._group.known = self.captured, calls
            if self._group.is_given_up:
                # The caller was told of others before, or of the end.
                calls, goes_on = (), True
        self._telling.close(calls, goes_on=goes_on)
        self._turn.end(self._going.body)
        return told

    def fail(self, problem: Problem) -> None:
        """There is no whole reply: what was captured of it is no call."""
        if self._group is not None and self._session.groups.get(self._mark) is self._group:
            del self._session.groups[self._mark]
        self._telling.problem = self._telling.problem or problem
        self._telling.close((), goes_on=False)
        self._turn.end(self._going.body)

    def _note(self) -> None:
        if self._capture.calls and self._group is None:
            going = self._going
            before = going.contents if len(going.contents) <= _MOST_REMEMBERED else b""
            self._group = Group(
                mark=self._mark,
                calls=self.captured,
                before=before,
                asked=digest_of(going.last),
                is_given_up=self._turn.is_over,
            )
            self._session.add(self._group)

    def _events(self) -> list[Event]:
        try:
            return list(replay(_GEMINI.parse_response(bytes(self._body))))
        except json.Malformed as error:
            self._telling.problem = Problem("malformed_reply", error.message, where=error.where)
        except Problem as problem:
            self._telling.problem = problem
        return []

    def _known(self) -> tuple[ToolCall, ...]:
        """Return the calls as the caller knows them: by its own names, with its own arguments."""
        undo = self._session.undo
        return tuple(restore_call(tool_call(captured), undo) for captured in self._capture.calls)


def refusal(status: int, headers: dict[str, str], body: bytes) -> Problem:
    """Return what an upstream says against a request."""
    return _GEMINI.parse_error(status, headers, body)
