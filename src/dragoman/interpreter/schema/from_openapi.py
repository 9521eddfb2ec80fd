"""Bring Google's `Schema` (and JSON Schema written with its habits) to plain JSON Schema.

Clients put UPPERCASE types even where JSON Schema is asked for. What is plain already is returned as it is.
`propertyOrdering` becomes the order of the properties, so nothing is lost with it.
"""

from typing import Any

from dragoman.interpreter.schema.conversion import ConvertedSchema, keep_schema, note_history_changes
from dragoman.interpreter.schema.nodes import (
    TYPES,
    Node,
    as_list,
    as_node,
    list_names,
    properties_of,
    read_document,
    rewrite,
    to_json_text,
)
from dragoman.wire.json import Malformed, decode, encode

_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum")
_GOOGLE_TYPES = {name.upper(): name for name in TYPES}
_NUMBERED = ("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
"""Some clients write the numbers of Google's enum."""


@note_history_changes
def convert_google(schema: bytes) -> ConvertedSchema:
    """Convert a `Schema` that is not proven to be plain JSON Schema."""
    try:
        document = read_document(schema)
    except Malformed:
        return keep_schema(schema)
    plain = _convert_schema(document, "")
    return keep_schema(schema) if plain is document else ConvertedSchema(encode(plain))


def _convert_schema(schema: Any, where: str) -> Any:
    node = as_node(schema)
    if node is None:
        return schema
    node = rewrite(node, where, _convert_schema)
    # The type tells whether the enum is Google's, so it changes last.
    for change in (
        _convert_enum,
        _convert_type,
        _convert_references,
        _convert_counts,
        _convert_order,
        _convert_example,
    ):
        node = change(node)
    return _convert_nullable(node)


def _convert_type(node: Node) -> Node:
    said = node.get("type")
    if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < len(_NUMBERED):
        said = _NUMBERED[said]
        node = {**node, "type": said}
    if said == "TYPE_UNSPECIFIED":
        return _without_keyword(node, "type")
    if isinstance(said, str) and said in _GOOGLE_TYPES:
        return {**node, "type": _GOOGLE_TYPES[said]}
    if any(word in _GOOGLE_TYPES for word in list_names(said)):
        return {**node, "type": [_GOOGLE_TYPES.get(word, word) for word in list_names(said)]}
    return node


def _convert_references(node: Node) -> Node:
    reference = node.get("ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        return {"$ref": reference.replace("#/defs/", "#/$defs/"), **_without_keyword(node, "ref")}
    if as_node(node.get("defs")) is not None and "$defs" not in node:
        return {**_without_keyword(node, "defs"), "$defs": node["defs"]}
    return node


def _convert_counts(node: Node) -> Node:
    """int64 fields travel as strings in the protobuf JSON of Google's libraries."""
    changes = {
        keyword: number
        for keyword in _COUNTS
        if isinstance(text := node.get(keyword), str) and (number := _parse_number(text)) is not None
    }
    return {**node, **changes} if changes else node


def _parse_number(text: str) -> int | float | None:
    try:
        value = decode(text)
    except Malformed:
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _convert_order(node: Node) -> Node:
    if not isinstance(node.get("propertyOrdering"), list):
        return node
    declared = properties_of(node)
    wished = [name for name in list_names(node["propertyOrdering"]) if name in declared]
    ordered = {name: declared[name] for name in [*wished, *declared]}
    rest = _without_keyword(node, "propertyOrdering")
    return {**rest, "properties": ordered} if declared else rest


def _convert_example(node: Node) -> Node:
    if "example" not in node or "examples" in node:
        return node
    return {**_without_keyword(node, "example"), "examples": [node["example"]]}


def _convert_enum(node: Node) -> Node:
    said = node.get("type")
    marked = node.get("format") == "enum"
    if marked:
        node = _without_keyword(node, "format")
    values = as_list(node.get("enum"))
    numeric = said in ("INTEGER", "NUMBER") or (marked and said in ("integer", "number"))
    if not numeric or not any(isinstance(value, str) for value in values):
        return node
    return {**node, "enum": [_parse_if_number(value) for value in values]}


def _parse_if_number(value: Any) -> Any:
    number = _parse_number(value) if isinstance(value, str) else None
    return value if number is None else number


def _convert_nullable(node: Node) -> Node:
    if not isinstance(node.get("nullable"), bool):
        return node
    rest = _without_keyword(node, "nullable")
    return allow_null(rest) if node["nullable"] else rest


def allow_null(node: Node) -> Node:
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
    if branches and not any(to_json_text(branch) == '{"type":"null"}' for branch in branches):
        changed["anyOf"] = [*branches, {"type": "null"}]
    return changed


def _without_keyword(node: Node, keyword: str) -> Node:
    return {name: value for name, value in node.items() if name != keyword}
