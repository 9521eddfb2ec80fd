"""Detect calls in the text of a model that has no tools of its own: events in, events with the calls in them out."""

from collections.abc import Iterable, Sequence

from msgspec import structs

from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
)
from dragoman.core.parts import Text, ToolCall
from dragoman.core.response import Finish, Response
from dragoman.core.stream import collect, replay
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.text_calls.forms import UnreadableText, WrittenCall
from dragoman.interpreter.text_calls.reader import TextCallReader
from dragoman.interpreter.undo import NO_UNDO, ReplyPipeline, TextCallSettings, generate_id


def match_tool_name(name: str, names: Sequence[str]) -> str:
    """Return the tool of that name, or the only one that differs in case, `_` and `-` alone; else the name itself."""
    if name in names:
        return name
    alike = [known for known in names if _normalise_name(known) == _normalise_name(name)]
    return alike[0] if len(alike) == 1 else name


def _normalise_name(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


_COMPLETE_REASONS = frozenset({"stop", "tool_calls"})
_CALL_CUT_OUT = "the text that it belongs to held a call"


class _OpenText:
    """A text while it is listened to."""

    def __init__(self, part: Text) -> None:
        self.part = structs.replace(part, signature=None)
        self.reader = TextCallReader()
        self.index: int | None = None
        """Its place at the client, while a piece of it is open."""
        self.is_unread = False
        """The piece that is open is a call that cannot be read."""
        self.piece_count = 0
        self.cut_count = 0
        """Calls that were cut out of it, be they read or not."""
        self.side_events: list[PartSigned | PartCited | PartNative] = []
        """What is said of it beside its text."""
        if part.signature is not None:
            self.side_events.append(PartSigned(0, part.signature))


class CallDetector:
    """Listens to one reply."""

    def __init__(
        self, settings: TextCallSettings, prefix: str, salt: str, ledger: Ledger, *, runs_calls: bool = False
    ) -> None:
        """With `runs_calls` whoever listens can ask again, and knows of calls that are not for others' eyes.

        Then a call that cannot be read is a text with that mark, a reply with nothing better ends as a malformed call,
        and a call that may not be made is told, to be refused.
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
        """A call at the end of a text, of which only the end of the reply tells whether it is whole."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take the next events."""
        return [detected for event in events for detected in self._pipeline.feed(event)]

    def _handle_event(self, event: Event) -> list[Event]:
        match event:
            case PartDelta(_, text, piece):
                spoken = self._open_text
                if spoken is None:
                    return [PartDelta(self._next_index - 1, text, piece)]
                return self._emit_pieces(spoken, spoken.reader.feed(text))
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
            case Failed():
                return [event]
            case _:
                return [event]

    def _end_part(self, event: PartEnded) -> list[Event]:
        spoken, self._open_text = self._open_text, None
        if spoken is None:
            return [PartEnded(self._next_index - 1, event.complete)]
        pieces = spoken.reader.close()
        last = pieces[-1] if pieces else None
        if isinstance(last, WrittenCall) and last.pending_text:
            self._pending = (spoken, last)
            return self._emit_pieces(spoken, pieces[:-1])
        return [*self._emit_pieces(spoken, pieces), *self._end_text(spoken)]

    def _resolve_pending(self, *, is_whole: bool) -> list[Event]:
        """Tell a call that was in doubt; as text, if the reply was cut off there."""
        if self._pending is None:
            return []
        (spoken, call), self._pending = self._pending, None
        return [
            *self._emit_pieces(spoken, [call if is_whole else UnreadableText(call.pending_text)]),
            *self._end_text(spoken),
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
        """Begin a piece of text; what its part had beside the text stands on the first."""
        open_text.index, open_text.is_unread = self._next_index, is_unread
        self._next_index += 1
        if is_unread:
            open_text.cut_count += 1
            return PartStarted(open_text.index, Text(text="", unread=True, where=open_text.part.where))
        part = open_text.part if not open_text.piece_count else Text(text="", where=open_text.part.where)
        open_text.piece_count += 1
        return PartStarted(open_text.index, part)

    def _end_piece(self, open_text: _OpenText) -> list[Event]:
        """End the piece of text that is open."""
        if open_text.index is None:
            return []
        index, open_text.index = open_text.index, None
        return [PartEnded(index)]

    def _emit_call(self, open_text: _OpenText, written_call: WrittenCall) -> list[Event]:
        open_text.cut_count += 1
        if self._forbidden:
            self._ledger.report_dropped(open_text.part.where, "a call in it: no tool may be called")
            return self._end_piece(open_text)
        self._call_count += 1
        if self._single and self._call_count > 1:
            why = "the client wants one call at a time: only the first is told"
            self._ledger.report_dropped(open_text.part.where, why)
            return []
        events = self._end_piece(open_text)
        name = match_tool_name(written_call.name, self._names)
        seed = (self._reply_id, self._salt, self._call_count, name, written_call.arguments)
        call = ToolCall(id=generate_id(self._prefix, *seed), name=name, arguments="", where=open_text.part.where)
        index = self._next_index
        self._next_index += 1
        return [*events, PartStarted(index, call), PartDelta(index, written_call.arguments), PartEnded(index)]

    def _end_text(self, open_text: _OpenText) -> list[Event]:
        """End a text; what is said beside it is about all of it, so it stands only where no call was cut out."""
        events: list[Event] = []
        if open_text.reader.unread_count:
            self._unread_count += open_text.reader.unread_count
            self._ledger.report_approximated(open_text.part.where, "a call in it cannot be read: it is told as text")
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
        if part.extras is not None and not open_text.piece_count:
            for field, raw in part.extras.fields.items():
                ledger.report_dropped_value(part.where + field, raw, _CALL_CUT_OUT)

    def _finish(self, finish: Finish) -> Finish:
        """A reply that ends well after calls ends for them; the sequence that ends made-up results is our own."""
        if self._call_count and finish.reason == "stop":
            return Finish("tool_calls")
        if self._unread_count and self._runs_calls and finish.reason == "stop":
            return Finish("malformed_call")
        # Some vendors' word for the end says that there was a sequence, so that goes too.
        return Finish(finish.reason) if finish.sequence and finish.sequence == self._stop else finish


def detect_calls(response: Response, detector: CallDetector) -> Response:
    """Return a whole reply with the calls in it."""
    return collect(detector.feed(replay(response)))
