"""Convert a schema to a subset for structured output, where every object is closed: no undeclared properties.

Anthropic and OpenAI allow different keywords; a `SchemaSubset` lists them. Constraints outside the subset are moved to
the description. References to definitions stay; other references, and those with siblings, are inlined.
"""

import re
from typing import Any

from msgspec import Struct, structs

from dragoman.interpreter.schema.arguments import Alternative, ArgumentUndo
from dragoman.interpreter.schema.conversion import ConvertedPiece, Note, build_alternative, build_alternatives
from dragoman.interpreter.schema.from_openapi import allow_null
from dragoman.interpreter.schema.nodes import (
    MAX_SCHEMA_DEPTH,
    Node,
    append_sentences,
    as_list,
    as_node,
    describe_keyword,
    infer_types,
    list_names,
    merge,
    properties_of,
    read_types,
)
from dragoman.interpreter.schema.references import (
    DEFINITIONS,
    IN_DEFINITIONS,
    References,
    describe_reference,
    drop_reference,
    find_cycles,
    find_definition,
    find_reference,
    get_last_token,
)
from dragoman.wire.json import encode
from dragoman.wire.pointer import escape

MAX_NODES = 5000
MAX_TRAIL = 30
SCALARS = ["string", "number", "boolean", "null"]

_IGNORED = frozenset({"$schema", "$id", "$comment", "$anchor", "title", "description", "propertyOrdering", "nullable"})
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
"""Constraints that apply only to strings, and that targets reject next to other types."""
_CONFLICT = "; the first is kept"
_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class SchemaSubset(Struct, frozen=True, kw_only=True):
    """What a target's structured output supports in addition to types, enums, objects and arrays."""

    keywords: frozenset[str]
    formats: frozenset[str]
    recursion: bool
    all_required: bool
    max_min_items: int | None = None
    """The largest supported `minItems`; None means any."""
    refused_patterns: re.Pattern[str] | None = None
    """Matches in the regular expressions that are not supported as `pattern`."""
    typed_values: bool = False
    """A schema with `enum` or `const` must also have a `type`."""


