"""Fields of wire shapes that are only carried: declared as `Raw`, so that a document that has them is read at once."""

from operator import attrgetter

from msgspec import Raw, Struct, structs


class Carried:
    """The fields `names` of a shape, by pointer. There are at least two."""

    __slots__ = ("_absent", "_get", "_pointers")

    def __init__(self, shape: type[Struct], *names: str) -> None:
        known = {field.name: field for field in structs.fields(shape)}
        self._pointers = tuple([f"/{known[name].encode_name}" for name in names])
        self._absent: tuple[Raw, ...] = tuple([known[name].default for name in names])
        self._get = attrgetter(*names)

    def of(self, value: Struct, where: str = "") -> dict[str, bytes]:
        """Return those that were sent, each behind its pointer, for a value that stands at `where`."""
        fields: dict[str, bytes] = {}
        raws: tuple[Raw, ...] = self._get(value)
        if raws != self._absent:
            for index, raw in enumerate(raws):
                if raw:
                    fields[where + self._pointers[index]] = bytes(raw)
        return fields
