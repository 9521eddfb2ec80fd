"""Read JSON Schemas: normalise them, merge all subschemas that apply to one place, and validate values."""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import msgspec

from dragoman.simulator.apis.rule import Json
from dragoman.wire.pointer import split

if TYPE_CHECKING:
    from jsonschema_rs import Validator

ChooseBranch = Callable[[list[Any], Json], Any]
"""Chooses one of several branches, given the keywords merged so far."""
_LOWER_BOUNDS = ("minLength", "minItems", "minProperties", "minimum", "exclusiveMinimum")
_UPPER_BOUNDS = ("maxLength", "maxItems", "maxProperties", "maximum", "exclusiveMaximum")
_NUMBERS = (*_LOWER_BOUNDS, *_UPPER_BOUNDS, "multipleOf")
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions")
_SUBSCHEMAS = ("items", "additionalProperties")
_KEYWORD_TYPES: dict[str, Any] = {
    **dict.fromkeys(_NUMBERS, int | float),
    **dict.fromkeys(_SCHEMA_MAPS, dict),
    **dict.fromkeys(_SUBSCHEMAS, dict | bool),
    **dict.fromkeys(("type", "required", "enum", "examples", "anyOf", "oneOf", "allOf", "prefixItems"), list),
    **dict.fromkeys(("pattern", "format", "$ref"), str),
}
_LITERAL_KEYWORDS = frozenset({"enum", "const", "default", "example", "examples"})
TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"]
_MAX_DEPTH = 60
_MAX_PARTS = 200
_MAX_PLACES = 20_000
_MAX_BYTES = 400_000
_MAX_NUMBER = 1e300


