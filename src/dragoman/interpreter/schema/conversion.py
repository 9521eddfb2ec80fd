"""The results of schema conversions, and the conversion of arguments in the history to the converted schema.

A model must see its earlier calls as it wrote them for the schema that it got. Only values that the converted schema
expresses differently are changed, and only if possible; all others keep their bytes, as in `restore_arguments`. An
alternative of a union is the right one if `restore_arguments` restores its value.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from msgspec import Struct, structs

from dragoman.core.losses import LossKind
from dragoman.interpreter.schema.arguments import (
    MAX_DEPTH,
    Alternative,
    ArgumentRestorer,
    ArgumentUndo,
    ArgumentVisitor,
    accepts,
    find_json_type,
    has_declared_members,
    iterate_undos,
)
from dragoman.interpreter.schema.nodes import Node, as_list, as_node
from dragoman.wire.json import Malformed, decode, decode_object, encode, require_json, with_members


def convert_history_arguments(arguments: str, undo: ArgumentUndo) -> str:
    """Return `arguments` as the target would have sent them."""
    text = arguments.encode("utf-8", "surrogatepass")
    try:
        require_json(text)
        converted = _ArgumentConverter(undo.definitions).convert_value(text, undo, MAX_DEPTH)
    except Malformed:
        return arguments
    return arguments if converted is text else converted.decode("utf-8", "surrogatepass")


def changes_history(undo: ArgumentUndo) -> bool:
    """Return whether arguments in the history must be converted; the notation of a number does not matter there."""
    return any(
        part.values or part.parse or part.optional or part.renamed or part.wrapped for part in iterate_undos(undo)
    )


class _ArgumentConverter(ArgumentVisitor):
    """Converts a value along an undo. Each method returns the same bytes object if nothing changes."""

    def convert_value(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        self.take_step(depth)
        text = self.convert_own(text, undo, depth)
        if undo.choices:
            text = self.convert_choice(text, undo.choices, depth)
        for reference in reversed(undo.references):
            target = self.definitions.get(reference)
            text = text if target is None else self.convert_value(text, target, depth - 1)
        return text

    def convert_own(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        if undo.wrapped:
            return self.wrap_value(text, undo, depth)
        if undo.values:
            return _find_listed(text, undo.values)
        kind = find_json_type(text)
        if undo.parse:
            return text if undo.parsed_kind not in ("", kind) else encode(text.strip().decode())
        if kind == "object":
            return self.convert_members(text, undo, depth)
        if kind == "array" and (undo.prefix or undo.items is not None):
            return self.convert_items(text, undo, depth)
        return text

    def wrap_value(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        if undo.wrapped_kinds and find_json_type(text) not in undo.wrapped_kinds:
            return text
        inside = undo.properties.get(undo.wrapped)
        after = text if inside is None else self.convert_value(text, inside, depth - 1)
        return with_members(b"{}", {undo.wrapped: after.strip()})

    def convert_members(self, text: bytes, undo: ArgumentUndo, depth: int) -> bytes:
        members = decode_object(text)
        names = {original: sent for sent, original in undo.renamed.items()}
        converted: dict[str, bytes] = {}
        changed = False
        for name, raw in members.items():
            before = bytes(raw)
            sent = names.get(name, name)
            if sent is not name and sent in members:
                sent = name
            inside = undo.properties.get(sent, undo.others)
            after = before if inside is None else self.convert_value(before, inside, depth - 1)
            changed = changed or after is not before or sent is not name
            converted[sent] = after
        if not undo.optional <= converted.keys():
            changed = True
            absent = dict.fromkeys(sorted(undo.optional), b"null")
            in_order = {name: b"" for name in undo.order if name in converted or name in absent}
            converted = in_order | absent | converted
        return with_members(b"{}", converted) if changed else text

    def convert_choice(self, text: bytes, choices: tuple[Alternative, ...], depth: int) -> bytes:
        for choice in choices:
            if not _may_match(choice, text):
                continue
            converted = text if choice.undo is None else self.convert_value(text, choice.undo, depth - 1)
            if (
                accepts(choice, converted)
                and has_declared_members(converted, choice.undo, self.definitions)
                and self.restores_to(converted, text, choices, depth)
            ):
                return converted
        return text

    def restores_to(self, converted: bytes, text: bytes, choices: tuple[Alternative, ...], depth: int) -> bool:
        restorer = ArgumentRestorer(self.definitions)
        restorer.steps_left = self.steps_left
        restored = restorer.restore_choice(converted, choices, depth)
        self.steps_left = restorer.steps_left
        return restored == text or _distinguish_booleans(decode(restored)) == _distinguish_booleans(decode(text))


def _may_match(choice: Alternative, text: bytes) -> bool:
    """Return whether an alternative is worth a try; otherwise nested unions would be tried in all combinations."""
    undo = choice.undo
    if undo is not None and (undo.values or undo.parse or undo.choices or undo.references):
        return True
    kind = find_json_type(text)
    if kind != "object" or kind not in choice.kinds:
        return kind in choice.kinds
    optional = undo.optional if undo is not None else frozenset[str]()
    return choice.required <= decode_object(text).keys() | optional


def _find_listed(text: bytes, values: Mapping[str, str]) -> bytes:
    wanted = _distinguish_booleans(decode(text))
    for string, value in values.items():
        if _distinguish_booleans(decode(value)) == wanted:
            return encode(string)
    return text


def _distinguish_booleans(value: Any) -> object:
    """Replace booleans so that true and 1, which are equal in Python, compare as different."""
    match value:
        case bool():
            return ("boolean", value)
        case dict():
            return {name: _distinguish_booleans(member) for name, member in cast("dict[str, Any]", value).items()}
        case list():
            return [_distinguish_booleans(item) for item in cast("list[Any]", value)]
        case _:
            return value


class Note(Struct, frozen=True, order=True):
    """One thing that was dropped or approximated, at `where` (JSON pointer) inside the schema that was converted."""

    where: str
    what: str
    kind: LossKind


P = ParamSpec("P")


class ConvertedSchema(Struct, frozen=True):
    """A schema adapted to a target. `schema` is None if no parameters are left to declare."""

    schema: bytes | None
    notes: tuple[Note, ...] = ()
    undo: ArgumentUndo | None = None
    narrowed: bool = False
    """Some values that were valid before are not valid any more, and no description says so."""


def note_history_changes(
    convert: Callable[Concatenate[bytes, P], ConvertedSchema],
) -> Callable[Concatenate[bytes, P], ConvertedSchema]:
    """Decorate a conversion so that its undo records whether arguments of calls in the history must be converted."""

    @wraps(convert)
    def convert_whole(schema: bytes, /, *args: P.args, **options: P.kwargs) -> ConvertedSchema:
        converted = convert(schema, *args, **options)
        undo = converted.undo
        if undo is not None:
            changes = changes_history(undo)
            undo = structs.replace(undo, converts_history=changes, only_integers=not changes)
            return structs.replace(converted, undo=undo)
        return converted

    return convert_whole


def keep_schema(schema: bytes, undo: ArgumentUndo | None = None) -> ConvertedSchema:
    """Return the result for a schema that needs no change."""
    return ConvertedSchema(schema, (), undo)


class ConvertedPiece(Struct, frozen=True):
    """The converted schema of one value, and the undo that restores the value."""

    schema: Node
    undo: ArgumentUndo | None = None


def build_union_undo(pieces: list[ConvertedPiece]) -> ArgumentUndo | None:
    """Return the undo of a union; None if no alternative needs one."""
    if all(piece.undo is None for piece in pieces):
        return None
    return ArgumentUndo(choices=tuple(one for piece in pieces for one in build_alternatives(piece.schema, piece.undo)))


def build_alternatives(schema: Node, undo: ArgumentUndo | None) -> tuple[Alternative, ...]:
    """Return the alternatives of a schema: one, or those of the union that it is."""
    if undo is not None and undo.choices:
        return undo.choices
    branches = as_list(schema.get("anyOf"))
    if undo is None and branches:
        return tuple(one for branch in branches for one in build_alternatives(branch, None))
    return (build_alternative(schema, undo),)


def build_alternative(schema: Node, undo: ArgumentUndo | None) -> Alternative:
    """Return the `Alternative` of a schema, by which values of a union are assigned to it."""
    kinds: set[str] = set()
    collect_kinds(schema, kinds)
    properties = as_node(schema.get("properties")) or {}
    tags = {name: texts for name, child in properties.items() if (texts := _list_enum_texts(child))}
    items = as_node(schema.get("items"))
    return Alternative(
        kinds=frozenset(kinds),
        texts=_list_enum_texts(schema) or None,
        required=frozenset(as_list(schema.get("required"))),
        tags=tags,
        items=() if items is None else build_alternatives(items, None),
        undo=undo,
    )


def collect_kinds(schema: Node, kinds: set[str]) -> None:
    """Add the JSON types that a converted schema accepts to `kinds`."""
    types = schema.get("type")
    for name in [types] if isinstance(types, str) else as_list(types):
        kinds.add("number" if name.lower() == "integer" else name.lower())
    if schema.get("nullable") is True:
        kinds.add("null")
    for branch in as_list(schema.get("anyOf")):
        collect_kinds(branch, kinds)


def _list_enum_texts(schema: object) -> frozenset[str]:
    node = as_node(schema)
    if node is not None and isinstance(node.get("const"), str):
        return frozenset({node["const"]})
    values = [] if node is None else as_list(node.get("enum"))
    return frozenset(values) if values and all(isinstance(value, str) for value in values) else frozenset()
