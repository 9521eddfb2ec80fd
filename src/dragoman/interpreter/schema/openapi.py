"""Bring JSON Schema down to Google's `Schema` message, an OpenAPI subset where one unknown keyword fails the request.

Rule 1: output is made from a whitelist; what has no keyword there is said in the description and noted.
Rule 2: what the target cannot type (any value, maps, mixed enums) travels as a string, and the undo parses it back.
Rule 3: references are inlined. Recursion is cut at a fixed depth, and size and depth are bounded whatever the schema.
"""

from typing import Any

from msgspec import structs

from dragoman.interpreter.schema.arguments import ArgumentUndo, parts_of
from dragoman.interpreter.schema.conversion import Converted, Note, NoteKind, conversion
from dragoman.interpreter.schema.nodes import (
    ANNOTATIONS,
    Node,
    alternatives,
    as_list,
    as_node,
    merge,
    read_document,
    types_of,
    with_sentences,
)
from dragoman.interpreter.schema.object_root import WRAPPED, object_root, placed
from dragoman.interpreter.schema.openapi_types import (
    array_piece,
    enumeration,
    number_piece,
    object_piece,
    string_piece,
)
from dragoman.interpreter.schema.openapi_words import (
    ANY,
    At,
    Piece,
    choices_between,
    described,
    unsayable,
    with_annotations,
    worded_constraints,
)
from dragoman.interpreter.schema.references import References, name_of, reference_of, severed, without_reference
from dragoman.wire.json import Malformed, encode

DEEPEST = 32
MOST_NODES = 5000
RECURSIONS = 2

_UNIONS = ("anyOf", "oneOf")
_DEMANDS = frozenset({"required", "not", "title", "description"})


@conversion
def to_openapi(schema: bytes, *, vertex: bool = False) -> Converted:
    """Convert JSON Schema to the `Schema` of AI Studio, or of Vertex; None where no parameters are left."""
    try:
        document = read_document(schema)
    except Malformed as error:
        return Converted(None, (Note("", f"schema is not readable: {error.message}", "dropped"),))
    notes: list[Note] = []
    root, undo = object_root(document, notes)
    converter = SchemaConverter(root, notes, vertex=vertex)
    piece = converter.convert(root, At())
    if piece.schema.get("type") != "OBJECT":
        # A map has no members to declare, so it came out as text; the root may not be a string.
        wrapped: Node = {WRAPPED: piece.schema}
        piece = Piece(
            {"type": "OBJECT", "properties": wrapped, "propertyOrdering": [WRAPPED], "required": [WRAPPED]},
            ArgumentUndo(
                properties={} if piece.undo is None else {WRAPPED: piece.undo},
                wrapped=WRAPPED,
                wrapped_kinds=frozenset({"object"}),
            ),
        )
    elif undo is not None:
        inside = {} if piece.undo is None else piece.undo.properties
        piece = Piece(piece.schema, structs.replace(undo, properties=inside))
    found = placed(notes, document, undo)
    if "properties" not in piece.schema and "additionalProperties" not in piece.schema:
        return Converted(None, found)
    piece.schema.pop("nullable", None)
    return Converted(encode(piece.schema), found, converter.whole_undo(piece.undo))


