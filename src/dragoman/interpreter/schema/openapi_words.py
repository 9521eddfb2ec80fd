"""What the converters of Google's `Schema` share: where they are, what they make, and the words they put in."""

from typing import Any, Protocol

from msgspec import Struct

from dragoman.interpreter.schema.arguments import Alternative, ArgumentUndo
from dragoman.interpreter.schema.conversion import NoteKind
from dragoman.interpreter.schema.nodes import Node, as_list, as_node, sentence, text_of, with_sentences
from dragoman.wire.pointer import escape

WORDED = {
    "object": ("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies"),
    "array": ("uniqueItems", "contains", "minContains", "maxContains"),
    "string": ("contentMediaType", "contentEncoding", "contentSchema"),
    "number": ("multipleOf",),
    "integer": ("multipleOf",),
}
"""Constraints of a type that can only be said in words."""

ANYWHERE = ("not", "if")

_HANDLED = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "const", "default", "example", "examples"}
    | {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "minLength", "maxLength", "pattern"}
    | {"properties", "required", "minProperties", "maxProperties", "propertyOrdering", "additionalProperties"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "anyOf", "oneOf", "allOf", "then", "else"}
    | {"$defs", "definitions", "$schema", "$id", "id", "$comment", "$vocabulary"}
    | {"$anchor", "$dynamicAnchor", "$recursiveAnchor"}
)


class At(Struct, frozen=True):
    """A place in the schema: its pointer, how deep it is, and the references entered on the way."""

    where: str = ""
    depth: int = 0
    trail: tuple[str, ...] = ()

    def below(self, *steps: str) -> "At":
        return At(self.where + "".join(f"/{escape(step)}" for step in steps), self.depth + 1, self.trail)

    def deeper(self) -> "At":
        return At(self.where, self.depth + 1, self.trail)

    def entering(self, pointer: str) -> "At":
        return At(pointer, self.depth, (*self.trail, pointer))


class Piece(Struct, frozen=True):
    """A converted schema of one value, and how to change that value back."""

    schema: Node
    undo: ArgumentUndo | None = None


class Conversion(Protocol):
    """What the converters of the single types need from the one that walks."""

    vertex: bool

    def note(self, where: str, what: str, kind: NoteKind = ...) -> None: ...

    def convert(self, schema: Any, at: At) -> Piece: ...


ANY = Piece({"type": "STRING"}, ArgumentUndo(parse=True))
_ANY_WORDS = "any JSON value, written as JSON text"


def described(piece: Piece, node: Node, words: str = _ANY_WORDS) -> Piece:
    """Say in the description that a string stands for something else."""
    described_piece = with_annotations(piece, node, worded_constraints(node))
    text = with_sentences(described_piece.schema.get("description"), [words])
    return Piece({**described_piece.schema, "description": text}, piece.undo)


def with_annotations(piece: Piece, node: Node, sentences: tuple[str | None, ...] = ()) -> Piece:
    """Add title, description, default and example of `node`; default and other words go into the description."""
    schema = dict(piece.schema)
    if (title := node.get("title")) is not None:
        schema.setdefault("title", title if isinstance(title, str) else text_of(title))
    inner = schema.get("description")
    outer = node.get("description")
    worded = [sentence(node, keyword) for keyword in ("default",) if node.get(keyword) is not None]
    description = with_sentences(inner if outer is None else outer, [*sentences, *worded])
    if outer is not None and inner is not None and inner != outer:
        description = f"{description}\n{inner}"
    if description:
        schema["description"] = description
    examples = as_list(node.get("examples"))
    if "example" in node or examples:
        schema.setdefault("example", node["example"] if "example" in node else examples[0])
    return Piece(schema, piece.undo)


def unsayable(conversion: Conversion, node: Node, at: At, kind: str = "") -> None:
    """Note the constraints that leave the schema, in words or entirely."""
    worded = (*WORDED.get(kind, ()), *ANYWHERE)
    elsewhere = {keyword for keywords in WORDED.values() for keyword in keywords}
    for keyword in node:
        if keyword in _HANDLED:
            continue
        if keyword in worded:
            conversion.note(f"{at.where}/{escape(keyword)}", f"{keyword} is said in the description only")
        elif keyword not in elsewhere:
            conversion.note(f"{at.where}/{escape(keyword)}", f"{keyword} has no counterpart", "dropped")


def worded_constraints(node: Node, kind: str = "") -> tuple[str | None, ...]:
    """Return the sentences for what `kind` cannot say otherwise."""
    return tuple(sentence(node, keyword) for keyword in (*WORDED.get(kind, ()), *ANYWHERE) if keyword in node)


def choices_between(pieces: list[Piece]) -> ArgumentUndo | None:
    """Return the undo of a union; None where no alternative needs one."""
    if all(piece.undo is None for piece in pieces):
        return None
    return ArgumentUndo(choices=tuple(one for piece in pieces for one in flat_choices(piece.schema, piece.undo)))


def flat_choices(schema: Node, undo: ArgumentUndo | None) -> tuple[Alternative, ...]:
    """Describe an alternative; one that is a union itself is as many alternatives as it has."""
    if undo is not None and undo.choices:
        return undo.choices
    branches = as_list(schema.get("anyOf"))
    if undo is None and branches:
        return tuple(one for branch in branches for one in flat_choices(branch, None))
    return (choice(schema, undo),)


def choice(schema: Node, undo: ArgumentUndo | None) -> Alternative:
    """Describe one alternative, so that a value can be told to be meant for it."""
    kinds: set[str] = set()
    collect_kinds(schema, kinds)
    properties = as_node(schema.get("properties")) or {}
    tags = {name: texts for name, child in properties.items() if (texts := _texts(child))}
    items = as_node(schema.get("items"))
    return Alternative(
        kinds=frozenset(kinds),
        texts=_texts(schema) or None,
        required=frozenset(as_list(schema.get("required"))),
        tags=tags,
        items=() if items is None else flat_choices(items, None),
        undo=undo,
    )


def collect_kinds(schema: Node, kinds: set[str]) -> None:
    """Collect the JSON types that a converted schema takes."""
    said = schema.get("type")
    for word in [said] if isinstance(said, str) else as_list(said):
        kinds.add("number" if word.lower() == "integer" else word.lower())
    if schema.get("nullable") is True:
        kinds.add("null")
    for branch in as_list(schema.get("anyOf")):
        collect_kinds(branch, kinds)


def _texts(schema: object) -> frozenset[str]:
    node = as_node(schema)
    if node is not None and isinstance(node.get("const"), str):
        return frozenset({node["const"]})
    values = [] if node is None else as_list(node.get("enum"))
    return frozenset(values) if values and all(isinstance(value, str) for value in values) else frozenset()
