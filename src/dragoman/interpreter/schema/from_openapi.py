"""Bring Google's `Schema` (and JSON Schema written with its habits) to plain JSON Schema.

Clients put UPPERCASE types even where JSON Schema is asked for. What is plain already is returned as it is.
`propertyOrdering` becomes the order of the properties, so nothing is lost with it.
"""

from typing import Any

from dragoman.interpreter.schema.conversion import Converted, conversion, unchanged
from dragoman.interpreter.schema.nodes import (
    TYPES,
    Node,
    as_list,
    as_node,
    names_in,
    properties_of,
    read_document,
    rewrite,
    text_of,
)
from dragoman.wire.json import Malformed, decode, encode

_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum")
_GOOGLE_TYPES = {name.upper(): name for name in TYPES}
_NUMBERED = ("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
"""Some clients write the numbers of Google's enum."""


@conversion
def convert_google(schema: bytes) -> Converted:
    """Convert a `Schema` that is not proven to be plain JSON Schema."""
    try:
        document = read_document(schema)
    except Malformed:
        return unchanged(schema)
    plain = _plain(document, "")
    return unchanged(schema) if plain is document else Converted(encode(plain))


def _plain(schema: Any, where: str) -> Any:
    node = as_node(schema)
    if node is None:
        return schema
    node = rewrite(node, where, _plain)
    # The type tells whether the enum is Google's, so it changes last.
    for change in (_enum, _type, _references, _counts, _order, _example):
        node = change(node)
    return _nullable(node)


def _type(node: Node) -> Node:
    said = node.get("type")
    if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < len(_NUMBERED):
        said = _NUMBERED[said]
        node = {**node, "type": said}
    if said == "TYPE_UNSPECIFIED":
        return _without(node, "type")
    if isinstance(said, str) and said in _GOOGLE_TYPES:
        return {**node, "type": _GOOGLE_TYPES[said]}
    if any(word in _GOOGLE_TYPES for word in names_in(said)):
        return {**node, "type": [_GOOGLE_TYPES.get(word, word) for word in names_in(said)]}
    return node


def _references(node: Node) -> Node:
    reference = node.get("ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        return {"$ref": reference.replace("#/defs/", "#/$defs/"), **_without(node, "ref")}
    if as_node(node.get("defs")) is not None and "$defs" not in node:
        return {**_without(node, "defs"), "$defs": node["defs"]}
    return node


def _counts(node: Node) -> Node:
    """int64 fields travel as strings in the protobuf JSON of Google's libraries."""
    changes = {
        keyword: number
        for keyword in _COUNTS
        if isinstance(text := node.get(keyword), str) and (number := _number(text)) is not None
    }
    return {**node, **changes} if changes else node


def _number(text: str) -> int | float | None:
    try:
        value = decode(text)
    except Malformed:
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _order(node: Node) -> Node:
    if not isinstance(node.get("propertyOrdering"), list):
        return node
    declared = properties_of(node)
    wished = [name for name in names_in(node["propertyOrdering"]) if name in declared]
    ordered = {name: declared[name] for name in [*wished, *declared]}
    rest = _without(node, "propertyOrdering")
    return {**rest, "properties": ordered} if declared else rest


def _example(node: Node) -> Node:
    if "example" not in node or "examples" in node:
        return node
    return {**_without(node, "example"), "examples": [node["example"]]}


def _enum(node: Node) -> Node:
    said = node.get("type")
    marked = node.get("format") == "enum"
    if marked:
        node = _without(node, "format")
    values = as_list(node.get("enum"))
    numeric = said in ("INTEGER", "NUMBER") or (marked and said in ("integer", "number"))
    if not numeric or not any(isinstance(value, str) for value in values):
        return node
    return {**node, "enum": [_meant(value) for value in values]}


def _meant(value: Any) -> Any:
    number = _number(value) if isinstance(value, str) else None
    return value if number is None else number


def _nullable(node: Node) -> Node:
    if not isinstance(node.get("nullable"), bool):
        return node
    rest = _without(node, "nullable")
    return nullable(rest) if node["nullable"] else rest


def nullable(node: Node) -> Node:
    """Let a schema take null as well."""
    if "$ref" in node or "allOf" in node or "oneOf" in node or "const" in node:
        return {"anyOf": [node, {"type": "null"}]}
    changed = dict(node)
    if isinstance(said := node.get("type"), str) and said != "null":
        changed["type"] = [said, "null"]
    elif isinstance(said, list) and "null" not in said:
        changed["type"] = [*as_list(node["type"]), "null"]
    if "enum" in node and None not in as_list(node["enum"]):
        changed["enum"] = [*as_list(node["enum"]), None]
    branches = as_list(node.get("anyOf"))
    if branches and not any(text_of(branch) == '{"type":"null"}' for branch in branches):
        changed["anyOf"] = [*branches, {"type": "null"}]
    return changed


def _without(node: Node, keyword: str) -> Node:
    return {name: value for name, value in node.items() if name != keyword}
