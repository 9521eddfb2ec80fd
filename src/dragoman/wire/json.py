"""Read and write JSON without touching what we only carry.

`decode` and `encode` are msgspec's; `Malformed` is the one way a document can be wrong. Raw slices keep every
byte of what is not looked at, numbers and whitespace included.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw
from msgspec.json import Decoder, Encoder

from dragoman.wire import pointer as pointers

T = TypeVar("T")

_ENCODER = Encoder()
_ANY: Decoder[Any] = Decoder()
_OBJECT: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_ARRAY: Decoder[list[Raw]] = Decoder(list[Raw])
_PATH = re.compile(r" - at `(?:key in )?(\$[^`]*)`$")

encode = _ENCODER.encode


class Malformed(ValueError):  # noqa: N818  # it says what the document is
    """A document that is not JSON, or not of the expected shape; `where` is a JSON pointer."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where


def decode_with(decoder: "Decoder[T]", body: bytes | str | Raw) -> T:
    """Decode `body`, raising `Malformed` for anything wrong with it."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise malformed(error) from None


def malformed(error: Exception) -> Malformed:
    """Say what msgspec said, with a JSON pointer."""
    if isinstance(error, RecursionError):
        return Malformed("the JSON is nested too deeply")
    message = str(error)
    found = _PATH.search(message)
    if found is None:
        return Malformed(message)
    return Malformed(message[: found.start()], pointers.from_path(found[1]))


def decode(body: bytes | str | Raw) -> Any:
    """Decode to plain Python values."""
    return decode_with(_ANY, body)


def decode_object(body: bytes | str | Raw) -> dict[str, Raw]:
    """Decode one level: the members of an object, each still raw."""
    return decode_with(_OBJECT, body)


def decode_array(body: bytes | str | Raw) -> list[Raw]:
    """Decode one level: the items of an array, each still raw."""
    return decode_with(_ARRAY, body)


def is_object(text: str | bytes) -> bool:
    """Tell whether `text` is one complete JSON object."""
    try:
        _OBJECT.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False
    return True


def is_json(text: str | bytes) -> bool:
    """Tell whether `text` is one complete JSON value."""
    try:
        _ANY.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False
    return True


def first_byte(raw: bytes | Raw) -> bytes:
    """Return the first byte that is not white space."""
    return bytes(raw).lstrip()[:1]


def one_line(body: bytes) -> bytes:
    """Take line breaks out of the white space of a JSON document, so that it fits an SSE line."""
    return msgspec.json.format(body, indent=-1) if b"\n" in body or b"\r" in body else body


def with_members(body: bytes, members: Mapping[str, bytes]) -> bytes:
    """Append `members` to a JSON object that does not have them."""
    added = b",".join(encode(name) + b":" + raw for name, raw in members.items())
    if not added:
        return body
    head = body.rstrip()[:-1].rstrip()
    return head + (b"" if head.endswith(b"{") else b",") + added + b"}"


def graft(body: bytes, fields: Mapping[str, bytes]) -> bytes:
    """Put raw values back at their pointers; objects on the way are made where they are missing.

    A body that has become a plain value has no place for them and is returned as it is.
    """
    here: dict[str, bytes] = {}
    deeper: dict[str, dict[str, bytes]] = {}
    for pointer, raw in fields.items():
        token, slash, rest = pointer[1:].partition("/")
        if slash:
            deeper.setdefault(token, {})["/" + rest] = raw
        else:
            here[pointers.unescape(token)] = raw
    first = first_byte(body)
    if first == b"[":
        return _graft_items(body, here, deeper)
    if first != b"{":
        return body
    if not deeper:
        return with_members(body, here)
    members: dict[str, bytes] = {name: bytes(raw) for name, raw in decode_object(body).items()}
    for token, below in deeper.items():
        name = pointers.unescape(token)
        members[name] = graft(members.get(name, b"{}"), below)
    return with_members(b"{}", {**members, **here})


def _graft_items(body: bytes, here: dict[str, bytes], deeper: dict[str, dict[str, bytes]]) -> bytes:
    items: list[bytes] = [bytes(raw) for raw in decode_array(body)]
    # Pointers count the items of the document that was read, so those taken out go back before others are entered.
    for index, raw in sorted((int(token), raw) for token, raw in here.items() if token.isdecimal()):
        items.insert(index, raw)
    for token, below in deeper.items():
        if token.isdecimal() and int(token) < len(items):
            items[int(token)] = graft(items[int(token)], below)
    return b"[" + b",".join(items) + b"]"


def leaves(raw: bytes | Raw, where: str) -> Iterator[str]:
    """Iterate the pointers of all leaves below `where`; an empty container is a leaf."""
    yield from _leaves(decode(raw), where)


def _leaves(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, member in cast("dict[str, Any]", value).items():
            yield from _leaves(member, f"{where}/{pointers.escape(name)}")
    elif isinstance(value, list) and value:
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _leaves(item, f"{where}/{index}")
    else:
        yield where
