"""Shared parts of the converters to Google's `Schema`: positions, results, descriptions and union undos."""

from typing import Any, Protocol

from msgspec import Struct

from dragoman.interpreter.schema.arguments import Alternative, ArgumentUndo
from dragoman.interpreter.schema.conversion import NoteKind
from dragoman.interpreter.schema.nodes import Node, append_sentences, as_list, as_node, describe_keyword, to_json_text
from dragoman.wire.pointer import escape, join

DESCRIBED = {
    "object": ("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies"),
    "array": ("uniqueItems", "contains", "minContains", "maxContains"),
    "string": ("contentMediaType", "contentEncoding", "contentSchema"),
    "number": ("multipleOf",),
    "integer": ("multipleOf",),
}
"""Constraints of each type that `Schema` lacks and that are moved to the description."""

ANYWHERE = ("not", "if")

_HANDLED = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "const", "default", "example", "examples"}
    | {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "minLength", "maxLength", "pattern"}
    | {"properties", "required", "minProperties", "maxProperties", "propertyOrdering", "additionalProperties"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "anyOf", "oneOf", "allOf", "then", "else"}
    | {"$defs", "definitions", "$schema", "$id", "id", "$comment", "$vocabulary"}
    | {"$anchor", "$dynamicAnchor", "$recursiveAnchor"}
)


class SchemaPosition(Struct, frozen=True):
    """A position in the schema: its pointer, its depth, and the references followed to reach it."""

    where: str = ""
    depth: int = 0
    trail: tuple[str, ...] = ()

    def descend(self, *steps: str) -> "SchemaPosition":
        return SchemaPosition(self.where + join(steps), self.depth + 1, self.trail)

    def nest(self) -> "SchemaPosition":
        return SchemaPosition(self.where, self.depth + 1, self.trail)

    def enter(self, pointer: str) -> "SchemaPosition":
        return SchemaPosition(pointer, self.depth, (*self.trail, pointer))


class ConvertedPiece(Struct, frozen=True):
    """The converted schema of one value, and the undo that restores the value."""

    schema: Node
    undo: ArgumentUndo | None = None


class TypeConverter(Protocol):
    """What the converters of single types need from `SchemaConverter`."""

    vertex: bool

    def add_note(self, where: str, what: str, kind: NoteKind = ...) -> None: ...

    def convert(self, schema: Any, at: SchemaPosition) -> ConvertedPiece: ...


ANY = ConvertedPiece({"type": "STRING"}, ArgumentUndo(parse=True))
_ANY_DESCRIPTION = "any JSON value, written as JSON text"


def add_description(piece: ConvertedPiece, node: Node, sentence: str = _ANY_DESCRIPTION) -> ConvertedPiece:
    """Add a sentence to the description that explains what a string contains."""
    annotated = add_annotations(piece, node, describe_constraints(node))
    text = append_sentences(annotated.schema.get("description"), [sentence])
    return ConvertedPiece({**annotated.schema, "description": text}, piece.undo)


def add_annotations(piece: ConvertedPiece, node: Node, sentences: tuple[str | None, ...] = ()) -> ConvertedPiece:
    """Add title, description, default and example of `node`; the default and `sentences` go into the description."""
    schema = dict(piece.schema)
    if (title := node.get("title")) is not None:
        schema.setdefault("title", title if isinstance(title, str) else to_json_text(title))
    inner = schema.get("description")
    outer = node.get("description")
    defaults = [describe_keyword(node, keyword) for keyword in ("default",) if node.get(keyword) is not None]
    description = append_sentences(inner if outer is None else outer, [*sentences, *defaults])
    if outer is not None and inner is not None and inner != outer:
        description = f"{description}\n{inner}"
    if description:
        schema["description"] = description
    examples = as_list(node.get("examples"))
    if "example" in node or examples:
        schema.setdefault("example", node["example"] if "example" in node else examples[0])
    return ConvertedPiece(schema, piece.undo)


def note_unsupported(conversion: TypeConverter, node: Node, at: SchemaPosition, kind: str = "") -> None:
    """Note the constraints that are moved to the description or dropped."""
    described = (*DESCRIBED.get(kind, ()), *ANYWHERE)
    elsewhere = {keyword for keywords in DESCRIBED.values() for keyword in keywords}
    for keyword in node:
        if keyword in _HANDLED:
            continue
        if keyword in described:
            conversion.add_note(f"{at.where}/{escape(keyword)}", f"{keyword} is moved to the description")
        elif keyword not in elsewhere:
            conversion.add_note(f"{at.where}/{escape(keyword)}", f"Gemini's Schema has no {keyword}", "dropped")


def describe_constraints(node: Node, kind: str = "") -> tuple[str | None, ...]:
    """Return the sentences for constraints that `Schema` has no keyword for."""
    return tuple(
        describe_keyword(node, keyword) for keyword in (*DESCRIBED.get(kind, ()), *ANYWHERE) if keyword in node
    )


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
