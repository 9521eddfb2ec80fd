"""What OpenAI refuses in a JSON Schema: of any function, and of one that is to be followed strictly.

A complaint tells its topic, the way to the place as OpenAI writes it (`('properties', 'city')`), and its words.
"""

from collections.abc import Iterator
from typing import Any, Literal, cast

from msgspec import Struct

Topic = Literal[
    "root",
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
)
FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
MOST_LEVELS = 10
MOST_PROPERTIES = 5000
MOST_VALUES = 1000
MOST_CHARACTERS = 120_000
_REFERENCE = "$ref"
_MAPS = ("properties", "$defs", "definitions")
LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else")


class Complaint(Struct, frozen=True):
    """One thing that is wrong."""

    topic: Topic
    words: str
    way: Way | None = None

    def about(self, subject: str) -> str:
        """Say it about a function or a response format."""
        context = f"In context={self.way!r}, " if self.way is not None else ""
        return f"Invalid schema for {subject}: {context}{self.words}"


def nodes(schema: dict[str, Any], way: Way = ()) -> Iterator[tuple[Way, dict[str, Any]]]:
    """Iterate all schemas within a schema, outermost first."""
    yield way, schema
    for keyword in _MAPS:
        inside = schema.get(keyword)
        if isinstance(inside, dict):
            for name, value in cast("dict[str, Any]", inside).items():
                if isinstance(value, dict):
                    yield from nodes(cast("dict[str, Any]", value), (*way, keyword, name))
    for keyword in LISTS:
        inside = schema.get(keyword)
        if isinstance(inside, list):
            for index, value in enumerate(cast("list[Any]", inside)):
                if isinstance(value, dict):
                    yield from nodes(cast("dict[str, Any]", value), (*way, keyword, str(index)))
    for keyword in _SINGLES:
        inside = schema.get(keyword)
        if isinstance(inside, dict):
            yield from nodes(cast("dict[str, Any]", inside), (*way, keyword))


def types_of(schema: dict[str, Any]) -> tuple[str, ...]:
    """Return the types a schema names."""
    named = schema.get("type")
    if isinstance(named, list):
        return tuple(str(name) for name in cast("list[Any]", named))
    return (named,) if isinstance(named, str) else ()


def complaints(schema: dict[str, Any], topic: Topic, *, strict: bool) -> Iterator[Complaint]:
    """Judge a schema in one respect; one without members means that there are no parameters."""
    if not schema:
        return
    match topic:
        case "root":
            yield from _root(schema)
        case "items":
            for way, node in nodes(schema):
                if "array" in types_of(node) and "items" not in node and "prefixItems" not in node:
                    yield Complaint("items", "array schema missing items.", way)
        case "nesting" | "size":
            yield from (found for found in _limits(schema) if found.topic == topic) if strict else ()
        case _:
            for way, node in nodes(schema) if strict else ():
                yield from (found for found in _strict_node(way, node) if found.topic == topic)


def _root(schema: dict[str, Any]) -> Iterator[Complaint]:
    if types_of(schema) != ("object",):
        named = schema.get("type")
        yield Complaint("root", f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{named}\"'.")
    if any(keyword in schema for keyword in COMBINATORS):
        yield Complaint(
            "root",
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.",
        )


def _strict_node(way: Way, node: dict[str, Any]) -> Iterator[Complaint]:
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


def _strict_object(way: Way, node: dict[str, Any]) -> Iterator[Complaint]:
    if node.get("additionalProperties") is not False:
        yield Complaint(
            "additional-properties", "'additionalProperties' is required to be supplied and to be false.", way
        )
    properties = cast("dict[str, Any]", node.get("properties") or {})
    required = cast("list[Any]", node.get("required") or [])
    known = {name for name in required if isinstance(name, str)}
    absent = [name for name in properties if name not in known]
    extra = [name for name in known if name not in properties]
    supplied = "'required' is required to be supplied and to be an array including every key in properties."
    if absent:
        yield Complaint("required", f"{supplied} Missing '{absent[0]}'.", way)
    elif extra:
        yield Complaint("required", f"{supplied} Extra required key '{extra[0]}' supplied.", way)


def _limits(schema: dict[str, Any]) -> Iterator[Complaint]:
    deepest = properties = values = characters = 0
    for way, node in nodes(schema):
        deepest = max(deepest, _depth(way))
        named = cast("dict[str, Any]", node.get("properties") or {})
        listed = cast("list[Any]", node.get("enum") or [])
        properties += len(named)
        values += len(listed)
        texts = [*named, *cast("dict[str, Any]", node.get("$defs") or {}), *listed, node.get("const")]
        characters += sum(len(text) for text in texts if isinstance(text, str))
    if deepest > MOST_LEVELS:
        yield Complaint("nesting", f"{deepest} levels of nesting exceeds limit of {MOST_LEVELS}.")
    for count, most, what in (
        (properties, MOST_PROPERTIES, "parameters"),
        (values, MOST_VALUES, "enum values"),
        (characters, MOST_CHARACTERS, "characters of names and values"),
    ):
        if count > most:
            yield Complaint("size", f"{count} {what} exceeds limit of {most}.")


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
