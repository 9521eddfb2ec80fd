"""What OpenAI rejects in a JSON Schema, in any schema and in a strict one, and how it makes a schema strict.

A violation has a topic, the path to the subschema as OpenAI writes it (`('properties', 'city')`), and the error text.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

from msgspec import Struct

from dragoman.simulator.apis.rule import Json

SchemaTopic = Literal[
    "root",
    "malformed",
    "items",
    "additional-properties",
    "required",
    "keyword",
    "type",
    "format",
    "reference",
    "nesting",
    "size",
]
SchemaPath = tuple[str, ...]
ROOT_FORBIDDEN = ("oneOf", "anyOf", "allOf", "enum", "not")
STRICT_FORBIDDEN = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)
FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
MOST_LEVELS = 10
MOST_PROPERTIES = 5000
MOST_VALUES = 1000
MOST_CHARACTERS = 120_000
LONG_ENUM = 250
MOST_CHARACTERS_OF_LONG_ENUM = 15_000
_REFERENCE = "$ref"
_MAPS = ("properties", "$defs", "definitions")
LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else")
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_NO_MATCHING_SCHEMA = "is not valid under any of the given schemas"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    # A float may be integral; an integer of hundreds of digits cannot be converted to a float.
    return value.is_integer() if isinstance(value, float) else _is_number(value)


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "object": (lambda value: isinstance(value, dict), "'object'"),
    "schema": (lambda value: isinstance(value, dict | bool), "'object', 'boolean'"),
    "array": (lambda value: isinstance(value, list), "'array'"),
    "string": (_is_text, "'string'"),
    "boolean": (lambda value: isinstance(value, bool), "'boolean'"),
    "number": (_is_number, "'number'"),
    "integer": (_is_integer, "'integer'"),
}
"""Kinds of values: the test for one, and the validator's name for it."""
_KEYWORDS = {
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), "object"),
    **dict.fromkeys(("items", "additionalProperties", "not", "if", "then", "else", "contains"), "schema"),
    **dict.fromkeys(("propertyNames", "unevaluatedProperties", "unevaluatedItems"), "schema"),
    **dict.fromkeys(("anyOf", "allOf", "oneOf", "prefixItems", "required", "enum"), "array"),
    **dict.fromkeys(("$ref", "format", "pattern", "title", "description"), "string"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "number"),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), "integer"),
    "uniqueItems": "boolean",
}
_INNER_TYPES = {
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), "schema"),
    **dict.fromkeys(("anyOf", "allOf", "oneOf", "prefixItems"), "schema"),
    "required": "string",
}
"""The kind of the values inside an object or array."""


class SchemaViolation(Struct, frozen=True):
    """One error in a schema."""

    topic: SchemaTopic
    message: str
    path: SchemaPath | None = None

    def describe(self, subject: str) -> str:
        """Return the error text about a function or a response format."""
        context = f"In context={self.path!r}, " if self.path is not None else ""
        return f"Invalid schema for {subject}: {context}{self.message}"


def iterate_schemas(schema: Json, path: SchemaPath = ()) -> Iterator[tuple[SchemaPath, Json]]:
    """Iterate over all schemas within a schema, outermost first."""
    yield path, schema
    for keyword in _MAPS:
        inside = schema.get(keyword)
        if isinstance(inside, dict):
            for name, value in cast("Json", inside).items():
                if isinstance(value, dict):
                    yield from iterate_schemas(cast("Json", value), (*path, keyword, name))
    for keyword in LISTS:
        inside = schema.get(keyword)
        if isinstance(inside, list):
            for index, value in enumerate(cast("list[Any]", inside)):
                if isinstance(value, dict):
                    yield from iterate_schemas(cast("Json", value), (*path, keyword, str(index)))
    for keyword in _SINGLES:
        inside = schema.get(keyword)
        if isinstance(inside, dict):
            yield from iterate_schemas(cast("Json", inside), (*path, keyword))


