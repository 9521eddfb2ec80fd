"""The values that JSON Schema draft 2020-12 allows for each keyword, and repairs for values with an obvious meaning.

The vocabularies are those of the draft's own meta-schema. A keyword that is not listed here may have any value.
"""

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from dragoman.interpreter.schema.nodes import as_list, as_node, as_number, list_names, to_json_text
from dragoman.wire.json import Malformed, decode

META = "https://json-schema.org/draft/2020-12/schema"
"""The meta-schema, which is built into the validator too."""
SCHEMAS = frozenset(
    {"items", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not", "contentSchema"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
SCHEMA_LISTS = frozenset({"prefixItems", "allOf", "anyOf", "oneOf"})
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})

ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_FLAGS = {"true": True, "false": False}


class InvalidValue:
    """The type of `INVALID`, which `repair_value` returns for a value that its keyword does not allow."""


INVALID = InvalidValue()


def repair_value(keyword: str, value: Any) -> Any:
    """Return `value` if the keyword allows it, else an allowed value with the same meaning, else `INVALID`."""
    repair = _REPAIRS.get(keyword)
    return value if repair is None else repair(value)


def is_known(keyword: str) -> bool:
    """Return whether the draft defines the values of the keyword."""
    return keyword in _KNOWN


def is_list(value: object) -> bool:
    """Return whether a value is an array."""
    return isinstance(value, list)


def _repair_text(value: Any) -> Any:
    return value if isinstance(value, str) else INVALID


def _repair_description(value: Any) -> Any:
    return value if isinstance(value, str) else to_json_text(value)


def _repair_flag(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return _FLAGS.get(value.lower(), INVALID) if isinstance(value, str) else INVALID


def _repair_number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = decode(value)
        except Malformed:
            return INVALID
    number = as_number(value)
    return value if isinstance(number, int) or (number is not None and isfinite(number)) else INVALID


def _repair_positive(value: Any) -> Any:
    number = _repair_number(value)
    return number if number is not INVALID and number > 0 else INVALID


def _repair_count(value: Any) -> Any:
    number = _repair_number(value)
    return number if number is not INVALID and number >= 0 and number == int(number) else INVALID


def _repair_values(value: Any) -> Any:
    return value if is_list(value) else INVALID


def _repair_examples(value: Any) -> Any:
    return value if is_list(value) else [value]


def _repair_names(value: Any) -> Any:
    """Return a list of distinct names; a string becomes a list of one."""
    if isinstance(value, str):
        return [value]
    names = list_names(value)
    if not is_list(value) or any(not isinstance(name, str) for name in as_list(value)):
        return INVALID
    return value if len(names) == len(as_list(value)) else names


def _repair_name_map(value: Any) -> Any:
    members = as_node(value)
    if members is None:
        return INVALID
    found = {name: _repair_names(names) for name, names in members.items()}
    if INVALID in found.values():
        return INVALID
    return value if all(found[name] is names for name, names in members.items()) else found


def _repair_anchor(value: Any) -> Any:
    return value if isinstance(value, str) and ANCHOR.fullmatch(value) else INVALID


def _repair_id(value: Any) -> Any:
    return value if isinstance(value, str) and "#" not in value.removesuffix("#") else INVALID


def _repair_vocabulary(value: Any) -> Any:
    members = as_node(value)
    return value if members is not None and all(isinstance(one, bool) for one in members.values()) else INVALID


_REPAIRS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("$schema", "$ref", "$dynamicRef", "$recursiveRef", "$comment"), _repair_text),
    **dict.fromkeys(("format", "pattern", "contentEncoding", "contentMediaType"), _repair_text),
    **dict.fromkeys(("title", "description"), _repair_description),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _repair_flag),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _repair_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _repair_count),
    **dict.fromkeys(("minProperties", "maxProperties"), _repair_count),
    **dict.fromkeys(("$anchor", "$dynamicAnchor", "$recursiveAnchor"), _repair_anchor),
    "multipleOf": _repair_positive,
    "enum": _repair_values,
    "examples": _repair_examples,
    "required": _repair_names,
    "dependentRequired": _repair_name_map,
    "$id": _repair_id,
    "$vocabulary": _repair_vocabulary,
}
_KNOWN = frozenset({*_REPAIRS, *SCHEMAS, *SCHEMA_LISTS, *SCHEMA_MAPS, "type", "dependencies"})
