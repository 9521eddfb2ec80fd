"""Find duplicate keys in JSON documents.

Parsers differ on which of two equal keys of an object counts, so a document with duplicate keys is ambiguous. Checking
every object costs more than decoding the document; so it is first decoded and encoded again, both in C. Encoding makes
nothing longer and writes a duplicate key once, so a document whose length does not change has no duplicate key.
"""

from json import JSONDecoder
from typing import Any, cast

from dragoman.wire.json import NESTED_TOO_DEEPLY, Malformed, decode_distinct
from dragoman.wire.pointer import escape


def decode_and_search(body: bytes) -> tuple[Any, str | None]:
    """Return the decoded document and the pointer of the first duplicate key.

    The pointer is None if there is none, and both are None if the body is not JSON.
    """
    value, is_distinct = decode_distinct(body)
    return value, None if is_distinct else search_objects(body)


class _Members(list[tuple[str, Any]]):
    """The members of an object, including duplicate keys."""


def search_objects(body: bytes) -> str | None:
    """Return the pointer of the first duplicate key by checking every object."""
    try:
        text = body.decode()
        objects: list[list[tuple[str, Any]]] = []
        _build_pairs_decoder(objects.append).decode(text)
        if all(len(members) == len(dict(members)) for members in objects):
            return None
        return _find_first_duplicate(_build_pairs_decoder(_Members).decode(text))
    except RecursionError:
        raise Malformed(NESTED_TOO_DEEPLY) from None
    except ValueError:
        return None


def _build_pairs_decoder(hook: Any) -> JSONDecoder:
    # Numbers are not converted: Python rejects integers of several thousand digits.
    return JSONDecoder(object_pairs_hook=hook, parse_int=len, parse_float=len, strict=False)


def _find_first_duplicate(value: Any) -> str | None:
    """Return the pointer of the first duplicate key in document order."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        where, value = waiting.pop()
        below: list[tuple[str, Any]] = []
        if isinstance(value, _Members):
            seen: set[str] = set()
            for name, member in value:
                token = escape(name.encode("utf-8", "replace").decode())
                below.append((f"{where}/{token}", _Duplicate if name in seen else member))
                seen.add(name)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            below = [(f"{where}/{index}", item) for index, item in enumerate(items)]
        elif value is _Duplicate:
            return where
        waiting.extend(reversed(below))
    return None


class _Duplicate:
    """Marks the value of a duplicate key."""
