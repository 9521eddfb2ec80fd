"""Decode and encode JSON, with parts that are only forwarded kept as raw bytes.

`decode` and `encode` are msgspec's; `Malformed` is the only error for a bad document. Raw slices keep every byte,
numbers and white space included.

Objects and arrays may be nested `MAX_NESTING` deep. How deep msgspec and recursive code could go depends on the stack
of their caller; a document within this limit can be walked and read again wherever it goes. The limit of replies is
lower, so that a client can send back what it received.
"""

import gc
import re
from codecs import utf_8_decode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw
from msgspec.json import Decoder, Encoder

from dragoman.wire import pointer as pointers

T = TypeVar("T")

_ENCODER = Encoder()
_ANY: Decoder[Any] = Decoder()
_RAW: Decoder[Raw] = Decoder(Raw)
_OBJECT: Decoder[dict[str, Raw]] = Decoder(dict[str, Raw])
_ARRAY: Decoder[list[Raw]] = Decoder(list[Raw])
_DISTINCT: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(float_hook=Raw)
"""Keeps the digits of every number: a float might be encoded longer and so hide a dropped duplicate key."""
_BLOCK = 32_768
MAX_NESTING = 200
"""How many levels of objects and arrays a request may have."""
MAX_REPLY_NESTING = 190
"""How many levels of objects and arrays a reply or the arguments of a call may have."""
NESTED_TOO_DEEPLY = f"the JSON is nested too deeply: at most {MAX_NESTING} levels of objects and arrays are accepted"
REPLY_NESTED_TOO_DEEPLY = f"the JSON is nested too deeply: at most {MAX_REPLY_NESTING} levels are accepted in a reply"
_LARGE = 1 << 20
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_PATH = re.compile(r" - at `(?:key in )?(\$[^`]*)`$")

encode = _ENCODER.encode


class Malformed(ValueError):  # noqa: N818  # the name describes the document
    """The document is not JSON, or not of the expected type; `where` is a JSON pointer."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where


def require_utf8(body: bytes) -> None:
    """Raise `Malformed` unless `body` is UTF-8: msgspec checks only the strings it decodes, not raw slices."""
    if body.isascii():
        return
    size = len(body)
    at = 0
    try:
        if size <= _BLOCK:
            utf_8_decode(body, "strict", True)  # noqa: FBT003  a C function without keyword arguments
            return
        # In blocks: a large text with one wide character takes four bytes per character, which is slow to allocate.
        while at < size:
            block = body[at : at + _BLOCK]
            at += len(block) if block.isascii() else utf_8_decode(block, "strict", at + len(block) >= size)[1]
    except UnicodeDecodeError:
        raise Malformed("the JSON document is not UTF-8") from None


def decode_with(decoder: "Decoder[T]", body: bytes | str | Raw) -> T:
    """Decode `body`, raising `Malformed` for anything wrong with it."""
    if type(body) is bytes:
        require_utf8(body)
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise to_malformed(error) from None


def to_malformed(error: Exception) -> Malformed:
    """Return msgspec's error as `Malformed`, with its path as a JSON pointer."""
    if isinstance(error, RecursionError):
        return Malformed(NESTED_TOO_DEEPLY)
    message = str(error)
    found = _PATH.search(message)
    if found is None:
        return Malformed(message)
    return Malformed(message[: found.start()], pointers.from_path(found[1]))


def require_json(body: bytes | str | Raw) -> None:
    """Raise `Malformed` unless `body` is one complete JSON value."""
    decode_with(_RAW, body)


def decode(body: bytes | str | Raw) -> Any:
    """Decode to plain Python values."""
    return decode_with(_ANY, body)


def encode_sorted(value: Any) -> bytes:
    """Encode a value with sorted keys, so that equal values give the same bytes."""
    return msgspec.json.encode(value, order="sorted")


def peek(raw: bytes | Raw) -> Any:
    """Decode a value for inspection; None if it cannot be decoded, such as a number out of range (`1e999`)."""
    try:
        return decode_with(_ANY, raw)
    except Malformed:
        return None


def decode_object(body: bytes | str | Raw) -> dict[str, Raw]:
    """Decode one level: the members of an object, each still raw."""
    return decode_with(_OBJECT, body)


def decode_array(body: bytes | str | Raw) -> list[Raw]:
    """Decode one level: the items of an array, each still raw."""
    return decode_with(_ARRAY, body)


def is_object(text: str | bytes) -> bool:
    """Return whether `text` is one complete JSON object that is not nested too deeply for a reply."""
    return is_whole_object(text) and not is_nested_too_deeply(text)


