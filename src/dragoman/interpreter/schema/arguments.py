"""Restore the arguments of a call to the client's schema, after that schema was converted for a target.

An `ArgumentUndo` is a tree with the structure of the arguments. `restore_arguments` follows only that tree: values it
does not name keep their bytes, and if nothing changes, the same text object is returned. Text that is not JSON is
returned unchanged.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from operator import is_not

from msgspec import Raw, Struct

from dragoman.wire.json import Malformed, decode, decode_array, decode_object, first_byte, is_json, with_members

_INTEGRAL = re.compile(rb"(-?[0-9]+)\.0+")
_SCIENTIFIC = re.compile(rb"-?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+")
_FRACTION = re.compile(r"[0-9](?:\.[0-9]|[eE][-+0-9])")
"""Text without a match has only numbers that are written as integers."""
MAX_DEPTH = 100
MAX_STEPS = 100_000


class ArgumentUndo(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How to restore one value of the arguments, and the values inside it.

    An undo is a tree without cycles, so the garbage collector need not track it: every tool keeps one.
    """

    properties: dict[str, "ArgumentUndo"] = {}
    """Undos of the properties of an object, by the name that was sent to the target."""
    others: "ArgumentUndo | None" = None
    """The undo of all other properties."""
    prefix: tuple["ArgumentUndo | None", ...] = ()
    """The first items of an array, by position."""
    items: "ArgumentUndo | None" = None
    """The items after `prefix`."""
    choices: tuple["Alternative", ...] = ()
    """Alternatives of a union; the first that accepts the value is used."""
    references: tuple[str, ...] = ()
    """Names of further undos for this value in `definitions` of the root undo."""
    definitions: dict[str, "ArgumentUndo"] = {}
    values: dict[str, str] = {}
    """Strings that replace enum values that are not strings: the string that the target sends, and the JSON text."""
    parse: bool = False
    """A string contains the value as JSON text."""
    parsed_kind: str = ""
    """The JSON type of that value; a string with a value of another type stays a string. "" means any type."""
    integer: bool = False
    """A number is an integer, also if the target writes it as 5.0."""
    optional: frozenset[str] = frozenset()
    """Properties that were made nullable because they were not required: null means absent."""
    order: tuple[str, ...] = ()
    """All allowed properties in the order of the target's schema; set if some are optional."""
    renamed: dict[str, str] = {}
    """Property names that were sent to the target, each with the client's name."""
    wrapped: str = ""
    """The value was wrapped in an object as the property of this name."""
    wrapped_kinds: frozenset[str] = frozenset()
    """The JSON types that are wrapped; empty means all."""
    converts_history: bool = False
    """Root undo only: the arguments of calls in the history must be converted too. Integers do not need that."""
    only_integers: bool = False
    """Root undo only: nothing but the notation of integers changes, which is the case for most tools."""


class Alternative(Struct, frozen=True, kw_only=True):
    """One alternative of a union, with just enough to decide whether a value belongs to it."""

    kinds: frozenset[str]
    texts: frozenset[str] | None = None
    """The strings it accepts; None means any."""
    required: frozenset[str] = frozenset()
    tags: dict[str, frozenset[str]] = {}
    """Properties with a list of allowed strings, such as a discriminator."""
    items: tuple["Alternative", ...] = ()
    """Alternatives for the items of an array; empty means anything."""
    undo: ArgumentUndo | None = None


_KINDS = {b'"': "string", b"{": "object", b"[": "array", b"t": "boolean", b"f": "boolean", b"n": "null"}


def restore_arguments(arguments: str, undo: ArgumentUndo) -> str:
    """Return `arguments` in the form of the client's schema."""
    if undo.only_integers and _FRACTION.search(arguments) is None:
        return arguments
    text = arguments.encode("utf-8", "surrogatepass")
    try:
        restored = ArgumentRestorer(undo.definitions).convert_value(text, undo, MAX_DEPTH)
    except Malformed:
        return arguments
    return arguments if restored is text else restored.decode("utf-8", "surrogatepass")


def iterate_undos(undo: ArgumentUndo) -> Iterator[ArgumentUndo]:
    """Yield an undo and all undos inside it."""
    waiting: list[ArgumentUndo | None] = [undo]
    while waiting:
        part = waiting.pop()
        if part is None:
            continue
        yield part
        waiting += [*part.properties.values(), part.others, *part.prefix, part.items, *part.definitions.values()]
        waiting += [choice.undo for choice in part.choices]


