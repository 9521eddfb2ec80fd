"""Follow the references of a schema inside its own document."""

from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urljoin

import msgspec

from dragoman.simulator.model.schemas.json_values import a_list, an_object
from dragoman.wire.pointer import split

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DEEPEST = 64


def encoded(schema: Any) -> bytes:
    """Encode a schema, so that it can be looked up; empty if it cannot be."""
    try:
        return msgspec.json.encode(schema)
    except (ValueError, TypeError, RecursionError):
        return b""


class Document:
    """A schema with its references, and encoded. Who refers to what is not there gets nothing."""

    def __init__(self, schema: Any, raw: bytes | None = None) -> None:
        self.schema = schema
        self.raw = encoded(schema) if raw is None else raw
        self.places: dict[int, tuple[Any, Any]] = {}
        """Places that were read before: a schema by its identity, kept alive, and what was read of it."""
        self._named: dict[str, Any] | None = None

    @classmethod
    def of(cls, raw: bytes) -> "Document":
        """Read an encoded schema; one that cannot be read allows everything."""
        try:
            return cls(msgspec.json.decode(raw) if raw else {}, raw)
        except (ValueError, RecursionError):
            return cls({}, b"")

    def resolve(self, reference: Any) -> Any:
        """Return what a reference refers to, or None."""
        if not isinstance(reference, str):
            return None
        address, _, fragment = reference.partition("#")
        start = self.schema if not address else self._names().get(address.rpartition("/")[2])
        if not fragment:
            return start
        if not fragment.startswith("/"):
            return self._names().get(f"#{fragment}")
        return _at(start, unquote(fragment))

    def _names(self) -> dict[str, Any]:
        """Everything that has an `$id` or an anchor, by its last part: bases are not told apart."""
        if self._named is None:
            self._named = {}
            _collect(self.schema, self._named, 0)
        return self._named


document = lru_cache(maxsize=512)(Document.of)
"""Read an encoded schema, or remember it."""


def _at(start: Any, pointer: str) -> Any:
    here = start
    for step in split(pointer):
        if isinstance(here, list):
            items = a_list(here)
            here = items[int(step)] if step.isdecimal() and len(step) < 6 and int(step) < len(items) else None
        else:
            here = an_object(here).get(step)
    return here


def _collect(value: Any, named: dict[str, Any], depth: int) -> None:
    if depth > _DEEPEST:
        return
    for item in a_list(value):
        _collect(item, named, depth + 1)
    schema = an_object(value)
    for key in ("$anchor", "$dynamicAnchor"):
        if isinstance(schema.get(key), str):
            named.setdefault(f"#{schema[key]}", schema)
    for key in ("$id", "id"):
        if isinstance(schema.get(key), str):
            address, _, fragment = schema[key].partition("#")
            named.setdefault(f"#{fragment}" if fragment else urljoin(".", address).rpartition("/")[2], schema)
    for item in schema.values():
        _collect(item, named, depth + 1)
