"""Typed reading that loses nothing.

A `Shape` decodes straight into structs that forbid unknown fields: that is the fast path, and it finishes for a
document of which every field is known. Only when that fails is the document sifted: unknown members are
taken out level by level, with their pointers, and what is left is decoded again. A value of a tagged union
whose tag nobody knows becomes an `Unknown`, so one new block never spoils a request.
"""

from collections.abc import Iterator
from types import UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Raw, Struct, structs
from msgspec.json import Decoder

from dragoman.wire import json
from dragoman.wire.pointer import escape

T = TypeVar("T")
_Tree = dict[str, "_Tree | bytes"]


class Wire(Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of wire shapes: exactly the fields we read, in the vendor's names."""


UNKNOWN = f"dragoman:unknown:{hash('dragoman') & 0xFFFFFFFFFFFFFFFF:x}"
"""The tag of what nobody knows, another one in each process: a document that could name it would be taken apart."""


class Unknown(Struct, tag=UNKNOWN, forbid_unknown_fields=True):
    """Stands in a tagged union for a value whose tag is not known; `raw` is the value whole."""

    raw: Raw


class Unread:
    """Members nobody reads, found by pointer. Owners take what lies below them; the rest is the document's."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Tree = {}

    def __bool__(self) -> bool:
        return bool(self._root)

    def add(self, where: str, raw: bytes) -> None:
        """Note one unread member."""
        *path, last = where.split("/")[1:]
        node = self._root
        for token in path:
            node = cast("_Tree", node.setdefault(token, {}))
        node[last] = raw

    def take(self, where: str) -> dict[str, bytes] | None:
        """Remove and return what lies below `where`, by pointer relative to it; None when nothing does."""
        *path, last = where.split("/")[1:]
        node = self._root
        for token in path:
            below = node.get(token)
            if not isinstance(below, dict):
                return None
            node = below
        found = node.get(last)
        if not isinstance(found, dict):
            return None
        del node[last]
        return dict(_flatten(found, "")) or None

    def renumber(self, name: str, by: int) -> None:
        """Count the items of the member `name` from `by`: that many were taken out before the document was read."""
        items = self._root.get(name)
        if by and isinstance(items, dict):
            self._root[name] = {str(int(index) + by): below for index, below in items.items()}

    def rest(self) -> dict[str, bytes]:
        """Return what nobody took, by pointer."""
        return dict(_flatten(self._root, ""))


def _flatten(node: _Tree, where: str) -> Iterator[tuple[str, bytes]]:
    for token, below in node.items():
        pointer = f"{where}/{token}"
        if isinstance(below, dict):
            yield from _flatten(below, pointer)
        else:
            yield pointer, below


class _Plan:
    """How to sift a value of one type."""

    __slots__ = ("decoder", "item", "members", "snake", "tag_field", "tagged", "value")

    def __init__(self, snake: bool) -> None:
        self.decoder: Decoder[Any] = Decoder()
        self.members: dict[str, _Plan] | None = None
        self.item: _Plan | None = None
        self.value: _Plan | None = None
        self.tag_field = ""
        self.tagged: dict[str, _Plan] = {}
        self.snake = snake


def _plan(hint: Any, snake: bool, known: dict[Any, _Plan]) -> _Plan:
    if hint in known:
        return known[hint]
    plan = known[hint] = _Plan(snake)
    plan.decoder = Decoder(hint)
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    shapes: list[type[Struct]] = []
    for member in members:
        origin = get_origin(member)
        if isinstance(member, type) and issubclass(member, Struct):
            shapes.append(member)
        elif origin in (list, tuple):
            plan.item = _plan(get_args(member)[0], snake, known)
        elif origin is dict:
            plan.value = _plan(get_args(member)[1], snake, known)
    for shape in shapes:
        if shape is Unknown:
            continue
        config = shape.__struct_config__
        fields = {field.encode_name: _plan(field.type, snake, known) for field in structs.fields(shape)}
        if config.tag is not None and len(shapes) > 1:
            below = _Plan(snake)
            below.decoder = Decoder(shape)
            below.members = fields
            below.tag_field = plan.tag_field = str(config.tag_field)
            plan.tagged[str(config.tag)] = below
        else:
            plan.members = fields
            plan.tag_field = str(config.tag_field) if config.tag is not None else ""
    return plan


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


class Shape(Generic[T]):
    """A wire type and the two ways to read it. `snake=True` also takes snake_case for camelCase names."""

    def __init__(self, hint: type[T] | Any, *, snake: bool = False) -> None:
        self._fast: Decoder[T] = Decoder(hint)
        self._hint = hint
        self._snake = snake
        self._plan: _Plan | None = None

    def read(self, body: bytes | Raw, where: str = "") -> tuple[T, Unread | None]:
        """Decode `body`, which stands at `where`; the second value is None when every field was known."""
        if type(body) is bytes:
            json.require_utf8(body)
        try:
            return self._fast.decode(body), None
        except msgspec.ValidationError:
            pass
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise json.malformed(error) from None
        unread = Unread()
        if self._plan is None:
            self._plan = _plan(self._hint, self._snake, {})
        sifted = _sift(bytes(body), self._plan, where, unread)
        return json.decode_with(self._fast, sifted), unread or None

    def read_at(self, raw: bytes | Raw, where: str) -> tuple[T, dict[str, bytes]]:
        """Decode a value that stands alone at `where`; its unread members come by pointer relative to it."""
        try:
            value, unread = self.read(raw)
        except json.Malformed as error:
            raise json.Malformed(error.message, where + error.where) from None
        return value, {} if unread is None else unread.rest()


def _sift(raw: bytes, plan: _Plan, where: str, unread: Unread) -> bytes:
    """Return `raw` without the members nobody reads; note those in `unread`."""
    try:
        plan.decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    else:
        return raw
    first = json.first_byte(raw)
    if first == b"[" and plan.item is not None:
        items = (
            _sift(bytes(item), plan.item, f"{where}/{index}", unread)
            for index, item in enumerate(json.decode_array(raw))
        )
        return b"[" + b",".join(items) + b"]"
    if first != b"{":
        return raw
    if plan.value is not None:
        members = {
            name: _sift(bytes(member), plan.value, f"{where}/{escape(name)}", unread)
            for name, member in json.decode_object(raw).items()
        }
        return json.with_members(b"{}", members)
    if plan.tagged:
        return _sift_tagged(raw, plan, where, unread)
    return _sift_members(raw, plan, where, unread) if plan.members is not None else raw


def _sift_tagged(raw: bytes, plan: _Plan, where: str, unread: Unread) -> bytes:
    members = json.decode_object(raw)
    tag = members.get(plan.tag_field)
    name = json.decode(tag) if tag is not None else None
    chosen = plan.tagged.get(name) if isinstance(name, str) else None
    if chosen is None:
        return b'{"' + plan.tag_field.encode() + b'":"' + UNKNOWN.encode() + b'","raw":' + raw + b"}"
    return _sift_members(raw, chosen, where, unread)


def _sift_members(raw: bytes, plan: _Plan, where: str, unread: Unread) -> bytes:
    known = plan.members or {}
    kept: dict[str, bytes] = {}
    members = json.decode_object(raw)
    for name, member in members.items():
        if name in known:
            kept[name] = _sift(bytes(member), known[name], f"{where}/{escape(name)}", unread)
        elif name == plan.tag_field and plan.tag_field:
            kept[name] = bytes(member)
        elif plan.snake and "_" in name and _camel(name) in known and _camel(name) not in members:
            camel = _camel(name)
            # Pointers use the known name, so that owners find what is theirs; `lookup` finds the way back.
            kept[camel] = _sift(bytes(member), known[camel], f"{where}/{camel}", unread)
        else:
            unread.add(f"{where}/{escape(name)}", bytes(member))
    return json.with_members(b"{}", kept)
