"""JSON Schema documents as plain values: what is a schema, where schemas stand inside it, what type they mean.

Rule 1: keywords are keywords only in schema position; a property may be called `type`, `enum` or `$comment`.
Rule 2: documents are never changed in place; `rewrite` returns the node itself where nothing changes below it.
"""

from collections.abc import Callable, Iterator
from operator import is_not
from typing import Any, TypeAlias, cast

from dragoman.wire.json import Malformed, decode, encode
from dragoman.wire.pointer import escape

Node: TypeAlias = dict[str, Any]

DEEPEST_DOCUMENT = 128
DEEPEST_SCHEMA = 64
SINGLE = (
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
)
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
MAPS = ("properties", "patternProperties", "$defs", "definitions", "defs", "dependentSchemas", "dependencies")
TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
ANNOTATIONS = frozenset({"title", "description", "default", "example", "examples", "deprecated"})

_SPOKEN_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "none": "null",
}
_TELLING = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "propertyNames")),
    ("object", ("minProperties", "maxProperties", "dependentRequired", "dependentSchemas")),
    ("array", ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains")),
    ("string", ("pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)


class Removed:
    """What `rewrite` is told to leave out."""


REMOVED = Removed()


def read_document(schema: bytes) -> Any:
    """Decode a schema, refusing what is nested too deeply to be walked."""
    document = decode(schema)
    if schema.count(b"{") + schema.count(b"[") > DEEPEST_DOCUMENT and _too_deep(document):
        raise Malformed("the schema is nested too deeply")
    return document


def _too_deep(document: object) -> bool:
    level = [document]
    for _ in range(DEEPEST_DOCUMENT):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(cast("Node", value).values())
            elif isinstance(value, list):
                below.extend(cast("list[object]", value))
        level = below
    return any(isinstance(value, dict | list) for value in level)


def as_node(value: object) -> Node | None:
    """Return `value` if it is an object."""
    return cast("Node", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any]:
    """Return `value` if it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_number(value: object) -> int | float | None:
    """Return `value` if it is a number; true and false are not."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def names_in(value: object) -> list[str]:
    """Return the distinct strings of an array, in order."""
    return list(dict.fromkeys(name for name in as_list(value) if isinstance(name, str)))


def properties_of(node: Node) -> Node:
    """Return the declared properties."""
    return as_node(node.get("properties")) or {}


def text_of(value: object) -> str:
    """Write a value as JSON text."""
    return encode(value).decode()


def children(node: Node) -> Iterator[tuple[str, object]]:
    """Iterate the schemas directly inside `node`, with their relative pointers."""
    for keyword in SINGLE:
        if keyword in node and not isinstance(node[keyword], list):
            yield f"/{keyword}", node[keyword]
    for keyword in LISTS:
        for index, child in enumerate(as_list(node.get(keyword))):
            yield f"/{keyword}/{index}", child
    for keyword in MAPS:
        for name, child in (as_node(node.get(keyword)) or {}).items():
            if not isinstance(child, list):
                yield f"/{keyword}/{escape(name)}", child


def keyword_at(where: str) -> str:
    """Return the keyword that the schema at `where` stands under: a property named `not` stands under `properties`."""
    found = ""
    steps = iter(where.split("/")[1:])
    for step in steps:
        if not step.isdecimal():
            found = step
        if step in MAPS:
            next(steps, None)
    return found


Visit: TypeAlias = Callable[[Any, str], Any]


def rewrite(node: Node, where: str, visit: Visit) -> Node:
    """Put `visit(child, pointer)` in the place of each schema inside `node`; `node` itself where all stay the same."""
    changes: Node = {}
    for keyword in SINGLE:
        if keyword in node and not isinstance(node[keyword], list):
            _change(changes, keyword, node[keyword], visit(node[keyword], f"{where}/{keyword}"))
    for keyword in LISTS:
        if before := as_list(node.get(keyword)):
            after = [visit(child, f"{where}/{keyword}/{index}") for index, child in enumerate(before)]
            if any(map(is_not, after, before)):
                changes[keyword] = [child for child in after if child is not REMOVED]
    for keyword in MAPS:
        if members := as_node(node.get(keyword)):
            changed = _rewrite_members(members, f"{where}/{keyword}", visit)
            _change(changes, keyword, members, changed)
    if not changes:
        return node
    return {keyword: value for keyword, value in {**node, **changes}.items() if value is not REMOVED}


def _rewrite_members(members: Node, where: str, visit: Visit) -> Node:
    # `dependencies` of the older drafts may hold lists of names among its schemas.
    schemas = [name for name, child in members.items() if not isinstance(child, list)]
    after = {**members, **{name: visit(members[name], f"{where}/{escape(name)}") for name in schemas}}
    if all(after[name] is child for name, child in members.items()):
        return members
    return {name: child for name, child in after.items() if child is not REMOVED}


def _change(changes: Node, keyword: str, before: object, after: object) -> None:
    if after is not before:
        changes[keyword] = after


def said_types(node: Node) -> list[str]:
    """Return the JSON types that `type` names, in lower case; words that mean nothing are left out."""
    said = node.get("type")
    words = [said] if isinstance(said, str) else names_in(said)
    spoken = [_SPOKEN_TYPES.get(word.lower(), word.lower()) for word in words]
    return list(dict.fromkeys(word for word in spoken if word in TYPES))


def types_of(node: Node) -> list[str]:
    """Return the types a schema means: those it names, else the one its keywords are about, else none."""
    if said := said_types(node):
        return said
    for meant, keywords in _TELLING:
        if any(keyword in node for keyword in keywords):
            return [meant]
    return []
