"""Find raw values in a document by their pointers, and the pointers of all leaves of a value.

A camelCase name also finds its snake_case form.
"""

from typing import Any

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from dragoman.wire import json
from dragoman.wire.pointer import escape, split

_ANY_NUMBER: Decoder[Any] = Decoder(float_hook=float)
"""Decodes a number that no float can hold (`1e999`) as infinity."""
_CONTAINERS: frozenset[type] = frozenset({dict, list})


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

    def spell(self, where: str) -> str:
        """Return the pointer of a new value, with the objects above it as the document spells them."""
        above, rest = where, ""
        while above:
            above, _, name = above.rpartition("/")
            rest = f"/{name}{rest}"
            if above and (found := self.find(above)) is not None:
                return found[0] + rest
        return where


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


def find_leaves(raw: bytes | Raw, where: str) -> dict[str, Any]:
    """Return the values of all leaves below `where` by pointer, in order; an empty container is a leaf."""
    found: dict[str, Any] = {}
    try:
        _add_leaves(_ANY_NUMBER.decode(raw), where, found)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        # An integer of thousands of digits, or nesting deeper than Python allows: legal JSON, so one leaf.
        return {where: raw}
    return found


def _add_leaves(value: Any, where: str, found: dict[str, Any]) -> None:
    if not value or value.__class__ not in _CONTAINERS:
        found[where] = value
        return
    where += "/"
    if value.__class__ is list:
        for index, item in enumerate(value):
            _add_leaves(item, f"{where}{index}", found)
        return
    for name, member in value.items():
        # An identifier needs no escaping.
        below = where + (name if name.isidentifier() else escape(name))
        if member.__class__ in _CONTAINERS:
            _add_leaves(member, below, found)
        else:
            found[below] = member


def is_empty(raw: bytes) -> bool:
    """Return whether a JSON value has nothing in it: null, an empty text or container, or only such values."""
    if raw[:1] not in b'{["n':
        return False
    try:
        return not _has_content(_ANY_NUMBER.decode(raw))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False  # as `find_leaves`


def _has_content(value: Any) -> bool:
    if value.__class__ not in _CONTAINERS:
        return value is not None and value != ""
    return any(map(_has_content, value if value.__class__ is list else value.values()))


def count_leaves(raw: bytes | Raw) -> int:
    """Return the number of leaves of a value; an empty container is a leaf."""
    try:
        return _count_leaves(_ANY_NUMBER.decode(raw))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return 1  # as `find_leaves`


def _count_leaves(value: Any) -> int:
    if not value or value.__class__ not in _CONTAINERS:
        return 1
    count = 0
    for item in value if value.__class__ is list else value.values():
        count += _count_leaves(item) if item.__class__ in _CONTAINERS else 1
    return count
