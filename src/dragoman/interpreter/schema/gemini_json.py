"""Convert JSON Schema for Gemini's `parametersJsonSchema`, with as few changes as possible.

The backend ignores keywords it does not know, so almost everything stays. It rejects a `$ref` with siblings, resolves
only local references, needs `$defs` instead of `definitions`, accepts recursion only through optional properties, and
has no boolean schemas.

The undo of a conversion records where the schema has integers: Gemini's arguments are protobuf doubles, so 5 may come
back as 5.0.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import structs

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import ConvertedSchema, Note, keep_schema, note_history_changes
from dragoman.interpreter.schema.drafts import to_draft_2020
from dragoman.interpreter.schema.nodes import (
    MAX_SCHEMA_DEPTH,
    REMOVED,
    Node,
    as_list,
    as_node,
    keyword_at,
    merge,
    properties_of,
    read_document,
    read_types,
    rewrite,
)
from dragoman.interpreter.schema.object_root import locate_notes, to_object_root
from dragoman.interpreter.schema.references import (
    References,
    break_required_cycles,
    describe_reference,
    drop_reference,
    find_reference,
)
from dragoman.interpreter.schema.roots import drop_undeclared_required
from dragoman.wire.json import Malformed, encode

_IN_PLACE = ("anyOf", "oneOf", "allOf")
NO_INTEGER = ArgumentUndo()


def find_integers(root: Node) -> ArgumentUndo | None:
    """Return the undo that restores the notation of integers; None if the schema has no integers."""
    return _IntegerSearch(root).build_undo()


class _IntegerSearch:
    def __init__(self, root: Node) -> None:
        self.root = root
        self.references = References(root)
        self.definitions: dict[str, ArgumentUndo | None] = {}

    def build_undo(self) -> ArgumentUndo | None:
        found = self.search(self.root, 0)
        known = {name: undo for name, undo in self.definitions.items() if undo is not None}
        if found is None or not (known or _has_integer(found)):
            return None
        return merge_undos([found], definitions=known)

    def search(self, schema: object, depth: int) -> ArgumentUndo | None:
        node = as_node(schema)
        if node is None or depth > MAX_SCHEMA_DEPTH:
            return None
        own = ArgumentUndo(integer=True) if "integer" in read_types(node) else None
        below = depth + 1
        found = [own, self.search_members(node, below), self.search_reference(node, below)]
        for keyword in _IN_PLACE:
            found += [self.search(branch, below) for branch in as_list(node.get(keyword))]
        return merge_undos([undo for undo in found if undo is not None])

    def search_members(self, node: Node, depth: int) -> ArgumentUndo | None:
        inner = {name: self.search(child, depth) for name, child in properties_of(node).items()}
        positions = as_list(node.get("prefixItems")) or as_list(node.get("items"))
        prefix = tuple(self.search(child, depth) for child in positions)
        items = self.search(node.get("items"), depth)
        others = self.search(node.get("additionalProperties"), depth)
        # `others` must not apply to a declared property, so that one is listed even if it needs no undo.
        named = {name: NO_INTEGER if undo is None else undo for name, undo in inner.items()}
        properties = {name: undo for name, undo in named.items() if undo is not NO_INTEGER or others is not None}
        if not properties and not any(prefix) and items is None and others is None:
            return None
        return ArgumentUndo(properties=properties, prefix=prefix, items=items, others=others)

    def search_reference(self, node: Node, depth: int) -> ArgumentUndo | None:
        reference = find_reference(node)
        pointer = None if reference is None else self.references.locate(reference)
        if pointer is None:
            return None
        if pointer not in self.definitions:
            self.definitions[pointer] = None
            self.definitions[pointer] = self.search(self.references.get_schema(pointer), depth)
        return ArgumentUndo(references=(pointer,))


def _has_integer(undo: ArgumentUndo) -> bool:
    inner = [*undo.properties.values(), undo.others, undo.items, *undo.prefix]
    return undo.integer or any(part is not None and _has_integer(part) for part in inner)


def merge_undos(parts: list[ArgumentUndo], definitions: dict[str, ArgumentUndo] | None = None) -> ArgumentUndo | None:
    """Return one undo for a value that several schemas apply to; to restore an integer is right for all of them."""
    if not parts or (len(parts) == 1 and not definitions):
        return parts[0] if parts else None
    names = dict.fromkeys(name for part in parts for name in part.properties)
    members = {name: _merge_present(part.properties.get(name, part.others) for part in parts) for name in names}
    longest = max(len(part.prefix) for part in parts)
    return ArgumentUndo(
        properties={name: undo for name, undo in members.items() if undo is not None},
        others=_merge_present(part.others for part in parts),
        prefix=tuple(
            _merge_present(part.prefix[index] if index < len(part.prefix) else part.items for part in parts)
            for index in range(longest)
        ),
        items=_merge_present(part.items for part in parts),
        references=tuple(dict.fromkeys(name for part in parts for name in part.references)),
        integer=any(part.integer for part in parts),
        definitions=definitions or {},
    )


def _merge_present(parts: Iterable[ArgumentUndo | None]) -> ArgumentUndo | None:
    return merge_undos([part for part in parts if part is not None])


_EMPTY_ROOT = frozenset(
    {"type", "properties", "required", "title", "description", "additionalProperties", "propertyOrdering"}
    | {"$schema", "$id", "$comment", "$defs", "definitions"}
)
_BOOLEAN_IS_FINE = frozenset({"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems"})
_DEFINITIONS = "/definitions/"
_MAX_NODES = 20_000
_MAX_TRAIL = 30


@note_history_changes
def convert_gemini(schema: bytes) -> ConvertedSchema:
    """Adapt a JSON Schema that `prove_plain` did not prove plain."""
    try:
        document = read_document(schema)
    except Malformed as error:
        return ConvertedSchema(None, (Note("", f"the schema cannot be parsed: {error.message}", "dropped"),))
    notes: list[Note] = []
    modern = to_draft_2020(document)
    root, undo = to_object_root(modern.document, notes)
    if _is_empty_object(root):
        return ConvertedSchema(None, locate_notes(notes, document, undo, modern))
    if b"Ref" in schema or b"$ref" in schema:
        root = break_required_cycles(root, notes)
    adapted = _Rewrite(root, notes).rewrite_node(root, "", ())
    integers = find_integers(root) if b"integer" in schema else None
    combined = _combine_undos(undo, integers)
    if adapted is document:
        return keep_schema(schema, combined)
    return ConvertedSchema(encode(adapted), locate_notes(notes, document, undo, modern), combined)


def _is_empty_object(root: Node) -> bool:
    if properties_of(root) or not root.keys() <= _EMPTY_ROOT:
        return False
    return not as_node(root.get("additionalProperties"))


def _combine_undos(undo: ArgumentUndo | None, integers: ArgumentUndo | None) -> ArgumentUndo | None:
    if undo is None or integers is None:
        return integers if undo is None else undo
    return structs.replace(undo, properties=integers.properties, definitions=integers.definitions)


class _Rewrite:
    def __init__(self, root: Node, notes: list[Note]) -> None:
        self.notes = notes
        self.references = References(root)
        self.nodes_left = _MAX_NODES

    def rewrite_node(self, node: Node, where: str, trail: tuple[str, ...]) -> Node:
        self.nodes_left -= 1
        if where.count("/") > MAX_SCHEMA_DEPTH * 2:
            return node
        node, trail, kept_target = self.inline_reference(node, where, trail)
        node = rewrite(node, where, lambda child, inner: self.rewrite_schema(child, inner, trail))
        node = drop_undeclared_required(node, where, self.notes)
        if kept_target is not None:
            node = {**node, "anyOf": [{"$ref": _to_reference(kept_target)}]}
        if "definitions" not in node:
            return node
        moved = {**node, "$defs": {**(as_node(node["definitions"]) or {}), **(as_node(node.get("$defs")) or {})}}
        del moved["definitions"]
        return moved

    def rewrite_schema(self, schema: Any, where: str, trail: tuple[str, ...]) -> Any:
        if isinstance(schema, bool):
            if keyword_at(where) in _BOOLEAN_IS_FINE:
                return schema
            if schema:
                return {}
            self.notes.append(Note(where, "a schema that accepts no value", "dropped"))
            return REMOVED
        node = as_node(schema)
        return schema if node is None else self.rewrite_node(node, where, trail)

    def inline_reference(
        self, node: Node, where: str, trail: tuple[str, ...]
    ) -> tuple[Node, tuple[str, ...], str | None]:
        """Inline a reference with siblings; the third result is the target of a reference that must stay with siblings.

        That is the case for a recursive reference, and for a schema that is too large.
        """
        while (reference := find_reference(node)) is not None:
            pointer = self.references.locate(reference, where)
            if pointer is None:
                return describe_reference(node, where, self.notes), trail, None
            own = {name: value for name, value in node.items() if not name.startswith("$")}
            if not own and _is_plain(reference, pointer):
                return _rename_reference(node, pointer), trail, None
            recursive = pointer in trail or where == pointer or where.startswith(f"{pointer}/")
            if recursive or self.nodes_left < 0 or len(trail) > _MAX_TRAIL:
                # A union of one alternative may have siblings where a reference may not.
                rest = drop_reference(node)
                if "anyOf" in rest:
                    rest["allOf"] = [*as_list(rest.get("allOf")), {"anyOf": rest.pop("anyOf")}]
                    self.notes.append(
                        Note(f"{where}/anyOf", "moved into allOf next to a recursive reference", "approximated")
                    )
                return rest, trail, pointer
            self.nodes_left -= 1
            target = as_node(self.references.get_schema(pointer)) or {}
            merged = merge(own, target, lambda _: None, join=False)
            node = {**merged, "$defs": node["$defs"]} if "$defs" in node else merged
            trail = (*trail, pointer)
        return node, trail, None


def _is_plain(reference: object, pointer: str) -> bool:
    """Return whether a backend can resolve a reference by its member names alone, without decoding or indexes."""
    if any(step.isdecimal() for step in pointer.split("/")):
        return False
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return "%" not in pointer and " " not in pointer
    return reference == f"#{pointer}"


def _rename_reference(node: Node, pointer: str) -> Node:
    """Rewrite a reference without siblings as a pointer; a pointer stays unless its definitions have moved."""
    is_pointed = not isinstance(node.get("$ref"), str) or node["$ref"].startswith("#")
    if is_pointed and _DEFINITIONS not in pointer:
        return node
    return {**node, "$ref": _to_reference(pointer)}


def _to_reference(pointer: str) -> str:
    """Return the reference for a pointer in the schema that is sent, where all definitions are in `$defs`."""
    steps: list[str] = []
    for step in pointer.split("/"):
        before = "/".join(steps)
        is_keyword = step == "definitions" and keyword_at(f"{before}/{step}") == step
        steps.append("$defs" if is_keyword else step)
    return "#" + "/".join(steps)
