"""Judge a value by a schema, with a validator that is not ours.

A schema that the validator cannot read, or that is too large or fans out too far for it, judges nothing: everything is
valid. Gemini's way of writing schemas (types in capitals, `nullable`) is put into JSON Schema's first.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.simulator.model.schemas.json_values import a_count, a_list, an_object
from dragoman.simulator.model.schemas.references import REFERENCES, Document, encoded
from dragoman.simulator.rule import Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from jsonschema_rs import Validator

_CAPITALS = re.compile(rb'"type":\[?"[A-Z]|"nullable":')
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"enum", "const", "default", "example", "examples", "required"})
_LARGEST = 400_000
_DEEPEST = 100
_WIDEST = 20_000
_PATTERN_SIZE = 1_000_000
_BACKTRACKS = 100_000


def is_valid(schema: bytes, value: Any) -> bool:
    """Whether a value fits an encoded schema."""
    validator = _validator(schema)
    try:
        return validator is None or validator.is_valid(value)
    except (ValueError, TypeError):  # a value that is not JSON: half a character, a number without end
        return False


@lru_cache(maxsize=1024)
def fits_pattern(pattern: str, text: str) -> bool:
    """Whether a text matches; a pattern that cannot be read matches everything."""
    return is_valid(encoded({"pattern": pattern}), text)


@lru_cache(maxsize=1024)
def fits_format(name: str, text: str) -> bool:
    """Whether a text has a format; one that nobody knows is no format."""
    return is_valid(encoded({"format": name}), text)


@lru_cache(maxsize=1024)
def _validator(schema: bytes) -> "Validator | None":
    if not schema or len(schema) > _LARGEST:
        return None
    try:
        document = msgspec.json.decode(schema)
    except (ValueError, RecursionError):
        return None
    if _CAPITALS.search(schema) is not None:
        document = plain(document)
    return None if _breadth(document) > _WIDEST else _compiled(document)


def _compiled(document: Any) -> "Validator | None":
    import jsonschema_rs  # noqa: PLC0415  loading it takes longer than starting the simulator

    drafts: list[Callable[..., Validator]] = [jsonschema_rs.validator_for]
    if "$schema" not in an_object(document):
        # Who names no draft may still write an older one: `items` as a list, `exclusiveMinimum` as a flag.
        drafts += [jsonschema_rs.Draft7Validator, jsonschema_rs.Draft4Validator]
    linear = jsonschema_rs.RegexOptions(size_limit=_PATTERN_SIZE)
    fancy = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_SIZE)
    for draft in drafts:
        for options in (linear, fancy):
            try:
                return draft(document, offline=True, validate_formats=True, pattern_options=options)
            except (ValueError, TypeError):
                continue
    return None


def plain(schema: Any, depth: int = 0) -> Any:
    """Put Gemini's way of writing a schema into JSON Schema's."""
    if depth > _DEEPEST:
        return schema
    if isinstance(schema, list):
        return [plain(item, depth + 1) for item in a_list(schema)]
    told = an_object(schema)
    if not told:
        return schema
    changed: Json = {
        key: value
        if key in _DATA
        else {name: plain(inner, depth + 1) for name, inner in an_object(value).items()}
        if key in _MAPS and isinstance(value, dict)
        else plain(value, depth + 1)
        for key, value in told.items()
    }
    return _with_plain_types(changed)


def _with_plain_types(changed: Json) -> Json:
    told = changed.get("type")
    if told == "TYPE_UNSPECIFIED":
        del changed["type"]
    elif isinstance(told, str):
        changed["type"] = told.lower()
    elif isinstance(told, list):
        changed["type"] = [item.lower() if isinstance(item, str) else item for item in a_list(told)]
    if changed.get("nullable") is True and isinstance(changed.get("type"), str):
        changed["type"] = list(dict.fromkeys([changed["type"], "null"]))
        if isinstance(changed.get("enum"), list) and None not in changed["enum"]:
            changed["enum"] = [*changed["enum"], None]
    for key in _COUNTS:
        if isinstance(changed.get(key), str):
            changed[key] = a_count(changed[key]) or 0
    return changed


def _breadth(schema: Any) -> int:
    """Count the places of a schema with its references written out: a validator visits them all."""
    document = Document(schema, b"")
    known: dict[str, int] = {}

    def count(value: Any, depth: int) -> int:
        if depth > _DEEPEST:
            return 1
        total = 1 + sum(count(item, depth + 1) for item in a_list(value))
        told = an_object(value)
        for key, item in told.items():
            if key not in REFERENCES or not isinstance(item, str):
                total += count(item, depth + 1)
                continue
            if item not in known:
                known[item] = 1  # whoever comes back here while it is counted has gone in a circle
                known[item] = count(document.resolve(item), depth + 1)
            total += known[item]
        return min(total, _WIDEST + 1)

    return count(schema, 0)
