"""JSON in a model's text: where a value ends, and which calls it is.

Whether something is JSON is for a real decoder to say; the scan only finds how much to show it. Nothing is mended: what
cannot be read, or can be read in two ways, is no call. The one liberty is a line break that stands in a string as it
is, which has only one meaning.
"""

import json as decoding
import re
from typing import Any, NoReturn

from msgspec import Raw, Struct

from dragoman.wire import json

_IN_STRING = re.compile(r'["\\]')
_OUTSIDE = re.compile(r'["{}\[\]]')
_CLOSING = {"{": "}", "[": "]"}
_DEEPEST = 200
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_BESIDE = frozenset({"id", "type"})
NO_ARGUMENTS = "{}"


class Unreadable(ValueError):  # noqa: N818  it says what the text is
    """What stands where a call should be is none."""


class Unread(str):
    """Text in which a call stands that cannot be read."""

    __slots__ = ()


class Written(Struct, frozen=True):
    """A call as the model wrote it."""

    name: str
    arguments: str
    """A JSON object, in the model's own characters."""
    doubt: str = ""
    """What it was read from, if only the end of the text tells that it is whole."""


class Scan:
    """Finds the end of an object or array, whatever pieces it comes in."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._in_string = False
        self._escaped = False
        self._size = 0
        self.end = 0
        """How long the value is, once that is known."""
        self.is_over = False
        """The end is known, or that there is none."""

    def feed(self, text: str) -> bool:
        """Take more text; tell whether that was enough."""
        at = 0
        while at < len(text) and not self.is_over:
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = (_IN_STRING if self._in_string else _OUTSIDE).search(text, at)
            if found is None:
                break
            at = found.end()
            self._take(found[0], self._size + at)
        self._size += len(text)
        return self.is_over

    def _take(self, character: str, end: int) -> None:
        if character == '"':
            self._in_string = not self._in_string
        elif character == "\\":
            self._escaped = True
        elif character in _CLOSING:
            self._open.append(_CLOSING[character])
            self.is_over = len(self._open) > _DEEPEST
        elif self._open.pop() != character:
            self.is_over = True
        elif not self._open:
            self.end = end
            self.is_over = True


def calls_in(text: str) -> tuple[Written, ...]:
    """Read an object as a call, or an array as several."""
    text = _checked(text)
    try:
        entries = json.decode_array(text) if text.startswith("[") else [Raw(text.encode())]
        calls = tuple(_call(json.decode_object(entry)) for entry in entries)
    except json.Malformed:
        raise Unreadable from None
    if not calls:
        raise Unreadable
    return calls


def arguments_in(text: str) -> str:
    """Read an object as the arguments of a call."""
    if not text.startswith("{"):
        raise Unreadable
    return _checked(text)


def _checked(text: str) -> str:
    """Return a value that a decoder has read, in the same characters if they are strict JSON."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise Unreadable from None
    if end != len(text):
        raise Unreadable
    try:
        json.require_json(text)
    except json.Malformed:
        return _again(value)
    except UnicodeEncodeError:
        raise Unreadable from None
    return text


def _again(value: Any) -> str:
    """Write a value that was read leniently as strict JSON."""
    try:
        told = decoding.dumps(value, ensure_ascii=False, allow_nan=False)
        told.encode()  # half a character, in an escape, is no text
    except ValueError:
        raise Unreadable from None
    return told


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Unreadable
    return members


def _no_number(_word: str) -> NoReturn:
    raise Unreadable


_DECODER = decoding.JSONDecoder(strict=False, object_pairs_hook=_once, parse_constant=_no_number)


def _call(members: dict[str, Raw]) -> Written:
    inner = members.get("function")
    if inner is not None and json.first_byte(inner) == b"{" and members.keys() <= {"function", *_BESIDE}:
        members = json.decode_object(inner)
    names = [name for name in _NAMES if name in members]
    given = [name for name in _ARGUMENTS if name in members]
    if len(names) != 1 or len(given) > 1 or members.keys() - {*names, *given, *_BESIDE}:
        raise Unreadable
    name = json.decode(members[names[0]])
    if not isinstance(name, str) or not name:
        raise Unreadable
    return Written(name, _arguments(members[given[0]]) if given else NO_ARGUMENTS)


def _arguments(raw: Raw) -> str:
    """Return what stands for arguments; text that is an object is one, as OpenAI writes them."""
    if json.first_byte(raw) == b"{":
        return bytes(raw).decode()
    match json.decode(raw):
        case None | "":
            return NO_ARGUMENTS
        case str(text) if json.is_object(text):
            return text
        case _:
            raise Unreadable
