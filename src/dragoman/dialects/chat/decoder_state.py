"""State of a streamed reply while it is decoded: its calls, and vendor fields that arrive in several chunks.

Which call a delta belongs to: a non-empty id decides, then the index; without either, it is the most recent call. A new
id at a known index starts a new call, and so does a name that arrives after complete arguments. Some servers reuse one
id for several calls: a name with a known id starts a new call if the index is new, or if arguments arrive after
complete ones. Vendor fields are merged: lists are concatenated, objects are merged, and any other value is replaced by
the latest; strings are concatenated only in members that are known to be streamed text.
"""

import re
from typing import TYPE_CHECKING, Any, cast

from dragoman.core.problems import Problem
from dragoman.wire.json import NESTED_TOO_DEEPLY, Malformed, decode, encode, is_object

if TYPE_CHECKING:
    from dragoman.core.parts import CallForm, Signature


_STRUCTURAL = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'"|\\.?', re.DOTALL)


class _Brackets:
    """Tracks brackets in streamed JSON text to find where the first value closes; reads each character once."""

    __slots__ = ("_depth", "_escaped", "_in_string", "closed", "exceeded")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self.closed = False
        """Whether the first bracket has been closed."""
        self.exceeded = False
        """Whether other text follows the closed value."""

    def feed(self, text: str) -> None:
        position = 1 if self._escaped and text else 0
        self._escaped = self._escaped and not text
        while not self.closed:
            found = (_IN_STRING if self._in_string else _STRUCTURAL).search(text, position)
            if found is None:
                return
            position = found.end()
            self._update(found.group())
        self.exceeded = self.exceeded or bool(text[position:].strip())

    def _update(self, symbol: str) -> None:
        if self._in_string:
            self._in_string = symbol != '"'
            self._escaped = symbol == "\\"
        elif symbol == '"':
            self._in_string = True
        else:
            self._depth += 1 if symbol in "{[" else -1
            self.closed = self._depth <= 0


class StreamedCall:
    """A call while it is streamed, number `ordinal` of the reply; its part `index` is -1 until it has started."""

    __slots__ = (
        "_brackets",
        "_checked_count",
        "_is_object",
        "ended",
        "fields",
        "form",
        "id",
        "index",
        "index_count",
        "is_legacy",
        "name",
        "ordinal",
        "pieces",
        "signature",
        "size",
    )

    def __init__(self, call_id: str, name: str, ordinal: int) -> None:
        self.ordinal = ordinal
        self.size = 0
        self.index_count = 0
        """How many wire indexes refer to this call."""
        self._checked_count = 0
        self._is_object: bool | None = None
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
        """Append the next piece of the arguments."""
        if text:
            self.pieces.append(text)
            self.size += len(text)

    def is_blank(self) -> bool:
        """Return whether the server sent an entry of the list with nothing in it: LM Studio does, and it is no call."""
        return not (self.name or self.id or self.pieces or self.fields or self.signature is not None)

    def has_arguments(self, text: str) -> bool:
        """Return whether the arguments so far equal `text`."""
        return len(text) == self.size and text == "".join(self.pieces)

    def is_complete(self) -> bool:
        """Return whether the arguments are one complete JSON object, so that nothing can follow.

        This is called repeatedly for open calls, so each piece is scanned only once.
        """
        if self.form != "json":
            return False
        brackets = self._brackets
        if self._checked_count < len(self.pieces) and not brackets.exceeded:
            brackets.feed("".join(self.pieces[self._checked_count :]))
            self._checked_count = len(self.pieces)
        if not brackets.closed or brackets.exceeded:
            return False
        if self._is_object is None:
            self._is_object = is_object("".join(self.pieces))
        return self._is_object

    def check_repeat(self, text: str) -> None:
        """Accept repeated arguments after a call has ended; raise if they are new, because they would be lost."""
        if text.strip() and not self.has_arguments(text):
            raise Problem("malformed_reply", "the upstream sent more arguments for a tool call that had ended")