def as_object(value: Any) -> Json:
    """Return an object, or an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def encode(value: Any) -> bytes:
    """Encode a value as JSON; empty if it cannot be encoded."""
    try:
        return msgspec.json.encode(value)
    except (ValueError, TypeError, RecursionError):
        return b""


def decode(raw: bytes | str) -> Any:
    """Decode JSON; None if it is invalid or too large."""
    try:
        return msgspec.json.decode(raw) if len(raw) < _MAX_BYTES else None
    except (ValueError, RecursionError):
        return None


class Schema:
    """A normalised JSON Schema. A schema that cannot be read allows everything."""

    def __init__(self, document: Any) -> None:
        self.root = normalise(document)
        self._raw = encode(self.root)

    def is_valid(self, value: Any) -> bool:
        """Return whether a value is valid."""
        return is_valid(self._raw, value)

    def merge(self, place: Any, choose: ChooseBranch) -> Json:
        """Return all that applies to one place as one schema: references, `allOf`, and a branch of each `anyOf`."""
        merged: Json = {}
        waiting = [place]
        for _ in range(_MAX_PARTS):
            if not waiting:
                break
            place = waiting.pop(0)
            if place is False:
                merged["enum"] = []
            schema = as_object(place)
            for key, value in schema.items():
                _merge_keyword(merged, key, value)
            waiting += [resolve(self.root, schema["$ref"])] if "$ref" in schema else []
            waiting += schema.get("allOf", [])
            waiting += [choose(schema[key], merged) for key in ("anyOf", "oneOf") if schema.get(key)]
        return merged


@lru_cache(maxsize=1024)
def load_schema(raw: bytes) -> Schema:
    """Read an encoded schema."""
    return Schema(decode(raw) or {})


def normalise(schema: Any, depth: int = 0) -> Any:
    """Return a schema without keywords of a wrong type, with Gemini's notation converted to JSON Schema's.

    Gemini writes types in capitals, counts as text, and `nullable`.
    """
    if isinstance(schema, list):
        return [normalise(item, depth + 1) for item in as_list(schema)]
    if depth > _MAX_DEPTH or not isinstance(schema, dict):
        return schema
    clean: Json = {}
    for key, value in as_object(schema).items():
        if key in _SCHEMA_MAPS:
            read: Any = {name: normalise(inner, depth + 1) for name, inner in as_object(value).items()}
        elif key in {"type", "required"}:
            names = [name for name in (as_list(value) or [value]) if isinstance(name, str)]
            read = [name.lower() for name in names if name.lower() in TYPES] if key == "type" else names
        else:
            read = (
                _parse_number(value)
                if key in _NUMBERS
                else value
                if key in _LITERAL_KEYWORDS
                else normalise(value, depth + 1)
            )
        if isinstance(read, _KEYWORD_TYPES.get(key, object)) and key != "$schema" and read != []:
            clean[key] = read
    if clean.get("nullable") is True and "type" in clean:
        clean["type"] = list(dict.fromkeys([*clean["type"], "null"]))
        if "enum" in clean:
            clean["enum"] = [*(value for value in clean["enum"] if value is not None), None]
    return clean


def _parse_number(value: Any) -> int | float | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_NUMBER:
        return None
    return int(value) if value == int(value) else value


def _merge_keyword(merged: Json, key: str, value: Any) -> None:
    if key in _LOWER_BOUNDS:
        merged[key] = max(value, merged.get(key, value))
    elif key in _UPPER_BOUNDS:
        merged[key] = min(value, merged.get(key, value))
    elif key == "type":
        merged[key] = common_types(merged.get(key, value), value)
    elif key in {"enum", "const"}:
        values = value if key == "enum" else [value]
        merged["enum"] = [one for one in merged.get("enum", values) if one in values]
    elif key == "required":
        merged[key] = list(dict.fromkeys([*merged.get(key, ()), *value]))
    elif key == "properties":
        known = merged.get(key, {})
        both = {name: {"allOf": [known[name], inner]} for name, inner in value.items() if name in known}
        merged[key] = {**known, **value, **both}
    elif key in _SUBSCHEMAS and key in merged:
        merged[key] = {"allOf": [merged[key], value]}
    elif key == "pattern" and key in merged:
        merged.setdefault("allOf", []).append({key: value})
    elif key not in {"$ref", "allOf", "anyOf", "oneOf"}:
        merged.setdefault(key, value)


def common_types(types: list[str], others: list[str]) -> list[str]:
    """Return the types that are in both lists; an integer is a number."""
    kept = [name for name in types if name in others or (name == "integer" and "number" in others)]
    return kept + [name for name in others if name == "integer" and "number" in types and name not in kept]


def resolve(root: Any, reference: str) -> Any:
    """Return the value that a local reference (`#`, `#/…`) refers to, or None."""
    node = root if reference == "#" or reference.startswith("#/") else None
    for step in split(unquote(reference[1:])):
        items = as_list(node)
        index = int(step) if step.isdecimal() and len(step) < 6 else len(items)
        node = items[index] if index < len(items) else as_object(node).get(step)
    return node


def is_valid(schema: bytes, value: Any) -> bool:
    """Return whether a value is valid for an encoded schema; true if the schema is unusable."""
    validator = _load_validator(schema)
    try:
        return validator is None or validator.is_valid(value)
    except (ValueError, TypeError):  # the value is not JSON: half a surrogate pair, an infinite number
        return False


@lru_cache(maxsize=2048)
def _load_validator(raw: bytes) -> "Validator | None":
    import jsonschema_rs  # noqa: PLC0415  loading it takes longer than starting the simulator

    document = decode(raw)
    if document is None or _count_places(document) > _MAX_PLACES:
        return None
    try:
        return jsonschema_rs.Draft202012Validator(document, offline=True, validate_formats=True)
    except (ValueError, TypeError):
        return None


def _count_places(document: Any) -> int:
    """Count the subschemas of a schema with its references expanded, because a validator may visit them all."""
    known: dict[str, int] = {}

    def count(value: Any, depth: int) -> int:
        if depth > _MAX_DEPTH:
            return 1
        total = 1 + sum(count(item, depth + 1) for item in as_list(value))
        for key, item in as_object(value).items():
            if key == "$ref" and isinstance(item, str):
                if item not in known:
                    known[item] = 1  # a reference to itself is counted once
                    known[item] = count(resolve(document, item), depth + 1)
                total += known[item]
            else:
                total += count(item, depth + 1)
        return min(total, _MAX_PLACES + 1)

    return count(document, 0)
