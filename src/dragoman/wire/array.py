"""Find an array that is a member of a JSON object, and the places of its items, by their bytes."""

import re
from collections.abc import Sequence

from msgspec import Raw

from dragoman.wire import json

_BETWEEN = b" \t\r\n,"
_SEPARATOR = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_OPENS = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*\[")


def find_array(body: bytes, name: str) -> int | None:
    """Return where the items of the first array that is called `name` begin, on whatever level."""
    quoted = b'"%b"' % name.encode()
    # To look for the name first is far cheaper than one pattern for all of it.
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
    """Return where the items of the top-level array `name` begin; None where that is not to be seen at once."""
    start = find_array(body, name)
    # Closed at once, the document is whole only if nothing but the top level was open.
    return start if start is not None and json.is_object(body[:start] + b"]}") else None


def read_items(body: bytes, name: str, start: int) -> tuple[list[Raw], int] | None:
    """Return the items of the array that `opening` found, and how many bytes the body has from its bracket on.

    None if the body names another member so, behind it.
    """
    # Raw, because that the document is UTF-8 is not to be looked at again.
    member = bytes(json.decode_object(Raw(body)).get(name, b""))
    tail = body[start - 1 + len(member) :]
    if not body.startswith(member, start - 1) or name in json.decode_object(Raw(b"{" + tail.lstrip(_BETWEEN))):
        return None
    return json.decode_array(Raw(member)), len(tail) + 1


def find_next_item(body: bytes, end: int) -> int | None:
    """Return where the item behind the one that ends at `end` begins; None if that was the last."""
    found = _SEPARATOR.match(body, end)
    return found.end() if found is not None else None


def find_end_before(body: bytes, bracket: int, last: Sequence[Raw]) -> int:
    """Return where an item ends that is followed only by the `last` ones and the bracket that closes the array."""
    place = bracket
    for raw in reversed(last):
        place = _skip_back(body, place) - len(bytes(raw))
    return _skip_back(body, place)


def _skip_back(body: bytes, place: int) -> int:
    while body[place - 1] in _BETWEEN:
        place -= 1
    return place
