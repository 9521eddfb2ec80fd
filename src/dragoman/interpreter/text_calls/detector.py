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
from dragoman.interpreter.text_calls.forms import UnreadableText, Written
from dragoman.interpreter.text_calls.reader import Reader
from dragoman.interpreter.undo import NO_UNDO, ReplyPipeline, Spoken, generate_id


def meant(name: str, names: Sequence[str]) -> str:
    """Return the tool of that name, or the only one that differs in case, `_` and `-` alone; else the name itself."""
    if name in names:
        return name
    alike = [known for known in names if _plain(known) == _plain(name)]
    return alike[0] if len(alike) == 1 else name


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


_WHOLE = frozenset({"stop", "tool_calls"})
_CUT = "the text that it belongs to held a call"


class _Spoken:
    """A text while it is listened to."""

    def __init__(self, part: Text) -> None:
        self.part = structs.replace(part, signature=None)
        self.reader = Reader()
        self.index: int | None = None
        """Its place at the client, while a piece of it is open."""
        self.is_unread = False
        """The piece that is open is a call that cannot be read."""
        self.pieces = 0
        self.cuts = 0
        """Calls that were cut out of it, be they read or not."""
        self.beside: list[PartSigned | PartCited | PartNative] = []
        """What is said of it beside its text."""
        if part.signature is not None:
            self.beside.append(PartSigned(0, part.signature))


