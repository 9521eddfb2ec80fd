"""Fields of wire shapes that are only carried: declared as `Raw`, so that a document that has them is read at once."""

from operator import attrgetter

from msgspec import Raw, Struct, structs


class Carried:
    """The fields `names` of a shape, by pointer. There are at least two of them."""

    __slots__ = ("_get", "_pointers")

    def __init__(self, shape: type[Struct], *names: str) -> None:
        known = {field.name: field.encode_name for field in structs.fields(shape)}
        self._pointers = tuple([f"/{known[name]}" for name in names])
        self._get = attrgetter(*names)

    def of(self, value: Struct, where: str = "") -> dict[str, bytes]:
        """Return those that were sent, each behind its pointer, for a value that stands at `where`."""
        raws: tuple[Raw, ...] = self._get(value)
        if not any(raws):
            return {}
        return {where + pointer: bytes(raw) for pointer, raw in zip(self._pointers, raws, strict=True) if raw}
