"""What OpenAI refuses in a JSON Schema: in any, and in one that is to be followed strictly; how it makes one strict.

A complaint tells its topic, the way to the place as OpenAI writes it (`('properties', 'city')`), and its words.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

from msgspec import Struct

from dragoman.simulator.rule import Json

Topic = Literal[
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
Way = tuple[str, ...]
COMBINATORS = ("oneOf", "anyOf", "allOf", "enum", "not")
FORBIDDEN = (
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


class Complaint(Struct, frozen=True):
    """One thing that is wrong."""

    topic: Topic
    words: str
    way: Way | None = None

    def about(self, subject: str) -> str:
        """Say it about a function or a response format."""
        context = f"In context={self.way!r}, " if self.way is not None else ""
        return f"Invalid schema for {subject}: {context}{self.words}"


def nodes(schema: Json, way: Way = ()) -> Iterator[tuple[Way, Json]]:
    """Iterate all schemas within a schema, outermost first."""
    yield way, schema
    for keyword in _MAPS:
        inside = schema.get(keyword)
        if isinstance(inside, dict):
            for name, value in cast("Json", inside).items():
                if isinstance(value, dict):
                    yield from nodes(cast("Json", value), (*way, keyword, name))
    for keyword in LISTS:
        inside = schema.get(keyword)
        if isinstance(inside, list):
            for index, value in enumerate(cast("list[Any]", inside)):
                if isinstance(value, dict):
                    yield from nodes(cast("Json", value), (*way, keyword, str(index)))
    for keyword in _SINGLES:
        inside = schema.get(keyword)
        if isinstance(inside, dict):
            yield from nodes(cast("Json", inside), (*way, keyword))


def types_of(schema: Json) -> tuple[str, ...]:
    """Return the types a schema names."""
    named = schema.get("type")
    if isinstance(named, list):
        return tuple(str(name) for name in cast("list[Any]", named))
    return (named,) if isinstance(named, str) else ()


def complaints(schema: Json, *, strict: bool) -> Iterator[Complaint]:
    """Judge a schema in every respect."""
    yield from _root(schema)
    for way, node in nodes(schema):
        for words in _misused(node):
            yield Complaint("malformed", words)
        if "array" in types_of(node) and "items" not in node and "prefixItems" not in node:
            yield Complaint("items", "array schema missing items.", way)
        if strict:
            yield from _strict_node(way, node)
    if strict:
        yield from _limits(schema)


def _root(schema: Json) -> Iterator[Complaint]:
    if types_of(schema) != ("object",):
        named = schema.get("type")
        yield Complaint("root", f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{named}\"'.")
        return
    if any(keyword in schema for keyword in COMBINATORS):
        yield Complaint(
            "root",
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
        )


def _strict_node(way: Way, node: Json) -> Iterator[Complaint]:
    if _REFERENCE in node:
        siblings = {keyword for keyword in node if keyword not in (_REFERENCE, *_MAPS)}
        if siblings:
            listed = ", ".join(f"'{keyword}'" for keyword in sorted(siblings))
            yield Complaint("reference", f"$ref cannot have keywords {{{listed}}}.", way)
        return
    for keyword in FORBIDDEN:
        if keyword in node:
            yield Complaint("keyword", f"'{keyword}' is not permitted.", way)
    if "type" not in node and "anyOf" not in node and not any(keyword in node for keyword in FORBIDDEN):
        yield Complaint("type", "schema must have a 'type' key.", way)
    written = node.get("format")
    if isinstance(written, str) and written not in FORMATS:
        yield Complaint("format", f"'{written}' is not a valid format.", way)
    if "object" in types_of(node):
        yield from _strict_object(way, node)


def _strict_object(way: Way, node: Json) -> Iterator[Complaint]:
    if node.get("additionalProperties") is not False:
        yield Complaint(
            "additional-properties", "'additionalProperties' is required to be supplied and to be false.", way
        )
    properties, required = _map(node, "properties"), _list(node, "required")
    known = [name for name in required if isinstance(name, str)]
    absent = [name for name in properties if name not in known]
    extra = [name for name in known if name not in properties]
    supplied = "'required' is required to be supplied and to be an array including every key in properties."
    if absent:
        yield Complaint("required", f"{supplied} Missing '{absent[0]}'.", way)
    elif extra:
        yield Complaint("required", f"{supplied} Extra required key '{extra[0]}' supplied.", way)


def _limits(schema: Json) -> Iterator[Complaint]:
    deepest = properties = values = characters = longest = 0
    for way, node in nodes(schema):
        deepest = max(deepest, _depth(way))
        named, listed = _map(node, "properties"), _list(node, "enum")
        properties += len(named)
        values += len(listed)
        texts = [*named, *_map(node, "$defs"), *listed, node.get("const")]
        characters += sum(len(text) for text in texts if isinstance(text, str))
        if len(listed) > LONG_ENUM:
            longest = max(longest, sum(len(value) for value in listed if isinstance(value, str)))
    if deepest > MOST_LEVELS:
        yield Complaint("nesting", f"{deepest} levels of nesting exceeds limit of {MOST_LEVELS}.")
    for count, most, what in (
        (properties, MOST_PROPERTIES, "parameters"),
        (values, MOST_VALUES, "enum values"),
        (characters, MOST_CHARACTERS, "characters of names and values"),
    ):
        if count > most:
            yield Complaint("size", f"{count} {what} exceeds limit of {most}.")
    if longest > MOST_CHARACTERS_OF_LONG_ENUM:
        limit = f"{MOST_CHARACTERS_OF_LONG_ENUM} for an enum of more than {LONG_ENUM} values"
        yield Complaint("size", f"{longest} characters exceeds limit of {limit}.")


def _depth(way: Way) -> int:
    """Count levels of data on a way: a property or an item is one deeper, a definition or an alternative is not."""
    depth = 0
    steps = iter(way)
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


def _map(node: Json, keyword: str) -> Json:
    """Return what stands at a keyword that wants an object; nothing for anything else."""
    inside = node.get(keyword)
    return cast("Json", inside) if isinstance(inside, dict) else {}


def _list(node: Json, keyword: str) -> list[Any]:
    """Return what stands at a keyword that wants an array; nothing for anything else."""
    inside = node.get(keyword)
    return cast("list[Any]", inside) if isinstance(inside, list) else []


def _misused(node: Json) -> Iterator[str]:
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


def made_strict(schema: Json | None) -> Json | None:
    """Make a schema strict as Responses does where `strict` is not given; None if that cannot be."""
    if schema is None:
        return None
    changed = _closed({word: value for word, value in schema.items() if word != "$schema"}, root=True)
    return changed if changed is not None and next(complaints(changed, strict=True), None) is None else None


def _closed(schema: Any, *, root: bool = False) -> Json | None:
    if not isinstance(schema, dict):
        return None
    given = cast("Json", schema)
    changed: Json = dict(given)
    if "object" in types_of(given) or "properties" in given:
        # An object that may hold anything cannot be closed: it would hold nothing.
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
            changed[word] = {name: _closed(inner) for name, inner in cast("Json", changed[word]).items()}
            if None in changed[word].values():
                return None
    if "items" in given:
        changed["items"] = _closed(given["items"])
        if changed["items"] is None:
            return None
    if isinstance(given.get("anyOf"), list):
        changed["anyOf"] = [_closed(inner) for inner in cast("list[Any]", given["anyOf"])]
        if None in changed["anyOf"]:
            return None
    return changed
