"""Decode a document with unknown fields: level by level, with those fields kept by pointer.

A value that its decoder accepts is decoded whole. Any other is decoded member by member, and its unknown members are
recorded with their pointers. A value of a tagged union with an unknown tag becomes an `Unknown`, so that one new block
type does not make a whole request fail.
"""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Raw, Struct, structs
from msgspec.json import Decoder

from dragoman.wire import json
from dragoman.wire.pointer import escape

_Tree = dict[str, "_Tree | bytes"]


RawMember = Annotated[Raw, Meta(extra={"raw_member": True})]
"""The type of a common member that is kept as raw JSON and not parsed; its default is `ABSENT`.

A member that is not declared at all costs a second decoding of the document."""

UNKNOWN = f"dragoman:unknown:{hash('dragoman') & 0xFFFFFFFFFFFFFFFF:x}"
"""The tag of `Unknown`, different in each process: a document that had this tag would be decoded as an `Unknown`."""


class Unknown(Struct, tag=UNKNOWN, forbid_unknown_fields=True):
    """A value of a tagged union whose tag is not known; `raw` is the whole value."""

    raw: Raw


class Unread:
    """The unknown members of a document by pointer. Each owner takes those below it; the rest are the document's."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Tree = {}

    def __bool__(self) -> bool:
        return bool(self._root)

    def add(self, where: str, raw: bytes) -> None:
        """Add one unknown member."""
        *path, last = where.split("/")[1:]
        node = self._root
        for token in path:
            node = cast("_Tree", node.setdefault(token, {}))
        node[last] = raw

    def has(self, name: str) -> bool:
        """Return whether the top-level member `name` is unknown or has unknown members below it."""
        return name in self._root

    def take(self, where: str) -> dict[str, bytes] | None:
        """Remove and return the members below `where`, by pointer relative to it; None if there are none."""
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
        """Add `by` to the indexes of the array `name`: that many items were removed before the document was decoded."""
        items = self._root.get(name)
        if by and isinstance(items, dict):
            self._root[name] = {str(int(index) + by): below for index, below in items.items()}

    def rest(self) -> dict[str, bytes]:
        """Return the members that were not taken, by pointer."""
        return dict(_flatten(self._root, "")) if self._root else {}


def _flatten(node: _Tree, where: str) -> Iterator[tuple[str, bytes]]:
    for token, below in node.items():
        pointer = f"{where}/{token}"
        if isinstance(below, dict):
            yield from _flatten(below, pointer)
        else:
            yield pointer, below


class _Plan:
    """How to decode a value of one type level by level."""

    def __init__(self, decoder: Decoder[Any]) -> None:
        self.decoder = decoder
        self.struct: type[Struct] | None = None
        self.members: dict[str, tuple[str, _Plan]] = {}
        self.renamed: frozenset[str] = frozenset()
        self.required: tuple[str, ...] = ()
        self.sequence: type[list[Any] | tuple[Any, ...]] = list
        self.item: _Plan | None = None
        self.value: _Plan | None = None
        self.tag_field: str | None = None
        self.tagged: dict[str, _Plan] = {}


def _build_plan(hint: Any, snake: bool, known: dict[Any, _Plan]) -> _Plan:
    if hint in known:
        return known[hint]
    plan = known[hint] = _Plan(Decoder(hint))
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    members = get_args(bare) if get_origin(bare) in (Union, UnionType) else (bare,)
    for member in members:
        origin = get_origin(member)
        if origin in (list, tuple):
            plan.sequence = origin
            plan.item = _build_plan(get_args(member)[0], snake, known)
        elif origin is dict:
            plan.value = _build_plan(get_args(member)[1], snake, known)
        elif isinstance(member, type) and issubclass(member, Struct):
            _add_struct(plan, member, snake, known)
    return plan


def _add_struct(plan: _Plan, struct: type[Struct], snake: bool, known: dict[Any, _Plan]) -> None:
    config = struct.__struct_config__
    one = plan
    if config.tag is not None:
        plan.tag_field = str(config.tag_field)
        one = plan.tagged[str(config.tag)] = _Plan(plan.decoder)
        one.tag_field = plan.tag_field
    fields = structs.fields(struct)
    one.struct = struct
    one.members = {field.encode_name: (field.name, _build_plan(field.type, snake, known)) for field in fields}
    if snake:
        # A `RawMember` member keeps the name it was sent with.
        one.renamed = frozenset(field.encode_name for field in fields if field.type != RawMember)
    one.required = tuple(field.encode_name for field in fields if field.required)


def _to_camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


class LevelReader:
    """Decodes values of one type level by level."""

    def __init__(self, hint: Any, *, snake: bool) -> None:
        self._hint = hint
        self._snake = snake
        self._plan: _Plan | None = None

    def read(self, body: bytes | Raw, where: str, failure: Exception) -> tuple[Any, Unread | None]:
        """Decode `body`, the value at `where`, whose decoding as a whole failed with `failure`."""
        unread = Unread()
        if self._plan is None:
            self._plan = _build_plan(self._hint, self._snake, {})
        try:
            value = _decode_level(body, self._plan, where, unread, failure)
        except json.Malformed as error:
            raise json.Malformed(error.message, error.where.removeprefix(where)) from None
        return value, unread or None


def _decode(raw: Raw, plan: _Plan, where: str, unread: Unread) -> Any:
    """Decode a value; its unknown members are added to `unread`."""
    try:
        return plan.decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return _decode_level(raw, plan, where, unread, error)


def _decode_level(raw: bytes | Raw, plan: _Plan, where: str, unread: Unread, failure: Exception) -> Any:
    """Decode each member or item of a value whose decoding as a whole failed with `failure`."""
    first = json.first_byte(raw)
    if first == b"[" and plan.item is not None:
        items = enumerate(json.decode_array(raw))
        return plan.sequence([_decode(item, plan.item, f"{where}/{index}", unread) for index, item in items])
    if first == b"{":
        if plan.value is not None:
            members = json.decode_object(raw).items()
            return {name: _decode(member, plan.value, f"{where}/{escape(name)}", unread) for name, member in members}
        if plan.tagged:
            return _decode_tagged(raw, plan, where, unread, failure)
        if plan.struct is not None:
            return _decode_members(json.decode_object(raw), plan, where, unread)
    found = json.to_malformed(failure)
    raise json.Malformed(found.message, where + found.where)


def _decode_tagged(raw: bytes | Raw, plan: _Plan, where: str, unread: Unread, failure: Exception) -> Any:
    members = json.decode_object(raw)
    tag = members.get(plan.tag_field or "")
    name = json.decode(tag) if tag is not None else None
    if name is not None and not isinstance(name, str):
        raise json.Malformed(f"{plan.tag_field} must be a string", f"{where}/{plan.tag_field}")
    chosen = plan.tagged.get(name) if name is not None and name != UNKNOWN else None
    if chosen is not None:
        return _decode_members(members, chosen, where, unread)
    unknown = plan.tagged.get(UNKNOWN)
    if unknown is None or unknown.struct is None:
        found = json.to_malformed(failure)
        raise json.Malformed(found.message, where + found.where)
    return unknown.struct(Raw(bytes(raw)))


def _decode_members(members: dict[str, Raw], plan: _Plan, where: str, unread: Unread) -> Any:
    known = plan.members
    read: dict[str, Any] = {}
    for given, member in members.items():
        name = given
        if plan.renamed and "_" in given and given not in known:
            camel = _to_camel_case(given)
            # Pointers use the declared name, so that owners find their members; `lookup` accepts the other spelling.
            name = camel if camel in plan.renamed and camel not in members else given
        if name in known:
            attribute, below = known[name]
            read[attribute] = _decode(member, below, f"{where}/{escape(name)}", unread)
        elif name != plan.tag_field:
            unread.add(f"{where}/{escape(name)}", bytes(member))
    for name in plan.required:
        if known[name][0] not in read:
            raise json.Malformed(f"Object missing required field `{name}`", where)
    return plan.struct(**read)  # pyright: ignore[reportOptionalCall]
