"""Assembles what a stream sends in pieces: call arguments in Vertex's `partialArgs`, and candidates other than 0.

A piece of arguments has a JSON path (`$.a.b[0]`, `$['a b']`); pieces of one string are joined, and numbers keep their
JSON text. A path without a value creates an empty container (`$.tags[]`, `$.options{}`). Limits: an array grows by one
item at a time and a path has at most `MAX_STEPS` steps, so memory is linear in the bytes received.
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
    """A string that is being assembled."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def to_plain(self) -> Any:
        return "".join(self.pieces)


class _RawNode:
    """The JSON of a number, boolean or null, or of a value that was sent whole."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def to_plain(self) -> Any:
        return Raw(self.raw)


class _ObjectNode:
    """An object that is being assembled."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members: dict[str, _Node] = {}

    def to_plain(self) -> Any:
        return {name: node.to_plain() for name, node in self.members.items()}


class _ArrayNode:
    """An array that is being assembled."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[_Node] = []

    def to_plain(self) -> Any:
        return [node.to_plain() for node in self.items]


_Node = _StringNode | _RawNode | _ObjectNode | _ArrayNode


class Assembler:
    """Assembles the arguments of one call from its pieces."""

    def __init__(self) -> None:
        self._root = _ObjectNode()
        self._open_string: tuple[str, _StringNode] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every string is complete."""
        return self._open_string is None

    def set_arguments(self, arguments: bytes) -> None:
        """Set arguments that were sent whole, before or between pieces."""
        for name, raw in json.decode_object(arguments).items():
            self._root.members[name] = _RawNode(bytes(raw))

    def feed(self, partial_args: bytes) -> None:
        """Apply one `partialArgs` list; raise `Malformed` for an invalid path."""
        pieces, _ = PARTIAL_ARGS.read(partial_args)
        for piece in pieces:
            self._apply(piece)

    def render(self, *, complete: bool = True) -> str:
        """Return the arguments so far as JSON text; without its closing brackets and quotes if the call was cut off."""
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
            container = {"[]": _ArrayNode, "{}": _ObjectNode}.get(empty)
            _set_at(self._root, steps, _RawNode(b"null") if container is None else container())

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
        raise json.Malformed("partialArgs: the JSON path names no argument")
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
            raise json.Malformed(f"partialArgs: cannot set {step!r}, it does not fit the values sent before")


def _parse_path(path: str) -> tuple[list[str | int], str]:
    """Split a JSON path into steps; the second value is the empty container at its end, `[]` or `{}`, if any."""
    if not path.startswith("$"):
        raise json.Malformed(f"partialArgs: invalid JSON path {path[:80]!r}")
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None or len(steps) == MAX_STEPS:
            raise json.Malformed(f"partialArgs: invalid JSON path {path[:80]!r}")
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
    """Collects the raw chunks of candidates other than 0, which are not part of the reply."""

    def __init__(self) -> None:
        self._chunks: dict[int, list[bytes]] = {}

    def add(self, index: int, body: bytes, position: int) -> None:
        """Add a chunk of candidate `index`, which is at `position` in the body's candidates."""
        raw = bytes(json.decode_array(json.decode_object(body)["candidates"])[position])
        self._chunks.setdefault(index, []).append(raw)

    def build_fields(self) -> dict[str, bytes]:
        """Return each candidate by its pointer in a whole reply."""
        return {f"/candidates/{index}": _join_chunks(chunks) for index, chunks in sorted(self._chunks.items())}


def _join_chunks(chunks: list[bytes]) -> bytes:
    """Join the chunks of one candidate: all their parts, and the last value of every other member."""
    if len(chunks) == 1:
        return chunks[0]
    members: dict[str, bytes] = {}
    parts: list[bytes] = []
    for chunk in chunks:
        chunk_members = {name: bytes(raw) for name, raw in json.decode_object(chunk).items()}
        content = json.decode_object(chunk_members.pop("content", b"{}"))
        parts.extend(bytes(part) for part in json.decode_array(content.get("parts", Raw(b"[]"))))
        members.update(chunk_members)
    content = b'{"parts":[' + b",".join(parts) + b'],"role":"model"}'
    return json.with_members(b"{}", {"content": content, **members})
