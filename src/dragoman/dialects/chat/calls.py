"""The calls of a streamed reply, told apart.

Rules: a non-empty id names its call; without one the index does; without either, the most recent call goes on. A new id
at a known index is a new call, and so is a name that comes after whole arguments. Some servers use one id for several
calls: a name with a known id is a new call at a new index, or with arguments after whole ones.
"""

import re
from typing import TYPE_CHECKING

from dragoman.core.problems import Problem
from dragoman.wire.json import is_object

if TYPE_CHECKING:
    from dragoman.core.parts import CallForm, Signature


_MARK = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'"|\\.?', re.DOTALL)


class _Brackets:
    """The brackets of a JSON text that comes in pieces: tells where its first value closes, looking at each once."""

    __slots__ = ("_depth", "_escaped", "_in_string", "closed", "exceeded")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self.closed = False
        """The first bracket has been closed."""
        self.exceeded = False
        """Something came behind that."""

    def feed(self, text: str) -> None:
        position = 1 if self._escaped and text else 0
        self._escaped = self._escaped and not text
        while not self.closed:
            found = (_IN_STRING if self._in_string else _MARK).search(text, position)
            if found is None:
                return
            position = found.end()
            self._mark(found.group())
        self.exceeded = self.exceeded or bool(text[position:].strip())

    def _mark(self, mark: str) -> None:
        if self._in_string:
            self._in_string = mark != '"'
            self._escaped = mark == "\\"
        elif mark == '"':
            self._in_string = True
        else:
            self._depth += 1 if mark in "{[" else -1
            self.closed = self._depth <= 0


class StreamedCall:
    """A call while it arrives, number `ordinal` of the reply; its part index is -1 until it can be told."""

    __slots__ = (
        "_brackets",
        "_seen",
        "_whole",
        "ended",
        "fields",
        "form",
        "id",
        "index",
        "is_legacy",
        "name",
        "ordinal",
        "pieces",
        "places",
        "signature",
        "size",
    )

    def __init__(self, call_id: str, name: str, ordinal: int) -> None:
        self.ordinal = ordinal
        self.size = 0
        self.places = 0
        """How many indexes lead to it."""
        self._seen = 0
        self._whole: bool | None = None
        self._brackets = _Brackets()
        self.id = call_id
        self.name = name
        self.form: CallForm = "json"
        self.index = -1
        self.pieces: list[str] = []
        self.ended = False
        self.is_legacy = False
        self.signature: Signature | None = None
        self.fields: dict[str, bytes] = {}

    def grow(self, text: str) -> None:
        """Take the next piece of the arguments."""
        if text:
            self.pieces.append(text)
            self.size += len(text)

    def says(self, text: str) -> bool:
        """Tell whether the arguments are exactly this."""
        return len(text) == self.size and text == "".join(self.pieces)

    def is_whole(self) -> bool:
        """Tell whether nothing can follow: the arguments are one complete object.

        It is asked again and again of calls that stay open, so no piece is looked at twice for it.
        """
        if self.form != "json":
            return False
        brackets = self._brackets
        if self._seen < len(self.pieces) and not brackets.exceeded:
            brackets.feed("".join(self.pieces[self._seen :]))
            self._seen = len(self.pieces)
        if not brackets.closed or brackets.exceeded:
            return False
        if self._whole is None:
            self._whole = is_object("".join(self.pieces))
        return self._whole

    def check_repeat(self, text: str) -> None:
        """Let a server repeat itself after a call is over; anything new would be lost, so it fails the reply."""
        if text.strip() and not self.says(text):
            raise Problem("malformed_reply", "arguments arrived for a tool call that was over")


class CallTable:
    """All calls of one reply, in the order they came."""

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []
        self._by_id: dict[str, StreamedCall] = {}
        self._by_index: dict[int, StreamedCall] = {}
        self._legacy: StreamedCall | None = None
        self._grown: dict[StreamedCall, None] = {}
        """Calls that were told and have grown since they were last looked at."""

    def find(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall:
        """Return the call a piece belongs to, a new one if it begins one."""
        call = self._known(call_id, index, name, text)
        if call is None:
            call = self._new(call_id, name)
        elif call.index < 0:
            call.id = call.id or call_id
            call.name = call.name or name
        if call_id:
            self._by_id[call_id] = call
        if index is not None:
            self._put(index, call)
        return call

    def _new(self, call_id: str, name: str) -> StreamedCall:
        call = StreamedCall(call_id, name, len(self.calls))
        self.calls.append(call)
        return call

    def _put(self, index: int, call: StreamedCall) -> None:
        before = self._by_index.get(index)
        if before is not None:
            before.places -= 1
        call.places += 1
        self._by_index[index] = call

    def _known(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall | None:
        if call_id in self._by_id:
            return self._of_id(call_id, index, name, text)
        recent = self.calls[-1] if self.calls else None
        known = recent if index is None else self._by_index.get(index)
        if known is None:
            return None
        if call_id:
            # An id that comes late belongs to the call that still has none.
            return known if not known.id and known.index < 0 else None
        if not name or not known.name:
            return known
        if name != known.name and index is None:
            return None
        return None if text and known.is_whole() else known

    def _of_id(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall | None:
        """Return the call of a known id, of several the one at `index`; None for a new call of that id."""
        there = None if index is None else self._by_index.get(index)
        known = there if there is not None and there.id == call_id else self._by_id[call_id]
        if not name or not known.name:
            return known
        if index is not None and there is None and known.places:
            return None
        # Whole arguments are looked for only where others begin: some servers repeat id and name with every piece.
        begins = text.lstrip().startswith("{")
        return None if begins and not known.says(text) and known.is_whole() else known

    def legacy(self, name: str) -> StreamedCall:
        """Return the one call of the legacy field."""
        if self._legacy is None:
            self._legacy = self._new("", name)
            self._legacy.is_legacy = True
        self._legacy.name = self._legacy.name or name
        return self._legacy

    def note_growth(self, call: StreamedCall) -> None:
        """Note that a call that was told has grown, or has just been told."""
        self._grown[call] = None

    def whole(self) -> list[StreamedCall]:
        """Return the calls that were told and to which nothing can be added, each once."""
        grown, self._grown = self._grown, {}
        return sorted((call for call in grown if not call.ended and call.is_whole()), key=lambda call: call.ordinal)

    def all_whole(self) -> bool:
        """Tell whether nothing is missing from any call."""
        return all(call.ended or call.is_whole() for call in self.calls)
