"""Protobuf's JSON as Google's front end reads it: either spelling of a name, and its words for what does not fit.

It is lenient where Google is: null is absence, one value may stand for a list, enums come as names in any case or as
numbers, numbers as strings. It is strict where Google is: unknown names, types, base64, two members of a oneof.
A member marked `STUDIO`, `VERTEX` or `NOT_V1` is unknown to the other surfaces.
"""

import math
import re
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Struct

from dragoman.simulator.rule import Violation
from dragoman.wire.pointer import escape

Fault = Literal["json", "unknown-field", "type", "enum", "bounds", "oneof"]
Surface = Literal["studio", "vertex", "vertex v1"]
Read = Callable[[Any], Any]
M = TypeVar("M", bound="Message")

_PACKAGES: dict[Surface, str] = {
    "studio": "google.ai.generativelanguage.v1beta",
    "vertex": "google.cloud.aiplatform.v1beta1",
    "vertex v1": "google.cloud.aiplatform.v1",
}
_TYPE = "type.googleapis.com/"
_PACKAGE = "{package}"
_HUMP = re.compile(r"_([a-z0-9])")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_SHOWN = 200


class Only(Struct, frozen=True):
    """Marks a member that some surfaces have and the others have not."""

    surfaces: tuple[Surface, ...]


class Words(Struct, frozen=True):
    """Marks an enum: its name in the protos, and its words."""

    name: str
    words: tuple[str, ...]


STUDIO = Only(("studio",))
VERTEX = Only(("vertex", "vertex v1"))
NOT_V1 = Only(("studio", "vertex"))
"""Vertex has it in its beta version only."""
Int32 = Annotated[int, "TYPE_INT32"]
Int64 = Annotated[int, "TYPE_INT64"]
Float = Annotated[float, "TYPE_FLOAT"]
Double = Annotated[float, "TYPE_DOUBLE"]
Bytes = Annotated[str, "TYPE_BYTES"]
"""Base64, in its standard alphabet and without padding once it is read."""
Fields = Annotated[dict[str, Any], "google.protobuf.Struct"]
Value = Annotated[Any, "google.protobuf.Value"]
_RANGES = {"TYPE_INT32": 1 << 31, "TYPE_INT64": 1 << 63}


