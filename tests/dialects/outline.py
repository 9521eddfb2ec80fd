"""Show a core value whole, one line a message, part, tool or event, so that a test compares all of it.

Equality of core values ignores `where` and `spelling`; an outline does not. Fields that have their default are left out.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, structs

from dragoman.core.problems import Problem
from dragoman.core.value import Extras

_BELOW = {"messages", "parts", "tools", "content"}


def outline(value: Any) -> str:
    """Lines of a value, or of a list of values."""
    values = value if isinstance(value, list | tuple) else [value]
    return "".join(f"{line}\n" for one in values for line in _lines(one))


def _lines(value: Any) -> Iterator[str]:
    if not isinstance(value, Struct):
        yield short(value)
        return
    result = dict(_set_fields(value))
    below = {name: result.pop(name) for name in _BELOW if name in result}
    shown = " ".join(f"{name}={short(member)}" for name, member in result.items())
    yield f"{type(value).__name__} {shown}".rstrip()
    for name in sorted(below):
        for member in below[name]:
            yield from (f"  {line}" for line in _lines(member))


def short(value: Any) -> str:
    """A value on one line."""
    match value:
        case Extras(dialect=dialect, fields=fields):
            return f"{dialect}{ {pointer: raw.decode() for pointer, raw in fields.items()} }"
        case Struct():
            return (
                f"{type(value).__name__}({', '.join(f'{name}={short(member)}' for name, member in _set_fields(value))})"
            )
        case Problem():
            result = {name: member for name, member in vars(value).items() if member not in (None, "")}
            return f"Problem({', '.join(f'{name}={member!r}' for name, member in result.items())})"
        case frozenset():
            return repr(sorted(value))
        case tuple():
            return f"({', '.join(map(short, value))})"
        case _:
            return repr(value)


def _set_fields(value: Struct) -> Iterator[tuple[str, Any]]:
    for field in structs.fields(value):
        member = getattr(value, field.name)
        if field.required or member != field.default or type(member) is not type(field.default):
            yield field.name, member


def mark(document: Any, where: str = "") -> Any:
    """The document with an unknown field in every object, whose value is its pointer."""
    if isinstance(document, dict):
        members = {name: mark(value, f"{where}/{name}") for name, value in document.items()}
        return {**members, "zz": where}
    if isinstance(document, list):
        return [mark(value, f"{where}/{index}") for index, value in enumerate(document)]
    return document


def find_marks(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every mark found in extras: the owner's `where` with the field's pointer, and what the mark says."""
    if isinstance(value, tuple | list):
        for member in value:
            yield from find_marks(member, where)
    elif isinstance(value, Struct):
        where = getattr(value, "where", where)
        for field in structs.fields(value):
            member = getattr(value, field.name)
            if isinstance(member, Extras):
                yield from _marks(member, where)
            else:
                yield from find_marks(member, where)


def _marks(extras: Extras, where: str) -> Iterator[tuple[str, str]]:
    for pointer, raw in extras.fields.items():
        if pointer.endswith("/zz"):
            yield where + pointer.removesuffix("/zz"), json.loads(raw)
        else:
            yield from _inside(msgspec.json.decode(raw), where + pointer)


def _inside(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Marks of a field that is kept whole."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from [(where, member)] if name == "zz" else _inside(member, f"{where}/{name}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _inside(member, f"{where}/{index}")
