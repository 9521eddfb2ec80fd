"""Convert JSON Schema to Google's `Schema` message, an OpenAPI subset where one unknown keyword fails the request.

Rule 1: only supported keywords are output; other constraints are moved to the description and noted.
Rule 2: values that the target cannot type (any value, maps, mixed enums) are sent as strings, and the undo parses them.
Rule 3: references are inlined. Recursion is cut at a fixed depth, and size and depth are bounded for every schema.
"""

from typing import Any

from msgspec import structs

from dragoman.core.losses import LossKind
from dragoman.interpreter.schema.arguments import ArgumentUndo, iterate_undos
from dragoman.interpreter.schema.conversion import (
    ConvertedPiece,
    ConvertedSchema,
    Note,
    build_union_undo,
    note_history_changes,
)
from dragoman.interpreter.schema.nodes import (
    ANNOTATIONS,
    Node,
    append_sentences,
    as_list,
    as_node,
    describe_alternatives,
    infer_types,
    merge,
    read_document,
)
from dragoman.interpreter.schema.object_root import WRAPPER_KEY, locate_notes, to_object_root
from dragoman.interpreter.schema.openapi_types import (
    ANY,
    SchemaPosition,
    add_annotations,
    add_description,
    convert_array,
    convert_enum,
    convert_number,
    convert_object,
    convert_string,
    describe_constraints,
    note_unsupported,
)
from dragoman.interpreter.schema.references import (
    References,
    describe_reference,
    drop_reference,
    find_reference,
    get_last_token,
)
from dragoman.wire.json import Malformed, encode

MAX_DEPTH = 32
MAX_NODES = 5000
MAX_RECURSIONS = 2

_UNIONS = ("anyOf", "oneOf")
_DEMANDS = frozenset({"required", "not", "title", "description"})


@note_history_changes
def to_openapi(schema: bytes, *, vertex: bool = False) -> ConvertedSchema:
    """Convert JSON Schema to the `Schema` of AI Studio, or of Vertex; None where no parameters are left."""
    try:
        document = read_document(schema)
    except Malformed as error:
        return ConvertedSchema(None, (Note("", f"the schema cannot be parsed: {error.message}", "dropped"),))
    notes: list[Note] = []
    root, undo = to_object_root(document, notes)
    converter = SchemaConverter(root, notes, vertex=vertex)
    piece = converter.convert(root, SchemaPosition())
    if piece.schema.get("type") != "OBJECT":
        # A map has no properties to declare and was converted to a string, but the root must be an object.
        wrapped: Node = {WRAPPER_KEY: piece.schema}
        piece = ConvertedPiece(
            {"type": "OBJECT", "properties": wrapped, "propertyOrdering": [WRAPPER_KEY], "required": [WRAPPER_KEY]},
            ArgumentUndo(
                properties={} if piece.undo is None else {WRAPPER_KEY: piece.undo},
                wrapped=WRAPPER_KEY,
                wrapped_kinds=frozenset({"object"}),
            ),
        )
    elif undo is not None:
        inside = {} if piece.undo is None else piece.undo.properties
        piece = ConvertedPiece(piece.schema, structs.replace(undo, properties=inside))
    found = locate_notes(notes, document, undo)
    if "properties" not in piece.schema and "additionalProperties" not in piece.schema:
        return ConvertedSchema(None, found)
    piece.schema.pop("nullable", None)
    return ConvertedSchema(encode(piece.schema), found, converter.complete_undo(piece.undo))


