"""Change arguments back to what the caller's schema says, after the schema was changed to fit a target.

An `ArgumentUndo` is a tree shaped like the arguments. `restore` walks only along it: what it does not name keeps its
bytes, and where nothing changes the very same text is returned. Text that is not JSON is never touched.
"""

import math
import re
from collections.abc import Iterator, Mapping
from operator import is_not

from msgspec import Raw, Struct

from dragoman.wire.json import Malformed, decode, decode_array, decode_object, first_byte, is_json, with_members

_INTEGRAL = re.compile(rb"(-?[0-9]+)\.0+")
_SCIENTIFIC = re.compile(rb"-?[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+")
_FRACTION = re.compile(r"[0-9](?:\.[0-9]|[eE][-+0-9])")
"""Text without this holds no number that is not written as an integer."""
MAX_DEPTH = 100
MAX_STEPS = 100_000


class ArgumentUndo(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How to change back one value of the arguments, and the values inside it.

    An undo is a tree, so the garbage collector need not visit it: every tool keeps one.
    """

    properties: dict[str, "ArgumentUndo"] = {}
    """Members of an object, by the name the target saw."""
    others: "ArgumentUndo | None" = None
    """Members that `properties` does not name."""
    prefix: tuple["ArgumentUndo | None", ...] = ()
    """The first items of an array, by position."""
    items: "ArgumentUndo | None" = None
    """The items after `prefix`."""
    choices: tuple["Alternative", ...] = ()
    """Alternatives of a union; the first that takes the value decides."""
    references: tuple[str, ...] = ()
    """Also undo what `definitions` of the outermost undo say under these names."""
    definitions: dict[str, "ArgumentUndo"] = {}
    values: dict[str, str] = {}
    """Strings that stand for other values: what the target says, the JSON text that was meant."""
    parse: bool = False
    """A string holds JSON text of the value."""
    parsed_kind: str = ""
    """The one kind of value such a text may hold; a string that holds another is only a string. "" means any."""
    integer: bool = False
    """A number is an integer, however the target writes it."""
    optional: frozenset[str] = frozenset()
    """Members that were made nullable because they were not required: null means absent."""
    order: tuple[str, ...] = ()
    """All members there may be, in the order that the target says them in, where some are optional."""
    renamed: dict[str, str] = {}
    """Names the target saw, and the caller's."""
    wrapped: str = ""
    """The value was put into an object under this name."""
    wrapped_kinds: frozenset[str] = frozenset()
    """The kinds of value that are put there; empty means any."""
    retold: bool = False
    """Said of the outermost: calls in a history are said this way too. Integers need nothing there."""
    only_integers: bool = False
    """Said of the outermost: nothing but how integers are written is changed, as most undo no more."""


class Alternative(Struct, frozen=True, kw_only=True):
    """One alternative of a union, with just enough to tell whether a value is meant for it."""

    kinds: frozenset[str]
    texts: frozenset[str] | None = None
    """The strings it takes; None means any."""
    required: frozenset[str] = frozenset()
    tags: dict[str, frozenset[str]] = {}
    """Members that hold one of a few strings."""
    items: tuple["Alternative", ...] = ()
    """What the items of an array are meant for; empty means anything."""
    undo: ArgumentUndo | None = None


_KINDS = {b'"': "string", b"{": "object", b"[": "array", b"t": "boolean", b"f": "boolean", b"n": "null"}


def restore_arguments(arguments: str, undo: ArgumentUndo) -> str:
    """Return `arguments` as the caller's schema wants them."""
    if undo.only_integers and _FRACTION.search(arguments) is None:
        return arguments
    text = arguments.encode("utf-8", "surrogatepass")
    try:
        restored = ArgumentRestorer(undo.definitions).restore_value(text, undo, MAX_DEPTH)
    except Malformed:
        return arguments
    return arguments if restored is text else restored.decode("utf-8", "surrogatepass")


def iterate_undos(undo: ArgumentUndo) -> Iterator[ArgumentUndo]:
    """Iterate an undo and all that it is made of."""
    waiting: list[ArgumentUndo | None] = [undo]
    while waiting:
        part = waiting.pop()
        if part is None:
            continue
        yield part
        waiting += [*part.properties.values(), part.others, *part.prefix, part.items, *part.definitions.values()]
        waiting += [choice.undo for choice in part.choices]


class ArgumentRestorer:
    """Walks a value along an undo. Each method returns the very bytes it was given where nothing changes."""

    def __init__(self, definitions: Mapping[str, ArgumentUndo]) -> None:
        self.definitions = definitions
        self.steps_left = MAX_STEPS

    def restore_value(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        """Change back one value."""
        self.steps_left -= 1
        if depth == 0 or self.steps_left < 0:
            raise Malformed("the arguments are too large to be changed")
        for reference in undo.references:
            target = self.definitions.get(reference)
            text = text if target is None else self.restore_value(text, target, depth - 1)
        if undo.choices:
            text = self.restore_choice(text, undo.choices, depth)
        match find_json_type(text):
            case "object":
                return self.restore_members(text, undo, depth)
            case "array" if undo.prefix or undo.items is not None:
                return self.restore_array(text, undo, depth)
            case "string" if undo.values or undo.parse:
                return _restore_string(text, undo)
            case "number" if undo.integer:
                return _normalise_integer(text)
            case _:
                return text

    def restore_choice(self, text: bytes, choices: tuple[Alternative, ...], depth: int) -> bytes:
        """Change back a value of a union."""
        for choice in choices:
            if accepts(choice, text) and has_declared_members(text, choice.undo, self.definitions):
                return text if choice.undo is None else self.restore_value(text, choice.undo, depth - 1)
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
            after = before if inside is None else self.restore_value(before, inside, depth - 1)
            meant = undo.renamed.get(name, name)
            if meant is not name and meant in members:
                meant = name  # the target used the caller's name too: neither may take the other's place
            changed = changed or after is not before or meant is not name
            restored[meant] = after
        if undo.wrapped and restored.keys() == {undo.wrapped}:
            return restored[undo.wrapped]
        return with_members(b"{}", restored) if changed else text

    def restore_array(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        before = [bytes(raw) for raw in decode_array(text)]
        after: list[bytes] = []
        for index, item in enumerate(before):
            inside = undo.prefix[index] if index < len(undo.prefix) else undo.items
            after.append(item if inside is None else self.restore_value(item, inside, depth - 1))
        return b"[" + b",".join(after) + b"]" if any(map(is_not, after, before)) else text


def _restore_string(text: bytes, undo: ArgumentUndo) -> bytes:
    said = decode(text)
    meant = undo.values.get(said)
    if meant is not None:
        return meant.encode()
    if not undo.parse:
        return text
    inner = said.encode()
    return inner.strip() if _may_hold(inner, undo) else text


def _may_hold(inner: bytes, undo: ArgumentUndo) -> bool:
    """Tell whether a string's text is a value that an undo parses."""
    return (not undo.parsed_kind or find_json_type(inner) == undo.parsed_kind) and is_json(inner)


def find_json_type(text: bytes | Raw) -> str:
    """Tell what JSON type a value has."""
    return _KINDS.get(first_byte(text), "number")


def _normalise_integer(text: bytes) -> bytes:
    """Write `5.0` and `5e0` as `5`."""
    token = text.strip()
    if whole := _INTEGRAL.fullmatch(token):
        return whole[1]
    if _SCIENTIFIC.fullmatch(token) is None:
        return text
    number = float(token)
    return b"%d" % number if math.isfinite(number) and number.is_integer() else text


def accepts(choice: Alternative, text: bytes) -> bool:
    """Tell whether a value, as the target says it, is meant for an alternative."""
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
    # Text that stands for one kind of value is not meant for it when it holds another: a constant may be said so too.
    return undo is None or not (undo.parse and undo.parsed_kind) or _may_hold(string.encode(), undo)


def has_declared_members(text: bytes, undo: ArgumentUndo | None, definitions: Mapping[str, ArgumentUndo]) -> bool:
    """Tell whether an object has none but the members that are known of its alternative."""
    for _ in range(MAX_DEPTH):
        if undo is None or len(undo.references) != 1:
            break
        undo = definitions.get(undo.references[0])
    if undo is None or not undo.order or find_json_type(text) != "object":
        return True
    return decode_object(text).keys() <= set(undo.order)
