"""Convert Google's `Schema` (and JSON Schema with its conventions) to plain JSON Schema.

Clients send UPPERCASE types even in fields for JSON Schema. A schema that is plain already is returned unchanged.
`propertyOrdering` becomes the order of the properties, so it is not a loss.
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
"""Google's enum of types in order: some clients send the numbers."""


@note_history_changes
def convert_google(schema: bytes) -> ConvertedSchema:
    """Convert a `Schema` that `prove_plain` did not prove to be plain JSON Schema."""
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
    # `_convert_enum` needs the original type to recognise Google's enums, so it is first.
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
    kind = node.get("type")
    if isinstance(kind, int) and not isinstance(kind, bool) and 0 <= kind < len(_NUMBERED):
        kind = _NUMBERED[kind]
        node = {**node, "type": kind}
    if kind == "TYPE_UNSPECIFIED":
        return _without_keyword(node, "type")
    if isinstance(kind, str) and kind in _GOOGLE_TYPES:
        return {**node, "type": _GOOGLE_TYPES[kind]}
    if any(name in _GOOGLE_TYPES for name in list_names(kind)):
        return {**node, "type": [_GOOGLE_TYPES.get(name, name) for name in list_names(kind)]}
    return node


def _convert_references(node: Node) -> Node:
    reference = node.get("ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        return {"$ref": reference.replace("#/defs/", "#/$defs/"), **_without_keyword(node, "ref")}
    if as_node(node.get("defs")) is not None and "$defs" not in node:
        return {**_without_keyword(node, "defs"), "$defs": node["defs"]}
    return node


def _convert_counts(node: Node) -> Node:
    """Convert counts from strings to numbers: the protobuf JSON of Google's libraries has int64 fields as strings."""
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
    first = [name for name in list_names(node["propertyOrdering"]) if name in declared]
    ordered = {name: declared[name] for name in [*first, *declared]}
    rest = _without_keyword(node, "propertyOrdering")
    return {**rest, "properties": ordered} if declared else rest


def _convert_example(node: Node) -> Node:
    if "example" not in node or "examples" in node:
        return node
    return {**_without_keyword(node, "example"), "examples": [node["example"]]}


def _convert_enum(node: Node) -> Node:
    kind = node.get("type")
    has_enum_format = node.get("format") == "enum"
    if has_enum_format:
        node = _without_keyword(node, "format")
    values = as_list(node.get("enum"))
    numeric = kind in ("INTEGER", "NUMBER") or (has_enum_format and kind in ("integer", "number"))
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
    """Return the schema changed so that it also accepts null."""
    if "$ref" in node or "allOf" in node or "oneOf" in node or "const" in node:
        return {"anyOf": [node, {"type": "null"}]}
    changed = dict(node)
    if isinstance(kind := node.get("type"), str) and kind != "null":
        changed["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        changed["type"] = [*as_list(node["type"]), "null"]
    if "enum" in node and None not in as_list(node["enum"]):
        changed["enum"] = [*as_list(node["enum"]), None]
    branches = as_list(node.get("anyOf"))
    if branches and not any(to_json_text(branch) == '{"type":"null"}' for branch in branches):
        changed["anyOf"] = [*branches, {"type": "null"}]
    return changed


def _without_keyword(node: Node, keyword: str) -> Node:
    return {name: value for name, value in node.items() if name != keyword}
