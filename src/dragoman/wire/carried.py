"""Fields of wire shapes that are only carried: declared as `Raw`, so that a document that has them is read at once."""

from operator import attrgetter

from msgspec import Raw, Struct, structs


class Carried:
    """The `Raw` fields of a shape, by pointer, but for those that are `read`. There are at least two."""

    __slots__ = ("_absent", "_get", "_pointers")

    def __init__(self, shape: type[Struct], *read: str) -> None:
        fields = [field for field in structs.fields(shape) if field.type is Raw and field.name not in read]
        self._pointers = tuple([f"/{field.encode_name}" for field in fields])
        self._absent: tuple[Raw, ...] = tuple([field.default for field in fields])
        self._get = attrgetter(*[field.name for field in fields])

    def of(self, value: Struct, where: str = "") -> dict[str, bytes]:
        """Return those that were sent, each behind its pointer, for a value that stands at `where`."""
        fields: dict[str, bytes] = {}
        raws: tuple[Raw, ...] = self._get(value)
        if raws != self._absent:
            for index, raw in enumerate(raws):
                if raw:
                    fields[where + self._pointers[index]] = bytes(raw)
        return fields