def is_whole_object(text: str | bytes) -> bool:
    """Return whether `text` is one complete JSON object."""
    return _can_decode(_OBJECT, text)


def is_json(text: str | bytes) -> bool:
    """Return whether `text` is one complete JSON value that is not nested too deeply for a reply.

    Numbers may be out of range.
    """
    return _can_decode(_RAW, text) and not is_nested_too_deeply(text)


def is_nested_too_deeply(text: str | bytes | Raw, limit: int = MAX_REPLY_NESTING) -> bool:
    """Return whether a JSON document has more levels of objects and arrays than the limit.

    A document with fewer brackets is not read. Others are decoded, which is far faster than to scan them; one that
    cannot be decoded here is scanned without recursion.
    """
    if len(text) <= 2 * limit:
        return False
    body = text.encode(errors="surrogatepass") if isinstance(text, str) else bytes(text)
    if _count_brackets(body) <= limit:
        return False
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _is_value_nested_too_deeply(_DISTINCT.decode(body), limit)
    depth = 0
    for token in _TOKEN.finditer(body):
        first = body[token.start()]
        if first in b"{[":
            depth += 1
            if depth > limit:
                return True
        elif first in b"}]":
            depth -= 1
    return False


def _count_brackets(body: bytes) -> int:
    return body.count(b"{") + body.count(b"[")


def require_shallow(raw: bytes) -> None:
    """Raise `Malformed` if a reply or a part of it is nested too deeply."""
    if is_nested_too_deeply(raw):
        raise Malformed(REPLY_NESTED_TOO_DEEPLY)


def _is_value_nested_too_deeply(value: Any, limit: int) -> bool:
    """Return whether a decoded value is nested too deeply: each step goes one level down, in C for all its values."""
    level = [value]
    for _ in range(limit):
        level = gc.get_referents(*level)
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _can_decode(decoder: "Decoder[Any]", text: str | bytes) -> bool:
    try:
        decode_with(decoder, text)
    except Malformed:
        return False
    return True


def as_object(value: Any) -> dict[str, Any]:
    """Return a decoded value if it is an object, else an empty object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a decoded value if it is an array, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def get_text(members: Mapping[str, Any], name: str) -> str:
    """Return a member of a decoded object if it is a string, else ""."""
    value = members.get(name)
    return value if isinstance(value, str) else ""


def first_byte(raw: bytes | Raw) -> bytes:
    """Return the first byte that is not white space."""
    return bytes(raw).lstrip()[:1]


def one_line(body: bytes) -> bytes:
    """Remove line breaks between the tokens of a JSON document, so that it fits into one SSE data line."""
    if b"\n" not in body and b"\r" not in body:
        return body
    try:
        return msgspec.json.format(body, indent=-1)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise to_malformed(error) from None


def with_members(body: bytes, members: Mapping[str, bytes]) -> bytes:
    """Append `members` to a JSON object that does not have them."""
    added = b",".join(encode(name) + b":" + raw for name, raw in members.items())
    if not added:
        return body
    head = body.rstrip()[:-1].rstrip()
    return head + (b"" if head.endswith(b"{") else b",") + added + b"}"


def decode_distinct(body: bytes) -> tuple[Any, bool]:
    """Return the decoded document and whether it certainly has no duplicate key; see `duplicates`.

    The value is None for a document that cannot be decoded. Numbers with a fraction are `Raw`. A document that is
    nested too deeply is `Malformed`: this is where the bodies of clients are checked for that.
    """
    value = None
    try:
        value = _DISTINCT.decode(body)
        # The levels of a long list of numbers would take as much memory again as the list.
        may_be_deep = len(body) > 2 * MAX_NESTING and (len(body) < _LARGE or _count_brackets(body) > MAX_NESTING)
        if may_be_deep and _is_value_nested_too_deeply(value, MAX_NESTING):
            raise Malformed(NESTED_TOO_DEEPLY)
        written = len(encode(value))
        # Clients that write spaces between tokens are as common as those that do not.
        return value, written == len(body) or written == len(msgspec.json.format(body, indent=-1))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # This decoder rejects a number out of range or a lone surrogate, for example, which other parsers accept.
        if _can_decode(_RAW, body) and is_nested_too_deeply(body, MAX_NESTING):
            raise Malformed(NESTED_TOO_DEEPLY) from None
        return value, False
    except RecursionError:
        raise Malformed(NESTED_TOO_DEEPLY) from None
