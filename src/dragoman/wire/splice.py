"""Change raw values in a JSON document: set or remove some and keep every other byte, or insert many by pointer."""

import re
import sys
from collections.abc import Iterator, Mapping

from msgspec import Raw

from dragoman.wire.json import Malformed, decode, decode_array, decode_object, encode, first_byte, with_members
from dragoman.wire.pointer import unescape

_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MARK = re.compile(rb'["{}\[\],]')


def set_member(body: bytes, name: str, raw: bytes) -> bytes:
    """Return `body` with the top-level member `name` set to `raw`; a missing member is added at the end.

    A duplicate key is set twice, because parsers differ on which of the two counts.
    """
    if (replaced := replace_member(body, name, raw)) is not None:
        return replaced
    end = body.rfind(b"}")
    if end < 0:
        raise Malformed("the JSON object is not complete")
    head = body[:end].rstrip()
    comma = b"" if head.endswith(b"{") else b","
    return head + comma + encode(name) + b":" + raw + body[end:]


def replace_member(body: bytes, name: str, raw: bytes) -> bytes | None:
    """Return `body` with the top-level member `name` set to `raw`; None if it has no such member."""
    spans = [(start, end) for found, _, start, end in _iterate_members(body) if found == name]
    for start, end in reversed(spans):
        body = body[:start] + raw + body[end:]
    return body if spans else None


def remove_member(body: bytes, name: str) -> bytes:
    """Return `body` without the top-level member `name`; every other byte is unchanged."""
    for found, key, _, end in reversed(list(_iterate_members(body))):
        if found != name:
            continue
        after = _skip_space(body, end)
        if body[after : after + 1] == b",":
            body = body[:key] + body[_skip_space(body, after + 1) :]
        else:
            before = body[:key].rstrip()
            body = before.removesuffix(b",") + body[end:]
    return body


def edit(body: bytes, changes: Mapping[str, bytes | None]) -> bytes:
    """Return `body` with the values at these pointers set, or removed if None; every other byte is unchanged.

    A missing member is added at the end of its object, and missing objects above it are created. An object or array
    that becomes empty is removed. A duplicate key is changed twice.
    """
    direct: dict[str, bytes | None] = {}
    deeper: dict[str, dict[str, bytes | None]] = {}
    for pointer, raw in changes.items():
        token, slash, rest = pointer[1:].partition("/")
        if slash:
            deeper.setdefault(unescape(token), {})["/" + rest] = raw
        else:
            direct[unescape(token)] = raw
    is_object = first_byte(body) == b"{"
    values = [*(_iterate_members(body) if is_object else _iterate_items(body))]
    first, end = (values[0][1], values[-1][3]) if values else (_skip_space(body, 0) + 1,) * 2
    output: list[bytes] = []
    for index, (name, before, start, stop) in enumerate(values):
        value = direct[name] if name in direct else body[start:stop]
        if value is not None and name in deeper:
            value = _edit_below(value, deeper[name])
        if value is not None:
            separator = body[values[index - 1][3] : before] if output else b""
            output.append(separator + body[before:start] + value)
    if is_object:
        present = {name for name, *_ in values}
        added = direct | {name: _edit_below(b"{}", below) for name, below in deeper.items()}
        for name, value in added.items():
            if name not in present and value is not None:
                output.append((b"," if output else b"") + encode(name) + b":" + value)
    return body[:first] + b"".join(output) + body[end:]


def _edit_below(value: bytes, changes: Mapping[str, bytes | None]) -> bytes | None:
    """Return an edited object or array, of null as of an empty object; None if nothing is left in it."""
    if first_byte(value) not in (b"{", b"["):
        value = b"{}"
    edited = edit(value, changes)
    if None not in changes.values():
        return edited
    has_content = decode_object(edited) if first_byte(edited) == b"{" else decode_array(edited)
    return edited if has_content else None