class SchemaConverter:
    """Converts one document, within a budget of nodes, and collects notes."""

    def __init__(self, root: Node, notes: list[Note], *, vertex: bool) -> None:
        self.references = References(root)
        self.notes = notes
        self.vertex = vertex
        self.nodes_left = MAX_NODES
        self.undos: dict[str, ArgumentUndo] = {}
        """Undos of the targets of references, by pointer."""
        self.cut: set[str] = set()
        """Pointers of the targets whose recursion was cut."""

    def add_note(self, where: str, what: str, kind: LossKind = "approximated") -> None:
        self.notes.append(Note(where, what, kind))

    def convert(self, schema: Any, at: SchemaPosition) -> ConvertedPiece:
        """Convert the schema of one value."""
        node = as_node(schema)
        if node is None:
            if not isinstance(schema, bool):
                self.add_note(at.where, "not a schema", "dropped")
            return self.convert_any({}, at)
        self.charge_budget(node)
        if self.nodes_left < 0 or at.depth > MAX_DEPTH:
            self.add_note(at.where, "the schema is too large: the rest is sent as JSON text")
            return add_description(ANY, {})
        flat, inside = self.flatten(node, at)
        if flat is None:
            return self.cut_recursion(inside)
        piece = self.convert_flat(flat, inside)
        if piece.undo is not None:
            for pointer in inside.trail[len(at.trail) :]:
                if pointer not in at.trail:
                    self.undos.setdefault(pointer, piece.undo)
        return piece

    def charge_budget(self, node: Node) -> None:
        description = node.get("description")
        description_cost = len(description) // 200 if isinstance(description, str) else 0
        self.nodes_left -= 1 + description_cost + len(as_list(node.get("enum"))) // 20

    def flatten(self, node: Node, at: SchemaPosition) -> tuple[Node | None, SchemaPosition]:
        """Inline the reference and merge `allOf`; None where a recursion is cut."""
        while (reference := find_reference(node)) is not None:
            if self.nodes_left < 0 or at.depth > MAX_DEPTH:
                return None, at
            own = drop_reference(node)
            pointer = self.references.locate(reference, at.where)
            if pointer is None:
                node = describe_reference(node, at.where, self.notes)
                break
            if at.trail.count(pointer) >= MAX_RECURSIONS:
                return None, at.enter(pointer)
            target = as_node(self.references.get_schema(pointer)) or {}
            self.charge_budget(target)
            at = at.enter(pointer)
            node = self.merge_schemas(own, target, at, join=False) if own else target
        return self.merge_all_of(node, at)

    def merge_all_of(self, node: Node, at: SchemaPosition) -> tuple[Node | None, SchemaPosition]:
        branches = as_list(node.get("allOf"))
        if not branches:
            return node, at
        merged = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
        for index, branch in enumerate(branches):
            inner = as_node(branch)
            self.nodes_left -= 1 + len(merged) // 20
            if inner is None or self.nodes_left < 0:
                continue
            flat, inside = self.flatten(inner, at.descend("allOf", str(index)))
            if flat is None:
                return None, inside
            self.nodes_left -= len(as_node(flat.get("properties")) or {}) // 20
            merged = self.merge_schemas(merged, flat, at, join=True)
        return merged, at

    def merge_schemas(self, first: Node, second: Node, at: SchemaPosition, *, join: bool) -> Node:
        def clash(keyword: str) -> None:
            self.add_note(at.where, f"conflicting values of {keyword}; the first is kept")

        return merge(first, second, clash, join=join)

    def cut_recursion(self, at: SchemaPosition) -> ConvertedPiece:
        name = get_last_token(at.where)
        self.add_note(at.where, f"recursion of {name} is cut")
        schema: Node = {"type": "OBJECT", "description": f"recursive {name}: members as above"}
        if at.trail.count(at.where) <= MAX_RECURSIONS:
            return ConvertedPiece(schema)  # cut because the schema is too large, so there is no undo above to refer to
        self.cut.add(at.where)
        return ConvertedPiece(schema, ArgumentUndo(references=(at.where,)))

    def complete_undo(self, undo: ArgumentUndo | None) -> ArgumentUndo | None:
        """Add the undos of cut recursions to the root undo; None if no value has to be restored."""
        if undo is None or not self.cut:
            return undo
        above = {pointer: self.undos[pointer] for pointer in sorted(self.cut) if pointer in self.undos}
        undo = structs.replace(undo, definitions=above)
        return undo if any(_changes_arguments(part) for part in iterate_undos(undo)) else None

    def convert_flat(self, node: Node, at: SchemaPosition) -> ConvertedPiece:
        """Convert a schema without references and `allOf`."""
        for keyword in _UNIONS:
            if isinstance(node.get(keyword), list):
                return self.convert_union(node, keyword, at)
        if "const" in node or as_list(node.get("enum")):
            note_unsupported(self, node, at)
            return convert_enum(self, node, at)
        kinds = infer_types(node)
        nullable = "null" in kinds or node.get("nullable") is True
        kinds = [kind for kind in kinds if kind != "null"]
        if len(kinds) > 1:
            return self.convert_types(node, kinds, at, nullable=nullable)
        if not kinds:
            if nullable and "type" in node:
                return add_annotations(ConvertedPiece({"type": "NULL"}, None), node)
            return self.convert_any(node, at)
        piece = self.convert_typed(node, kinds[0], at)
        return ConvertedPiece({**piece.schema, "nullable": True}, piece.undo) if nullable else piece

    def convert_typed(self, node: Node, kind: str, at: SchemaPosition) -> ConvertedPiece:
        note_unsupported(self, node, at, kind)
        match kind:
            case "object":
                return convert_object(self, node, at)
            case "array":
                return convert_array(self, node, at)
            case "string":
                return convert_string(self, node, at)
            case "boolean":
                return add_annotations(
                    ConvertedPiece({"type": "BOOLEAN"}, None), node, describe_constraints(node, kind)
                )
            case _:
                return convert_number(self, node, kind, at)

    def convert_any(self, node: Node, at: SchemaPosition) -> ConvertedPiece:
        """Convert a value of any type to a string of JSON text: the target requires a type, and no other fits all."""
        self.add_note(at.where, "a value of any type is sent as JSON text and parsed back")
        note_unsupported(self, node, at)
        return add_description(ANY, node)

    def convert_types(self, node: Node, kinds: list[str], at: SchemaPosition, *, nullable: bool) -> ConvertedPiece:
        annotations = {keyword: value for keyword, value in node.items() if keyword in ANNOTATIONS}
        rest = {keyword: value for keyword, value in node.items() if keyword not in ANNOTATIONS}
        rest.pop("nullable", None)
        branches: list[Node] = [{**rest, "type": kind} for kind in kinds]
        pieces = [self.convert(branch, at.nest()) for branch in branches]
        return self.join_pieces(pieces, annotations, nullable=nullable)

    def convert_union(self, node: Node, keyword: str, at: SchemaPosition) -> ConvertedPiece:
        branches = as_list(node[keyword])
        annotations = {name: value for name, value in node.items() if name in ANNOTATIONS}
        base = {name: value for name, value in node.items() if name not in ANNOTATIONS and name != keyword}
        if keyword == "oneOf":
            self.add_note(f"{at.where}/oneOf", "oneOf is weakened to anyOf")
        if not branches or all(_is_only_required(branch) for branch in branches):
            self.add_note(f"{at.where}/{keyword}", "moved to the description")
            description = append_sentences(node.get("description"), [describe_alternatives(branches)])
            described = {"description": description} if description else {}
            return self.convert_flat({**base, **annotations, **described}, at)
        nullable = base.pop("nullable", None) is True
        pieces: list[ConvertedPiece] = []
        for index, branch in enumerate(branches):
            if branch is False:
                continue
            whole = {"allOf": [branch, base]} if base else branch
            piece = self.convert(whole, at.descend(keyword, str(index)))
            if piece.schema.get("type") == "NULL":
                nullable = True
            else:
                pieces.append(piece)
        return self.join_pieces(pieces, annotations, nullable=nullable)

    def join_pieces(self, pieces: list[ConvertedPiece], annotations: Node, *, nullable: bool) -> ConvertedPiece:
        """Build one schema of alternatives. On Vertex `anyOf` must be the only field, so each gets the annotations."""
        distinct = list({encode(piece.schema): piece for piece in pieces}.values())
        if not distinct:
            return add_annotations(ConvertedPiece({"type": "NULL"}, None), annotations)
        null_flag: Node = {"nullable": True} if nullable else {}
        if len(distinct) == 1:
            only = add_annotations(distinct[0], annotations)
            return ConvertedPiece({**only.schema, **null_flag}, only.undo)
        undo = build_union_undo(distinct)
        if not self.vertex:
            union = ConvertedPiece({"anyOf": [piece.schema for piece in distinct]}, undo)
            return ConvertedPiece({**add_annotations(union, annotations).schema, **null_flag}, undo)
        branches = [{**add_annotations(piece, annotations).schema, **null_flag} for piece in distinct]
        return ConvertedPiece({"anyOf": branches}, undo)


def _changes_arguments(undo: ArgumentUndo) -> bool:
    return bool(undo.values or undo.parse or undo.integer or undo.wrapped)


def _is_only_required(branch: object) -> bool:
    node = as_node(branch)
    return node is not None and bool(node) and node.keys() <= _DEMANDS
