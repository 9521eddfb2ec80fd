"""Foresee how many steps a validator takes over given arguments, so that a recursive schema cannot make it run on.

A recursive schema whose alternatives all lead into the same member doubles the work with every level of the arguments.
Steps are counted once for each pair of schema and value, so that counting stays cheap where validating would not.
"""

from math import inf
from typing import Any

from dragoman.interpreter.schemas.nodes import as_list, as_node, children
from dragoman.interpreter.schemas.references import REFERENCES, References
from dragoman.wire.pointer import unescape

MOST_STEPS = 20_000
_DEEPEST = 300

_DEFINITIONS = frozenset({"$defs", "definitions", "defs", "contentSchema"})
_OF_MEMBERS = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties"})
_OF_ITEMS = frozenset({"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"})


def steps(document: object, value: object) -> float:
    """Return the number of steps; infinite where the value is too deep to be walked."""
    return _Count(document).steps(document, "", value, 0)


class _Count:
    def __init__(self, document: object) -> None:
        self.references = References(document)
        self.known: dict[tuple[str, int], float] = {}

    def steps(self, schema: object, where: str, value: Any, depth: int) -> float:
        node = as_node(schema)
        if node is None:
            return 1
        if depth > _DEEPEST:
            return inf
        key = (where, id(value))
        if key in self.known:
            return self.known[key]
        self.known[key] = 1
        total: float = 1
        for relative, child in children(node):
            for part in _parts(relative, value):
                total += self.steps(child, where + relative, part, depth + 1)
        for keyword in REFERENCES:
            pointer = self.references.locate(node.get(keyword), where)
            if pointer is not None:
                total += self.steps(self.references.at(pointer), pointer, value, depth + 1)
        self.known[key] = total
        return total


def _parts(relative: str, value: Any) -> list[Any]:
    """Return what of `value` the schema under a keyword is applied to."""
    _, keyword, *rest = relative.split("/")
    if keyword in _DEFINITIONS:
        return []
    if keyword == "properties":
        name = unescape(rest[0])
        members = as_node(value) or {}
        return [members[name]] if name in members else []
    if keyword in _OF_MEMBERS:
        return list((as_node(value) or {}).values())
    return as_list(value) if keyword in _OF_ITEMS else [value]
