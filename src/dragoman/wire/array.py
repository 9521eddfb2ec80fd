"""Find an array in a JSON object and the byte offsets of its items, without decoding the items."""

import re
from collections.abc import Sequence

from msgspec import Raw

from dragoman.wire import json

_BETWEEN = b" \t\r\n,"
_SEPARATOR = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_OPENS = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*\[")


def find_array(body: bytes, name: str) -> int | None:
    """Return the offset of the items of the first array named `name`, at any level; None if there is none."""
    quoted = b'"%b"' % name.encode()
    # A search for the name first is far cheaper than one regular expression for name, colon and bracket.
    at = body.find(quoted)
    while at >= 0:
        end = at + len(quoted)
        if body.startswith(b":[", end):
            return end + 2
        opens = _OPENS.match(body, end)
        if opens is not None:
            return opens.end()
        at = body.find(quoted, end)
    return None


def find_top_array(body: bytes, name: str) -> int | None:
    """Return the offset of the items of the top-level array `name`; None if the first array of that name is deeper."""
    start = find_array(body, name)
    # With `]}` appended, the text up to here is a whole object only if just the top level was open.
    return start if start is not None and json.is_object(body[:start] + b"]}") else None


def read_items(body: bytes, name: str, start: int) -> tuple[list[Raw], int] | None:
    """Return the items of the array that `find_top_array` found, and the number of bytes from its closing bracket on.

    Return None if the body has another member of that name after it.
    """
    # Raw, so that UTF-8 is not checked again.
    member = bytes(json.decode_object(Raw(body)).get(name, b""))
    tail = body[start - 1 + len(member) :]
    if not body.startswith(member, start - 1) or name in json.decode_object(Raw(b"{" + tail.lstrip(_BETWEEN))):
        return None
    return json.decode_array(Raw(member)), len(tail) + 1


def find_next_item(body: bytes, end: int) -> int | None:
    """Return the offset of the item after the one that ends at `end`; None if that was the last."""
    found = _SEPARATOR.match(body, end)
    return found.end() if found is not None else None


def find_end_before(body: bytes, bracket: int, last: Sequence[Raw]) -> int:
    """Return the end offset of the item before the `last` ones; `bracket` is the offset of the closing bracket."""
    offset = bracket
    for raw in reversed(last):
        offset = _skip_back(body, offset) - len(bytes(raw))
    return _skip_back(body, offset)


def _skip_back(body: bytes, offset: int) -> int:
    while body[offset - 1] in _BETWEEN:
        offset -= 1
    return offset
