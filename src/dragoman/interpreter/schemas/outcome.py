"""The outcome of converting one schema, and what it could not keep."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Literal, ParamSpec

from msgspec import Struct, structs

from dragoman.interpreter.schemas.arguments import ArgumentUndo
from dragoman.interpreter.schemas.retelling import is_retold

NoteKind = Literal["dropped", "approximated"]


class Note(Struct, frozen=True, order=True):
    """One thing that was lost or changed, at `where` (JSON pointer) inside the schema that was converted."""

    where: str
    what: str
    kind: NoteKind


P = ParamSpec("P")


class Converted(Struct, frozen=True):
    """A schema made to fit. `schema` is None where the target takes no parameters at all."""

    schema: bytes | None
    notes: tuple[Note, ...] = ()
    undo: ArgumentUndo | None = None
    narrowed: bool = False
    """Values that fitted before do not fit any more, and nothing says so in words."""


def conversion(convert: Callable[Concatenate[bytes, P], Converted]) -> Callable[Concatenate[bytes, P], Converted]:
    """Note in the undo of a conversion whether the arguments of calls in a history must be changed as well."""

    @wraps(convert)
    def convert_whole(schema: bytes, /, *args: P.args, **options: P.kwargs) -> Converted:
        converted = convert(schema, *args, **options)
        undo = converted.undo
        if undo is not None:
            retold = is_retold(undo)
            undo = structs.replace(undo, retold=retold, only_integers=not retold)
            return structs.replace(converted, undo=undo)
        return converted

    return convert_whole


def unchanged(schema: bytes, undo: ArgumentUndo | None = None) -> Converted:
    """Say that `schema` fits as it is."""
    return Converted(schema, (), undo)