def read_types(schema: Json) -> tuple[str, ...]:
    """Return the types a schema names."""
    named = schema.get("type")
    if isinstance(named, list):
        return tuple(str(name) for name in cast("list[Any]", named))
    return (named,) if isinstance(named, str) else ()


def find_schema_violations(schema: Json, *, strict: bool) -> Iterator[SchemaViolation]:
    """Yield all violations of a schema."""
    yield from _check_root(schema)
    for way, node in iterate_schemas(schema):
        for words in _find_malformed_keywords(node):
            yield SchemaViolation("malformed", words)
        if "array" in read_types(node) and "items" not in node and "prefixItems" not in node:
            yield SchemaViolation("items", "array schema missing items.", way)
        if strict:
            yield from _check_strict_node(way, node)
    if strict:
        yield from _check_limits(schema)


def _check_root(schema: Json) -> Iterator[SchemaViolation]:
    if read_types(schema) != ("object",):
        named = schema.get("type")
        yield SchemaViolation("root", f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{named}\"'.")
        return
    if any(keyword in schema for keyword in ROOT_FORBIDDEN):
        yield SchemaViolation(
            "root",
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
        )


def _check_strict_node(path: SchemaPath, node: Json) -> Iterator[SchemaViolation]:
    if _REFERENCE in node:
        siblings = {keyword for keyword in node if keyword not in (_REFERENCE, *_MAPS)}
        if siblings:
            listed = ", ".join(f"'{keyword}'" for keyword in sorted(siblings))
            yield SchemaViolation("reference", f"$ref cannot have keywords {{{listed}}}.", path)
        return
    for keyword in STRICT_FORBIDDEN:
        if keyword in node:
            yield SchemaViolation("keyword", f"'{keyword}' is not permitted.", path)
    if "type" not in node and "anyOf" not in node and not any(keyword in node for keyword in STRICT_FORBIDDEN):
        yield SchemaViolation("type", "schema must have a 'type' key.", path)
    written = node.get("format")
    if isinstance(written, str) and written not in FORMATS:
        yield SchemaViolation("format", f"'{written}' is not a valid format.", path)
    if "object" in read_types(node):
        yield from _check_strict_object(path, node)


def _check_strict_object(path: SchemaPath, node: Json) -> Iterator[SchemaViolation]:
    if node.get("additionalProperties") is not False:
        yield SchemaViolation(
            "additional-properties", "'additionalProperties' is required to be supplied and to be false.", path
        )
    properties, required = _read_object(node, "properties"), _read_array(node, "required")
    known = [name for name in required if isinstance(name, str)]
    absent = [name for name in properties if name not in known]
    extra = [name for name in known if name not in properties]
    supplied = "'required' is required to be supplied and to be an array including every key in properties."
    if absent:
        yield SchemaViolation("required", f"{supplied} Missing '{absent[0]}'.", path)
    elif extra:
        yield SchemaViolation("required", f"{supplied} Extra required key '{extra[0]}' supplied.", path)


def _check_limits(schema: Json) -> Iterator[SchemaViolation]:
    deepest = properties = values = characters = longest = 0
    for way, node in iterate_schemas(schema):
        deepest = max(deepest, _count_depth(way))
        named, listed = _read_object(node, "properties"), _read_array(node, "enum")
        properties += len(named)
        values += len(listed)
        texts = [*named, *_read_object(node, "$defs"), *listed, node.get("const")]
        characters += sum(len(text) for text in texts if isinstance(text, str))
        if len(listed) > LONG_ENUM:
            longest = max(longest, sum(len(value) for value in listed if isinstance(value, str)))
    if deepest > MOST_LEVELS:
        yield SchemaViolation("nesting", f"{deepest} levels of nesting exceeds limit of {MOST_LEVELS}.")
    for count, most, what in (
        (properties, MOST_PROPERTIES, "parameters"),
        (values, MOST_VALUES, "enum values"),
        (characters, MOST_CHARACTERS, "characters of names and values"),
    ):
        if count > most:
            yield SchemaViolation("size", f"{count} {what} exceeds limit of {most}.")
    if longest > MOST_CHARACTERS_OF_LONG_ENUM:
        limit = f"{MOST_CHARACTERS_OF_LONG_ENUM} for an enum of more than {LONG_ENUM} values"
        yield SchemaViolation("size", f"{longest} characters exceeds limit of {limit}.")


