"""Close a schema: the subsets of structured output, where objects list all their members and nothing else fits.

Anthropic and OpenAI differ in what they allow, and a `Subset` says it. Constraints outside the subset are said in the
description. References to definitions stay; others, and those with siblings, are inlined.
"""

from typing import Any

from msgspec import Struct, structs

from dragoman.interpreter.schema.arguments import Alternative, ArgumentUndo
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.from_openapi import nullable
from dragoman.interpreter.schema.nodes import (
    DEEPEST_SCHEMA,
    Node,
    as_list,
    as_node,
    merge,
    names_in,
    properties_of,
    said_types,
    sentence,
    types_of,
    with_sentences,
)
from dragoman.interpreter.schema.openapi_words import Piece, choice, flat_choices
from dragoman.interpreter.schema.references import (
    DEFINITIONS,
    IN_DEFINITIONS,
    References,
    circles,
    definition_around,
    name_of,
    reference_of,
    severed,
    without_reference,
)
from dragoman.wire.json import encode
from dragoman.wire.pointer import escape

MOST_NODES = 5000
LONGEST_TRAIL = 30
SCALARS = ["string", "number", "boolean", "null"]

_SILENT = frozenset({"$schema", "$id", "$comment", "$anchor", "title", "description", "propertyOrdering", "nullable"})
_STRUCTURE = frozenset(
    {
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "additionalItems",
        "additionalProperties",
        "then",
        "else",
    }
    | {"anyOf", "oneOf", "allOf", "$dynamicAnchor", "$defs", "definitions", "unevaluatedProperties", "unevaluatedItems"}
)
_OF_STRINGS = frozenset({"pattern", "minLength", "maxLength"})
"""Constraints that say nothing about values of other types, and that targets refuse beside those."""
_CONFLICT = "; the first is kept"
_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Subset(Struct, frozen=True, kw_only=True):
    """What a target's structured output knows beside types, enums, objects and arrays."""

    keywords: frozenset[str]
    formats: frozenset[str]
    recursion: bool
    all_required: bool
    most_min_items: int | None = None
    """`minItems` above this is not known."""
    simple_patterns: bool = False
    typed_values: bool = False
    """Listed values have a type beside them."""


