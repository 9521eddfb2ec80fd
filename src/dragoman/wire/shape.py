"""Typed decoding of wire documents that keeps unknown fields.

A `Shape` decodes directly into structs that forbid unknown fields. Only if that fails, `unread` decodes the document
level by level. The type of a member can name the core field that it corresponds to; `CoreFields` and `core_pointers`
use that to copy such members and to find their pointers.
"""

from collections.abc import Callable
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Raw, Struct, structs
from msgspec.json import Decoder

from dragoman.wire import json
from dragoman.wire.unread import LevelReader, RawMember, Unread

T = TypeVar("T")
_GetAll = Callable[[Any], tuple[Any, ...]]


ABSENT = Raw()
"""The default of raw members, which means that they were not sent."""


class Wire(Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base class of wire structs: the vendor's fields that are parsed, and those that are kept as raw JSON."""


def non_null_bytes(raw: Raw | bytes | None) -> bytes | None:
    """Return the bytes of a raw member that was sent and is not null."""
    if not raw:
        return None
    value = bytes(raw)
    return value if value != b"null" else None


_RAW_MEMBERS: dict[type[Struct], tuple[_GetAll, tuple[Raw, ...], tuple[str, ...]]] = {}
"""By struct: the getter of its `RawMember` members, its return value when none was sent, and their pointers."""


def get_raw_members(value: Struct, where: str = "") -> dict[str, bytes] | None:
    """Return the `RawMember` members of the struct at `where` by pointer; None if none was sent."""
    try:
        get, none, pointers = _RAW_MEMBERS[value.__class__]
    except KeyError:
        get, none, pointers = _RAW_MEMBERS[value.__class__] = _find_raw_members(value.__class__)
    found = get(value)
    if found == none:
        return None
    return {where + pointers[at]: bytes(raw) for at, raw in enumerate(found) if raw}


def _find_raw_members(struct: type[Struct]) -> tuple[_GetAll, tuple[Raw, ...], tuple[str, ...]]:
    fields = [field for field in structs.fields(struct) if field.type == RawMember]
    pointers = tuple([f"/{field.encode_name}" for field in fields])
    return _build_getter([field.name for field in fields]), (ABSENT,) * len(fields), pointers


def _build_getter(names: list[str]) -> _GetAll:
    """Return a function that returns these attributes of a value as a tuple, also for one name or none."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def core_field(name: str, read: Callable[[Any, str], Any] | None = None) -> Meta:
    """Mark a member as the core field `name` (`"sampling.seed"`), which `CoreFields` reads and writes.

    `read` converts the wire value to the core's value; its second argument is the pointer, for errors.
    """
    return Meta(extra={"core": name, "copied": True, "read": read})


def core_location(name: str) -> Meta:
    """Mark a member as the location of the core field `name`, which the dialect's own code reads and writes."""
    return Meta(extra={"core": name, "copied": False})


def _read_core_metadata(hint: Any) -> dict[str, Any]:
    """Return what `core_field` or `core_location` stored in a member's type."""
    for mark in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        if isinstance(mark, Meta) and mark.extra is not None and "core" in mark.extra:
            return mark.extra
    return {}


def core_pointers(struct: type[Struct], where: str = "") -> dict[str, tuple[str, ...]]:
    """Return the pointers of each core field in a struct at `where`, in the order of its members."""
    found: dict[str, tuple[str, ...]] = {}
    for field in structs.fields(struct):
        pointer = f"{where}/{field.encode_name}"
        hint = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
        by_name = {name: (pointer,)} if (name := _read_core_metadata(field.type).get("core")) else {}
        for below in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
            if isinstance(below, type) and issubclass(below, Struct):
                by_name |= core_pointers(below, pointer)
        for name, pointers in by_name.items():
            found[name] = (*found.get(name, ()), *pointers)
    return found


class CoreFields:
    """Converts the members of a wire struct that are fields of one core struct (`group`).

    `group` is, for example, "sampling"; "" is the request itself.
    """

    def __init__(self, struct: type[Struct], group: str = "") -> None:
        rows = [(field, _read_core_metadata(field.type)) for field in structs.fields(struct)]
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
        """Return the core fields of a wire struct at `where`, without those that are None."""
        names = self._names
        found = {names[at]: member for at, member in enumerate(self._get_members(value)) if member is not None}
        for name, read, pointer in self._readers:
            if name in found:
                found[name] = read(found[name], where + pointer)
        return found

    def write(self, value: Struct) -> dict[str, Any]:
        """Return the wire members for a core struct, without those that are None."""
        members = self._members
        return {members[at]: field for at, field in enumerate(self._get_fields(value)) if field is not None}


class Shape(Generic[T]):
    """A decoder for a wire type that keeps unknown fields. `snake=True` also accepts snake_case for camelCase names."""

    def __init__(self, hint: type[T] | Any, *, snake: bool = False) -> None:
        self._decode = Decoder[T](hint).decode
        self._levels = LevelReader(hint, snake=snake)

    def read(self, body: bytes | Raw, where: str = "") -> tuple[T, Unread | None]:
        """Decode `body`, the value at `where`; the second result is None if every field is known."""
        if body.__class__ is bytes:
            json.require_utf8(body)
        try:
            return self._decode(body), None
        except msgspec.ValidationError as error:
            return self._levels.read(body, where, error)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise json.to_malformed(error) from None

    def read_at(self, raw: bytes | Raw, where: str) -> tuple[T, dict[str, bytes]]:
        """Decode the value at `where`; the second result has its unknown fields by pointer relative to it."""
        try:
            value, unread = self.read(raw)
        except json.Malformed as error:
            raise json.Malformed(error.message, where + error.where) from None
        return value, {} if unread is None else unread.rest()
