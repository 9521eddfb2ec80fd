"""Convert any schema to an object schema without combinators at its root.

A local `$ref` at the root is inlined, `allOf` is merged, a union of objects becomes one object (`required` has what all
variants require), and a union of only `required` lists is moved to the description. A schema that cannot be an object
is wrapped in one as the property `value`.
"""

from collections.abc import Iterable
from typing import Any

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.drafts import ModernSchema
from dragoman.interpreter.schema.nodes import (
    Node,
    append_sentences,
    as_list,
    as_node,
    describe_alternatives,
    describe_keyword,
    infer_types,
    list_names,
    merge,
    properties_of,
    rewrite,
)
from dragoman.interpreter.schema.references import (
    References,
    describe_reference,
    drop_reference,
    find_reference,
    trim_to_existing,
)

WRAPPER_KEY = "value"

_FORBIDDEN = ("anyOf", "oneOf", "allOf", "not", "enum", "const")
_DEFINITIONS = ("$defs", "definitions")
_MAX_MERGES = 1000
_MAX_TRAIL = 50


def to_object_root(document: object, notes: list[Note]) -> tuple[Node, ArgumentUndo | None]:
    """Return an object schema for `document`, the same object if it is one already, and the undo of wrapping."""
    node = as_node(document)
    if document is False:
        notes.append(Note("", "a schema that accepts no value is replaced by one without arguments", "approximated"))
    elif document is not None and document is not True and node is None:
        notes.append(Note("", "not a schema", "dropped"))
    if not node:
        return {"type": "object", "properties": {}}, None
    if node.get("type") == "object" and find_reference(node) is None and not any(name in node for name in _FORBIDDEN):
        return node, None
    return _RootBuilder(node, notes).build_root()


def accepts_objects(document: object) -> bool:
    """Return whether a schema accepts an object; what cannot be decided, such as recursion, counts as accepting one."""
    node = as_node(document)
    if node is None:
        return document is not False
    references = References(node)
    known: dict[str, bool] = {}
    """The results for referenced schemas; each is computed once, or a chain of unions would take exponential time."""

    def accept(schema: Any, where: str, depth: int) -> bool:
        node = as_node(schema)
        if node is None or depth > _MAX_TRAIL:
            return schema is not False
        reference = find_reference(node)
        if reference is not None:
            return accept_reference(references.locate(reference, where), depth)
        values = as_list(node["enum"]) if "enum" in node else [node["const"]] if "const" in node else None
        if values is not None and not any(isinstance(value, dict) for value in values):
            return False
        kinds = infer_types(node)
        if kinds and "object" not in kinds:
            return False
        found = {
            keyword: [accept(branch, f"{where}/{keyword}/{index}", depth + 1) for index, branch in enumerate(branches)]
            for keyword in ("allOf", "anyOf", "oneOf")
            if (branches := as_list(node.get(keyword)))
        }
        return all(found.pop("allOf", ())) and all(map(any, found.values()))

    def accept_reference(pointer: str | None, depth: int) -> bool:
        if pointer is None or pointer in known:
            return pointer is None or known[pointer]
        known[pointer] = True
        known[pointer] = accept(references.get_schema(pointer), pointer, depth + 1)
        return known[pointer]

    return accept(node, "", 0)


def locate_notes(
    notes: list[Note], document: object, undo: ArgumentUndo | None, modern: ModernSchema | None = None
) -> tuple[Note, ...]:
    """Return the notes about a converted schema with pointers into the client's document, without duplicates."""
    inside = f"/properties/{WRAPPER_KEY}" if undo is not None and undo.wrapped else ""
    found: dict[Note, None] = dict.fromkeys(modern.notes if modern is not None else ())
    for note in notes:
        where = note.where.removeprefix(inside)
        where = where if modern is None else modern.find_original_pointer(where)
        exists = trim_to_existing(document, where)
        # A keyword dropped from an inlined copy does not drop everything at the pointer of the copy.
        found[Note(exists, note.what, note.kind if exists == where else "approximated")] = None
    return tuple(found)