class Closing:
    """One schema on its way into a subset."""

    def __init__(self, root: Node, notes: list[Note], subset: Subset) -> None:
        self.root = root
        self.notes = notes
        self.subset = subset
        self.references = References(root)
        self.circles: dict[str, str] | None = None
        self.nodes_left = MOST_NODES
        self.narrowed = False

    def whole(self) -> Piece:
        """Close the document, its definitions included."""
        piece = self.close(self.root, "", ())
        schema = dict(piece.schema)
        undos: dict[str, ArgumentUndo] = {}
        for keyword in DEFINITIONS:
            closed: Node = {}
            for name, child in (as_node(self.root.get(keyword)) or {}).items():
                pointer = f"/{keyword}/{escape(name)}"
                inner = self.close(child, pointer, (pointer,))
                closed[name] = inner.schema
                if inner.undo is not None:
                    undos[pointer] = inner.undo
            if closed:
                schema[keyword] = closed
        return Piece(schema, with_definitions(piece.undo, undos))

    def note(self, where: str, what: str) -> None:
        self.notes.append(Note(where, what, "approximated"))

    def narrow(self, where: str, what: str) -> None:
        """Note that values which fitted before will not fit any more."""
        self.narrowed = True
        self.note(where, what)

    def close(self, schema: Any, where: str, trail: tuple[str, ...]) -> Piece:
        """Close the schema of one value."""
        self.nodes_left -= 1
        node = as_node(schema)
        if not node:
            return self.anything({}, where)
        if self.nodes_left < 0 or where.count("/") > 2 * DEEPEST_SCHEMA:
            self.narrow(where, "schema is too large: the rest is narrowed to plain values")
            return Piece({"type": SCALARS})
        reference = reference_of(node)
        if reference is not None:
            return self.referenced(node, reference, where, trail)
        for _ in range(LONGEST_TRAIL):
            if not as_list(node.get("allOf")):
                break
            node = self.without_all_of(node, where, trail)
        for keyword in ("anyOf", "oneOf"):
            if as_list(node.get(keyword)):
                return self.union(node, keyword, where, trail)
        return self.plain(node, where, trail)

    def referenced(self, node: Node, reference: object, where: str, trail: tuple[str, ...]) -> Piece:
        own = {name: value for name, value in node.items() if not name.startswith("$") and name not in DEFINITIONS}
        pointer = self.references.locate(reference, where)
        if pointer is None:
            return self.close(severed(node, where, self.notes), where, trail)
        recursive = self.recurses(pointer, where, trail)
        if recursive and not self.subset.recursion:
            return self.cut(pointer, where)
        stays = pointer.startswith(IN_DEFINITIONS) and pointer.count("/") == 2
        if recursive or (stays and not own):
            if own:
                self.note(where, "what stands beside a recursive reference is dropped")
            return Piece({"$ref": f"#{pointer}"}, ArgumentUndo(references=(pointer,)))
        if len(trail) > LONGEST_TRAIL:
            return self.cut(pointer, where)
        target = as_node(self.references.at(pointer)) or {}
        return self.close(self.merged(own, target, where, join=False), where, (*trail, pointer))

    def recurses(self, pointer: str, where: str, trail: tuple[str, ...]) -> bool:
        if not pointer or pointer in trail or where.startswith(f"{pointer}/"):
            return True
        here, there = definition_around(where), definition_around(pointer)
        if self.subset.recursion or not here or not there or here == there:
            return False
        if self.circles is None:
            self.circles = circles(self.root, self.references)
        return self.circles.get(here) == self.circles.get(there)

    def cut(self, pointer: str, where: str) -> Piece:
        name = name_of(pointer)
        self.narrow(where, f"recursion of {name} is cut")
        return Piece({**_CLOSED, "description": f"recursive {name}"})

    def merged(self, first: Node, second: Node, where: str, *, join: bool) -> Node:
        def clash(keyword: str) -> None:
            self.note(f"{where}/{keyword}", f"conflicting values of {keyword}{_CONFLICT}")

        return merge(first, second, clash, join=join)

    def without_all_of(self, node: Node, where: str, trail: tuple[str, ...]) -> Node:
        merged = {name: value for name, value in node.items() if name != "allOf"}
        for branch in as_list(node["allOf"]):
            part = as_node(branch) or {}
            hops = 0
            while (reference := reference_of(part)) is not None:
                pointer = self.references.locate(reference, where)
                hops += 1
                self.nodes_left -= 1
                if pointer is None or pointer in trail or hops > LONGEST_TRAIL or self.nodes_left < 0:
                    self.note(where, f"reference {reference} inside allOf is dropped")
                    part = {}
                    break
                own = without_reference(part)
                part = self.merged(own, as_node(self.references.at(pointer)) or {}, where, join=False)
            merged = self.merged(merged, part, where, join=True)
        return merged

    def union(self, node: Node, keyword: str, where: str, trail: tuple[str, ...]) -> Piece:
        if keyword == "oneOf":
            self.note(f"{where}/oneOf", "oneOf is weakened to anyOf")
        words = {name: node[name] for name in ("title", "description", "default") if name in node}
        base = {
            name: value
            for name, value in node.items()
            if name not in words and name != keyword and name not in _SILENT and name not in DEFINITIONS
        }
        branches = [branch for branch in as_list(node[keyword]) if branch is not False]
        noted = len(self.notes)
        pieces = [
            self.close({"allOf": [branch, base]} if base else branch, f"{where}/{keyword}/{index}", trail)
            for index, branch in enumerate(branches)
        ]
        self.note_losers(f"{where}/{keyword}/", where, self.notes[noted:])
        if not pieces:
            return self.plain({**base, **words}, where, trail)
        distinct = list({encode(piece.schema): piece for piece in pieces}.values())
        choices = tuple(one for piece in distinct for one in self.choices(piece))
        undo = ArgumentUndo(choices=choices) if any(one.undo for one in choices) else None
        return Piece(self.worded({"anyOf": [piece.schema for piece in distinct]}, words, where), undo)

    def note_losers(self, inside: str, beside: str, notes: list[Note]) -> None:
        """What conflicts with an alternative stands beside the alternatives, and loses: say so in its own place."""
        for note in notes:
            if note.what.endswith(_CONFLICT):
                _, _, rest = note.where.removeprefix(inside).partition("/")
                self.notes.append(Note(f"{beside}/{rest}", note.what, "dropped"))

    def choices(self, piece: Piece) -> tuple[Alternative, ...]:
        pointer = self.references.locate(reference_of(piece.schema)) if "$ref" in piece.schema else None
        if pointer is None:
            return flat_choices(piece.schema, piece.undo)
        target = as_node(self.references.at(pointer)) or {}
        return (choice({"type": types_of(target) or SCALARS, **target}, piece.undo),)

    def plain(self, node: Node, where: str, trail: tuple[str, ...]) -> Piece:
        """Close a schema without references and combinators."""
        kinds = types_of(node)
        if "enum" in node or "const" in node:
            return self.values(node, where, trail)
        if not kinds:
            return self.anything(node, where)
        schema: Node = {"type": kinds[0] if len(kinds) == 1 else kinds}
        undo = None
        if "object" in kinds:
            schema, undo = self.members(schema, node, where, trail)
        if "array" in kinds:
            items = self.items(node, where, trail)
            schema["items"] = items.schema
            if items.undo is not None:
                undo = structs.replace(undo or ArgumentUndo(), items=items.undo)
        return Piece(self.worded(schema, node, where), undo)

    def values(self, node: Node, where: str, trail: tuple[str, ...]) -> Piece:
        """Close `enum` or `const`, whose values must be plain; objects among them are taken apart."""
        values = [node["const"]] if "const" in node else as_list(node["enum"])
        words = {name: value for name, value in node.items() if name not in {"type", "enum", "const"}}
        if values and not any(isinstance(value, dict | list) for value in values):
            if not self.may_be_scalar(node):
                # Some mean the items of an array, and say it of the array.
                listed = "const" if "const" in node else "enum"
                self.note(f"{where}/{listed}", f"{listed} is said in the description")
                said = with_sentences(node.get("description"), [sentence(node, listed)])
                return self.plain({**words, "type": node["type"], "description": said}, where, trail)
            kept = {name: node[name] for name in ("type", "enum", "const") if name in node}
            if self.subset.typed_values:
                kept = {"type": _type_of(values), **kept}
            return Piece(self.worded(kept, words, where))
        if len(values) != 1:
            return self.union({**words, "anyOf": [{"const": value} for value in values]}, "anyOf", where, trail)
        if (members := as_node(values[0])) is None:
            said = {**words, "description": with_sentences(words.get("description"), [sentence(node, "const")])}
            return self.plain({**said, "type": "array"}, where, trail)
        parts: Node = {name: {"const": value} for name, value in members.items()}
        return self.plain({**words, "properties": parts, "required": list(parts)}, where, trail)

    def may_be_scalar(self, node: Node) -> bool:
        kinds = said_types(node)
        return not kinds or any(kind in kinds for kind in (*SCALARS, "integer"))

    def members(self, schema: Node, node: Node, where: str, trail: tuple[str, ...]) -> tuple[Node, ArgumentUndo | None]:
        others = (node.get("additionalProperties"), node.get("unevaluatedProperties"))
        if any(other not in (None, False) for other in others) or "patternProperties" in node:
            self.narrow(where, "members that are not declared cannot be sent")
        declared = {name: child for name, child in properties_of(node).items() if child is not False}
        required = [name for name in names_in(node.get("required")) if name in declared]
        properties: Node = {}
        undos: dict[str, ArgumentUndo] = {}
        optional: set[str] = set()
        for name, child in declared.items():
            piece = self.close(child, f"{where}/properties/{escape(name)}", trail)
            properties[name] = piece.schema
            if self.subset.all_required and name not in required:
                properties[name] = nullable(piece.schema)
                if not self.takes_null(piece.schema):
                    optional.add(name)
                    self.note(f"{where}/properties/{escape(name)}", "not required: null stands for absent")
            if piece.undo is not None:
                undos[name] = piece.undo
        if self.subset.all_required:
            required = list(properties)
        schema = {**schema, "properties": properties, "additionalProperties": False}
        if required or self.subset.all_required:
            schema["required"] = required
        if not undos and not optional:
            return schema, None
        order = tuple(properties) if optional else ()
        return schema, ArgumentUndo(properties=undos, optional=frozenset(optional), order=order)

    def takes_null(self, schema: Node, seen: set[str] | None = None) -> bool:
        seen = set() if seen is None else seen
        if "$ref" in schema:
            pointer = self.references.locate(schema["$ref"])
            if pointer is None or pointer in seen or len(seen) == LONGEST_TRAIL:
                return False
            seen.add(pointer)
            target = as_node(self.references.at(pointer))
            return target is not None and self.takes_null(target, seen)
        kinds = schema.get("type")
        if "null" in (kinds if isinstance(kinds, list) else [kinds]) or None in as_list(schema.get("enum")):
            return True
        if "const" in schema:
            return schema["const"] is None
        return any(self.takes_null(branch, seen) for branch in as_list(schema.get("anyOf")))

    def items(self, node: Node, where: str, trail: tuple[str, ...]) -> Piece:
        positions = as_list(node.get("prefixItems")) or as_list(node.get("items"))
        if not positions:
            return self.close(node.get("items"), f"{where}/items", trail)
        self.note(where, "positions of a tuple are not kept")
        further = node.get("items") if "prefixItems" in node else node.get("additionalItems")
        branches = [*positions, *([further] if as_node(further) else [])]
        return self.union({"anyOf": branches}, "anyOf", where, trail)

    def anything(self, node: Node, where: str) -> Piece:
        self.narrow(where, "any value: narrowed to plain values")
        return Piece(self.worded({"type": SCALARS}, node, where))

    def worded(self, schema: Node, node: Node, where: str) -> Node:
        """Copy what the subset knows and say the rest."""
        said: list[str | None] = []
        strings = "string" in said_types(schema) or "type" not in schema
        for keyword, value in node.items():
            if keyword in _STRUCTURE or keyword in _SILENT or (keyword in _OF_STRINGS and not strings):
                continue
            if self.knows(keyword, value) and (strings or keyword != "format"):
                schema[keyword] = value
                continue
            if words := sentence(node, keyword):
                said.append(words)
            if keyword != "default":
                self.note(
                    f"{where}/{escape(keyword)}", f"{keyword} is {'said in the description' if words else 'lost'}"
                )
        if isinstance(title := node.get("title"), str):
            schema["title"] = title
        if description := with_sentences(node.get("description"), said):
            schema["description"] = description
        return schema

    def knows(self, keyword: str, value: Any) -> bool:
        if keyword == "format":
            return isinstance(value, str) and value in self.subset.formats
        if keyword == "minItems" and self.subset.most_min_items is not None:
            return isinstance(value, int) and value <= self.subset.most_min_items
        if keyword == "pattern" and self.subset.simple_patterns:
            return isinstance(value, str) and not any(mark in value for mark in ("(?", "\\b", "\\B", "\\1", "\\k"))
        return keyword in self.subset.keywords


_CLOSED: Node = {"type": "object", "properties": {}, "additionalProperties": False}


def _type_of(values: list[Any]) -> str | list[str]:
    """Return what plain values are."""
    kinds = list(dict.fromkeys(_TYPES[type(value)] for value in values))
    return kinds[0] if len(kinds) == 1 else kinds


def with_definitions(undo: ArgumentUndo | None, definitions: dict[str, ArgumentUndo]) -> ArgumentUndo | None:
    """Give the outermost undo what its references mean."""
    if undo is None or not definitions:
        return undo
    return structs.replace(undo, definitions=definitions)
