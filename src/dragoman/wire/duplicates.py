"""Find a name that stands twice in one object of a JSON document.

Readers differ on which of the two counts, so a document that says both says nothing for certain. To look at every
object costs more than to read the document; so it is first read and written again, at C's speed. Writing makes nothing
longer, and a name that stands twice is written once: a document that comes out as long as it went in has none.
"""

from json import JSONDecoder
from typing import Any, cast

import msgspec
from msgspec import Raw

from dragoman.wire.json import Malformed
from dragoman.wire.pointer import escape

_READ: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(float_hook=Raw)
"""Keeps the digits of every number: as a float it might be written longer, and hide what is gone."""
_WRITE = msgspec.json.Encoder()


class _Members(list[tuple[str, Any]]):
    """The members of an object, all of them."""


def duplicate(body: bytes) -> str | None:
    """Return where a name stands for the second time in its object; None if none does, or the body is no JSON."""
    return decode_distinct(body)[1]


def decode_distinct(body: bytes) -> tuple[Any, str | None]:
    """Return the decoded document and the pointer of the first duplicate key, None if there is none.

    Both are None for a document that cannot be decoded. Numbers with a fraction are `Raw`.
    """
    value = None
    try:
        value = _READ.decode(body)
        written = len(_WRITE.encode(value))
        # Clients that write blanks between the marks are as common as those that do not.
        if written == len(body) or written == len(msgspec.json.format(body, indent=-1)):
            return value, None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass  # lone surrogates, for one, are not read here, but may be elsewhere
    except RecursionError:
        raise Malformed("the JSON is nested too deeply") from None
    return value, _found(body)


def _found(body: bytes) -> str | None:
    """Look at every object."""
    try:
        text = body.decode()
        objects: list[list[tuple[str, Any]]] = []
        _decoder(objects.append).decode(text)
        if all(len(members) == len(dict(members)) for members in objects):
            return None
        return _place(_decoder(_Members).decode(text))
    except RecursionError:
        raise Malformed("the JSON is nested too deeply") from None
    except ValueError:
        return None


def _decoder(hook: Any) -> JSONDecoder:
    # Digits are not looked at: Python refuses to count with some thousand of them.
    return JSONDecoder(object_pairs_hook=hook, parse_int=len, parse_float=len, strict=False)


def _place(value: Any) -> str | None:
    """Return the first place, in the order of the document."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        where, value = waiting.pop()
        below: list[tuple[str, Any]] = []
        if isinstance(value, _Members):
            seen: set[str] = set()
            for name, member in value:
                token = escape(name.encode("utf-8", "replace").decode())
                below.append((f"{where}/{token}", _Second if name in seen else member))
                seen.add(name)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            below = [(f"{where}/{index}", item) for index, item in enumerate(items)]
        elif value is _Second:
            return where
        waiting.extend(reversed(below))
    return None


class _Second:
    """Stands for the value of a name that was there before."""
