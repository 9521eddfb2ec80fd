"""What a conversion of a schema could not keep."""

from typing import Literal

from msgspec import Struct

NoteKind = Literal["dropped", "approximated"]


class Note(Struct, frozen=True, order=True):
    """One thing that was lost or changed, at `where` (JSON pointer) inside the schema that was converted."""

    where: str
    what: str
    kind: NoteKind
