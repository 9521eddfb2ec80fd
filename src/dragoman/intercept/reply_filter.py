"""Filter one reply: take the calls of the caller's tools out of it, and send them to the caller."""

from typing import TYPE_CHECKING

from dragoman.core.events import Event
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.intercept.captured import CapturedToolCall, Group, digest_of
from dragoman.intercept.replies import CallCapture, TurnRequest, choose_reply_form, to_tool_call
from dragoman.intercept.rewrite import RewrittenRequest
from dragoman.intercept.sessions import InterceptSession
from dragoman.intercept.settings import DIALECT
from dragoman.intercept.turns import CallerTurn, EventForwarder
from dragoman.interpreter.undo import restore_call
from dragoman.wire import json

if TYPE_CHECKING:
    from dragoman.dialects.record import Decoder


_GEMINI = dialect_named(DIALECT)
_MAX_REMEMBERED = 8 << 20
"""Bytes of a conversation that can be put back."""


class ReplyFilter:
    """One reply on its way to the client."""

    def __init__(self, session: InterceptSession, caller: CallerTurn, rewritten: RewrittenRequest, mark: str) -> None:
        self._session = session
        self._mark = mark
        self._rewritten = rewritten
        self._capture = CallCapture(session.tools.names, session.format_placeholder(mark), session.call_ids)
        self._turn = caller
        self._forwarder = EventForwarder(caller, rewritten.body)
        self._group: Group | None = None
        self._decoder: Decoder | None = None
        self._body = bytearray()
        self._turn.begin(rewritten.body)

    @property
    def captured_calls(self) -> tuple[CapturedToolCall, ...]:
        """The calls that were taken out."""
        return tuple(self._capture.calls)

    def begin(self, turn: TurnRequest, kind: str) -> None:
        """A reply of this content type begins."""
        self._form = choose_reply_form(turn, kind, self._capture)
        self._decoder = _GEMINI.decoder() if turn.stream else None

    def feed(self, piece: bytes) -> bytes:
        """Take the next bytes, return what the client is told."""
        told = self._form.feed(piece)
        self._record_group()
        if self._decoder is not None:
            self._forwarder.feed(self._decoder.feed(piece))
        else:
            self._body += piece
        return told

    def close(self) -> bytes:
        """The reply is whole; return the rest of what the client is told."""
        told = self._form.close()
        self._record_group()
        self._forwarder.feed(self._decoder.close() if self._decoder is not None else self._parse_events())
        calls, goes_on = self._restore_calls(), self._capture.has_client_calls
        if self._group is not None:
            self._group.calls, self._group.caller_calls = self.captured_calls, calls
            if self._group.is_given_up:
                # The caller was told of others before, or of the end.
                calls, goes_on = (), True
        self._forwarder.close(calls, goes_on=goes_on)
        self._turn.end(self._rewritten.body)
        return told

    def fail(self, problem: Problem) -> None:
        """There is no whole reply: what was captured of it is no call."""
        if self._group is not None and self._session.groups.get(self._mark) is self._group:
            del self._session.groups[self._mark]
        self._forwarder.problem = self._forwarder.problem or problem
        self._forwarder.close((), goes_on=False)
        self._turn.end(self._rewritten.body)

    def _record_group(self) -> None:
        if self._capture.calls and self._group is None:
            going = self._rewritten
            before = going.contents if len(going.contents) <= _MAX_REMEMBERED else b""
            self._group = Group(
                mark=self._mark,
                calls=self.captured_calls,
                before=before,
                last_turn_digest=digest_of(going.last),
                is_given_up=self._turn.is_over,
            )
            self._session.add(self._group)

    def _parse_events(self) -> list[Event]:
        try:
            return list(replay(_GEMINI.parse_response(bytes(self._body))))
        except json.Malformed as error:
            self._forwarder.problem = Problem("malformed_reply", error.message, where=error.where)
        except Problem as problem:
            self._forwarder.problem = problem
        return []

    def _restore_calls(self) -> tuple[ToolCall, ...]:
        """Return the calls as the caller knows them: by its own names, with its own arguments."""
        undo = self._session.undo
        return tuple(restore_call(to_tool_call(captured), undo) for captured in self._capture.calls)


def parse_refusal(status: int, headers: dict[str, str], body: bytes) -> Problem:
    """Return what an upstream says against a request."""
    return _GEMINI.parse_error(status, headers, body)
