"""Protobuf's JSON as Google's front end parses it: compact declarations of messages, and Google's error texts.

A declaration is one of

    str, bool, INT32, INT64, FLOAT, DOUBLE, BYTES       a value of that type
    STRUCT, VALUE                                       any object, any value
    ProtoEnum("Type", "TYPE_UNSPECIFIED STRING")        a value of an enum, in the order of its numbers
    [X]                                                 a repeated X
    ProtoMap(X)                                         X by arbitrary keys
    ProtoMessage("Blob", {"mimeType=": str, "data": X}) an object; an absent string marked with `=` is read as ""

Parsing is lenient where Google is: either spelling of a name, null means absent, a single value is accepted for a
list, enums may be names in any case or numbers, numbers may be strings. It is strict where Google is: unknown names,
types, base64, two members of a oneof. The result has camelCase names, and null only within `STRUCT` and `VALUE`.
"""

import math
import re
from collections.abc import Callable
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.simulator.apis.rule import Json, Violation
from dragoman.wire.pointer import escape

ProtoMismatchReason = Literal["json", "unknown-field", "type", "enum", "bounds", "oneof"]
Surface = Literal["studio", "vertex", "vertex v1"]
ValueReader = Callable[[Any, Surface], Any]
_PACKAGES: dict[Surface, str] = {
    "studio": "google.ai.generativelanguage.v1beta",
    "vertex": "google.cloud.aiplatform.v1beta1",
    "vertex v1": "google.cloud.aiplatform.v1",
}
_TYPE = "type.googleapis.com/"
_PACKAGE = "{package}"
_HUMP = re.compile(r"(?<!^)([A-Z])")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_STANDARD = str.maketrans("-_", "+/")
_MAX_SHOWN = 200


class ProtoMismatch(Exception):  # noqa: N818  the name says what the value is
    """A value does not match its declaration; the path is built from the inside out while the error is raised."""

    def __init__(self, reason: ProtoMismatchReason, head: str, tail: str) -> None:
        super().__init__(head)
        self._reason = reason
        self._head = head
        self._tail = tail
        self._path = ""
        self._pointer = ""

    def prepend(self, step: str, token: str) -> "ProtoMismatch":
        """Add one step to the front of the path."""
        self._path = step + self._path
        self._pointer = f"/{escape(token)}{self._pointer}"
        return self

    def build_violation(self, surface: Surface) -> Violation:
        """Return the violation with Google's error text."""
        path = self._path.removeprefix(".")
        tail = self._tail.replace(_PACKAGE, _PACKAGES[surface])
        message = f"{self._head} at '{path}'{tail}" if path else self._head + tail
        return Violation(message, self._pointer, rule=f"gemini.{self._reason}")


class _Member(Struct, frozen=True):
    name: str
    read: ValueReader
    takes_list: bool
    is_choice: bool
    """Whether it is a member of the message's oneof."""


class ProtoMessage:
    """A message: its name in the protos, its fields on all or some surfaces, and a oneof with its members.

    A message declared without fields is not checked.
    """

    def __init__(
        self,
        name: str,
        members: Json | None = None,
        *,
        studio: Json | None = None,
        vertex: Json | None = None,
        oneof: tuple[str, tuple[str, ...]] = ("", ()),
    ) -> None:
        self._name = name
        self._oneof, self._choices = oneof
        self._defaults: dict[str, str] = {}
        self._members: dict[Surface, dict[str, _Member]] = {surface: {} for surface in _PACKAGES}
        self.names: list[str] = []
        self._has_members = members is not None
        self.add(members or {})
        self.add(studio or {}, "studio")
        self.add(vertex or {}, "vertex", "vertex v1")

    def add(self, members: Json, *surfaces: Surface) -> None:
        """Declare fields for some or all surfaces; needed for recursive messages and rare sets of surfaces."""
        for key, kind in members.items():
            name = key.removesuffix("=")
            if name != key:
                self._defaults[name] = ""
            takes_list = isinstance(kind, list) or kind is VALUE
            member = _Member(name, _build_reader(kind), takes_list, name in self._choices)
            self.names.append(name)
            for surface in surfaces or _PACKAGES:
                self._members[surface][name] = self._members[surface][to_snake_case(name)] = member

    def __call__(self, value: Any, surface: Surface) -> Json:
        """Return the message with its names in camelCase."""
        if type(value) is not dict:
            raise _build_invalid_value("type", f"{_TYPE}{_PACKAGE}.{self._name}", value)
        if not self._has_members:
            return cast("Json", value)
        made: Json = self._defaults.copy()
        chosen = ""
        members = self._members[surface]
        for name, item in cast("Json", value).items():
            member = members.get(name)
            if member is None:
                raise _build_unknown_name("unknown-field", name, "Cannot find field.")
            if item is None:
                continue
            if type(item) is list and not member.takes_list:
                raise _build_unknown_name("type", name, "Proto field is not repeating, cannot start list.")
            if member.is_choice:
                if chosen not in {"", member.name}:
                    tail = f" (oneof), oneof field '{self._oneof}' is already set. Cannot set '{name}'"
                    raise ProtoMismatch("oneof", "Invalid value", tail)
                chosen = member.name
            try:
                made[member.name] = member.read(item, surface)
            except ProtoMismatch as misfit:
                raise misfit.prepend(f".{to_snake_case(member.name)}", name) from None
        return made

    def read(self, body: bytes, surface: Surface) -> Json | Violation:
        """Return the message in a body, or what is wrong with it."""
        try:
            document = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return build_json_violation(error)
        if not isinstance(document, dict):
            return NOT_MESSAGE
        try:
            return self(document, surface)
        except ProtoMismatch as misfit:
            return misfit.build_violation(surface)


