"""Check factories for OpenAI's limits, required fields and exclusions, each with OpenAI's error text."""

import re
from collections.abc import Callable, Sized
from typing import Any, cast

from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.rule import ErrorText, PathCheck, when_set, when_unset

Condition = Callable[[Any], bool]
_UNSUPPORTED_SYNTAX = re.compile(r"\(\?(?:[=!]|<[=!])|[*+?}]\?")
"""Lookaround and lazy quantifiers."""
_LITERAL = re.compile(r'\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|"(?:\\.|[^"\\])*"', re.DOTALL)
"""Escapes, character classes and quoted texts, in which those characters are literal."""
_START = re.compile(r"^\s*[?!]?start(?:\.\d+)?\s*:", re.MULTILINE)


def reject_empty_array(path: str) -> PathCheck:
    """Return a check that rejects an empty list."""
    return PathCheck(path, lambda where, _: words.describe_empty_array(where), lambda value: value == [])


def reject_over_limit(
    path: str, *, items: int | None = None, characters: int | None = None, members: int | None = None
) -> PathCheck:
    """Return a check that rejects a list, text or object with too many items, characters or members."""
    kinds: tuple[tuple[int | None, type[Any], Callable[[str, int, int], str]], ...] = (
        (items, list, words.describe_long_array),
        (characters, str, words.describe_long_string),
        (members, dict, words.describe_too_many_properties),
    )
    most, kind, say = next((most, kind, say) for most, kind, say in kinds if most is not None)
    return PathCheck(
        path,
        lambda where, value: say(where, most, len(value)),
        lambda value: isinstance(value, kind) and len(cast("Sized", value)) > most,
    )


def reject_without(path: str, other: str, message: ErrorText) -> PathCheck:
    """Return a check that rejects a parameter without another."""
    return PathCheck(path, message, when=when_unset(other))


def reject_with(path: str, other: str, message: ErrorText) -> PathCheck:
    """Return a check that rejects a parameter together with another."""
    return PathCheck(path, message, when=when_set(other))


def reject_unsupported(path: str, when: Condition, hint: str = "") -> PathCheck:
    """Return a check that rejects a parameter that some models do not support, unless it is empty."""
    return PathCheck(path, lambda where, _: words.describe_unsupported(where) + hint, bool, when)


def reject_invalid_name(path: str, find_problem: Callable[[str, str], str] | None = None) -> PathCheck:
    """Return a check that rejects a name that is empty, malformed or too long."""
    return PathCheck(path, find_problem or describe_name_problem)


def describe_name_problem(
    where: str, value: str, pattern: str = "[a-zA-Z0-9_-]+", most: int = 64, *, length_first: bool = False
) -> str:
    """Return the error text for an invalid name, or ""; with `length_first` an empty name has no text of its own."""
    if length_first and len(value) > most:
        return words.describe_long_string(where, most, len(value))
    if not value and not length_first:
        return words.describe_empty_string(where)
    if not re.fullmatch(pattern, value):
        return words.describe_pattern_mismatch(where, f"^{pattern}$")
    return words.describe_long_string(where, most, len(value)) if len(value) > most else ""


def describe_grammar_problem(syntax: str, definition: str) -> str:
    """Return what is wrong with a custom tool's grammar (Lark, or a Rust regular expression); "" if nothing is."""
    if not definition.strip():
        return "the grammar is empty"
    if _UNSUPPORTED_SYNTAX.search(_LITERAL.sub("x", definition)):
        return "look-around and lazy quantifiers are not supported"
    if syntax == "lark" and not _START.search(definition):
        return "no rule named 'start' is defined"
    return ""
