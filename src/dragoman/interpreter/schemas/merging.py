"""Merge schemas that hold at the same time (`allOf`, siblings of `$ref`) into one.

Properties are united, `required` united, enums intersected, the tightest bound wins. Where two schemas speak about the
same inner value the result is an `allOf` of both, merged when that value is looked at. A real conflict is won by the
first, and its keyword is reported to `clash`.
"""

from collections.abc import Callable
from typing import Any

from dragoman.interpreter.schemas.nodes import Node, as_list, as_node, as_number, names_in, said_types, text_of

_HIGHEST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"})
_LOWEST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"})
_INNER = frozenset({"items", "additionalProperties", "additionalItems", "contains", "propertyNames"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_WORDS = frozenset({"title", "default", "example", "examples", "$schema", "$id", "$comment", "$anchor"})
_NUMBERS = frozenset({"number", "integer"})
"""Types that have the integers in common."""

Clash = Callable[[str], None]


def merge(first: Node, second: Node, clash: Clash, *, join: bool) -> Node:
    """Return one schema that says what both say; of two descriptions the first, or with `join` both."""
    merged = dict(first)
    for keyword, theirs in second.items():
        if keyword not in merged:
            merged[keyword] = theirs
        elif merged[keyword] != theirs or type(merged[keyword]) is not type(theirs):
            if keyword == "description" and join:
                merged[keyword] = f"{merged[keyword]}\n{theirs}"
            elif keyword not in _WORDS and keyword != "description":
                merged[keyword] = _combine(keyword, merged, theirs, clash)
    return merged


def _combine(keyword: str, merged: Node, theirs: Any, clash: Clash) -> Any:
    ours = merged[keyword]
    if keyword == "type":
        return _common_type(merged, theirs, clash)
    if keyword == "required":
        return names_in([*as_list(ours), *as_list(theirs)])
    if keyword == "enum":
        return _common_values(ours, theirs, clash)
    if keyword == "allOf":
        return [*as_list(ours), *as_list(theirs)]
    if keyword == "uniqueItems":
        return ours is True or theirs is True
    if keyword in _HIGHEST | _LOWEST and as_number(ours) is not None and as_number(theirs) is not None:
        return max(ours, theirs) if keyword in _HIGHEST else min(ours, theirs)
    if keyword in _INNER:
        return both(ours, theirs)
    if keyword in _NAMED and (mine := as_node(ours)) is not None and (yours := as_node(theirs)) is not None:
        return {
            name: both(mine[name], yours[name]) if name in mine and name in yours else mine.get(name, yours.get(name))
            for name in {**mine, **yours}
        }
    clash(keyword)
    return ours


def both(first: Any, second: Any) -> Any:
    """Return the schema of a value that must fit both."""
    if first == second and type(first) is type(second):
        return first
    if first is False or second is False:
        return False
    if first is True or first == {}:
        return second
    if second is True or second == {}:
        return first
    return {"allOf": [first, second]}


def _common_type(merged: Node, theirs: Any, clash: Clash) -> Any:
    ours, others = said_types(merged), said_types({"type": theirs})
    shared = [kind for kind in ours if kind in others or (kind in _NUMBERS and not _NUMBERS.isdisjoint(others))]
    common = list(dict.fromkeys(kind if kind in others else "integer" for kind in shared))
    if not common:
        if others:
            clash("type")
        return merged["type"]
    return common[0] if len(common) == 1 else common


def _common_values(ours: Any, theirs: Any, clash: Clash) -> Any:
    allowed = {text_of(value) for value in as_list(theirs)}
    common = [value for value in as_list(ours) if text_of(value) in allowed]
    if not common:
        clash("enum")
    return common or ours
