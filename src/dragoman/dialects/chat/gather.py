"""Put together what a stream tells in pieces and no event can say: vendor fields, and answers beside the first.

Rules: lists grow, objects merge, and of anything else the last piece counts; only what is known to be text in pieces is
joined.
"""

from typing import Any, cast

from dragoman.wire.json import Malformed, decode, encode

_JOINED = frozenset(
    {"content", "reasoning_content", "reasoning", "refusal", "arguments", "input", "transcript", "data"}
)


class Fields:
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
        return [(pointer, _joined(pieces)) for pointer, pieces in self._pieces.items()]


def _joined(pieces: list[bytes]) -> bytes:
    if len(pieces) == 1:
        return pieces[0]
    whole: Any = None
    try:
        for piece in pieces:
            whole = merged(whole, decode(piece))
    except (Malformed, RecursionError):
        # Legal JSON that is no Python value, such as 1e999, or nested too deeply: it cannot be joined to anything.
        return pieces[-1]
    return encode(settled(whole))


class _Text:
    """A text in pieces."""

    __slots__ = ("pieces",)

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)


class _Calls:
    """Calls in pieces, by their numbers."""

    __slots__ = ("known",)

    def __init__(self, pieces: list[dict[str, Any]]) -> None:
        self.known: dict[bytes, dict[str, Any]] = {}
        self.add(pieces)

    def add(self, pieces: list[dict[str, Any]]) -> None:
        for piece in pieces:
            number = encode(piece.get("index"))
            known = self.known.get(number)
            self.known[number] = _merged_members({} if known is None else known, piece)


def merged(known: Any, piece: Any) -> Any:
    """Return what is known with one more piece; what is known grows in place, and is read with `settled`."""
    if isinstance(known, _Text | _Calls):
        known = settled(known)
    if isinstance(known, dict) and isinstance(piece, dict):
        return _merged_members(cast("dict[str, Any]", known), cast("dict[str, Any]", piece))
    if isinstance(known, list) and isinstance(piece, list):
        items = cast("list[Any]", known)
        items.extend(cast("list[Any]", piece))
        return items
    return cast("Any", known) if piece is None else piece


def _merged_members(known: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    for name, value in piece.items():
        before = known.get(name)
        if value is None and before is not None:
            continue
        if name in _JOINED and isinstance(value, str) and isinstance(before, str | _Text):
            text = known[name] = before if isinstance(before, _Text) else _Text(before)
            text.pieces.append(value)
        elif name == "tool_calls" and _are_calls(value) and (isinstance(before, _Calls) or _are_calls(before or [])):
            calls = known[name] = before if isinstance(before, _Calls) else _Calls(before or [])
            calls.add(cast("list[dict[str, Any]]", value))
        else:
            known[name] = merged(before, value)
    return known


def _are_calls(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[Any]", value))


def settled(value: Any) -> Any:
    """Return what has been put together as plain values."""
    top = [value]
    waiting: list[dict[Any, Any] | list[Any]] = [top]
    while waiting:
        holder = waiting.pop()
        for place, held in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            plain: Any = held
            if isinstance(held, _Text):
                plain = "".join(held.pieces)
            elif isinstance(held, _Calls):
                plain = list(held.known.values())
            holder[place] = plain
            if isinstance(plain, dict | list):
                waiting.append(cast("dict[Any, Any] | list[Any]", plain))
    return top[0]


class Answers:
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
                known["message"] = merged(known["message"], choice.pop("delta", None))
                self._choices[index] = merged(known, choice)
            except RecursionError:
                raise Malformed("the JSON is nested too deeply") from None

    def items(self) -> list[tuple[str, bytes]]:
        """Return every answer by its pointer."""
        return [(f"/choices/{index}", encode(settled(choice))) for index, choice in sorted(self._choices.items())]