def _iterate_items(body: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Yield the items of a JSON array as `_iterate_members` yields members; the name of an item is its index."""
    position = _skip_space(body, 0) + 1
    for index, raw in enumerate(decode_array(Raw(body))):
        start = _skip_space(body, position)
        end = start + len(bytes(raw))
        yield str(index), start, start, end
        position = _skip_space(body, end) + 1


def _iterate_members(body: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Yield the members of a JSON object: name, offset of the name, start and end offset of the value."""
    position = _skip_space(body, 0)
    if body[position : position + 1] != b"{":
        raise Malformed("expected a JSON object")
    try:
        values = decode_object(Raw(body))
    except Malformed:
        values = {}
    position = _skip_space(body, position + 1)
    while body[position : position + 1] == b'"':
        key = _STRING.match(body, position)
        if key is None:
            break
        start = _skip_space(body, _skip_space(body, key.end()) + 1)
        name = decode(key.group())
        end = _find_decoded_end(body, start, values.get(name)) or _find_value_end(body, start)
        yield name, key.start(), start, end
        position = _skip_space(body, end)
        if body[position : position + 1] == b",":
            position = _skip_space(body, position + 1)


def _find_decoded_end(body: bytes, start: int, value: Raw | None) -> int:
    """Return the end of a value if `value` is its raw text, else 0: of duplicate keys only one value is decoded."""
    if value is None or not body.startswith(bytes(value), start):
        return 0
    end = start + len(value)
    return end if body[_skip_space(body, end) : _skip_space(body, end) + 1] in (b",", b"}") else 0


def _skip_space(body: bytes, position: int) -> int:
    found = _SPACE.match(body, position)
    return found.end() if found is not None else position


def _find_value_end(body: bytes, start: int) -> int:
    depth = 0
    position = start
    while (found := _MARK.search(body, position)) is not None:
        mark = found.group()
        if mark == b'"':
            string = _STRING.match(body, found.start())
            if string is None:
                break
            position = string.end()
            continue
        if depth == 0 and mark in (b",", b"}", b"]"):
            return start + len(body[start : found.start()].rstrip())
        depth += 1 if mark in (b"{", b"[") else -1 if mark in (b"}", b"]") else 0
        position = found.end()
    raise Malformed("the JSON object is not complete")


def graft(body: bytes, fields: Mapping[str, bytes]) -> bytes:
    """Insert raw values at their pointers; missing objects on the path are created.

    A body that is a scalar cannot take them and is returned unchanged.
    """
    direct: dict[str, bytes] = {}
    deeper: dict[str, dict[str, bytes]] = {}
    for pointer, raw in fields.items():
        token, slash, rest = pointer[1:].partition("/")
        if slash:
            deeper.setdefault(token, {})["/" + rest] = raw
        else:
            direct[unescape(token)] = raw
    first = first_byte(body)
    if first == b"[":
        return _graft_items(body, direct, deeper)
    if first != b"{":
        return body
    if not deeper:
        return with_members(body, direct)
    members: dict[str, bytes] = {name: bytes(raw) for name, raw in decode_object(body).items()}
    for token, below in deeper.items():
        name = unescape(token)
        members[name] = graft(members.get(name, b"{}"), below)
    return with_members(b"{}", {**members, **direct})


def _graft_items(body: bytes, direct: dict[str, bytes], deeper: dict[str, dict[str, bytes]]) -> bytes:
    items: list[bytes] = [bytes(raw) for raw in decode_array(body)]
    # Pointers count the items of the source document, so removed items are inserted before others are changed.
    for index, raw in sorted((_to_index(token), raw) for token, raw in direct.items() if token.isdecimal()):
        items.insert(index, raw)
    for token, below in deeper.items():
        if token.isdecimal() and _to_index(token) < len(items):
            items[_to_index(token)] = graft(items[_to_index(token)], below)
    return b"[" + b",".join(items) + b"]"


def _to_index(token: str) -> int:
    """Return the index as an int that a list accepts: an upstream may send any number of digits."""
    return int(token) if len(token) < 10 else sys.maxsize
