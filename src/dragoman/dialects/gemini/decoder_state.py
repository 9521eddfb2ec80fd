"""What of a streamed reply comes in pieces: arguments in Vertex's `partialArgs`, and candidates beside the reply.

A piece of arguments names its place by JSON path (`$.a.b[0]`, `$['a b']`); pieces of one string are joined, numbers
keep their token. A path without a value makes an empty container (`$.tags[]`, `$.options{}`). Bounds: an array grows by
one item at a time and a path is at most `MAX_STEPS` long, so memory is linear in what was received.
"""

import re
from typing import Any

from msgspec import Raw

from dragoman.dialects.gemini.wire import PARTIAL_ARGS, PartialArg
from dragoman.wire import json
from dragoman.wire.shape import non_null_bytes

MAX_STEPS = 100
_STEP = re.compile(r"""\.([^.\[\]{}]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]|(\[\]|\{\})$""")
_ESCAPED = re.compile(r"\\(.)")


class _StringNode:
    """A string while it grows."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def to_plain(self) -> Any:
        return "".join(self.pieces)


class _RawNode:
    """A number, boolean or null, or a value that was sent whole: its JSON."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def to_plain(self) -> Any:
        return Raw(self.raw)


class _ObjectNode:
    """An object while it grows."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members: dict[str, _Node] = {}

    def to_plain(self) -> Any:
        return {name: node.to_plain() for name, node in self.members.items()}


class _ArrayNode:
    """An array while it grows."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[_Node] = []

    def to_plain(self) -> Any:
        return [node.to_plain() for node in self.items]


_Node = _StringNode | _RawNode | _ObjectNode | _ArrayNode


class Assembler:
    """Pieces in, JSON text out."""

    def __init__(self) -> None:
        self._root = _ObjectNode()
        self._open_string: tuple[str, _StringNode] | None = None

    @property
    def is_whole(self) -> bool:
        """No string waits for its next piece."""
        return self._open_string is None

    def set_arguments(self, arguments: bytes) -> None:
        """Start from arguments that were sent whole."""
        for name, raw in json.decode_object(arguments).items():
            self._root.members[name] = _RawNode(bytes(raw))

    def feed(self, partial_args: bytes) -> None:
        """Take one `partialArgs` list; raise `Malformed` for what cannot be placed."""
        pieces, _ = PARTIAL_ARGS.read(partial_args)
        for piece in pieces:
            self._apply(piece)

    def render(self, *, complete: bool = True) -> str:
        """Return the arguments so far as JSON text; without what closes it if the call was cut."""
        text = json.encode(self._root.to_plain()).decode()
        return text if complete else text.rstrip('}]"') or "{"

    def _apply(self, piece: PartialArg) -> None:
        if piece.string_value is not None:
            self._append_text(piece.json_path, piece.string_value)
            if not piece.will_continue:
                self._open_string = None
            return
        self._open_string = None
        steps, empty = _parse_path(piece.json_path)
        number = non_null_bytes(piece.number_value)
        if number is not None:
            _set_at(self._root, steps, _RawNode(number))
        elif piece.bool_value is not None:
            _set_at(self._root, steps, _RawNode(b"true" if piece.bool_value else b"false"))
        elif piece.null_value:
            _set_at(self._root, steps, _RawNode(b"null"))
        elif steps and _find_node(self._root, steps) is None:
            made = {"[]": _ArrayNode, "{}": _ObjectNode}.get(empty)
            _set_at(self._root, steps, _RawNode(b"null") if made is None else made())

    def _append_text(self, path: str, text: str) -> None:
        if self._open_string is None or self._open_string[0] != path:
            steps, _ = _parse_path(path)
            node = _find_node(self._root, steps)
            if not isinstance(node, _StringNode):
                node = _StringNode()
                _set_at(self._root, steps, node)
            self._open_string = (path, node)
        self._open_string[1].pieces.append(text)


def _find_node(root: _ObjectNode, steps: list[str | int]) -> _Node | None:
    node: _Node | None = root
    for step in steps:
        if node is None:
            return None
        node = _get_child(node, step)
    return node


def _get_child(node: _Node, step: str | int) -> _Node | None:
    match node, step:
        case _ObjectNode(), str():
            return node.members.get(step)
        case _ArrayNode(), int():
            return node.items[step] if step < len(node.items) else None
        case _:
            return None


def _set_at(root: _ObjectNode, steps: list[str | int], value: _Node) -> None:
    if not steps:
        raise json.Malformed("streamed arguments have a value at their root")
    node: _Node = root
    for position, step in enumerate(steps[:-1]):
        child = _get_child(node, step)
        if child is None:
            child = _ArrayNode() if isinstance(steps[position + 1], int) else _ObjectNode()
            _set_child(node, step, child)
        node = child
    _set_child(node, steps[-1], value)


def _set_child(node: _Node, step: str | int, value: _Node) -> None:
    match node, step:
        case _ObjectNode(), str():
            node.members[step] = value
        case _ArrayNode(), int() if step < len(node.items):
            node.items[step] = value
        case _ArrayNode(), int() if step == len(node.items):
            node.items.append(value)
        case _:
            raise json.Malformed(f"streamed arguments have no place for {step!r}")


def _parse_path(path: str) -> tuple[list[str | int], str]:
    """Split a JSON path; the second value is the empty container at its end, if it names one."""
    if not path.startswith("$"):
        raise json.Malformed(f"not a JSON path: {path[:80]!r}")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None or len(steps) == MAX_STEPS:
            raise json.Malformed(f"not a JSON path: {path[:80]!r}")
        position = found.end()
        name, index, single, double, empty = found.groups()
        if empty is not None:
            return steps, empty
        if index is not None:
            steps.append(int(index))
        else:
            quoted = single if single is not None else double
            steps.append(name if quoted is None else _ESCAPED.sub(r"\1", quoted))
    return steps, ""


class OtherCandidates:
    """The candidates beside the reply, which are kept raw."""

    def __init__(self) -> None:
        self._chunks: dict[int, list[bytes]] = {}

    def add(self, index: int, body: bytes, position: int) -> None:
        """Take the chunk of candidate `index`, which stands at `position` in the body."""
        raw = bytes(json.decode_array(json.decode_object(body)["candidates"])[position])
        self._chunks.setdefault(index, []).append(raw)

    def build_fields(self) -> dict[str, bytes]:
        """Return every candidate by its pointer in the reply."""
        return {f"/candidates/{index}": _join_chunks(chunks) for index, chunks in sorted(self._chunks.items())}


def _join_chunks(chunks: list[bytes]) -> bytes:
    """Return one candidate: all parts of its chunks, and the last of everything else."""
    if len(chunks) == 1:
        return chunks[0]
    members: dict[str, bytes] = {}
    parts: list[bytes] = []
    for chunk in chunks:
        found = {name: bytes(raw) for name, raw in json.decode_object(chunk).items()}
        content = json.decode_object(found.pop("content", b"{}"))
        parts.extend(bytes(part) for part in json.decode_array(content.get("parts", Raw(b"[]"))))
        members.update(found)
    content = b'{"parts":[' + b",".join(parts) + b'],"role":"model"}'
    return json.with_members(b"{}", {"content": content, **members})