class CallTable:
    """All calls of one reply, in order of arrival."""

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []
        self._by_id: dict[str, StreamedCall] = {}
        self._by_index: dict[int, StreamedCall] = {}
        self._legacy: StreamedCall | None = None
        self._changed: dict[StreamedCall, None] = {}
        """Started calls that got more arguments since the last `pop_complete`; a dict for its order."""

    def find(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall:
        """Return the call that a delta belongs to; add a new one if the delta starts a call."""
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
        previous = self._by_index.get(index)
        if previous is not None:
            previous.index_count -= 1
        call.index_count += 1
        self._by_index[index] = call

    def _find_known(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall | None:
        if call_id in self._by_id:
            return self._find_by_id(call_id, index, name, text)
        recent = self.calls[-1] if self.calls else None
        known = recent if index is None else self._by_index.get(index)
        if known is None:
            return None
        if call_id:
            # A late id belongs to the call at this index that has no id yet.
            return known if not known.id and known.index < 0 else None
        if not name or not known.name:
            return known
        if name != known.name and index is None:
            return None
        return None if text and known.is_complete() else known

    def _find_by_id(self, call_id: str, index: int | None, name: str, text: str) -> StreamedCall | None:
        """Return the call with a known id (of several, the one at `index`); None if the delta starts a new call."""
        at_index = None if index is None else self._by_index.get(index)
        known = at_index if at_index is not None and at_index.id == call_id else self._by_id[call_id]
        if not name or not known.name:
            return known
        if index is not None and at_index is None and known.index_count:
            return None
        # Only text that can start new arguments is checked: some servers repeat id and name with every piece.
        starts_object = text.lstrip().startswith("{")
        return None if starts_object and not known.has_arguments(text) and known.is_complete() else known

    def get_legacy_call(self, name: str) -> StreamedCall:
        """Return the call of the legacy `function_call` member; a reply has at most one."""
        if self._legacy is None:
            self._legacy = self._add_call("", name)
            self._legacy.is_legacy = True
        self._legacy.name = self._legacy.name or name
        return self._legacy

    def mark_changed(self, call: StreamedCall) -> None:
        """Record that a call has started or got more arguments."""
        self._changed[call] = None

    def pop_complete(self) -> list[StreamedCall]:
        """Return the started calls whose arguments are complete, each once."""
        changed, self._changed = self._changed, {}
        complete = (call for call in changed if not call.ended and call.is_complete())
        return sorted(complete, key=lambda call: call.ordinal)

    def are_complete(self) -> bool:
        """Return whether every call is complete."""
        return all(call.ended or call.is_complete() for call in self.calls)


_TEXT_MEMBERS = frozenset(
    {
        "content",
        "reasoning_content",
        "reasoning",
        "reasoning_text",
        "thinking",
        "refusal",
        "arguments",
        "input",
        "transcript",
        "data",
    }
)


class FieldPieces:
    """Collects vendor fields of a streamed reply, by pointer."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[bytes]] = {}

    def add(self, pointer: str, raw: bytes) -> None:
        """Add the next piece of a field; a repeated value counts once unless it is a list."""
        pieces = self._pieces.setdefault(pointer, [])
        if not pieces or pieces[-1] != raw or raw[:1] == b"[":
            pieces.append(raw)

    def items(self) -> list[tuple[str, bytes]]:
        """Return each pointer with its merged value."""
        return [(pointer, _join_pieces(pieces)) for pointer, pieces in self._pieces.items()]


def _join_pieces(pieces: list[bytes]) -> bytes:
    if len(pieces) == 1:
        return pieces[0]
    whole: Any = None
    try:
        for piece in pieces:
            whole = merge_piece(whole, decode(piece))
    except (Malformed, RecursionError):
        # Valid JSON that Python cannot represent (1e999) or that is nested too deeply cannot be merged.
        return pieces[-1]
    return encode(to_plain(whole))


class _TextPieces:
    """The pieces of a streamed string."""

    __slots__ = ("pieces",)

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)


class _CallPieces:
    """The merged deltas of streamed calls, by index."""

    __slots__ = ("by_index",)

    def __init__(self, pieces: list[dict[str, Any]]) -> None:
        self.by_index: dict[bytes, dict[str, Any]] = {}
        self.add(pieces)

    def add(self, pieces: list[dict[str, Any]]) -> None:
        for piece in pieces:
            index = encode(piece.get("index"))
            known = self.by_index.get(index)
            self.by_index[index] = _merge_members({} if known is None else known, piece)


def merge_piece(accumulated: Any, piece: Any) -> Any:
    """Merge one more piece into the accumulated value, in place; `to_plain` converts the result to JSON values."""
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
        current = accumulated.get(name)
        if value is None and current is not None:
            continue
        if name in _TEXT_MEMBERS and isinstance(value, str) and isinstance(current, str | _TextPieces):
            text = accumulated[name] = current if isinstance(current, _TextPieces) else _TextPieces(current)
            text.pieces.append(value)
        elif (
            name == "tool_calls"
            and _are_calls(value)
            and (isinstance(current, _CallPieces) or _are_calls(current or []))
        ):
            calls = accumulated[name] = current if isinstance(current, _CallPieces) else _CallPieces(current or [])
            calls.add(cast("list[dict[str, Any]]", value))
        else:
            accumulated[name] = merge_piece(current, value)
    return accumulated


def _are_calls(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[Any]", value))


def to_plain(value: Any) -> Any:
    """Convert a merged value to plain JSON values, in place; iterative, so deep nesting causes no RecursionError."""
    top = [value]
    pending: list[dict[Any, Any] | list[Any]] = [top]
    while pending:
        container = pending.pop()
        for key, merged in list(container.items() if isinstance(container, dict) else enumerate(container)):
            plain: Any = merged
            if isinstance(merged, _TextPieces):
                plain = "".join(merged.pieces)
            elif isinstance(merged, _CallPieces):
                plain = list(merged.by_index.values())
            container[key] = plain
            if isinstance(plain, dict | list):
                pending.append(cast("dict[Any, Any] | list[Any]", plain))
    return top[0]


class OtherChoices:
    """Collects the choices other than 0, each in the form it has in a whole reply."""

    def __init__(self) -> None:
        self._choices: dict[int, dict[str, Any]] = {}

    def add(self, data: bytes) -> None:
        """Merge the deltas of a chunk, except those of choice 0, into the choices collected so far."""
        for choice in decode(data)["choices"]:
            index = choice.get("index")
            if not index:
                continue
            known = self._choices.setdefault(index, {"index": index, "message": {}, "finish_reason": None})
            try:
                known["message"] = merge_piece(known["message"], choice.pop("delta", None))
                self._choices[index] = merge_piece(known, choice)
            except RecursionError:
                raise Malformed(NESTED_TOO_DEEPLY) from None

    def items(self) -> list[tuple[str, bytes]]:
        """Return each choice with its pointer."""
        return [(f"/choices/{index}", encode(to_plain(choice))) for index, choice in sorted(self._choices.items())]