class SchemaConverter:
    """One conversion: the document, what is left of its budget, and what was noted."""

    def __init__(self, root: Node, notes: list[Note], *, vertex: bool) -> None:
        self.references = References(root)
        self.notes = notes
        self.vertex = vertex
        self.nodes_left = MOST_NODES
        self.undos: dict[str, ArgumentUndo] = {}
        """How to change back values of what is referred to, by pointer."""
        self.cut: set[str] = set()
        """What of that was cut."""

    def note(self, where: str, what: str, kind: NoteKind = "approximated") -> None:
        self.notes.append(Note(where, what, kind))

    def convert(self, schema: Any, at: At) -> Piece:
        """Convert the schema of one value."""
        node = as_node(schema)
        if node is None:
            if not isinstance(schema, bool):
                self.note(at.where, "not a schema", "dropped")
            return self.anything({}, at)
        self.spend(node)
        if self.nodes_left < 0 or at.depth > DEEPEST:
            self.note(at.where, "schema is too large: the rest is sent as JSON text")
            return described(ANY, {})
        flat, inside = self.flatten(node, at)
        if flat is None:
            return self.recursive(inside)
        piece = self.shape(flat, inside)
        if piece.undo is not None:
            for pointer in inside.trail[len(at.trail) :]:
                if pointer not in at.trail:
                    self.undos.setdefault(pointer, piece.undo)
        return piece

    def spend(self, node: Node) -> None:
        description = node.get("description")
        words = len(description) // 200 if isinstance(description, str) else 0
        self.nodes_left -= 1 + words + len(as_list(node.get("enum"))) // 20

    def flatten(self, node: Node, at: At) -> tuple[Node | None, At]:
        """Inline the reference and merge `allOf`; None where a recursion is cut."""
        while (reference := reference_of(node)) is not None:
            if self.nodes_left < 0 or at.depth > DEEPEST:
                return None, at
            own = without_reference(node)
            pointer = self.references.locate(reference, at.where)
            if pointer is None:
                node = severed(node, at.where, self.notes)
                break
            if at.trail.count(pointer) >= RECURSIONS:
                return None, at.entering(pointer)
            target = as_node(self.references.at(pointer)) or {}
            self.spend(target)
            at = at.entering(pointer)
            node = self.merged(own, target, at, join=False) if own else target
        return self.without_all_of(node, at)

    def without_all_of(self, node: Node, at: At) -> tuple[Node | None, At]:
        branches = as_list(node.get("allOf"))
        if not branches:
            return node, at
        merged = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
        for index, branch in enumerate(branches):
            inner = as_node(branch)
            self.nodes_left -= 1 + len(merged) // 20
            if inner is None or self.nodes_left < 0:
                continue
            flat, inside = self.flatten(inner, at.below("allOf", str(index)))
            if flat is None:
                return None, inside
            self.nodes_left -= len(as_node(flat.get("properties")) or {}) // 20
            merged = self.merged(merged, flat, at, join=True)
        return merged, at

    def merged(self, first: Node, second: Node, at: At, *, join: bool) -> Node:
        def clash(keyword: str) -> None:
            self.note(at.where, f"conflicting values of {keyword}; the first is kept")

        return merge(first, second, clash, join=join)

    def recursive(self, at: At) -> Piece:
        name = name_of(at.where)
        self.note(at.where, f"recursion of {name} is cut")
        schema: Node = {"type": "OBJECT", "description": f"recursive {name}: members as above"}
        if at.trail.count(at.where) <= RECURSIONS:
            return Piece(schema)  # the schema is too large, and this place is none that stands above
        self.cut.add(at.where)
        return Piece(schema, ArgumentUndo(references=(at.where,)))

    def whole_undo(self, undo: ArgumentUndo | None) -> ArgumentUndo | None:
        """Say what recursions that were cut mean; None if nothing has to be changed back."""
        if undo is None or not self.cut:
            return undo
        above = {pointer: self.undos[pointer] for pointer in sorted(self.cut) if pointer in self.undos}
        undo = structs.replace(undo, definitions=above)
        return undo if any(_changes(part) for part in parts_of(undo)) else None

    def shape(self, node: Node, at: At) -> Piece:
        """Convert a schema without references and `allOf`."""
        for keyword in _UNIONS:
            if isinstance(node.get(keyword), list):
                return self.union(node, keyword, at)
        if "const" in node or as_list(node.get("enum")):
            unsayable(self, node, at)
            return enumeration(self, node, at)
        kinds = types_of(node)
        nullable = "null" in kinds or node.get("nullable") is True
        kinds = [kind for kind in kinds if kind != "null"]
        if len(kinds) > 1:
            return self.several_types(node, kinds, at, nullable=nullable)
        if not kinds:
            if nullable and "type" in node:
                return with_annotations(Piece({"type": "NULL"}, None), node)
            return self.anything(node, at)
        piece = self.typed(node, kinds[0], at)
        return Piece({**piece.schema, "nullable": True}, piece.undo) if nullable else piece

    def typed(self, node: Node, kind: str, at: At) -> Piece:
        unsayable(self, node, at, kind)
        match kind:
            case "object":
                return object_piece(self, node, at)
            case "array":
                return array_piece(self, node, at)
            case "string":
                return string_piece(self, node, at)
            case "boolean":
                return with_annotations(Piece({"type": "BOOLEAN"}, None), node, worded_constraints(node, kind))
            case _:
                return number_piece(self, node, kind, at)

    def anything(self, node: Node, at: At) -> Piece:
        """A value of any type travels as JSON text: the target demands a type, and any one would narrow it."""
        self.note(at.where, "any value: sent as JSON text and read back")
        unsayable(self, node, at)
        return described(ANY, node)

    def several_types(self, node: Node, kinds: list[str], at: At, *, nullable: bool) -> Piece:
        words = {keyword: value for keyword, value in node.items() if keyword in ANNOTATIONS}
        rest = {keyword: value for keyword, value in node.items() if keyword not in ANNOTATIONS}
        rest.pop("nullable", None)
        branches: list[Node] = [{**rest, "type": kind} for kind in kinds]
        pieces = [self.convert(branch, at.deeper()) for branch in branches]
        return self.joined(pieces, words, nullable=nullable)

    def union(self, node: Node, keyword: str, at: At) -> Piece:
        branches = as_list(node[keyword])
        words = {name: value for name, value in node.items() if name in ANNOTATIONS}
        base = {name: value for name, value in node.items() if name not in ANNOTATIONS and name != keyword}
        if keyword == "oneOf":
            self.note(f"{at.where}/oneOf", "oneOf is weakened to anyOf")
        if not branches or all(_only_demands(branch) for branch in branches):
            self.note(f"{at.where}/{keyword}", "said in the description only")
            description = with_sentences(node.get("description"), [alternatives(branches)])
            return self.shape({**base, **words, **({"description": description} if description else {})}, at)
        nullable = base.pop("nullable", None) is True
        pieces: list[Piece] = []
        for index, branch in enumerate(branches):
            if branch is False:
                continue
            whole = {"allOf": [branch, base]} if base else branch
            piece = self.convert(whole, at.below(keyword, str(index)))
            if piece.schema.get("type") == "NULL":
                nullable = True
            else:
                pieces.append(piece)
        return self.joined(pieces, words, nullable=nullable)

    def joined(self, pieces: list[Piece], words: Node, *, nullable: bool) -> Piece:
        """Make one schema of alternatives. On Vertex `anyOf` must be the only field, so the words go into each."""
        distinct = list({encode(piece.schema): piece for piece in pieces}.values())
        if not distinct:
            return with_annotations(Piece({"type": "NULL"}, None), words)
        marks: Node = {"nullable": True} if nullable else {}
        if len(distinct) == 1:
            only = with_annotations(distinct[0], words)
            return Piece({**only.schema, **marks}, only.undo)
        undo = choices_between(distinct)
        if not self.vertex:
            whole = with_annotations(Piece({"anyOf": [piece.schema for piece in distinct]}, undo), words)
            return Piece({**whole.schema, **marks}, undo)
        spread = [{**with_annotations(piece, words).schema, **marks} for piece in distinct]
        return Piece({"anyOf": spread}, undo)


def _changes(undo: ArgumentUndo) -> bool:
    return bool(undo.values or undo.parse or undo.integer or undo.wrapped)


def _only_demands(branch: object) -> bool:
    node = as_node(branch)
    return node is not None and bool(node) and node.keys() <= _DEMANDS