def _count_depth(path: SchemaPath) -> int:
    """Count the levels of data on a path: a property or an item adds one, a definition or an alternative does not."""
    depth = 0
    steps = iter(path)
    for step in steps:
        if step in _MAPS:
            next(steps, None)
            depth = depth + 1 if step == "properties" else 0
        elif step in LISTS:
            next(steps, None)
            depth += step == "prefixItems"
        elif step == "items":
            depth += 1
    return depth


def _read_object(node: Json, keyword: str) -> Json:
    """Return the object at a keyword; an empty one if it is not an object."""
    inside = node.get(keyword)
    return cast("Json", inside) if isinstance(inside, dict) else {}


def _read_array(node: Json, keyword: str) -> list[Any]:
    """Return the array at a keyword; an empty one if it is not an array."""
    inside = node.get(keyword)
    return cast("list[Any]", inside) if isinstance(inside, list) else []


def _find_malformed_keywords(node: Json) -> Iterator[str]:
    """Yield the errors in the keywords of one schema, without its subschemas."""
    if "type" in node and not _is_type(node["type"]):
        yield f"{node['type']!r} {_NO_MATCHING_SCHEMA}."
    for keyword, value in node.items():
        wanted = _KEYWORDS.get(keyword)
        if wanted is None:
            continue
        is_such, words = _EXPECTED[wanted]
        if not is_such(value):
            yield f"{value!r} is not of type {words}."
        elif keyword in _INNER_TYPES:
            inner = cast("Json", value).values() if isinstance(value, dict) else cast("list[Any]", value)
            is_such, words = _EXPECTED[_INNER_TYPES[keyword]]
            yield from (f"{one!r} is not of type {words}." for one in inner if not is_such(one))


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        names = cast("list[Any]", value)
        return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
    return isinstance(value, str) and value in _TYPES


def make_strict(schema: Json | None) -> Json | None:
    """Return a schema made strict, as Responses does without `strict`; None if that is impossible."""
    if schema is None:
        return None
    changed = _close_objects({word: value for word, value in schema.items() if word != "$schema"}, root=True)
    return changed if changed is not None and next(find_schema_violations(changed, strict=True), None) is None else None


def _close_objects(schema: Any, *, root: bool = False) -> Json | None:
    if not isinstance(schema, dict):
        return None
    given = cast("Json", schema)
    changed: Json = dict(given)
    if "object" in read_types(given) or "properties" in given:
        # An open object cannot be made strict: it could no longer have any members.
        is_open = given.get("additionalProperties") is not None and given["additionalProperties"] is not False
        if is_open or ("properties" not in given and not root):
            return None
        properties = given.get("properties", {})
        if not isinstance(properties, dict):
            return None
        properties = cast("Json", properties)
        changed |= {"properties": properties, "required": list(properties), "additionalProperties": False}
    for word in _MAPS:
        if isinstance(changed.get(word), dict):
            changed[word] = {name: _close_objects(inner) for name, inner in cast("Json", changed[word]).items()}
            if None in changed[word].values():
                return None
    if "items" in given:
        changed["items"] = _close_objects(given["items"])
        if changed["items"] is None:
            return None
    if isinstance(given.get("anyOf"), list):
        changed["anyOf"] = [_close_objects(inner) for inner in cast("list[Any]", given["anyOf"])]
        if None in changed["anyOf"]:
            return None
    return changed
