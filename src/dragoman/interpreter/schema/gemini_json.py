"""Make JSON Schema acceptable for Gemini's `parametersJsonSchema`, with as light a touch as possible.

The backend ignores keywords it does not know, so almost everything stays. It refuses a `$ref` with siblings, reads
local references only, wants `$defs` for `definitions`, takes circles only behind optional properties, and has
no boolean schemas.

The undo of a conversion says where the schema has integers: Gemini's arguments are protobuf doubles, so 5 may come
back as 5.0.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import structs

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import Converted, Note, conversion, unchanged
from dragoman.interpreter.schema.drafts import modernised
from dragoman.interpreter.schema.nodes import (
    DEEPEST_SCHEMA,
    REMOVED,
    Node,
    as_list,
    as_node,
    keyword_at,
    merge,
    properties_of,
    read_document,
    rewrite,
    said_types,
)
from dragoman.interpreter.schema.object_root import object_root, placed
from dragoman.interpreter.schema.references import (
    References,
    reference_of,
    severed,
    without_reference,
    without_required_cycles,
)
from dragoman.interpreter.schema.roots import declared_only
from dragoman.wire.json import Malformed, encode

_IN_PLACE = ("anyOf", "oneOf", "allOf")
NO_INTEGER = ArgumentUndo()


def integers_in(root: Node) -> ArgumentUndo | None:
    """Return the undo that writes integers as integers; None if the schema has none."""
    return _Search(root).undo()


class _Search:
    def __init__(self, root: Node) -> None:
        self.root = root
        self.references = References(root)
        self.definitions: dict[str, ArgumentUndo | None] = {}

    def undo(self) -> ArgumentUndo | None:
        found = self.search(self.root, 0)
        known = {name: undo for name, undo in self.definitions.items() if undo is not None}
        if found is None or not (known or _says_integer(found)):
            return None
        return merged_undo([found], definitions=known)

    def search(self, schema: object, depth: int) -> ArgumentUndo | None:
        node = as_node(schema)
        if node is None or depth > DEEPEST_SCHEMA:
            return None
        own = ArgumentUndo(integer=True) if "integer" in said_types(node) else None
        below = depth + 1
        found = [own, self.members(node, below), self.referenced(node, below)]
        for keyword in _IN_PLACE:
            found += [self.search(branch, below) for branch in as_list(node.get(keyword))]
        return merged_undo([undo for undo in found if undo is not None])

    def members(self, node: Node, depth: int) -> ArgumentUndo | None:
        inner = {name: self.search(child, depth) for name, child in properties_of(node).items()}
        positions = as_list(node.get("prefixItems")) or as_list(node.get("items"))
        prefix = tuple(self.search(child, depth) for child in positions)
        items = self.search(node.get("items"), depth)
        others = self.search(node.get("additionalProperties"), depth)
        # A declared member is none of the others, so it is named even where nothing is to be done.
        named = {name: NO_INTEGER if undo is None else undo for name, undo in inner.items()}
        properties = {name: undo for name, undo in named.items() if undo is not NO_INTEGER or others is not None}
        if not properties and not any(prefix) and items is None and others is None:
            return None
        return ArgumentUndo(properties=properties, prefix=prefix, items=items, others=others)

    def referenced(self, node: Node, depth: int) -> ArgumentUndo | None:
        reference = reference_of(node)
        pointer = None if reference is None else self.references.locate(reference)
        if pointer is None:
            return None
        if pointer not in self.definitions:
            self.definitions[pointer] = None
            self.definitions[pointer] = self.search(self.references.at(pointer), depth)
        return ArgumentUndo(references=(pointer,))


def _says_integer(undo: ArgumentUndo) -> bool:
    inner = [*undo.properties.values(), undo.others, undo.items, *undo.prefix]
    return undo.integer or any(part is not None and _says_integer(part) for part in inner)


def merged_undo(parts: list[ArgumentUndo], definitions: dict[str, ArgumentUndo] | None = None) -> ArgumentUndo | None:
    """Return one undo for a value that several schemas speak of; writing an integer as one is right for all."""
    if not parts or (len(parts) == 1 and not definitions):
        return parts[0] if parts else None
    names = dict.fromkeys(name for part in parts for name in part.properties)
    members = {name: _one(part.properties.get(name, part.others) for part in parts) for name in names}
    longest = max(len(part.prefix) for part in parts)
    return ArgumentUndo(
        properties={name: undo for name, undo in members.items() if undo is not None},
        others=_one(part.others for part in parts),
        prefix=tuple(
            _one(part.prefix[index] if index < len(part.prefix) else part.items for part in parts)
            for index in range(longest)
        ),
        items=_one(part.items for part in parts),
        references=tuple(dict.fromkeys(name for part in parts for name in part.references)),
        integer=any(part.integer for part in parts),
        definitions=definitions or {},
    )


def _one(parts: Iterable[ArgumentUndo | None]) -> ArgumentUndo | None:
    return merged_undo([part for part in parts if part is not None])


_EMPTY_ROOT = frozenset(
    {"type", "properties", "required", "title", "description", "additionalProperties", "propertyOrdering"}
    | {"$schema", "$id", "$comment", "$defs", "definitions"}
)
_BOOLEAN_IS_FINE = frozenset({"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems"})
_DEFINITIONS = "/definitions/"
_MOST_NODES = 20_000
_LONGEST_TRAIL = 30


@conversion
def convert_gemini(schema: bytes) -> Converted:
    """Adapt a JSON Schema that is not proven plain."""
    try:
        document = read_document(schema)
    except Malformed as error:
        return Converted(None, (Note("", f"schema is not readable: {error.message}", "dropped"),))
    notes: list[Note] = []
    modern = modernised(document)
    root, undo = object_root(modern.document, notes)
    if _takes_nothing(root):
        return Converted(None, placed(notes, document, undo, modern))
    if b"Ref" in schema or b"$ref" in schema:
        root = without_required_cycles(root, notes)
    fitted = _Rewrite(root, notes).node(root, "", ())
    integers = integers_in(root) if b"integer" in schema else None
    together = _together(undo, integers)
    if fitted is document:
        return unchanged(schema, together)
    return Converted(encode(fitted), placed(notes, document, undo, modern), together)


def _takes_nothing(root: Node) -> bool:
    if properties_of(root) or not root.keys() <= _EMPTY_ROOT:
        return False
    return not as_node(root.get("additionalProperties"))


def _together(undo: ArgumentUndo | None, integers: ArgumentUndo | None) -> ArgumentUndo | None:
    if undo is None or integers is None:
        return integers if undo is None else undo
    return structs.replace(undo, properties=integers.properties, definitions=integers.definitions)


class _Rewrite:
    def __init__(self, root: Node, notes: list[Note]) -> None:
        self.notes = notes
        self.references = References(root)
        self.nodes_left = _MOST_NODES

    def node(self, node: Node, where: str, trail: tuple[str, ...]) -> Node:
        self.nodes_left -= 1
        if where.count("/") > DEEPEST_SCHEMA * 2:
            return node
        node, trail, stays = self.dereferenced(node, where, trail)
        node = rewrite(node, where, lambda child, inner: self.visit(child, inner, trail))
        node = declared_only(node, where, self.notes)
        if stays is not None:
            node = {**node, "anyOf": [{"$ref": _pointed(stays)}]}
        if "definitions" not in node:
            return node
        moved = {**node, "$defs": {**(as_node(node["definitions"]) or {}), **(as_node(node.get("$defs")) or {})}}
        del moved["definitions"]
        return moved

    def visit(self, schema: Any, where: str, trail: tuple[str, ...]) -> Any:
        if isinstance(schema, bool):
            if keyword_at(where) in _BOOLEAN_IS_FINE:
                return schema
            if schema:
                return {}
            self.notes.append(Note(where, "a value that nothing fits", "dropped"))
            return REMOVED
        node = as_node(schema)
        return schema if node is None else self.node(node, where, trail)

    def dereferenced(self, node: Node, where: str, trail: tuple[str, ...]) -> tuple[Node, tuple[str, ...], str | None]:
        """Inline a reference that has siblings; return where one points that stays though it has some."""
        while (reference := reference_of(node)) is not None:
            pointer = self.references.locate(reference, where)
            if pointer is None:
                return severed(node, where, self.notes), trail, None
            own = {name: value for name, value in node.items() if not name.startswith("$")}
            if not own and _is_plain(reference, pointer):
                return _renamed(node, pointer), trail, None
            recursive = pointer in trail or where == pointer or where.startswith(f"{pointer}/")
            if recursive or self.nodes_left < 0 or len(trail) > _LONGEST_TRAIL:
                # A union of one may have siblings where a reference may not.
                rest = without_reference(node)
                if "anyOf" in rest:
                    rest["allOf"] = [*as_list(rest.get("allOf")), {"anyOf": rest.pop("anyOf")}]
                    self.notes.append(Note(f"{where}/anyOf", "it stands beside a recursive reference", "approximated"))
                return rest, trail, pointer
            self.nodes_left -= 1
            target = as_node(self.references.at(pointer)) or {}
            merged = merge(own, target, lambda _: None, join=False)
            node = {**merged, "$defs": node["$defs"]} if "$defs" in node else merged
            trail = (*trail, pointer)
        return node, trail, None


def _is_plain(reference: object, pointer: str) -> bool:
    """Tell whether a reference is found by who walks the members that it names from the root, and decodes nothing."""
    if any(step.isdecimal() for step in pointer.split("/")):
        return False
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return "%" not in pointer and " " not in pointer
    return reference == f"#{pointer}"


def _renamed(node: Node, pointer: str) -> Node:
    """Write a lone reference as a pointer; what is one already stays, unless definitions have moved."""
    is_pointed = not isinstance(node.get("$ref"), str) or node["$ref"].startswith("#")
    if is_pointed and _DEFINITIONS not in pointer:
        return node
    return {**node, "$ref": _pointed(pointer)}


def _pointed(pointer: str) -> str:
    """Write a pointer into the schema as it is sent, where all definitions are `$defs`."""
    steps: list[str] = []
    for step in pointer.split("/"):
        before = "/".join(steps)
        is_keyword = step == "definitions" and keyword_at(f"{before}/{step}") == step
        steps.append("$defs" if is_keyword else step)
    return "#" + "/".join(steps)