class _RootBuilder:
    def __init__(self, document: Node, notes: list[Note]) -> None:
        self.document = document
        self.notes = notes
        self.references = References(document)
        self.merges_left = _MAX_MERGES

    def build_root(self) -> tuple[Node, ArgumentUndo | None]:
        node = self.flatten(self.document, "", ())
        if node is not None:
            node = self.unite_unions(node)
        kinds = [] if node is None else infer_types(node)
        if node is None or (kinds and "object" not in kinds) or "enum" in node or "const" in node:
            taken = frozenset("number" if kind == "integer" else kind for kind in kinds)
            return self.wrap_root(), ArgumentUndo(wrapped=WRAPPER_KEY, wrapped_kinds=taken)
        if "not" in node:
            node = self.move_to_description(node, "not", describe_keyword(node, "not"))
        if node.get("type") != "object":
            if len(kinds) > 1:
                self.notes.append(Note("/type", "the arguments must be an object", "approximated"))
            node = {"type": "object", **{keyword: value for keyword, value in node.items() if keyword != "type"}}
        return self.drop_broken_references(node), None

    def flatten(self, node: Node, where: str, trail: tuple[str, ...]) -> Node | None:
        """Inline references and merge `allOf`; None for recursion, a false schema, or a schema that is too large."""
        self.merges_left -= 1
        if self.merges_left < 0 or len(trail) > _MAX_TRAIL:
            return None
        reference = find_reference(node)
        if reference is not None:
            pointer = self.references.locate(reference, where)
            if pointer is None:
                return describe_reference(node, where, self.notes)
            if pointer in trail:
                return None
            target = self.flatten_schema(self.references.get_schema(pointer), pointer, (*trail, pointer))
            own = drop_reference(node)
            return None if target is None else self.merge_schemas(own, target, where, join=False)
        branches = as_list(node.get("allOf"))
        merged = {keyword: value for keyword, value in node.items() if keyword != "allOf"}
        for index, branch in enumerate(branches):
            part = self.flatten_schema(branch, f"{where}/allOf/{index}", trail)
            if part is None:
                return None
            merged = self.merge_schemas(merged, part, where, join=True)
        return merged

    def flatten_schema(self, schema: Any, where: str, trail: tuple[str, ...]) -> Node | None:
        if schema is True:
            return {}
        node = as_node(schema)
        return None if node is None else self.flatten(node, where, trail)

    def merge_schemas(self, first: Node, second: Node, where: str, *, join: bool) -> Node:
        def clash(keyword: str) -> None:
            self.notes.append(Note(where, f"conflicting values of {keyword}; the first is kept", "approximated"))

        return merge(first, second, clash, join=join)

    def unite_unions(self, node: Node) -> Node | None:
        """Merge the variants of `anyOf` and `oneOf` into one object; None if a variant is not an object."""
        for keyword in ("anyOf", "oneOf"):
            if keyword not in node:
                continue
            branches = as_list(node[keyword])
            base = {name: value for name, value in node.items() if name != keyword}
            variants = [self.flatten_schema(branch, f"/{keyword}/{index}", ()) for index, branch in enumerate(branches)]
            known = [part for part in variants if part is not None and infer_types(part) != ["null"]]
            if any(part is None for part in variants) and not _is_object(base):
                return None
            if any(not _may_be_object(part) for part in known) and not _is_object(base):
                return None
            if not any(properties_of(part) for part in known):
                node = self.move_to_description(node, keyword, describe_alternatives(known))
            else:
                node = self.unite_variants(base, known, keyword)
        return node

    def unite_variants(self, base: Node, variants: list[Node], keyword: str) -> Node:
        self.notes.append(Note(f"/{keyword}", "variants are merged into one object", "approximated"))
        properties = dict(properties_of(base))
        for variant in variants:
            for name, child in properties_of(variant).items():
                properties[name] = unite_schemas(properties[name], child) if name in properties else child
        always = set(list_names(variants[0].get("required"))).intersection(
            *(list_names(variant.get("required")) for variant in variants)
        )
        required = [name for name in properties if name in always or name in list_names(base.get("required"))]
        united = {**base, "properties": properties, "required": required}
        united["description"] = append_sentences(base.get("description"), [f"one of: {_list_variants(variants)}"])
        if not required:
            del united["required"]
        return (
            {**united, "additionalProperties": False}
            if all(variant.get("additionalProperties") is False for variant in variants)
            else united
        )

    def move_to_description(self, node: Node, keyword: str, description_text: str | None) -> Node:
        self.notes.append(Note(f"/{keyword}", "moved to the description", "approximated"))
        rest = {name: value for name, value in node.items() if name != keyword}
        description = append_sentences(node.get("description"), [description_text])
        return {**rest, "description": description} if description else rest

    def wrap_root(self) -> Node:
        self.notes.append(Note("", f'not an object: sent as property "{WRAPPER_KEY}" of an object', "approximated"))
        inside = {name: value for name, value in self.document.items() if name not in (*_DEFINITIONS, "$schema")}
        hoisted = {name: self.document[name] for name in (*_DEFINITIONS, "$schema") if name in self.document}
        wrapped = {"type": "object", "properties": {WRAPPER_KEY: inside}, "required": [WRAPPER_KEY], **hoisted}
        return _repoint(wrapped)

    def drop_broken_references(self, node: Node) -> Node:
        """Drop references to schemas that the merge has removed."""
        references = References(node)

        def visit(schema: Any, where: str) -> Any:
            inner = as_node(schema)
            if inner is None:
                return schema
            reference = find_reference(inner)
            was_known = reference is not None and self.references.locate(reference) is not None
            if was_known and references.locate(reference) is None:
                self.notes.append(Note("", f"reference {reference} points into a merged schema", "dropped"))
                return drop_reference(inner)
            return rewrite(inner, where, visit)

        return rewrite(node, "", visit)


def unite_schemas(first: Any, second: Any) -> Any:
    """Return the schema of values that match one or the other."""
    return first if first == second and type(first) is type(second) else {"anyOf": [first, second]}


def _repoint(wrapped: Node) -> Node:
    """Rewrite references to the old root and its parts, which are now inside the wrapper."""

    def visit(schema: Any, where: str) -> Any:
        node = as_node(schema)
        if node is None:
            return schema
        reference = node.get("$ref")
        if isinstance(reference, str) and not reference.startswith(_HOISTED) and f"{reference}/".startswith("#/"):
            node = {**node, "$ref": f"#/properties/{WRAPPER_KEY}{reference[1:]}"}
        return rewrite(node, where, visit)

    return rewrite(wrapped, "", visit)


_HOISTED = tuple(f"#/{name}/" for name in _DEFINITIONS)


def _is_object(node: Node) -> bool:
    return infer_types(node) == ["object"]


def _may_be_object(node: Node) -> bool:
    kinds = infer_types(node)
    return not kinds or "object" in kinds


def _list_variants(variants: Iterable[Node]) -> str:
    return " | ".join("{" + ", ".join(_list_properties(variant)) + "}" for variant in variants)


def _list_properties(variant: Node) -> list[str]:
    required = list_names(variant.get("required"))
    return [name if name in required else f"{name}?" for name in properties_of(variant)]
