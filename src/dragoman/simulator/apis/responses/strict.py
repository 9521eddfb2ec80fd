"""The JSON Schema the vendor takes: what it refuses in any, what more in a strict one, and how it makes one strict.

Each fault is told with its context, the way down to it as a Python tuple, since that is how the vendor tells it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from dragoman.simulator.rule import Json

Fault = tuple[tuple[str, ...], str]
_FORBIDDEN = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "minProperties",
    "maxProperties",
)
_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_NESTING = 10
_PROPERTIES = 5000
_ENUM_VALUES = 1000


def told(what: str, name: str, fault: Fault) -> str:
    """Say a fault as the vendor does, of a function or a response format."""
    context, words = fault
    if not context and words.startswith("schema must be"):
        return f"Invalid schema for {what} '{name}': {words}"
    return f"Invalid schema for {what} '{name}': In context={context!r}, {words}"


def faults(schema: Json, *, strict: bool) -> Iterator[Fault]:
    """Yield what is wrong with the schema of a tool's parameters or of an answer."""
    root = schema.get("type")
    if root != "object":
        spoken = root if isinstance(root, str) else "None"
        yield (), f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{spoken}\"'."
        return
    if strict and "anyOf" in schema:
        yield (), "'anyOf' is not permitted."
    yield from _walk(schema, (), strict=strict)
    if strict:
        yield from _too_large(schema)


def _walk(schema: Json, context: tuple[str, ...], *, strict: bool) -> Iterator[Fault]:
    kinds = _kinds(schema)
    if "array" in kinds and "items" not in schema and "prefixItems" not in schema:
        yield context, "array schema missing items."
    if strict:
        yield from _strict_faults(schema, context, kinds)
    for step, inner in _below(schema):
        yield from _walk(inner, (*context, *step), strict=strict)


def _strict_faults(schema: Json, context: tuple[str, ...], kinds: list[str]) -> Iterator[Fault]:
    for word in _FORBIDDEN:
        if word in schema:
            yield context, f"'{word}' is not permitted."
    if not kinds and not schema.keys() & {"anyOf", "$ref", "enum", "const"}:
        yield context, "schema must have a 'type' key."
    written = schema.get("format")
    if isinstance(written, str) and written not in _FORMATS and "string" in kinds:
        yield context, f"'{written}' is not a valid format."
    if "object" not in kinds and "properties" not in schema:
        return
    if schema.get("additionalProperties") is not False:
        yield context, "'additionalProperties' is required to be supplied and to be false."
    properties = _object(schema.get("properties"))
    required = cast("list[Any]", schema.get("required")) if isinstance(schema.get("required"), list) else []
    words = "'required' is required to be supplied and to be an array including every key in properties."
    for name in properties:
        if name not in required:
            yield context, f"{words} Missing '{name}'."
    for name in required:
        if name not in properties:
            yield context, f"{words} Extra required key '{name}' supplied."


def _too_large(schema: Json) -> Iterator[Fault]:
    depth, properties, values = _measured(schema)
    if depth > _NESTING:
        yield (), f"{depth} levels of nesting exceeds limit of {_NESTING}."
    if properties > _PROPERTIES:
        yield (), f"Expected at most {_PROPERTIES} object properties in total, got {properties}."
    if values > _ENUM_VALUES:
        yield (), f"Expected at most {_ENUM_VALUES} enum values in total, got {values}."


def _measured(schema: Json) -> tuple[int, int, int]:
    """Count levels of objects, properties, and enum values."""
    deepest, properties, values = 0, len(_object(schema.get("properties"))), len(_list(schema.get("enum")))
    for _, inner in _below(schema):
        below = _measured(inner)
        deepest = max(deepest, below[0])
        properties += below[1]
        values += below[2]
    return deepest + ("object" in _kinds(schema)), properties, values


def made_strict(schema: Json | None) -> Json | None:
    """Make a schema strict as the vendor does where `strict` is not given; None if that cannot be."""
    if schema is None:
        return None
    changed = _closed({word: value for word, value in schema.items() if word != "$schema"}, root=True)
    return changed if changed is not None and next(faults(changed, strict=True), None) is None else None


def _closed(schema: Json, *, root: bool = False) -> Json | None:
    changed = dict(schema)
    if "object" in _kinds(schema) or "properties" in schema:
        # An object that may hold anything cannot be closed: it would hold nothing.
        if schema.get("additionalProperties") not in {None, False} or ("properties" not in schema and not root):
            return None
        changed["properties"] = _object(schema.get("properties"))
        changed["required"] = list(changed["properties"])
        changed["additionalProperties"] = False
    for word in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(word), dict):
            closed = {name: _closed_or_none(inner) for name, inner in _object(schema[word]).items()}
            if None in closed.values():
                return None
            changed[word] = closed
    if isinstance(schema.get("items"), dict):
        changed["items"] = _closed(_object(schema["items"]))
        if changed["items"] is None:
            return None
    if isinstance(schema.get("anyOf"), list):
        changed["anyOf"] = [_closed_or_none(inner) for inner in _list(schema["anyOf"])]
        if None in changed["anyOf"]:
            return None
    return changed


def _closed_or_none(schema: Any) -> Json | None:
    return _closed(cast("Json", schema)) if isinstance(schema, dict) else None


def _below(schema: Json) -> Iterator[tuple[tuple[str, ...], Json]]:
    for word in ("properties", "$defs", "definitions"):
        for name, inner in _object(schema.get(word)).items():
            if isinstance(inner, dict):
                yield (word, name), cast("Json", inner)
    items = schema.get("items")
    if isinstance(items, dict):
        yield ("items",), cast("Json", items)
    for word in ("anyOf", "allOf", "oneOf"):
        for number, inner in enumerate(_list(schema.get(word))):
            if isinstance(inner, dict):
                yield (word, str(number)), cast("Json", inner)


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else [str(one) for one in _list(kind)]


def _object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
