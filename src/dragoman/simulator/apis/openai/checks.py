"""OpenAI's limits, requirements and exclusions as data; each returns a check with OpenAI's words."""

import re
from collections.abc import Callable, Sized
from typing import Any, cast

from dragoman.simulator.apis.openai import words
from dragoman.simulator.rule import Refuse, Words, has, lacks

When = Callable[[Any], bool]
_UNMATCHABLE = re.compile(r"\(\?(?:[=!]|<[=!])|[*+?}]\?")
"""Look-around and lazy quantifiers."""
_LITERAL = re.compile(r'\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|"(?:\\.|[^"\\])*"', re.DOTALL)
"""Escapes, classes of characters and quoted texts, in which those signs mean themselves."""
_START = re.compile(r"^\s*[?!]?start(?:\.\d+)?\s*:", re.MULTILINE)


def not_empty(path: str) -> Refuse:
    """Refuse an empty list."""
    return Refuse(path, lambda where, _: words.empty_array(where), lambda value: value == [])


def limit(path: str, *, items: int | None = None, characters: int | None = None, members: int | None = None) -> Refuse:
    """Refuse a list of more items, a text of more characters or an object of more members."""
    kinds: tuple[tuple[int | None, type[Any], Callable[[str, int, int], str]], ...] = (
        (items, list, words.long_array),
        (characters, str, words.long_string),
        (members, dict, words.wide_object),
    )
    most, kind, say = next((most, kind, say) for most, kind, say in kinds if most is not None)
    return Refuse(
        path,
        lambda where, value: say(where, most, len(value)),
        lambda value: isinstance(value, kind) and len(cast("Sized", value)) > most,
    )


def requires(path: str, other: str, say: Words) -> Refuse:
    """Refuse a parameter without another."""
    return Refuse(path, say, when=lacks(other))


def excludes(path: str, other: str, say: Words) -> Refuse:
    """Refuse a parameter beside another."""
    return Refuse(path, say, when=has(other))


def unsupported(path: str, when: When, hint: str = "") -> Refuse:
    """Refuse a parameter that some models do not take, unless it is empty."""
    return Refuse(path, lambda where, _: words.unsupported(where) + hint, bool, when)


def name(path: str, fault: Callable[[str, str], str] | None = None) -> Refuse:
    """Refuse a name that is empty, of another form or too long."""
    return Refuse(path, fault or name_fault)


def name_fault(
    where: str, value: str, pattern: str = "[a-zA-Z0-9_-]+", most: int = 64, *, length_first: bool = False
) -> str:
    """Say what is wrong with a name; "" if nothing is. An API that looks at the length first has no words for none."""
    if length_first and len(value) > most:
        return words.long_string(where, most, len(value))
    if not value and not length_first:
        return words.empty_string(where)
    if not re.fullmatch(pattern, value):
        return words.unlike_pattern(where, f"^{pattern}$")
    return words.long_string(where, most, len(value)) if len(value) > most else ""


def grammar_fault(syntax: str, definition: str) -> str:
    """Say what is wrong with a custom tool's grammar, which is Lark or a regular expression of Rust; "" if nothing."""
    if not definition.strip():
        return "the grammar is empty"
    if _UNMATCHABLE.search(_LITERAL.sub("x", definition)):
        return "look-around and lazy quantifiers are not supported"
    if syntax == "lark" and not _START.search(definition):
        return "no rule named 'start' is defined"
    return ""
