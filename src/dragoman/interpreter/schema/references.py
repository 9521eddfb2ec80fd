"""Resolve `$ref` within the same document, and break cycles that every value would have to repeat.

Gemini accepts a cycle only through an optional property. So a required property that refers back to its own schema
becomes optional. A cycle without any such property (an array of itself) is cut: the value there may be anything.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urljoin

from msgspec import Struct

from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.schema.nodes import (
    MAX_SCHEMA_DEPTH,
    Node,
    append_sentences,
    as_list,
    as_node,
    iterate_children,
    list_names,
    properties_of,
    rewrite,
)
from dragoman.wire.pointer import escape, split, unescape

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class References:
    """Resolves the references of one document by pointer, anchor and embedded id."""

    def __init__(self, root: object) -> None:
        self.root = root
        self._pointers_by_name: dict[str, str | None] = {}
        self._resources: dict[str, str] = {}
        self._is_collected = False

    def locate(self, reference: object, where: str = "") -> str | None:
        """Return the pointer of the target of `reference`, which is at `where`; None if it is not in this document."""
        if not isinstance(reference, str):
            return None
        if not self._is_collected:
            self._is_collected = True
            self._collect(self.root, "", "", 0)
        resource, base = self._find_resource(where) if self._resources else ("", "")
        location, _, fragment = reference.partition("#")
        if location:
            found = self._pointers_by_name.get(_join_uri(base, location))
            if found is None:
                return None
            resource, base = found, _join_uri(base, location)
        if not fragment or fragment.startswith("/"):
            return self._find_existing(resource + unquote(fragment))
        return self._pointers_by_name.get(f"{base}#{fragment}")

    def get_schema(self, pointer: str) -> Any:
        """Return the schema at a pointer that `locate` returned."""
        value: Any = self.root
        for token in split(pointer):
            node = as_node(value)
            value = as_list(value)[int(token)] if node is None else node[token]
        return value

    def _find_resource(self, where: str) -> tuple[str, str]:
        """Return pointer and base URI of the innermost schema with an id around `where`."""
        while where not in self._resources and where:
            where = where.rpartition("/")[0]
        return where, self._resources.get(where, "")

    def _find_existing(self, pointer: str) -> str | None:
        return pointer if trim_to_existing(self.root, pointer) == pointer and self._is_schema(pointer) else None

    def _is_schema(self, pointer: str) -> bool:
        return isinstance(self.get_schema(pointer), dict | bool)

    def _collect(self, schema: object, where: str, base: str, depth: int) -> None:
        node = as_node(schema)
        if node is None or depth > MAX_SCHEMA_DEPTH:
            return
        identity = node.get("$id")
        if isinstance(identity, str) and identity:
            # In draft 7 an anchor is an id that starts with `#`.
            uri = base + identity if identity.startswith("#") else _join_uri(base, identity)
            self._pointers_by_name.setdefault(uri, where)
            if not identity.startswith("#"):
                base = uri.rstrip("#")
                self._resources[where] = base
                self._pointers_by_name.setdefault(base, where)
        for anchor in {node.get("$anchor"), node.get("$dynamicAnchor")}:
            if isinstance(anchor, str):
                self._add_anchor(f"{base}#{anchor}", where)
        for relative, child in iterate_children(node):
            self._collect(child, where + relative, base, depth + 1)

    def _add_anchor(self, name: str, where: str) -> None:
        """Remember an anchor; one that is defined twice names nothing, because validators may choose either."""
        known = self._pointers_by_name.setdefault(name, where)
        if known != where:
            self._pointers_by_name[name] = None


def _join_uri(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def find_reference(node: Node) -> object:
    """Return the reference of a schema; None if it has none."""
    for keyword in REFERENCES:
        if keyword in node:
            return node[keyword]
    return None


def drop_reference(node: Node) -> Node:
    """Return a schema without its reference."""
    return {keyword: value for keyword, value in node.items() if keyword not in REFERENCES}


def describe_reference(node: Node, where: str, notes: list[Note]) -> Node:
    """Move a reference to another document to the description: vendors reject it, and it is not fetched."""
    keyword = next(keyword for keyword in REFERENCES if keyword in node)
    reference = node[keyword]
    what = f"reference {reference} is not in this schema: moved to the description"
    notes.append(Note(f"{where}/{keyword}", what, "approximated"))
    rest = drop_reference(node)
    return {**rest, "description": append_sentences(rest.get("description"), [f"as described at {reference}"])}


def get_last_token(pointer: str) -> str:
    """Return the last token of a pointer, for messages."""
    tokens = split(pointer)
    return tokens[-1] if tokens else "the whole schema"


def trim_to_existing(root: object, pointer: str) -> str:
    """Return the longest prefix of a pointer that exists in the document; merged schemas have pointers that do not."""
    value: Any = root
    found = ""
    for step in pointer.split("/")[1:]:
        token = unescape(step)
        if (node := as_node(value)) is not None and token in node:
            value = node[token]
        elif token.isdecimal() and int(token) < len(as_list(value)):
            value = value[int(token)]
        else:
            break
        found += "/" + step
    return found


DEFINITIONS = ("$defs", "definitions")
IN_DEFINITIONS = tuple(f"/{keyword}/" for keyword in DEFINITIONS)


def find_definition(pointer: str) -> str:
    """Return the pointer of the definition at the root that contains `pointer`; "" if none does."""
    return "/".join(pointer.split("/")[:3]) if pointer.startswith(IN_DEFINITIONS) else ""


def find_cycles(root: object, references: References) -> dict[str, str]:
    """Return for each definition a representative of its cycle (Kosaraju): the same for all definitions of a cycle."""
    graph = {pointer: _find_targets(schema, pointer, references) for pointer, schema in _list_definitions(root).items()}
    backwards: dict[str, set[str]] = {pointer: set() for pointer in graph}
    for pointer, targets in graph.items():
        for target in targets & graph.keys():
            backwards[target].add(pointer)
    found: dict[str, str] = {}
    for pointer in reversed(_order_by_finish(graph)):
        waiting = [pointer]
        while waiting:
            member = waiting.pop()
            if member not in found:
                found[member] = pointer
                waiting += backwards[member] - found.keys()
    return found


def _list_definitions(root: object) -> dict[str, object]:
    node = as_node(root) or {}
    return {
        f"/{keyword}/{escape(name)}": schema
        for keyword in DEFINITIONS
        for name, schema in (as_node(node.get(keyword)) or {}).items()
    }


def _find_targets(schema: object, where: str, references: References) -> set[str]:
    found: set[str] = set()
    waiting = [(schema, where)]
    while waiting:
        inner, pointer = waiting.pop()
        node = as_node(inner)
        if node is None:
            continue
        waiting += [(child, pointer + relative) for relative, child in iterate_children(node)]
        target = references.locate(find_reference(node), pointer)
        if target is not None:
            found.add(find_definition(target))
    return found


def _order_by_finish(graph: dict[str, set[str]]) -> list[str]:
    """Return the definitions in the order in which a depth-first search along the references finishes them."""
    order: list[str] = []
    entered: set[str] = set()
    # The search starts at an artificial node that refers to all definitions and finishes last.
    path = [("", iter(list(graph)))]
    while path:
        pointer, targets = path[-1]
        unvisited = next((target for target in targets if target not in entered), None)
        if unvisited is None:
            order.append(pointer)
            path.pop()
        else:
            entered.add(unvisited)
            path.append((unvisited, iter(sorted(graph[unvisited] & graph.keys()))))
    return order[:-1]


_FOLLOWED_KEYWORDS = ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties")
_MAX_TARGETS = 400

Step = tuple[str, str]
"""The pointer of an object schema, and a property it requires."""


class _Edge(Struct, frozen=True):
    """A reference from `start` to `end` that every value must follow.

    `pointer` is where the reference is, `step` is the last required property on the way to it.
    """

    start: str
    end: str
    pointer: str
    step: Step | None


def break_required_cycles(root: Node, notes: list[Note]) -> Node:
    """Return the schema without cycles that every value must repeat; the same object if there are none."""
    references = References(root)
    targets = _list_targets(root, references)
    if not targets or len(targets) > _MAX_TARGETS:
        return root
    edges = [
        edge for start in targets for edge in _find_edges(references.get_schema(start), start, start, references, None)
    ]
    steps = {edge.step for edge in _find_cyclic(edges) if edge.step is not None}
    cut = {edge.pointer: edge.end for edge in _find_cyclic([edge for edge in edges if edge.step not in steps])}
    return _cut_cycles(root, steps, cut, notes) if steps or cut else root


def _list_targets(root: Node, references: References) -> set[str]:
    found: set[str] = set()
    waiting: list[tuple[object, str]] = [(root, "")]
    while waiting:
        schema, where = waiting.pop()
        node = as_node(schema)
        if node is None:
            continue
        pointer = references.locate(find_reference(node), where)
        if pointer is not None:
            found.add(pointer)
        waiting += [(child, where + relative) for relative, child in iterate_children(node)]
    return found


def _find_edges(schema: object, start: str, where: str, references: References, step: Step | None) -> Iterator[_Edge]:
    node = as_node(schema)
    if node is None:
        for index, item in enumerate(as_list(schema)):
            yield from _find_edges(item, start, f"{where}/{index}", references, step)
        return
    end = references.locate(find_reference(node), where)
    if end is not None:
        yield _Edge(start, end, where, step)
    required = list_names(node.get("required"))
    for name, child in properties_of(node).items():
        if name in required:
            yield from _find_edges(child, start, f"{where}/properties/{escape(name)}", references, (where, name))
    for keyword in _FOLLOWED_KEYWORDS:
        yield from _find_edges(node.get(keyword), start, f"{where}/{keyword}", references, step)


def _find_cyclic(edges: list[_Edge]) -> list[_Edge]:
    """Return the edges that are on a cycle."""
    successors: dict[str, set[str]] = {}
    for edge in edges:
        successors.setdefault(edge.start, set()).add(edge.end)
    reached = {pointer: _find_reachable(pointer, successors) for pointer in {edge.end for edge in edges}}
    return [edge for edge in edges if edge.start in reached[edge.end]]


def _find_reachable(start: str, successors: dict[str, set[str]]) -> set[str]:
    found = {start}
    waiting = [start]
    while waiting:
        new = successors.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def _cut_cycles(root: Node, steps: set[Step], cut: dict[str, str], notes: list[Note]) -> Node:
    def visit(schema: Any, where: str) -> Any:
        node = as_node(schema)
        if node is None:
            return schema
        if where in cut:
            what = f"the endless cycle of {get_last_token(cut[where])} is cut: any value"
            notes.append(Note(f"{where}/$ref", what, "approximated"))
            node = drop_reference(node)
        node = rewrite(node, where, visit)
        required = list_names(node.get("required"))
        kept = [name for name in required if (where, name) not in steps]
        for index, name in enumerate(required):
            if (where, name) in steps:
                what = f'"{name}" is recursive, and a recursive property cannot be required'
                notes.append(Note(f"{where}/required/{index}", what, "dropped"))
        return node if kept == required else {**node, "required": kept}

    return visit(root, "")