class SchemaCloser:
    """Converts one schema to a subset."""

    def __init__(self, root: Node, notes: list[Note], subset: SchemaSubset) -> None:
        self.root = root
        self.notes = notes
        self.subset = subset
        self.references = References(root)
        self.cycles: dict[str, str] | None = None
        self.nodes_left = MAX_NODES
        self.narrowed = False

    def close_document(self) -> ConvertedPiece:
        """Convert the document, including its definitions."""
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
        return ConvertedPiece(schema, add_definitions(piece.undo, undos))

    def add_note(self, where: str, what: str) -> None:
        self.notes.append(Note(where, what, "approximated"))

    def note_narrowing(self, where: str, what: str) -> None:
        """Note that some values that were valid before are not valid any more."""
        self.narrowed = True
        self.add_note(where, what)

    def close(self, schema: Any, where: str, trail: tuple[str, ...]) -> ConvertedPiece:
        """Convert the schema of one value to the subset."""
        self.nodes_left -= 1
        node = as_node(schema)
        if not node:
            return self.close_any({}, where)
        if self.nodes_left < 0 or where.count("/") > 2 * MAX_SCHEMA_DEPTH:
            self.note_narrowing(where, "the schema is too large: the rest is limited to scalar values")
            return ConvertedPiece({"type": SCALARS})
        reference = find_reference(node)
        if reference is not None:
            return self.close_reference(node, reference, where, trail)
        for _ in range(MAX_TRAIL):
            if not as_list(node.get("allOf")):
                break
            node = self.merge_all_of(node, where, trail)
        for keyword in ("anyOf", "oneOf"):
            if as_list(node.get(keyword)):
                return self.close_union(node, keyword, where, trail)
        return self.close_plain(node, where, trail)

    def close_reference(self, node: Node, reference: object, where: str, trail: tuple[str, ...]) -> ConvertedPiece:
        own = {name: value for name, value in node.items() if not name.startswith("$") and name not in DEFINITIONS}
        pointer = self.references.locate(reference, where)
        if pointer is None:
            return self.close(describe_reference(node, where, self.notes), where, trail)
        recursive = self.is_recursive(pointer, where, trail)
        if recursive and not self.subset.recursion:
            return self.cut_recursion(pointer, where)
        is_definition = pointer.startswith(IN_DEFINITIONS) and pointer.count("/") == 2
        if recursive or (is_definition and not own):
            if own:
                self.add_note(where, "keywords next to a recursive reference are dropped")
            return ConvertedPiece({"$ref": f"#{pointer}"}, ArgumentUndo(references=(pointer,)))
        if len(trail) > MAX_TRAIL:
            return self.cut_recursion(pointer, where)
        target = as_node(self.references.get_schema(pointer)) or {}
        return self.close(self.merge_schemas(own, target, where, join=False), where, (*trail, pointer))

    def is_recursive(self, pointer: str, where: str, trail: tuple[str, ...]) -> bool:
        if not pointer or pointer in trail or where.startswith(f"{pointer}/"):
            return True
        own, referenced = find_definition(where), find_definition(pointer)
        if self.subset.recursion or not own or not referenced or own == referenced:
            return False
        if self.cycles is None:
            self.cycles = find_cycles(self.root, self.references)
        return self.cycles.get(own) == self.cycles.get(referenced)

    def cut_recursion(self, pointer: str, where: str) -> ConvertedPiece:
        name = get_last_token(pointer)
        self.note_narrowing(where, f"recursion of {name} is cut")
        return ConvertedPiece({**_CLOSED, "description": f"recursive {name}"})

    def merge_schemas(self, first: Node, second: Node, where: str, *, join: bool) -> Node:
        def clash(keyword: str) -> None:
            self.add_note(f"{where}/{keyword}", f"conflicting values of {keyword}{_CONFLICT}")

        return merge(first, second, clash, join=join)

    def merge_all_of(self, node: Node, where: str, trail: tuple[str, ...]) -> Node:
        merged = {name: value for name, value in node.items() if name != "allOf"}
        for branch in as_list(node["allOf"]):
            part = as_node(branch) or {}
            hops = 0
            while (reference := find_reference(part)) is not None:
                pointer = self.references.locate(reference, where)
                hops += 1
                self.nodes_left -= 1
                if pointer is None or pointer in trail or hops > MAX_TRAIL or self.nodes_left < 0:
                    self.add_note(where, f"reference {reference} inside allOf is dropped")
                    part = {}
                    break
                own = drop_reference(part)
                part = self.merge_schemas(own, as_node(self.references.get_schema(pointer)) or {}, where, join=False)
            merged = self.merge_schemas(merged, part, where, join=True)
        return merged

    def close_union(self, node: Node, keyword: str, where: str, trail: tuple[str, ...]) -> ConvertedPiece:
        """Convert an `anyOf` or `oneOf` with its alternatives to one `anyOf`."""
        if keyword == "oneOf":
            self.add_note(f"{where}/oneOf", "oneOf is weakened to anyOf")
        annotations = {name: node[name] for name in ("title", "description", "default") if name in node}
        base = {
            name: value
            for name, value in node.items()
            if name not in annotations and name != keyword and name not in _IGNORED and name not in DEFINITIONS
        }
        branches = [branch for branch in as_list(node[keyword]) if branch is not False]
        noted = len(self.notes)
        pieces = [
            self.close({"allOf": [branch, base]} if base else branch, f"{where}/{keyword}/{index}", trail)
            for index, branch in enumerate(branches)
        ]
        self.note_conflicts(f"{where}/{keyword}/", where, self.notes[noted:])
        if not pieces:
            return self.close_plain({**base, **annotations}, where, trail)
        distinct = list({encode(piece.schema): piece for piece in pieces}.values())
        choices = tuple(one for piece in distinct for one in self.build_alternatives(piece))
        undo = ArgumentUndo(choices=choices) if any(one.undo for one in choices) else None
        return ConvertedPiece(
            self.add_descriptions({"anyOf": [piece.schema for piece in distinct]}, annotations, where), undo
        )

    def note_conflicts(self, inside: str, outer: str, notes: list[Note]) -> None:
        """Report keywords next to the union that conflict with an alternative as dropped at their own pointers."""
        for note in notes:
            if note.what.endswith(_CONFLICT):
                _, _, rest = note.where.removeprefix(inside).partition("/")
                self.notes.append(Note(f"{outer}/{rest}", note.what, "dropped"))

    def build_alternatives(self, piece: ConvertedPiece) -> tuple[Alternative, ...]:
        pointer = self.references.locate(find_reference(piece.schema)) if "$ref" in piece.schema else None
        if pointer is None:
            return build_alternatives(piece.schema, piece.undo)
        target = as_node(self.references.get_schema(pointer)) or {}
        return (build_alternative({"type": infer_types(target) or SCALARS, **target}, piece.undo),)

    def close_plain(self, node: Node, where: str, trail: tuple[str, ...]) -> ConvertedPiece:
        """Convert a schema without references and combinators."""
        kinds = infer_types(node)
        if "enum" in node or "const" in node:
            return self.close_values(node, where, trail)
        if not kinds:
            return self.close_any(node, where)
        schema: Node = {"type": kinds[0] if len(kinds) == 1 else kinds}
        undo = None
        if "object" in kinds:
            schema, undo = self.close_members(schema, node, where, trail)
        if "array" in kinds:
            items = self.close_items(node, where, trail)
            schema["items"] = items.schema
            if items.undo is not None:
                undo = structs.replace(undo or ArgumentUndo(), items=items.undo)
        return ConvertedPiece(self.add_descriptions(schema, node, where), undo)

    def close_values(self, node: Node, where: str, trail: tuple[str, ...]) -> ConvertedPiece:
        """Convert `enum` or `const`, whose values must be scalars; an object becomes a schema of its members."""
        values = [node["const"]] if "const" in node else as_list(node["enum"])
        rest = {name: value for name, value in node.items() if name not in {"type", "enum", "const"}}
        if values and not any(isinstance(value, dict | list) for value in values):
            if not self.may_be_scalar(node):
                # Some schemas put the enum of the items on the array.
                keyword = "const" if "const" in node else "enum"
                self.add_note(f"{where}/{keyword}", f"{keyword} is moved to the description")
                description = append_sentences(node.get("description"), [describe_keyword(node, keyword)])
                return self.close_plain({**rest, "type": node["type"], "description": description}, where, trail)
            kept = {name: node[name] for name in ("type", "enum", "const") if name in node}
            if self.subset.typed_values:
                kept = {"type": _find_type(values), **kept}
            return ConvertedPiece(self.add_descriptions(kept, rest, where))
        if len(values) != 1:
            return self.close_union({**rest, "anyOf": [{"const": value} for value in values]}, "anyOf", where, trail)
        if (members := as_node(values[0])) is None:
            description = append_sentences(rest.get("description"), [describe_keyword(node, "const")])
            return self.close_plain({**rest, "description": description, "type": "array"}, where, trail)
        parts: Node = {name: {"const": value} for name, value in members.items()}
        return self.close_plain({**rest, "properties": parts, "required": list(parts)}, where, trail)

    def may_be_scalar(self, node: Node) -> bool:
        kinds = read_types(node)
        return not kinds or any(kind in kinds for kind in (*SCALARS, "integer"))

    def close_members(
        self, schema: Node, node: Node, where: str, trail: tuple[str, ...]
    ) -> tuple[Node, ArgumentUndo | None]:
        others = (node.get("additionalProperties"), node.get("unevaluatedProperties"))
        if any(other not in (None, False) for other in others) or "patternProperties" in node:
            self.note_narrowing(where, "properties that are not declared cannot be sent")
        declared = {name: child for name, child in properties_of(node).items() if child is not False}
        required = [name for name in list_names(node.get("required")) if name in declared]
        properties: Node = {}
        undos: dict[str, ArgumentUndo] = {}
        optional: set[str] = set()
        for name, child in declared.items():
            piece = self.close(child, f"{where}/properties/{escape(name)}", trail)
            properties[name] = piece.schema
            if self.subset.all_required and name not in required:
                properties[name] = allow_null(piece.schema)
                if not self.accepts_null(piece.schema):
                    optional.add(name)
                    self.add_note(f"{where}/properties/{escape(name)}", "optional property: null means absent")
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

    def accepts_null(self, schema: Node, seen: set[str] | None = None) -> bool:
        seen = set() if seen is None else seen
        if "$ref" in schema:
            pointer = self.references.locate(schema["$ref"])
            if pointer is None or pointer in seen or len(seen) == MAX_TRAIL:
                return False
            seen.add(pointer)
            target = as_node(self.references.get_schema(pointer))
            return target is not None and self.accepts_null(target, seen)
        kinds = schema.get("type")
        if "null" in (kinds if isinstance(kinds, list) else [kinds]) or None in as_list(schema.get("enum")):
            return True
        if "const" in schema:
            return schema["const"] is None
        return any(self.accepts_null(branch, seen) for branch in as_list(schema.get("anyOf")))

    def close_items(self, node: Node, where: str, trail: tuple[str, ...]) -> ConvertedPiece:
        positions = as_list(node.get("prefixItems")) or as_list(node.get("items"))
        if not positions:
            return self.close(node.get("items"), f"{where}/items", trail)
        self.add_note(where, "the item positions of a tuple are not enforced")
        further = node.get("items") if "prefixItems" in node else node.get("additionalItems")
        branches = [*positions, *([further] if as_node(further) else [])]
        return self.close_union({"anyOf": branches}, "anyOf", where, trail)

    def close_any(self, node: Node, where: str) -> ConvertedPiece:
        self.note_narrowing(where, "a value of any type is limited to scalar values")
        return ConvertedPiece(self.add_descriptions({"type": SCALARS}, node, where))

    def add_descriptions(self, schema: Node, node: Node, where: str) -> Node:
        """Copy the keywords that the subset supports and describe the others in the description."""
        sentences: list[str | None] = []
        strings = "string" in read_types(schema) or "type" not in schema
        for keyword, value in node.items():
            if keyword in _STRUCTURE or keyword in _IGNORED or (keyword in _OF_STRINGS and not strings):
                continue
            if self.is_supported(keyword, value) and (strings or keyword != "format"):
                schema[keyword] = value
                continue
            if sentence := describe_keyword(node, keyword):
                sentences.append(sentence)
            if keyword != "default":
                outcome = "moved to the description" if sentence else "dropped"
                self.add_note(f"{where}/{escape(keyword)}", f"{keyword} is {outcome}")
        if isinstance(title := node.get("title"), str):
            schema["title"] = title
        if description := append_sentences(node.get("description"), sentences):
            schema["description"] = description
        return schema

    def is_supported(self, keyword: str, value: Any) -> bool:
        if keyword == "format":
            return isinstance(value, str) and value in self.subset.formats
        if keyword == "minItems" and self.subset.max_min_items is not None:
            return isinstance(value, int) and value <= self.subset.max_min_items
        if keyword == "pattern" and (refused := self.subset.refused_patterns) is not None:
            return isinstance(value, str) and refused.search(value) is None
        return keyword in self.subset.keywords


_CLOSED: Node = {"type": "object", "properties": {}, "additionalProperties": False}


def _find_type(values: list[Any]) -> str | list[str]:
    """Return the JSON type of scalar values, or the list of their types."""
    kinds = list(dict.fromkeys(_TYPES[type(value)] for value in values))
    return kinds[0] if len(kinds) == 1 else kinds


def add_definitions(undo: ArgumentUndo | None, definitions: dict[str, ArgumentUndo]) -> ArgumentUndo | None:
    """Add the undos that references name to the root undo."""
    if undo is None or not definitions:
        return undo
    return structs.replace(undo, definitions=definitions)
