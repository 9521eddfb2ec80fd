"""The state of a streamed reply while it is decoded: its calls, and fields that come in pieces.

A non-empty id names its call; without one the index does; without either, the most recent call goes on. A new id at a
known index is a new call, and so is a name that comes after whole arguments. Some servers use one id for several calls:
a name with a known id is a new call at a new index, or with arguments after whole ones. Of vendor fields lists grow,
objects merge, and of anything else the last piece counts; only what is known to be text in pieces is joined.
"""

import re
from typing import TYPE_CHECKING, Any, cast

from dragoman.core.problems import Problem
from dragoman.wire.json import Malformed, decode, encode, is_object

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
            self._read_mark(found.group())
        self.exceeded = self.exceeded or bool(text[position:].strip())

    def _read_mark(self, mark: str) -> None:
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

    def append_delta(self, text: str) -> None:
        """Take the next piece of the arguments."""
        if text:
            self.pieces.append(text)
            self.size += len(text)

    def has_arguments(self, text: str) -> bool:
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
        if text.strip() and not self.has_arguments(text):
            raise Problem("malformed_reply", "arguments arrived for a tool call that was over")


class CallTable:
    """All calls of one reply, in the order they came."""

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []
        self._by_id: dict[str, StreamedCall] = {}
        self._by_index: dict[int, StreamedCall] = {}
        self._legacy: StreamedCall | None = None
        self._changed: dict[StreamedCall, None] = {}
        """Calls that were told and have grown since they were last looked at."""

    def find(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall:
        """Return the call a piece belongs to, a new one if it begins one."""
        call = self._find_known(call_id, index, name, text)
        if call is None:
            call = self._add_call(call_id, name)
        elif call.index < 0:
            call.id = call.id or call_id
            call.name = call.name or name
        if call_id:
            self._by_id[call_id] = call
        if index is not None:
            self._set_index(index, call)
        return call

    def _add_call(self, call_id: str, name: str) -> StreamedCall:
        call = StreamedCall(call_id, name, len(self.calls))
        self.calls.append(call)
        return call

    def _set_index(self, index: int, call: StreamedCall) -> None:
        before = self._by_index.get(index)
        if before is not None:
            before.places -= 1
        call.places += 1
        self._by_index[index] = call

    def _find_known(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall | None:
        if call_id in self._by_id:
            return self._find_by_id(call_id, index, name, text)
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

    def _find_by_id(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall | None:
        """Return the call of a known id, of several the one at `index`; None for a new call of that id."""
        there = None if index is None else self._by_index.get(index)
        known = there if there is not None and there.id == call_id else self._by_id[call_id]
        if not name or not known.name:
            return known
        if index is not None and there is None and known.places:
            return None
        # Whole arguments are looked for only where others begin: some servers repeat id and name with every piece.
        begins = text.lstrip().startswith("{")
        return None if begins and not known.has_arguments(text) and known.is_whole() else known

    def get_legacy_call(self, name: str) -> StreamedCall:
        """Return the one call of the legacy field."""
        if self._legacy is None:
            self._legacy = self._add_call("", name)
            self._legacy.is_legacy = True
        self._legacy.name = self._legacy.name or name
        return self._legacy

    def mark_changed(self, call: StreamedCall) -> None:
        """Note that a call that was told has grown, or has just been told."""
        self._changed[call] = None

    def pop_complete(self) -> list[StreamedCall]:
        """Return the calls that were told and to which nothing can be added, each once."""
        grown, self._changed = self._changed, {}
        return sorted((call for call in grown if not call.ended and call.is_whole()), key=lambda call: call.ordinal)

    def are_complete(self) -> bool:
        """Tell whether nothing is missing from any call."""
        return all(call.ended or call.is_whole() for call in self.calls)


_TEXT_MEMBERS = frozenset(
    {"content", "reasoning_content", "reasoning", "refusal", "arguments", "input", "transcript", "data"}
)


class FieldPieces:
    """Vendor fields of the reply by pointer."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[bytes]] = {}

    def add(self, pointer: str, raw: bytes) -> None:
        """Take the next piece of one field."""
        pieces = self._pieces.setdefault(pointer, [])
        if not pieces or pieces[-1] != raw or raw[:1] == b"[":
            pieces.append(raw)

    def items(self) -> list[tuple[str, bytes]]:
        """Return every field whole."""
        return [(pointer, _join_pieces(pieces)) for pointer, pieces in self._pieces.items()]


def _join_pieces(pieces: list[bytes]) -> bytes:
    if len(pieces) == 1:
        return pieces[0]
    whole: Any = None
    try:
        for piece in pieces:
            whole = merge_piece(whole, decode(piece))
    except (Malformed, RecursionError):
        # Legal JSON that is no Python value, such as 1e999, or nested too deeply: it cannot be joined to anything.
        return pieces[-1]
    return encode(to_plain(whole))


class _TextPieces:
    """A text in pieces."""

    __slots__ = ("pieces",)

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)


class _CallPieces:
    """Calls in pieces, by their numbers."""

    __slots__ = ("known",)

    def __init__(self, pieces: list[dict[str, Any]]) -> None:
        self.known: dict[bytes, dict[str, Any]] = {}
        self.add(pieces)

    def add(self, pieces: list[dict[str, Any]]) -> None:
        for piece in pieces:
            number = encode(piece.get("index"))
            known = self.known.get(number)
            self.known[number] = _merge_members({} if known is None else known, piece)


def merge_piece(accumulated: Any, piece: Any) -> Any:
    """Return what is known with one more piece; what is known grows in place, and is read with `settled`."""
    if isinstance(accumulated, _TextPieces | _CallPieces):
        accumulated = to_plain(accumulated)
    if isinstance(accumulated, dict) and isinstance(piece, dict):
        return _merge_members(cast("dict[str, Any]", accumulated), cast("dict[str, Any]", piece))
    if isinstance(accumulated, list) and isinstance(piece, list):
        items = cast("list[Any]", accumulated)
        items.extend(cast("list[Any]", piece))
        return items
    return cast("Any", accumulated) if piece is None else piece


def _merge_members(accumulated: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    for name, value in piece.items():
        before = accumulated.get(name)
        if value is None and before is not None:
            continue
        if name in _TEXT_MEMBERS and isinstance(value, str) and isinstance(before, str | _TextPieces):
            text = accumulated[name] = before if isinstance(before, _TextPieces) else _TextPieces(before)
            text.pieces.append(value)
        elif (
            name == "tool_calls" and _are_calls(value) and (isinstance(before, _CallPieces) or _are_calls(before or []))
        ):
            calls = accumulated[name] = before if isinstance(before, _CallPieces) else _CallPieces(before or [])
            calls.add(cast("list[dict[str, Any]]", value))
        else:
            accumulated[name] = merge_piece(before, value)
    return accumulated


def _are_calls(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[Any]", value))


def to_plain(value: Any) -> Any:
    """Return what has been put together as plain values."""
    top = [value]
    waiting: list[dict[Any, Any] | list[Any]] = [top]
    while waiting:
        holder = waiting.pop()
        for place, held in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            plain: Any = held
            if isinstance(held, _TextPieces):
                plain = "".join(held.pieces)
            elif isinstance(held, _CallPieces):
                plain = list(held.known.values())
            holder[place] = plain
            if isinstance(plain, dict | list):
                waiting.append(cast("dict[Any, Any] | list[Any]", plain))
    return top[0]


class OtherChoices:
    """The answers beside the first, each as a whole reply would hold it."""

    def __init__(self) -> None:
        self._choices: dict[int, dict[str, Any]] = {}

    def add(self, data: bytes) -> None:
        """Take a chunk that speaks of other answers."""
        for choice in decode(data)["choices"]:
            index = choice.get("index")
            if not index:
                continue
            known = self._choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
            try:
                known["message"] = merge_piece(known["message"], choice.pop("delta", None))
                self._choices[index] = merge_piece(known, choice)
            except RecursionError:
                raise Malformed("the JSON is nested too deeply") from None

    def items(self) -> list[tuple[str, bytes]]:
        """Return every answer by its pointer."""
        return [(f"/choices/{index}", encode(to_plain(choice))) for index, choice in sorted(self._choices.items())]