class Message(Struct, kw_only=True):
    """A message; its members are written in snake case here and in either case on the wire."""

    oneofs: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Members of which at most one may be given, by the name of their oneof."""


class Misfit(Exception):  # noqa: N818  it says what the value is
    """What does not fit; where it is grows outwards while this is raised."""

    def __init__(self, fault: Fault, head: str, tail: str) -> None:
        super().__init__(head)
        self._fault = fault
        self._head = head
        self._tail = tail
        self._path = ""
        self._pointer = ""

    def within(self, step: str, token: str) -> "Misfit":
        """Tell one step more of where it is."""
        self._path = step + self._path
        self._pointer = f"/{escape(token)}{self._pointer}"
        return self

    def told(self, rules: str, surface: Surface) -> Violation:
        """Return it in Google's words; the rule's name begins with `rules`."""
        path = self._path.removeprefix(".")
        tail = self._tail.replace(_PACKAGE, _PACKAGES[surface])
        message = f"{self._head} at '{path}'{tail}" if path else self._head + tail
        return Violation(message, self._pointer, rule=f"{rules}.{self._fault}")


class _Member(Struct, frozen=True):
    attribute: str
    read: Read
    listed: bool
    """It takes a list: it is repeated, or any value will do."""


class Reader(Generic[M]):
    """Reads one message on one surface."""

    def __init__(self, hint: type[M], surface: Surface) -> None:
        self._hint = hint
        self._read = _Reading(hint, surface)
        self._surface: Surface = surface

    def read(self, body: bytes, rules: str) -> M | Violation:
        """Return the message, or what is wrong with it."""
        try:
            document = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Violation(f"Invalid JSON payload received. {error}", rule=f"{rules}.json")
        if members_of(document) is None:
            words = 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
            return Violation(words, rule=f"{rules}.type")
        try:
            return self._read(document)
        except Misfit as misfit:
            return misfit.told(rules, self._surface)


class _Reading:
    """Reads a message. What its members are is looked up when it is first read, for messages hold themselves."""

    def __init__(self, hint: type[Message], surface: Surface) -> None:
        self._hint = hint
        self._surface: Surface = surface
        self._members: dict[str, _Member] | None = None
        self._groups = {member: name for name, members in hint.oneofs.items() for member in members}

    def __call__(self, value: Any) -> Any:
        document = members_of(value)
        if document is None:
            raise _invalid("type", f"{_TYPE}{_PACKAGE}.{self._hint.__name__}", value)
        if self._members is None:
            self._members = _members(self._hint, self._surface)
        given: dict[str, Any] = {}
        groups: dict[str, str] = {}
        for name, item in document.items():
            member = self._members.get(name)
            if member is None:
                raise _strange("unknown-field", name, "Cannot find field.")
            if item is None:
                continue
            if type(item) is list and not member.listed:
                raise _strange("type", name, "Proto field is not repeating, cannot start list.")
            group = self._groups.get(member.attribute)
            if group is not None and groups.setdefault(group, member.attribute) != member.attribute:
                tail = f" (oneof), oneof field '{group}' is already set. Cannot set '{name}'"
                raise Misfit("oneof", "Invalid value", tail)
            try:
                given[member.attribute] = member.read(item)
            except Misfit as misfit:
                raise misfit.within(f".{member.attribute}", name) from None
        return self._hint(**given)


def members_of(value: Any) -> dict[str, Any] | None:
    """Return an object of JSON as one; None for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def items_of(value: Any) -> list[Any] | None:
    """Return a list of JSON as one; None for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def camel(name: str) -> str:
    """Write a name the other way."""
    return _HUMP.sub(lambda found: found[1].upper(), name)


def _members(hint: type[Message], surface: Surface) -> dict[str, _Member]:
    members: dict[str, _Member] = {}
    for attribute, member in get_type_hints(hint, include_extras=True).items():
        if get_origin(member) is ClassVar:
            continue
        kind, marks = _plain(member)
        only = next((mark for mark in marks if isinstance(mark, Only)), None)
        if only is None or surface in only.surfaces:
            listed = get_origin(kind) is list or "google.protobuf.Value" in marks
            made = _Member(attribute, _reader(kind, marks, surface), listed)
            members[attribute] = members[camel(attribute)] = made
    return members


def _plain(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Take None and marks off a type."""
    marks: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            marks = (*marks, *more)
        elif get_origin(hint) in {Union, UnionType} and NoneType in get_args(hint):
            hint = next(one for one in get_args(hint) if one is not NoneType)
        else:
            return hint, marks


def _reader(kind: Any, marks: tuple[Any, ...], surface: Surface) -> Read:
    words = next((mark for mark in marks if isinstance(mark, Words)), None)
    word = next((mark for mark in marks if isinstance(mark, str)), "")
    if get_origin(kind) is list:
        return _Repeated(_reader(*_plain(get_args(kind)[0]), surface))
    if words is not None:
        return _Enum(words)
    if word == "google.protobuf.Value":
        return _value
    if word == "google.protobuf.Struct":
        return _fields
    if get_origin(kind) is dict:
        return _Map(_reader(*_plain(get_args(kind)[1]), surface))
    if isinstance(kind, type) and issubclass(kind, Message):
        return _Reading(kind, surface)
    return _SCALARS[word or kind]


class _Repeated:
    def __init__(self, read: Read) -> None:
        self._read = read

    def __call__(self, value: Any) -> list[Any]:
        values = items_of(value)
        values = [value] if values is None else values
        made: list[Any] = []
        for index, item in enumerate(values):
            try:
                made.append(self._read(item))
            except Misfit as misfit:
                raise misfit.within(f"[{index}]", str(index)) from None
        return made


