"""Find raw values in a document by their pointers; snake_case stands in for camelCase."""

from msgspec import Raw

from dragoman.wire import json
from dragoman.wire.pointer import escape, split


def lookup(body: bytes, where: str) -> tuple[str, bytes] | None:
    """Find the raw value at `where` and its exact pointer."""
    return Document(body).find(where)


class Document:
    """A document in which many places are looked up: what was opened once stays open."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._open: dict[str, dict[str, Raw] | list[Raw]] = {}

    def find(self, where: str) -> tuple[str, bytes] | None:
        """Find the raw value at `where` and its exact pointer."""
        raw: bytes | Raw = self._body
        found = ""
        for token in split(where):
            below = self._open.get(found)
            if below is None:
                below = self._open[found] = _decode_level(raw)
            if isinstance(below, dict):
                name = token if token in below else _to_snake_case(token)
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
    """Return what stands one level below; nothing stands below a plain value."""
    first = json.first_byte(raw)
    # Who looks places up has read the document, and seen that it is UTF-8 from end to end.
    seen = Raw(raw) if type(raw) is bytes else raw
    if first == b"{":
        return json.decode_object(seen)
    return json.decode_array(seen) if first == b"[" else []


def _to_snake_case(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)
