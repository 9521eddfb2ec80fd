"""The outcome of converting one schema, and the memory of earlier outcomes.

A request declares the same tools turn after turn, so every conversion is remembered by the schema's bytes. Large
schemas are not remembered: the memory must stay small whatever callers send.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec

from msgspec import Struct, structs

from dragoman.interpreter.schemas.arguments import ArgumentUndo
from dragoman.interpreter.schemas.notes import Note
from dragoman.interpreter.schemas.retelling import is_retold

REMEMBERED = 1024
LARGEST_REMEMBERED = 65_536

P = ParamSpec("P")


class Converted(Struct, frozen=True):
    """A schema made to fit. `schema` is None where the target takes no parameters at all."""

    schema: bytes | None
    notes: tuple[Note, ...] = ()
    undo: ArgumentUndo | None = None
    narrowed: bool = False
    """Values that fitted before do not fit any more, and nothing says so in words."""


def remembered(convert: Callable[Concatenate[bytes, P], Converted]) -> Callable[Concatenate[bytes, P], Converted]:
    """Remember outcomes by schema; a schema that needs nothing is returned as the caller's own object."""

    def converted_whole(*args: Any, **options: Any) -> Converted:
        converted = convert(*args, **options)
        undo = converted.undo
        if undo is None:
            return converted
        retold = is_retold(undo)
        return structs.replace(converted, undo=structs.replace(undo, retold=retold, only_integers=not retold))

    remember: Callable[..., Converted] = lru_cache(maxsize=REMEMBERED)(converted_whole)

    @wraps(convert)
    def convert_once(schema: bytes, /, *args: P.args, **options: P.kwargs) -> Converted:
        if len(schema) > LARGEST_REMEMBERED:
            return converted_whole(schema, *args, **options)
        converted = remember(schema, *args, **options)
        if converted.schema is schema or converted.schema != schema:
            return converted
        return structs.replace(converted, schema=schema)

    return convert_once


def unchanged(schema: bytes, undo: ArgumentUndo | None = None) -> Converted:
    """Say that `schema` fits as it is."""
    return Converted(schema, (), undo)
