"""Detect tool calls in the text of a model without tool support, and emit them as events of call parts."""

from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec import structs

from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.parts import Text, ToolCall
from dragoman.core.response import Finish, Response
from dragoman.core.stream import collect, replay
from dragoman.interpreter.ids import generate_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.text_calls.forms import UnreadableText, WrittenCall
from dragoman.interpreter.text_calls.reader import TextCallReader
from dragoman.interpreter.undo import NO_UNDO, ReplyPipeline, TextCallSettings


def match_tool_name(name: str, names: Sequence[str]) -> str:
    """Return the tool of that name, or the only one that differs just in case, `_` and `-`; else the name itself."""
    if name in names:
        return name
    matches = [known for known in names if _normalise_name(known) == _normalise_name(name)]
    return matches[0] if len(matches) == 1 else name


def _normalise_name(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


_COMPLETE_REASONS = frozenset({"stop", "tool_calls"})
_CALL_CUT_OUT = "it is about a text from which a call was parsed"


class _OpenText:
    """A text part in which calls are being detected."""

    def __init__(self, part: Text) -> None:
        self.part = structs.replace(part, signature=None)
        self.reader = TextCallReader()
        self.index: int | None = None
        """The index of the open piece in the output; None if no piece is open."""
        self.is_unread = False
        """The open piece is a call that cannot be parsed."""
        self.piece_count = 0
        self.cut_count = 0
        """The number of calls that were cut out of it, parsed or not."""
        self.side_events: list[PartSigned | PartCited | PartNative] = []
        """Its signature, citations and native fields."""
        if part.signature is not None:
            self.side_events.append(PartSigned(0, part.signature))


class CallDetector:
    """Detects calls in the text of one reply."""

    def __init__(
        self, settings: TextCallSettings, prefix: str, salt: str, ledger: Ledger, *, runs_calls: bool = False
    ) -> None:
        """Set `runs_calls` if the gateway runs the calls itself, so that it can ask the model again.

        Then a call that cannot be parsed becomes a text part marked `unread`, a reply with no other call finishes with
        `malformed_call`, and a forbidden call is still emitted, so that the gateway can reject it.
        """
        self._names = settings.names
        self._forbidden = settings.forbidden and not runs_calls
        self._single = settings.single_call
        self._stop = settings.stop
        self._prefix = prefix
        self._salt = salt
        self._ledger = ledger
        self._pipeline = ReplyPipeline(NO_UNDO, self._handle_event)
        self._reply_id = ""
        self._next_index = 0
        self._call_count = 0
        self._runs_calls = runs_calls
        self._unread_count = 0
        self._open_text: _OpenText | None = None
        self._pending: tuple[_OpenText, WrittenCall] | None = None
        """A call at the end of a text that is complete only if the reply finishes normally."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take the next events and return the events with calls."""
        return [detected for event in events for detected in self._pipeline.feed(event)]

    def _handle_event(self, event: Event) -> list[Event]:
        match event:
            case PartDelta(_, text, piece):
                open_text = self._open_text
                if open_text is None:
                    return [PartDelta(self._next_index - 1, text, piece)]
                return self._emit_pieces(open_text, open_text.reader.feed(text))
            case PartStarted(_, part):
                before = self._resolve_pending(is_whole=True)
                if isinstance(part, Text):
                    self._open_text = _OpenText(part)
                    return before
                self._next_index += 1
                return [*before, PartStarted(self._next_index - 1, part)]
            case PartEnded():
                return self._end_part(event)
            case PartSigned() | PartCited() | PartNative():
                if self._open_text is not None:
                    self._open_text.side_events.append(event)
                    return []
                return [structs.replace(event, index=self._next_index - 1)]
            case Started(reply_id):
                self._reply_id = reply_id
                return [event]
            case Finished(finish):
                return [
                    *self._resolve_pending(is_whole=finish.reason in _COMPLETE_REASONS),
                    Finished(self._finish(finish)),
                ]
            case Failed() | UsageSeen() | Native():
                return [event]
            case _:
                assert_never(event)

    def _end_part(self, event: PartEnded) -> list[Event]:
        open_text, self._open_text = self._open_text, None
        if open_text is None:
            return [PartEnded(self._next_index - 1, event.complete)]
        pieces = open_text.reader.close()
        last = pieces[-1] if pieces else None
        if isinstance(last, WrittenCall) and last.pending_text:
            self._pending = (open_text, last)
            return self._emit_pieces(open_text, pieces[:-1])
        return [*self._emit_pieces(open_text, pieces), *self._end_text(open_text)]

    def _resolve_pending(self, *, is_whole: bool) -> list[Event]:
        """Emit the pending call; as text, if the reply was cut off there."""
        if self._pending is None:
            return []
        (open_text, call), self._pending = self._pending, None
        return [
            *self._emit_pieces(open_text, [call if is_whole else UnreadableText(call.pending_text)]),
            *self._end_text(open_text),
        ]

    def _emit_pieces(self, open_text: _OpenText, pieces: list[str | WrittenCall]) -> list[Event]:
        events: list[Event] = []
        for piece in pieces:
            if isinstance(piece, WrittenCall):
                events += self._emit_call(open_text, piece)
                continue
            is_unread = self._runs_calls and isinstance(piece, UnreadableText)
            if open_text.index is not None and open_text.is_unread != is_unread:
                events += self._end_piece(open_text)
            if open_text.index is None:
                events.append(self._start_piece(open_text, is_unread=is_unread))
            events.append(PartDelta(self._next_index - 1, str(piece)))
        return events

    def _start_piece(self, open_text: _OpenText, *, is_unread: bool = False) -> PartStarted:
        """Start a piece of text; the first piece keeps the other fields of the part."""
        open_text.index, open_text.is_unread = self._next_index, is_unread
        self._next_index += 1
        if is_unread:
            open_text.cut_count += 1
            return PartStarted(open_text.index, Text(text="", unread=True, where=open_text.part.where))
        part = open_text.part if not open_text.piece_count else Text(text="", where=open_text.part.where)
        open_text.piece_count += 1
        return PartStarted(open_text.index, part)

    def _end_piece(self, open_text: _OpenText) -> list[Event]:
        """End the open piece of text, if there is one."""
        if open_text.index is None:
            return []
        index, open_text.index = open_text.index, None
        return [PartEnded(index)]

    def _emit_call(self, open_text: _OpenText, written_call: WrittenCall) -> list[Event]:
        open_text.cut_count += 1
        if self._forbidden:
            self._ledger.report_dropped(open_text.part.where, "the text contains a call, but no tool may be called")
            return self._end_piece(open_text)
        self._call_count += 1
        if self._single and self._call_count > 1:
            reason = "the client allows one call at a time: only the first is sent"
            self._ledger.report_dropped(open_text.part.where, reason)
            return []
        events = self._end_piece(open_text)
        name = match_tool_name(written_call.name, self._names)
        seed = (self._reply_id, self._salt, self._call_count, name, written_call.arguments)
        call = ToolCall(id=generate_id(self._prefix, *seed), name=name, arguments="", where=open_text.part.where)
        index = self._next_index
        self._next_index += 1
        return [*events, PartStarted(index, call), PartDelta(index, written_call.arguments), PartEnded(index)]

    def _end_text(self, open_text: _OpenText) -> list[Event]:
        """End a text. Its signature and citations are about all of it, so they are kept only if no call was cut out."""
        events: list[Event] = []
        if open_text.reader.unread_count:
            self._unread_count += open_text.reader.unread_count
            self._ledger.report_approximated(open_text.part.where, "a call in the text cannot be parsed: sent as text")
        if not open_text.cut_count:
            if open_text.index is None:
                events.append(self._start_piece(open_text))
            events += [structs.replace(event, index=self._next_index - 1) for event in open_text.side_events]
        else:
            self._report_side_events(open_text)
        return [*events, *self._end_piece(open_text)]

    def _report_side_events(self, open_text: _OpenText) -> None:
        part, ledger = open_text.part, self._ledger
        for event in open_text.side_events:
            match event:
                case PartSigned():
                    ledger.report_dropped_field("part.signature", _CALL_CUT_OUT, part)
                case PartCited():
                    ledger.report_dropped_field("part.citations", _CALL_CUT_OUT, part)
                case PartNative(_, _, field, raw):
                    ledger.report_dropped_value(part.where + field, raw, _CALL_CUT_OUT)
                case _:
                    assert_never(event)
        if part.extras is not None and not open_text.piece_count:
            for field, raw in part.extras.fields.items():
                ledger.report_dropped_value(part.where + field, raw, _CALL_CUT_OUT)

    def _finish(self, finish: Finish) -> Finish:
        """Return the finish: `tool_calls` after calls; without the stop sequence that the gateway itself added."""
        if self._call_count and finish.reason == "stop":
            return Finish("tool_calls")
        if self._unread_count and self._runs_calls and finish.reason == "stop":
            return Finish("malformed_call")
        # The vendor's own reason (`raw`) may name the stop sequence, so it is dropped too.
        return Finish(finish.reason) if finish.sequence and finish.sequence == self._stop else finish


def detect_calls(response: Response, detector: CallDetector) -> Response:
    """Return a complete reply with the calls detected in its text."""
    return collect(detector.feed(replay(response)))
