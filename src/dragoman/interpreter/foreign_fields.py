"""Decide for each field of the source dialect whether it is sent, implied or reported as a loss.

A field is sent if both dialects are of one vendor and share it. It is implied, and no loss, if the gateway does what it
requests when it writes the reply, or if its value is what the target does anyway. A field of a reply is implied if its
value is what every reply has. Each dialect lists such values, with the reasons, in its `compat.py`. Every other field
is reported as a loss.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, cast

from msgspec import Struct

from dragoman.core.value import Value
from dragoman.dialects.record import Dialect, Implied, SharedField
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.ledger import Ledger, normalise_pointer
from dragoman.wire import json
from dragoman.wire.lookup import is_empty
from dragoman.wire.pointer import escape

UNKNOWN = "not known to the target"


class _Table(Struct, frozen=True):
    """The implied values of a dialect by normalised pointer, and the pointers of the objects and arrays around them."""

    rows: dict[str, Implied]
    parents: frozenset[str]


NEUTRAL = {"temperature": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Default values of sampling parameters: dropping them changes nothing for a model that has no such parameter."""
USUAL_VERBOSITY = "medium"
"""OpenAI's default verbosity."""


def report_unknown(where: str, raw: bytes, source: str, target: str, ledger: Ledger) -> None:
    """Report the value at `where` in a document of `source` as unknown to `target`, except for implied values."""
    if raw == b"null":
        return  # null is the same as an absent field
    table = _find_table(source, is_reply=False)
    for pointer, _ in _find_unknown(where, raw, normalise_pointer(where), table, target):
        ledger.report_dropped(pointer, UNKNOWN)


def report_unknown_in_reply(where: str, raw: bytes, source: Dialect, ledger: Ledger, reason: str) -> None:
    """Report the value at `where` in a reply of `source` as lost for `reason`, except for implied and empty values."""
    table, shape = _find_table(source.name, is_reply=True), normalise_pointer(where)
    if shape not in table.rows and shape not in table.parents:
        if not is_empty(raw):
            ledger.report_dropped_value(where, raw, reason, shape)
        return
    for pointer, value in _find_unknown(where, raw, shape, table, ""):
        if pointer != where:
            ledger.report_dropped_value(pointer, json.encode(value), reason)
        elif not is_empty(raw):
            ledger.report_dropped_value(where, raw, reason)


def _find_unknown(where: str, raw: bytes, shape: str, table: _Table, target: str) -> Iterable[tuple[str, Any]]:
    """Return the pointers and values at and below `where` (`shape` if normalised) that are not implied."""
    row = table.rows.get(shape)
    if row is None and shape not in table.parents:
        return ((where, None),)
    value = json.peek(raw)
    if row is not None and _is_implied(value, row, target):
        return ()
    return _find_not_implied(value, where, shape, table, target)


def _find_not_implied(value: Any, where: str, shape: str, table: _Table, target: str) -> Iterator[tuple[str, Any]]:
    """Yield the pointers and values that are not implied: the value itself if the table has no row below it."""
    inside: list[tuple[str, str, Any]] = []
    if shape in table.parents and isinstance(value, dict):
        inside = [
            (name, f"{shape}{normalise_pointer(f'/{name}')}", member)
            for name, member in cast("dict[str, Any]", value).items()
        ]
    elif shape in table.parents and isinstance(value, list):
        inside = [(str(index), f"{shape}/#", item) for index, item in enumerate(cast("list[Any]", value))]
    if not inside:
        yield where, value
    for name, below, member in inside:
        row = table.rows.get(below)
        if row is None or not _is_implied(member, row, target):
            yield from _find_not_implied(member, f"{where}/{escape(name)}", below, table, target)


def _is_implied(value: Any, row: Implied, target: str) -> bool:
    if row.form and isinstance(value, str) and re.fullmatch(row.form, value) is not None:
        return True
    dialect = DIALECTS.get(target)  # None if tools are described in the prompt
    streams = dialect is not None and dialect.capabilities.partial_calls
    implied = (*row.values, *row.streaming_values) if streams else row.values
    # Compare types too: 0 == False in Python.
    return any(type(value) is type(one) and value == one for one in implied)


@cache
def _find_table(dialect: str, *, is_reply: bool) -> _Table:
    found = dialect_named(dialect)
    rows = found.implied_replies if is_reply else found.implied
    plain = {normalise_pointer(pointer): row for pointer, row in rows.items()}
    tokens = [pointer.split("/") for pointer in plain]
    return _Table(plain, frozenset("/".join(names[:end]) for names in tokens for end in range(2, len(names))))


def find_shared_fields(source: str, target: str) -> Mapping[str, SharedField]:
    """Return the request fields that mean the same in both dialects, by pointer."""
    source_dialect, target_dialect = DIALECTS.get(source), DIALECTS.get(target)
    if (
        source_dialect is None
        or target_dialect is None
        or source_dialect is target_dialect
        or source_dialect.issuer != target_dialect.issuer
    ):
        return {}
    return {**source_dialect.shared_fields, **target_dialect.shared_fields}


def drop_extras(value: Value, adaptation: Adaptation) -> None:
    """Report every extra field of `value` that the target's dialect does not know."""
    if value.extras is not None and value.extras.dialect != adaptation.traits.dialect:
        for pointer, raw in value.extras.fields.items():
            report_unknown(
                value.where + pointer, raw, value.extras.dialect, adaptation.traits.dialect, adaptation.ledger
            )