class ProtoEnum:
    """A value of an enum."""

    def __init__(self, name: str, names: str, prefix: str = "") -> None:
        self._name = name
        self._names = [prefix + word for word in names.split()]
        self._by_name = {word.upper(): word for word in self._names}

    def __call__(self, value: Any, _: Surface) -> str:
        """Return the value in the spelling of the protos."""
        if type(value) is int:
            # Old clients send numbers of values that no longer exist; Google accepts any number.
            return self._names[value] if 0 <= value < len(self._names) else str(value)
        found = self._by_name.get(value.upper().replace("-", "_")) if isinstance(value, str) else None
        if found is None:
            raise _build_invalid_value("enum", f"{_TYPE}{_PACKAGE}.{self._name}", value)
        return found


class ProtoMap:
    """Values by arbitrary keys."""

    def __init__(self, values: Any) -> None:
        self._read = _build_reader(values)

    def __call__(self, value: Any, surface: Surface) -> Json:
        """Return all values by key."""
        if not isinstance(value, dict):
            raise _build_invalid_value("type", "map", value)
        made: Json = {}
        for index, (name, item) in enumerate(cast("Json", value).items()):
            try:
                made[name] = self._read(item, surface)
            except ProtoMismatch as misfit:
                raise misfit.prepend(f"[{index}].value", name) from None
        return made


def to_snake_case(name: str) -> str:
    """Convert a camelCase name to snake_case."""
    return _HUMP.sub(r"_\1", name).lower()


def build_json_violation(error: Exception) -> Violation:
    """Return the violation for a body that is not valid JSON."""
    return Violation(f"Invalid JSON payload received. {error}", rule="gemini.json")


NOT_MESSAGE = Violation(
    'Invalid JSON payload received. Unknown name "": Root element must be a message.', rule="gemini.type"
)


def _build_reader(declaration: Any) -> ValueReader:
    match declaration:
        case list():
            return _build_list_reader(_build_reader(declaration[0]))
        case type():
            return _SCALARS[declaration]
        case _:
            return declaration


def _build_unknown_name(reason: ProtoMismatchReason, name: str, detail: str) -> ProtoMismatch:
    return ProtoMismatch(reason, f'Invalid JSON payload received. Unknown name "{name}"', f": {detail}").prepend(
        "", name
    )


def _build_invalid_value(reason: ProtoMismatchReason, kind: str, value: Any) -> ProtoMismatch:
    shown = msgspec.json.encode(value).decode()
    return ProtoMismatch(
        reason, "Invalid value", f" ({kind}), {shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + '...'}"
    )


def _build_list_reader(read_item: ValueReader) -> ValueReader:
    def read(value: Any, surface: Surface) -> list[Any]:
        made: list[Any] = []
        for index, item in enumerate(cast("list[Any]", value) if isinstance(value, list) else [value]):
            try:
                made.append(read_item(item, surface))
            except ProtoMismatch as misfit:
                raise misfit.prepend(f"[{index}]", str(index)) from None
        return made

    return read


def _read_string(value: Any, _: Surface) -> str:
    if not isinstance(value, str):
        raise _build_invalid_value("type", "TYPE_STRING", value)
    return value


def _read_boolean(value: Any, _: Surface) -> bool:
    if isinstance(value, str) and value in {"true", "false"}:
        return value == "true"
    if not isinstance(value, bool):
        raise _build_invalid_value("type", "TYPE_BOOL", value)
    return value


def _read_number(value: Any, kind: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        raise _build_invalid_value("type", kind, value)
    try:
        return float(value) if set(value) & set(".eE") else int(value)
    except ValueError:  # it has more digits than Python reads
        raise _build_invalid_value("bounds", kind, value) from None


def _build_integer_reader(kind: str, bits: int) -> ValueReader:
    limit = 1 << (bits - 1)

    def read(value: Any, _: Surface) -> int:
        number = _read_number(value, kind)
        if not -limit <= number < limit:
            raise _build_invalid_value("bounds", kind, value)
        if number != int(number):
            raise _build_invalid_value("type", kind, value)
        return int(number)

    return read


def _build_float_reader(kind: str) -> ValueReader:
    def read(value: Any, _: Surface) -> float:
        try:
            number = float(_read_number(value, kind))
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise _build_invalid_value("bounds", kind, value)
        return number

    return read


def BYTES(value: Any, _: Surface) -> str:  # noqa: N802  named like a type
    """Validate base64, and return it in the standard alphabet without padding."""
    if not isinstance(value, str):
        raise _build_invalid_value("type", "TYPE_BYTES", value)
    bare = value.rstrip("=").translate(_STANDARD)
    if not _BASE64.fullmatch(value) or len(bare) % 4 == 1:
        raise ProtoMismatch(
            "type", "Invalid value", f' (TYPE_BYTES), Base64 decoding failed for "{value[:_MAX_SHOWN]}"'
        )
    return bare


def STRUCT(value: Any, _: Surface) -> Json:  # noqa: N802  named like a type
    """Return any object unchanged."""
    if not isinstance(value, dict):
        raise _build_invalid_value("type", f"{_TYPE}google.protobuf.Struct", value)
    return cast("Json", value)


def VALUE(value: Any, _: Surface) -> Any:  # noqa: N802  named like a type
    """Return any value unchanged."""
    return value


INT32 = _build_integer_reader("TYPE_INT32", 32)
INT64 = _build_integer_reader("TYPE_INT64", 64)
FLOAT = _build_float_reader("TYPE_FLOAT")
DOUBLE = _build_float_reader("TYPE_DOUBLE")
_SCALARS: dict[Any, ValueReader] = {str: _read_string, bool: _read_boolean}
