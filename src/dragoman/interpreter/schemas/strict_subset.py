"""Tell whether OpenAI takes a schema as strict, without changing it.

Only what it is known to refuse counts: an object that is open or leaves a property optional, keywords and formats
outside its subset. A schema of its own clients passes; one written for a compatible server may not.
"""

from functools import lru_cache

from dragoman.interpreter.schemas.nodes import (
    Node,
    as_node,
    children,
    names_in,
    properties_of,
    read_document,
    said_types,
)
from dragoman.wire.json import Malformed

_REFUSED = frozenset(
    {"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "uniqueItems"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


@lru_cache(maxsize=1024)
def is_openai_strict(schema: bytes) -> bool:
    """Tell whether OpenAI takes `schema` as strict."""
    try:
        root = as_node(read_document(schema))
    except Malformed:
        return False
    if root is None or said_types(root) != ["object"] or "anyOf" in root:
        return False
    waiting: list[object] = [root]
    while waiting:
        node = as_node(waiting.pop())
        if node is None:
            continue
        if not _is_taken(node):
            return False
        waiting += [child for _, child in children(node)]
    return True


def _is_taken(node: Node) -> bool:
    if not _REFUSED.isdisjoint(node):
        return False
    if "format" in node and node["format"] not in _FORMATS:
        return False
    if "object" not in said_types(node):
        return True
    return node.get("additionalProperties") is False and set(properties_of(node)) == set(names_in(node.get("required")))
