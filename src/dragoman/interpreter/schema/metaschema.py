"""What JSON Schema of draft 2020-12 lets a keyword hold, and what a value that it does not let plainly means.

The vocabularies are those of the draft's own schema of schemas. A keyword that is not named here may hold anything.
"""

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from dragoman.interpreter.schema.nodes import as_list, as_node, as_number, names_in, text_of
from dragoman.wire.json import Malformed, decode

META = "https://json-schema.org/draft/2020-12/schema"
SCHEMAS = frozenset(
    {"items", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not", "contentSchema"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
SCHEMA_LISTS = frozenset({"prefixItems", "allOf", "anyOf", "oneOf"})
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})

ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_FLAGS = {"true": True, "false": False}


class Unsayable:
    """What `mended` returns where a value means nothing by its keyword."""


UNSAYABLE = Unsayable()


def mended(keyword: str, value: Any) -> Any:
    """Return `value` itself where the keyword may hold it, one that it may hold and that means the same, or neither."""
    mend = _MENDS.get(keyword)
    return value if mend is None else mend(value)


def is_known(keyword: str) -> bool:
    """Tell whether the draft says what the keyword holds."""
    return keyword in _KNOWN


def is_list(value: object) -> bool:
    """Tell whether a value is an array."""
    return isinstance(value, list)


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else UNSAYABLE


def _words(value: Any) -> Any:
    return value if isinstance(value, str) else text_of(value)


def _flag(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return _FLAGS.get(value.lower(), UNSAYABLE) if isinstance(value, str) else UNSAYABLE


def _number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = decode(value)
        except Malformed:
            return UNSAYABLE
    number = as_number(value)
    return value if isinstance(number, int) or (number is not None and isfinite(number)) else UNSAYABLE


def _positive(value: Any) -> Any:
    number = _number(value)
    return number if number is not UNSAYABLE and number > 0 else UNSAYABLE


def _count(value: Any) -> Any:
    number = _number(value)
    return number if number is not UNSAYABLE and number >= 0 and number == int(number) else UNSAYABLE


def _values(value: Any) -> Any:
    return value if is_list(value) else UNSAYABLE


def _examples(value: Any) -> Any:
    return value if is_list(value) else [value]


def _names(value: Any) -> Any:
    """Distinct names; one alone may stand for a list of it."""
    if isinstance(value, str):
        return [value]
    names = names_in(value)
    if not is_list(value) or any(not isinstance(name, str) for name in as_list(value)):
        return UNSAYABLE
    return value if len(names) == len(as_list(value)) else names


def _names_by_name(value: Any) -> Any:
    members = as_node(value)
    if members is None:
        return UNSAYABLE
    found = {name: _names(names) for name, names in members.items()}
    if UNSAYABLE in found.values():
        return UNSAYABLE
    return value if all(found[name] is names for name, names in members.items()) else found


def _anchor(value: Any) -> Any:
    return value if isinstance(value, str) and ANCHOR.fullmatch(value) else UNSAYABLE


def _identity(value: Any) -> Any:
    return value if isinstance(value, str) and "#" not in value.removesuffix("#") else UNSAYABLE


def _vocabulary(value: Any) -> Any:
    members = as_node(value)
    return value if members is not None and all(isinstance(one, bool) for one in members.values()) else UNSAYABLE


_MENDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("$schema", "$ref", "$dynamicRef", "$recursiveRef", "$comment"), _text),
    **dict.fromkeys(("format", "pattern", "contentEncoding", "contentMediaType"), _text),
    **dict.fromkeys(("title", "description"), _words),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _flag),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _count),
    **dict.fromkeys(("minProperties", "maxProperties"), _count),
    **dict.fromkeys(("$anchor", "$dynamicAnchor", "$recursiveAnchor"), _anchor),
    "multipleOf": _positive,
    "enum": _values,
    "examples": _examples,
    "required": _names,
    "dependentRequired": _names_by_name,
    "$id": _identity,
    "$vocabulary": _vocabulary,
}
_KNOWN = frozenset({*_MENDS, *SCHEMAS, *SCHEMA_LISTS, *SCHEMA_MAPS, "type", "dependencies"})
