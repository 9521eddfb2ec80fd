"""Suggestions for the error message of an unknown key or value: the closest known name, or the list of all names."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, get_args

import msgspec
from msgspec import Struct


def suggest_key(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message that suggests the closest of the `known` names, or lists all of them."""
    names = sorted(set(known))
    near = get_close_matches(name, names, 1)
    return f": did you mean `{near[0]}`?" if near else f"; known names are {', '.join(names)}"


def list_choices(kind: Any, path: str) -> str:
    """Return the end of an error message that lists the allowed values of a key; "" if any value is allowed."""
    types = [field.type for field in msgspec.structs.fields(kind) if f".{field.name}" == path]
    choices = [name for one in types for part in (one, *get_args(one)) for name in get_args(part) if type(name) is str]
    return f"; use one of {', '.join(choices)}" if choices else ""


def keys_of(kind: Any) -> Iterator[str]:
    """Yield the keys of a table and of the tables nested in it."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        for field in msgspec.structs.fields(kind):
            yield field.name
            yield from keys_of(field.type)
    for part in get_args(kind):
        yield from keys_of(part)