class CallDetector:
    """Listens to one reply."""

    def __init__(self, spoken: Spoken, prefix: str, salt: str, ledger: Ledger, *, runs_calls: bool = False) -> None:
        """With `runs_calls` whoever listens can ask again, and knows of calls that are not for others' eyes.

        Then a call that cannot be read is a text with that mark, a reply with nothing better ends as a malformed call,
        and a call that may not be made is told, to be refused.
        """
        self._names = spoken.names
        self._forbidden = spoken.forbidden and not runs_calls
        self._single = spoken.single
        self._stop = spoken.stop
        self._prefix = prefix
        self._salt = salt
        self._ledger = ledger
        self._pipeline = ReplyPipeline(NO_UNDO, self._heard)
        self._reply_id = ""
        self._next = 0
        self._calls = 0
        self._runs_calls = runs_calls
        self._unread = 0
        self._text: _Spoken | None = None
        self._doubtful: tuple[_Spoken, Written] | None = None
        """A call at the end of a text, of which only the end of the reply tells whether it is whole."""

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Take the next events."""
        return [detected for event in events for detected in self._pipeline.feed(event)]

    def _heard(self, event: Event) -> list[Event]:
        match event:
            case PartDelta(_, text, piece):
                spoken = self._text
                if spoken is None:
                    return [PartDelta(self._next - 1, text, piece)]
                return self._pieces(spoken, spoken.reader.feed(text))
            case PartStarted(_, part):
                before = self._settled(is_whole=True)
                if isinstance(part, Text):
                    self._text = _Spoken(part)
                    return before
                self._next += 1
                return [*before, PartStarted(self._next - 1, part)]
            case PartEnded():
                return self._ended(event)
            case PartSigned() | PartCited() | PartNative():
                if self._text is not None:
                    self._text.beside.append(event)
                    return []
                return [structs.replace(event, index=self._next - 1)]
            case Started(reply_id):
                self._reply_id = reply_id
                return [event]
            case Finished(finish):
                return [*self._settled(is_whole=finish.reason in _WHOLE), Finished(self._finish(finish))]
            case Failed():
                return [event]
            case _:
                return [event]

    def _ended(self, event: PartEnded) -> list[Event]:
        spoken, self._text = self._text, None
        if spoken is None:
            return [PartEnded(self._next - 1, event.complete)]
        pieces = spoken.reader.close()
        last = pieces[-1] if pieces else None
        if isinstance(last, Written) and last.doubt:
            self._doubtful = (spoken, last)
            return self._pieces(spoken, pieces[:-1])
        return [*self._pieces(spoken, pieces), *self._closed(spoken)]

    def _settled(self, *, is_whole: bool) -> list[Event]:
        """Tell a call that was in doubt; as text, if the reply was cut off there."""
        if self._doubtful is None:
            return []
        (spoken, call), self._doubtful = self._doubtful, None
        return [*self._pieces(spoken, [call if is_whole else UnreadableText(call.doubt)]), *self._closed(spoken)]

    def _pieces(self, spoken: _Spoken, pieces: list[str | Written]) -> list[Event]:
        events: list[Event] = []
        for piece in pieces:
            if isinstance(piece, Written):
                events += self._called(spoken, piece)
                continue
            is_unread = self._runs_calls and isinstance(piece, UnreadableText)
            if spoken.index is not None and spoken.is_unread != is_unread:
                events += self._cut(spoken)
            if spoken.index is None:
                events.append(self._opened(spoken, is_unread=is_unread))
            events.append(PartDelta(self._next - 1, str(piece)))
        return events

    def _opened(self, spoken: _Spoken, *, is_unread: bool = False) -> PartStarted:
        """Begin a piece of text; what its part had beside the text stands on the first."""
        spoken.index, spoken.is_unread = self._next, is_unread
        self._next += 1
        if is_unread:
            spoken.cuts += 1
            return PartStarted(spoken.index, Text(text="", unread=True, where=spoken.part.where))
        part = spoken.part if not spoken.pieces else Text(text="", where=spoken.part.where)
        spoken.pieces += 1
        return PartStarted(spoken.index, part)

    def _cut(self, spoken: _Spoken) -> list[Event]:
        """End the piece of text that is open."""
        if spoken.index is None:
            return []
        index, spoken.index = spoken.index, None
        return [PartEnded(index)]

    def _called(self, spoken: _Spoken, written: Written) -> list[Event]:
        spoken.cuts += 1
        if self._forbidden:
            self._ledger.dropped(spoken.part.where, "a call in it: no tool may be called")
            return self._cut(spoken)
        self._calls += 1
        if self._single and self._calls > 1:
            why = "the client wants one call at a time: only the first is told"
            self._ledger.dropped(spoken.part.where, why)
            return []
        events = self._cut(spoken)
        name = meant(written.name, self._names)
        seed = (self._reply_id, self._salt, self._calls, name, written.arguments)
        call = ToolCall(id=generate_id(self._prefix, *seed), name=name, arguments="", where=spoken.part.where)
        index = self._next
        self._next += 1
        return [*events, PartStarted(index, call), PartDelta(index, written.arguments), PartEnded(index)]

    def _closed(self, spoken: _Spoken) -> list[Event]:
        """End a text; what is said beside it is about all of it, so it stands only where no call was cut out."""
        events: list[Event] = []
        if spoken.reader.unread:
            self._unread += spoken.reader.unread
            self._ledger.approximated(spoken.part.where, "a call in it cannot be read: it is told as text")
        if not spoken.cuts:
            if spoken.index is None:
                events.append(self._opened(spoken))
            events += [structs.replace(event, index=self._next - 1) for event in spoken.beside]
        else:
            self._book(spoken)
        return [*events, *self._cut(spoken)]

    def _book(self, spoken: _Spoken) -> None:
        part, ledger = spoken.part, self._ledger
        for event in spoken.beside:
            match event:
                case PartSigned():
                    ledger.field_dropped("part.signature", _CUT, part)
                case PartCited():
                    ledger.field_dropped("part.citations", _CUT, part)
                case PartNative(_, _, field, raw):
                    ledger.value_dropped(part.where + field, raw, _CUT)
        if part.extras is not None and not spoken.pieces:
            for field, raw in part.extras.fields.items():
                ledger.value_dropped(part.where + field, raw, _CUT)

    def _finish(self, finish: Finish) -> Finish:
        """A reply that ends well after calls ends for them; the sequence that ends made-up results is our own."""
        if self._calls and finish.reason == "stop":
            return Finish("tool_calls")
        if self._unread and self._runs_calls and finish.reason == "stop":
            return Finish("malformed_call")
        # Some vendors' word for the end says that there was a sequence, so that goes too.
        return Finish(finish.reason) if finish.sequence and finish.sequence == self._stop else finish


def detect_calls(response: Response, hearing: CallDetector) -> Response:
    """Return a whole reply with the calls in it."""
    return collect(hearing.feed(replay(response)))
