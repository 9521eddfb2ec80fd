"""Find an array in a JSON object and the byte offsets of its items, without decoding the items."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Raw, defstruct
from msgspec.json import Decoder

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
    return start if start is not None and json.is_whole_object(body[:start] + b"]}") else None


def read_items(body: bytes, name: str, start: int) -> tuple[list[Raw], int] | None:
    """Return the items of the array that `find_top_array` found, and the number of bytes from its closing bracket on.

    Return None if the body has another member of that name after it.
    """
    # Raw, so that UTF-8 is not checked again.
    try:
        items: list[Raw] = json.decode_with(_build_decoder(name), Raw(body)).items
    except json.Malformed:
        return None  # the last member of that name is no array
    end = _find_end(body, name, start, items)
    tail = body[end:] if end is not None else b""
    if not tail or name in json.decode_object(Raw(b"{" + tail[1:].lstrip(_BETWEEN))):
        return None
    return items, len(tail)


@cache
def _build_decoder(name: str) -> Decoder[Any]:
    """Return a decoder of the array `name` of an object, which skips all else in the same pass."""
    return Decoder(defstruct("Items", [("items", list[Raw], [])], rename={"items": name}))


def _find_end(body: bytes, name: str, start: int, items: Sequence[Raw]) -> int | None:
    """Return the offset of the bracket that closes the array; None if other items are at `start`."""
    for separator in (b",", b", "):  # most clients write one of these
        written = separator.join(items)
        end = start + len(written)
        if body.startswith(written, start) and body.startswith(b"]", end):
            return end
    member = bytes(json.decode_object(Raw(body))[name])
    return start + len(member) - len(b"[]") if body.startswith(member, start - 1) else None


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
