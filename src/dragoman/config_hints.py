"""What to say to a key that is not known: the nearest one, or all there are."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, get_args

import msgspec
from msgspec import Struct


def suggest_key(key: str, known: Iterable[str]) -> str:
    """Return what may have been meant, or else what there is."""
    names = sorted(set(known))
    near = get_close_matches(key, names, 1)
    return f": did you mean `{near[0]}`?" if near else f"; there are {', '.join(names)}"


def list_choices(kind: Any, inner: str) -> str:
    """Return what there is to choose from at a key that has a few words of its own."""
    types = [field.type for field in msgspec.structs.fields(kind) if f".{field.name}" == inner]
    choices = [word for one in types for part in (one, *get_args(one)) for word in get_args(part) if type(word) is str]
    return f"; there are {', '.join(choices)}" if choices else ""


def keys_of(kind: Any) -> Iterator[str]:
    """Return the keys of a table and of those in it."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        for field in msgspec.structs.fields(kind):
            yield field.name
            yield from keys_of(field.type)
    for part in get_args(kind):
        yield from keys_of(part)
