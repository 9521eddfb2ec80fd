"""Filter one reply: capture the calls of the caller's tools, and send them to the caller."""

from typing import TYPE_CHECKING

from dragoman.core.events import Event
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.intercept.plan import CapturedToolCall, Group, digest_of
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
"""The maximum size in bytes of a conversation that can be restored."""


class ReplyFilter:
    """Filters one reply for the client, and forwards its content to the caller."""

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
    def calls(self) -> tuple[CapturedToolCall, ...]:
        """The captured calls."""
        return tuple(self._capture.calls)

    def begin(self, turn: TurnRequest, kind: str) -> None:
        """Start reading a reply with this content type."""
        self._form = choose_reply_form(turn, kind, self._capture)
        self._decoder = _GEMINI.decoder() if turn.stream else None

    def feed(self, piece: bytes) -> bytes:
        """Process the next bytes; return those for the client."""
        filtered = self._form.feed(piece)
        self._record_group()
        if self._decoder is not None:
            self._forwarder.feed(self._decoder.feed(piece))
        else:
            self._body += piece
        return filtered

    def close(self) -> bytes:
        """Process the end of the reply; return the rest for the client."""
        filtered = self._form.close()
        self._record_group()
        self._forwarder.feed(self._decoder.close() if self._decoder is not None else self._parse_events())
        calls, goes_on = self._restore_calls(), self._capture.has_client_calls
        if self._group is not None:
            self._group.calls, self._group.caller_calls = self.calls, calls
            if self._group.is_given_up:
                # The caller already got other calls, or the end of the turn.
                calls, goes_on = (), True
        self._forwarder.close(calls, goes_on=goes_on)
        self._turn.end(self._rewritten.body)
        return filtered

    def fail(self, problem: Problem) -> None:
        """Handle an incomplete reply: calls captured from it are discarded."""
        if self._group is not None and self._session.groups.get(self._mark) is self._group:
            del self._session.groups[self._mark]
        self._forwarder.problem = self._forwarder.problem or problem
        self._forwarder.close((), goes_on=False)
        self._turn.end(self._rewritten.body)

    def _record_group(self) -> None:
        if self._capture.calls and self._group is None:
            rewritten = self._rewritten
            before = rewritten.contents if len(rewritten.contents) <= _MAX_REMEMBERED else b""
            self._group = Group(
                mark=self._mark,
                calls=self.calls,
                before=before,
                last_turn_digest=digest_of(rewritten.last),
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
        """Return the calls with the caller's own tool names and arguments."""
        undo = self._session.undo
        return tuple(restore_call(to_tool_call(captured), undo) for captured in self._capture.calls)


def parse_refusal(status: int, headers: dict[str, str], body: bytes) -> Problem:
    """Parse the error of an upstream."""
    return _GEMINI.parse_error(status, headers, body)
