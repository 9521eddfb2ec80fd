"""What a keyword of a JSON Schema may hold, and what OpenAI says where it holds something else.

OpenAI holds every schema to the meta-schema, strict or not, and tells what its validator says.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from dragoman.simulator.rule import Json

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_UNDER_NONE = "is not valid under any of the given schemas"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    # A float may be whole; a number of hundreds of digits cannot become one.
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
"""Kinds of values: how one is told, and what the validator calls it."""
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
_WITHIN = {
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"), "schema"),
    **dict.fromkeys(("anyOf", "allOf", "oneOf", "prefixItems"), "schema"),
    "required": "string",
}
"""What stands within an object or an array."""


def misused(node: Json) -> Iterator[str]:
    """Iterate what is wrong with the values of the keywords of one schema, not of those within it."""
    if "type" in node and not _is_type(node["type"]):
        yield f"{node['type']!r} {_UNDER_NONE}."
    for keyword, value in node.items():
        wanted = _KEYWORDS.get(keyword)
        if wanted is None:
            continue
        is_such, words = _EXPECTED[wanted]
        if not is_such(value):
            yield f"{value!r} is not of type {words}."
        elif keyword in _WITHIN:
            inner = cast("Json", value).values() if isinstance(value, dict) else cast("list[Any]", value)
            is_such, words = _EXPECTED[_WITHIN[keyword]]
            yield from (f"{one!r} is not of type {words}." for one in inner if not is_such(one))


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        names = cast("list[Any]", value)
        return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
    return isinstance(value, str) and value in _TYPES
