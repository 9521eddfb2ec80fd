"""Request fields that need no counterpart at the target: they are no loss, and are not reported.

Two kinds: what we do ourselves when we write the reply, and a value that only says what holds at the target anyway.
Each dialect has its rows in `compat.py`, each with its reason. A row may stand for a whole object or list.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from msgspec import Struct

from dragoman.core.parts import Part, Signature, ToolCall
from dragoman.dialects.record import Implied
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json
from dragoman.wire.pointer import escape

UNKNOWN = "not known to the target"


class _Table(Struct, frozen=True):
    """The rows of a dialect, and the places of what such rows are inside of."""

    rows: dict[str, Implied]
    above: frozenset[str]


NEUTRAL = {"temperature": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Values at which a knob of the sampler changes nothing: a model that does not take the knob works like that."""
USUAL_VERBOSITY = "medium"
"""OpenAI's word for answers as long as they usually are."""
_PARSED = "/function/parsed_arguments"
_SKIPS = frozenset(
    {
        "skip_thought_signature_validator",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
        "context_engineering_is_the_way_to_go",
        "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
    }
)


def book_unsaid(where: str, raw: bytes, source: str, target: str, ledger: Ledger) -> None:
    """Book what stands at `where` in a document of `source` as unknown to `target`, but for what is heeded."""
    if raw == b"null":
        return  # nothing was said
    table, shape = _table_of(source), _shape(where)
    if shape not in table.rows and shape not in table.above:
        ledger.dropped(where, UNKNOWN)
        return
    for place in _unheeded(json.peek(raw), where, shape, table, target):
        ledger.dropped(place, UNKNOWN)


def is_echo(part: Part, pointer: str, raw: bytes) -> bool:
    """Tell whether a member only repeats the arguments of a call: OpenAI's SDK sends back what it parsed of them."""
    return isinstance(part, ToolCall) and pointer == _PARSED and json.peek(raw) == json.peek(part.arguments.encode())


def says_nothing(signature: Signature) -> bool:
    """Tell whether a signature only stands for one that is missing, in the words that Google has for that."""
    return signature.value in _SKIPS


def _unheeded(value: Any, where: str, shape: str, table: _Table, target: str) -> Iterator[str]:
    """Iterate the places of what is not heeded: whole where nothing below has a row."""
    row = table.rows.get(shape)
    if row is not None and _is_heeded(value, row, target):
        return
    inside: list[tuple[str, str, Any]] = []
    if shape in table.above and isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        inside = [(f"/{escape(name)}", _plain(f"/{name}"), member) for name, member in members.items()]
    elif shape in table.above and isinstance(value, list):
        inside = [(f"/{index}", "/#", item) for index, item in enumerate(cast("list[Any]", value))]
    if not inside:
        yield where
    for pointer, name, member in inside:
        yield from _unheeded(member, where + pointer, shape + name, table, target)


def _is_heeded(value: Any, row: Implied, target: str) -> bool:
    if row.form and isinstance(value, str) and re.fullmatch(row.form, value) is not None:
        return True
    there = DIALECTS.get(target)  # None where tools are described in the prompt
    implied = (*row.values, *row.streamed) if there is not None and there.holds.partial_calls else row.values
    # 0 and false are one to Python.
    return any(type(value) is type(one) and value == one for one in implied)


def _shape(where: str) -> str:
    tokens = ["#" if token.isdecimal() else token for token in where.removeprefix("/request").split("/")]
    return _plain("/".join(tokens))


def _plain(pointer: str) -> str:
    """Write a place alike in both of Google's spellings."""
    return pointer.replace("_", "").lower()


def _table(rows: Mapping[str, Implied]) -> _Table:
    plain = {_plain(place): row for place, row in rows.items()}
    tokens = [place.split("/") for place in plain]
    return _Table(plain, frozenset("/".join(names[:end]) for names in tokens for end in range(2, len(names))))


@cache
def _table_of(dialect: str) -> _Table:
    return _table(dialect_named(dialect).implied)
