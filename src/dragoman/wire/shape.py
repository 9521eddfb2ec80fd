"""Structs of a wire format, and typed reading that loses nothing.

A `Shape` decodes straight into structs that forbid unknown fields. Only when that fails is the document read level by
level, by `unread`. A member that is a field of the core says so in its type; how such members are read and written,
and where they stand, follows from that.
"""

from collections.abc import Callable
from itertools import compress, repeat
from operator import attrgetter, is_not
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Raw, Struct, structs
from msgspec.json import Decoder

from dragoman.wire import json
from dragoman.wire.pointer import escape
from dragoman.wire.unread import Carried, LevelReader, Unread

T = TypeVar("T")
_GetAll = Callable[[Any], tuple[Any, ...]]


ABSENT = Raw()
"""The default of raw members: they were not sent."""


class Wire(Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of wire shapes: the fields we read and those that are only carried, in the vendor's names."""


def non_null_bytes(raw: Raw | bytes | None) -> bytes | None:
    """Return the bytes of a raw member that was sent and is not null."""
    if not raw:
        return None
    value = bytes(raw)
    return value if value != b"null" else None


_CARRIED_MEMBERS: dict[type[Struct], tuple[_GetAll, tuple[Raw, ...], tuple[str, ...]]] = {}
"""How to get the carried members of a struct, what that returns when none was sent, and their pointers."""


def carried(value: Struct, where: str = "") -> dict[str, bytes] | None:
    """Return the members of `value`, which stands at `where`, that are only carried; None when none was sent."""
    try:
        get, none, pointers = _CARRIED_MEMBERS[value.__class__]
    except KeyError:
        get, none, pointers = _CARRIED_MEMBERS[value.__class__] = _find_carried(value.__class__)
    found = get(value)
    if found == none:
        return None
    places = map(where.__add__, pointers) if where else pointers
    return dict(compress(zip(places, map(bytes, found), strict=True), found))


def _find_carried(struct: type[Struct]) -> tuple[_GetAll, tuple[Raw, ...], tuple[str, ...]]:
    fields = [field for field in structs.fields(struct) if field.type == Carried]
    pointers = tuple([f"/{escape(field.encode_name)}" for field in fields])
    return _build_getter([field.name for field in fields]), (ABSENT,) * len(fields), pointers


def _build_getter(names: list[str]) -> _GetAll:
    """Return a function that gets these attributes of a value, also if there is one or none."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def core_field(name: str, read: Callable[[Any, str], Any] | None = None) -> Meta:
    """Mark a member as the core field `name` (`"sampling.seed"`), for `CoreFields` to read and write.

    `read` makes the core's value of one that was sent; its second argument is the pointer, for errors.
    """
    return Meta(extra={"core": name, "copied": True, "read": read})


def core_place(name: str) -> Meta:
    """Mark a member as the place of the core field `name`, which functions of the dialect read and write."""
    return Meta(extra={"core": name, "copied": False})


def _read_core_mark(hint: Any) -> dict[str, Any]:
    """Return what `core_field` or `core_place` says of a member's type."""
    for mark in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(mark, Meta) and mark.extra is not None and "core" in mark.extra:
            return mark.extra
    return {}


def core_pointers(struct: type[Struct], where: str = "") -> dict[str, tuple[str, ...]]:
    """Return where core fields stand in a struct that stands at `where`, in the order of its members."""
    found: dict[str, tuple[str, ...]] = {}
    for field in structs.fields(struct):
        pointer = f"{where}/{escape(field.encode_name)}"
        hint = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
        places = {name: (pointer,)} if (name := _read_core_mark(field.type).get("core")) else {}
        for below in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
            if isinstance(below, type) and issubclass(below, Struct):
                places |= core_pointers(below, pointer)
        for name, pointers in places.items():
            found[name] = (*found.get(name, ()), *pointers)
    return found


class CoreFields:
    """The members of a wire struct that are fields of one core struct: "sampling", or "" for the request itself."""

    def __init__(self, struct: type[Struct], group: str = "") -> None:
        rows = [(field, _read_core_mark(field.type)) for field in structs.fields(struct)]
        rows = [row for row in rows if row[1].get("copied") and row[1]["core"].rpartition(".")[0] == group]
        self._names = [mark["core"].rpartition(".")[2] for _, mark in rows]
        self._members = [field.encode_name for field, _ in rows]
        self._get_members = _build_getter([field.name for field, _ in rows])
        self._get_fields = _build_getter(self._names)
        self._readers = [
            (name, mark["read"], f"/{member}")
            for name, member, (_, mark) in zip(self._names, self._members, rows, strict=True)
            if mark["read"] is not None
        ]

    def read(self, value: Struct, where: str = "") -> dict[str, Any]:
        """Return the core's fields of a wire struct that stands at `where`."""
        found = dict(zip(self._names, self._get_members(value), strict=True))
        for name, read, pointer in self._readers:
            if found[name] is not None:
                found[name] = read(found[name], where + pointer)
        return found

    def write(self, value: Struct) -> dict[str, Any]:
        """Return the members of the wire struct for a core struct, without those that are not set."""
        found = self._get_fields(value)
        return dict(compress(zip(self._members, found, strict=True), map(is_not, found, repeat(None))))


class Shape(Generic[T]):
    """A wire type and the two ways to read it. `snake=True` also takes snake_case for camelCase names."""

    def __init__(self, hint: type[T] | Any, *, snake: bool = False) -> None:
        self._decode = Decoder[T](hint).decode
        self._levels = LevelReader(hint, snake=snake)

    def read(self, body: bytes | Raw, where: str = "") -> tuple[T, Unread | None]:
        """Decode `body`, which stands at `where`; the second value is None when every field was known."""
        if body.__class__ is bytes:
            json.require_utf8(body)
        try:
            return self._decode(body), None
        except msgspec.ValidationError as error:
            return self._levels.read(body, where, error)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise json.to_malformed(error) from None

    def read_at(self, raw: bytes | Raw, where: str) -> tuple[T, dict[str, bytes]]:
        """Decode a value that stands alone at `where`; its unread members come by pointer relative to it."""
        try:
            value, unread = self.read(raw)
        except json.Malformed as error:
            raise json.Malformed(error.message, where + error.where) from None
        return value, {} if unread is None else unread.rest()
