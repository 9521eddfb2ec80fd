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
    return encode(whole)


def merged(known: Any, piece: Any) -> Any:
    """Return what is known with one more piece."""
    last: Any = known if piece is None else piece
    if isinstance(known, dict) and isinstance(piece, dict):
        return _merged_members(cast("dict[str, Any]", known), cast("dict[str, Any]", piece))
    if isinstance(known, list) and isinstance(piece, list):
        return [*cast("list[Any]", known), *cast("list[Any]", piece)]
    return last


def _merged_members(known: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    whole = dict(known)
    for name, value in piece.items():
        before = whole.get(name)
        if name in _JOINED and isinstance(before, str) and isinstance(value, str):
            whole[name] = before + value
        elif name == "tool_calls" and _are_calls(before or []) and _are_calls(value):
            whole[name] = _merged_calls(cast("list[dict[str, Any]]", before or []), value)
        else:
            whole[name] = merged(before, value)
    return whole


def _are_calls(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[Any]", value))


def _merged_calls(known: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls = list(known)
    for piece in pieces:
        for place, call in enumerate(calls):
            if call.get("index") == piece.get("index"):
                calls[place] = merged(call, piece)
                break
        else:
            calls.append(piece)
    return calls


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
            known["message"] = merged(known["message"], choice.pop("delta", None))
            self._choices[index] = merged(known, choice)

    def items(self) -> list[tuple[str, bytes]]:
        """Return every answer by its pointer."""
        return [(f"/choices/{index}", encode(choice)) for index, choice in sorted(self._choices.items())]
