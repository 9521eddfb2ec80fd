"""Find raw values in a document by their pointers; a camelCase name also finds its snake_case form."""

from msgspec import Raw

from dragoman.wire import json
from dragoman.wire.pointer import escape, split


def lookup(body: bytes, where: str) -> tuple[str, bytes] | None:
    """Return the pointer of a value at `where` as the document spells it, and the raw value; None if there is none."""
    return Document(body).find(where)


class Document:
    """A document for many lookups: each level is decoded once."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._open: dict[str, dict[str, Raw] | list[Raw]] = {}

    def find(self, where: str) -> tuple[str, bytes] | None:
        """Return the exact pointer of the value at `where` and the value itself; None if there is none."""
        raw: bytes | Raw = self._body
        found = ""
        for token in split(where):
            below = self._open.get(found)
            if below is None:
                below = self._open[found] = _decode_level(raw)
            if isinstance(below, dict):
                name = token if token in below else to_snake_case(token)
                if name not in below:
                    return None
                raw = below[name]
                found = f"{found}/{escape(name)}"
            else:
                if not token.isdecimal() or int(token) >= len(below):
                    return None
                raw = below[int(token)]
                found = f"{found}/{token}"
        return found, bytes(raw)


def _decode_level(raw: bytes | Raw) -> dict[str, Raw] | list[Raw]:
    """Return the members or items of a value, each still raw; an empty list for a scalar."""
    first = json.first_byte(raw)
    # Raw, so that UTF-8 is not checked again: callers have already decoded the whole document.
    checked = Raw(raw) if type(raw) is bytes else raw
    if first == b"{":
        return json.decode_object(checked)
    return json.decode_array(checked) if first == b"[" else []


def to_snake_case(name: str) -> str:
    """Return a camelCase name in snake_case."""
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)