class ArgumentVisitor(ABC):
    """Converts a value along an undo. Each method returns the same bytes object if nothing changes."""

    def __init__(self, definitions: Mapping[str, ArgumentUndo]) -> None:
        self.definitions = definitions
        self.steps_left = MAX_STEPS

    @abstractmethod
    def convert_value(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        """Convert one value."""

    def take_step(self, depth: int) -> None:
        """Count one value; raise `Malformed` if there are too many, or if they are nested too deeply."""
        self.steps_left -= 1
        if depth == 0 or self.steps_left < 0:
            raise Malformed("the arguments are too large to be converted")

    def convert_items(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        """Convert the items of an array."""
        before = [bytes(raw) for raw in decode_array(text)]
        after: list[bytes] = []
        for index, item in enumerate(before):
            inside = undo.prefix[index] if index < len(undo.prefix) else undo.items
            after.append(item if inside is None else self.convert_value(item, inside, depth - 1))
        return b"[" + b",".join(after) + b"]" if any(map(is_not, after, before)) else text


class ArgumentRestorer(ArgumentVisitor):
    """Restores a value along an undo."""

    def convert_value(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        self.take_step(depth)
        for reference in undo.references:
            target = self.definitions.get(reference)
            text = text if target is None else self.convert_value(text, target, depth - 1)
        if undo.choices:
            text = self.restore_choice(text, undo.choices, depth)
        match find_json_type(text):
            case "object":
                return self.restore_members(text, undo, depth)
            case "array" if undo.prefix or undo.items is not None:
                return self.convert_items(text, undo, depth)
            case "string" if undo.values or undo.parse:
                return _restore_string(text, undo)
            case "number" if undo.integer:
                return _normalise_integer(text)
            case _:
                return text

    def restore_choice(self, text: bytes, choices: tuple[Alternative, ...], depth: int) -> bytes:
        """Restore a value of a union."""
        for choice in choices:
            if accepts(choice, text) and has_declared_members(text, choice.undo, self.definitions):
                return text if choice.undo is None else self.convert_value(text, choice.undo, depth - 1)
        return text

    def restore_members(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        members = decode_object(text)
        restored: dict[str, bytes] = {}
        changed = False
        for name, raw in members.items():
            before = bytes(raw)
            if name in undo.optional and before.strip() == b"null":
                changed = True
                continue
            inside = undo.properties.get(name, undo.others)
            after = before if inside is None else self.convert_value(before, inside, depth - 1)
            original = undo.renamed.get(name, name)
            if original is not name and original in members:
                original = name  # the target sent the client's name too: neither may overwrite the other
            changed = changed or after is not before or original is not name
            restored[original] = after
        if undo.wrapped and restored.keys() == {undo.wrapped}:
            return restored[undo.wrapped]
        return with_members(b"{}", restored) if changed else text


def _restore_string(text: bytes, undo: ArgumentUndo) -> bytes:
    string = decode(text)
    original = undo.values.get(string)
    if original is not None:
        return original.encode()
    if not undo.parse:
        return text
    inner = string.encode()
    return inner.strip() if _may_hold(inner, undo) else text


def _may_hold(inner: bytes, undo: ArgumentUndo) -> bool:
    """Return whether the text of a string is JSON of the type that the undo parses."""
    return (not undo.parsed_kind or find_json_type(inner) == undo.parsed_kind) and is_json(inner)


def find_json_type(text: bytes | Raw) -> str:
    """Return the JSON type of a value."""
    return _KINDS.get(first_byte(text), "number")


def _normalise_integer(text: bytes) -> bytes:
    """Return `5.0` and `5e0` as `5`; other numbers unchanged."""
    token = text.strip()
    if whole := _INTEGRAL.fullmatch(token):
        return whole[1]
    if _SCIENTIFIC.fullmatch(token) is None:
        return text
    number = float(token)
    return b"%d" % number if math.isfinite(number) and number.is_integer() else text


def accepts(choice: Alternative, text: bytes) -> bool:
    """Return whether a value, as the target sent it, belongs to an alternative."""
    kind = find_json_type(text)
    if kind not in choice.kinds:
        return False
    if kind == "string":
        return _accepts_string(choice, decode(text))
    if kind == "array" and choice.items:
        return all(any(accepts(one, bytes(item)) for one in choice.items) for item in decode_array(text))
    if kind != "object":
        return True
    members = decode_object(text)
    return choice.required <= members.keys() and all(
        name not in members or (find_json_type(members[name]) == "string" and decode(members[name]) in tags)
        for name, tags in choice.tags.items()
    )


def _accepts_string(choice: Alternative, string: str) -> bool:
    if choice.texts is not None:
        return string in choice.texts
    undo = choice.undo
    # JSON text of another type does not belong here: another alternative may have a constant that is sent as that text.
    return undo is None or not (undo.parse and undo.parsed_kind) or _may_hold(string.encode(), undo)


def has_declared_members(text: bytes, undo: ArgumentUndo | None, definitions: Mapping[str, ArgumentUndo]) -> bool:
    """Return whether an object has only properties that its alternative declares."""
    for _ in range(MAX_DEPTH):
        if undo is None or len(undo.references) != 1:
            break
        undo = definitions.get(undo.references[0])
    if undo is None or not undo.order or find_json_type(text) != "object":
        return True
    return decode_object(text).keys() <= set(undo.order)
