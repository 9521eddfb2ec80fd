"""Count what makes a strict schema costly to compile: a target that compiles schemas bounds it over all tools."""

from typing import Any

from msgspec import Struct

from dragoman.interpreter.schemas.nodes import as_list, as_node, names_in, properties_of, read_document
from dragoman.wire.json import Malformed

_UNIONS = ("anyOf", "oneOf")


class Complexity(Struct, frozen=True):
    """How many parameters may be absent, and how many may be of several types."""

    optional: int = 0
    unions: int = 0


def complexity(schema: bytes | None) -> Complexity:
    """Count the parameters of a schema, at every level; one that cannot be read has none."""
    if schema is None:
        return Complexity()
    try:
        waiting: list[Any] = [read_document(schema)]
    except Malformed:
        return Complexity()
    optional = unions = 0
    while waiting:
        value = waiting.pop()
        waiting.extend(as_list(value))
        node = as_node(value)
        if node is None:
            continue
        required = names_in(node.get("required"))
        for name, child in properties_of(node).items():
            optional += name not in required
            unions += _is_union(child)
        waiting.extend(node.values())
    return Complexity(optional, unions)


def _is_union(schema: Any) -> bool:
    node = as_node(schema)
    return node is not None and (isinstance(node.get("type"), list) or any(word in node for word in _UNIONS))