class _Map:
    def __init__(self, read: Read) -> None:
        self._read = read

    def __call__(self, value: Any) -> dict[str, Any]:
        entries = members_of(value)
        if entries is None:
            raise _invalid("type", "map", value)
        made: dict[str, Any] = {}
        for index, (name, item) in enumerate(entries.items()):
            try:
                made[name] = self._read(item)
            except Misfit as misfit:
                raise misfit.within(f"[{index}].value", name) from None
        return made


class _Enum:
    def __init__(self, words: Words) -> None:
        self._name = words.name
        self._words = {word.upper(): word for word in words.words}
        self._numbered = words.words

    def __call__(self, value: Any) -> str:
        if type(value) is int:
            # Numbers of old clients name members that have since gone; Google lets any number pass.
            return self._numbered[value] if 0 <= value < len(self._numbered) else str(value)
        found = self._words.get(value.upper().replace("-", "_")) if isinstance(value, str) else None
        if found is None:
            raise _invalid("enum", f"{_TYPE}{_PACKAGE}.{self._name}", value)
        return found


def _strange(fault: Fault, name: str, words: str) -> Misfit:
    return Misfit(fault, f'Invalid JSON payload received. Unknown name "{name}"', f": {words}").within("", name)


def _invalid(fault: Fault, kind: str, value: Any) -> Misfit:
    shown = msgspec.json.encode(value).decode()
    return Misfit(fault, "Invalid value", f" ({kind}), {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'}")


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _invalid("type", "TYPE_STRING", value)
    return value


def _boolean(value: Any) -> bool:
    if isinstance(value, str) and value in {"true", "false"}:
        return value == "true"
    if not isinstance(value, bool):
        raise _invalid("type", "TYPE_BOOL", value)
    return value


def _number(value: Any, kind: str) -> float:
    if isinstance(value, bool):
        raise _invalid("type", kind, value)
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        raise _invalid("type", kind, value)
    try:
        return float(value) if set(value) & set(".eE") else int(value)
    except ValueError:  # it has more digits than Python reads
        raise _invalid("bounds", kind, value) from None


def _integer_of(kind: str) -> Read:
    limit = _RANGES[kind]

    def read(value: Any) -> int:
        number = _number(value, kind)
        if not -limit <= number < limit:
            raise _invalid("bounds", kind, value)
        if number != int(number):
            raise _invalid("type", kind, value)
        return int(number)

    return read


def _float_of(kind: str) -> Read:
    def read(value: Any) -> float:
        try:
            number = float(_number(value, kind))
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise _invalid("bounds", kind, value)
        return number

    return read


def _bytes(value: Any) -> str:
    text = value if isinstance(value, str) else None
    if text is None:
        raise _invalid("type", "TYPE_BYTES", value)
    bare = text.rstrip("=").translate(_STANDARD)
    if not _BASE64.fullmatch(text) or len(bare) % 4 == 1:
        raise Misfit("type", "Invalid value", f' (TYPE_BYTES), Base64 decoding failed for "{text[:_SHOWN]}"')
    return bare


def _value(value: Any) -> Any:
    return value


def _fields(value: Any) -> dict[str, Any]:
    fields = members_of(value)
    if fields is None:
        raise _invalid("type", f"{_TYPE}google.protobuf.Struct", value)
    return fields


_STANDARD = str.maketrans("-_", "+/")
_SCALARS: dict[Any, Read] = {
    str: _string,
    bool: _boolean,
    "TYPE_INT32": _integer_of("TYPE_INT32"),
    "TYPE_INT64": _integer_of("TYPE_INT64"),
    "TYPE_FLOAT": _float_of("TYPE_FLOAT"),
    "TYPE_DOUBLE": _float_of("TYPE_DOUBLE"),
    "TYPE_BYTES": _bytes,
}
