"""Remember where a schema says integer: Gemini's arguments are protobuf doubles, so 5 may come back as 5.0."""

from collections.abc import Iterable

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.nodes import DEEPEST_SCHEMA, Node, as_list, as_node, properties_of, said_types
from dragoman.interpreter.schema.references import References, reference_of

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
