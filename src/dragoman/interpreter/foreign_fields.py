"""Fields that only another dialect understands: those that mean the same at the target, those that need no counterpart.

A field is kept where both dialects are of one vendor and share it. It is no loss where we do what it asks for when we
write the reply, or where its value only says what holds at the target anyway; each dialect has these rows, with their
reasons, in its `compat.py`. Every other field is reported as a loss.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from msgspec import Struct

from dragoman.core.parts import Media, Part, Signature, ToolCall
from dragoman.core.request import Role
from dragoman.core.value import Extras, Value
from dragoman.dialects.record import Implied
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.interpreter.adaptation import Fitting
from dragoman.interpreter.cache_marks import adapt_mark, borrowed_mark, nearest_lifetime
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


_CACHE_OPTIONS = "/prompt_cache_options"
_TIER = "/service_tier"
_STORE = "/store"


def shared_in_images(source: str, target: str) -> dict[str, str]:
    """Return the fields of an image that mean the same in both dialects, by their pointers in each."""
    here, there = DIALECTS.get(source), DIALECTS.get(target)
    if here is None or there is None or here is there or not here.image_detail or not there.image_detail:
        return {}
    return {here.image_detail: there.image_detail}


def shared_fields(source: str, target: str) -> frozenset[str]:
    """Return the pointers of request fields that mean the same in both dialects."""
    here, there = DIALECTS.get(source), DIALECTS.get(target)
    if here is None or there is None or here is there or here.issuer != there.issuer:
        return frozenset()
    return here.shared_fields | there.shared_fields


def shared_value(pointer: str, raw: bytes, fitting: Fitting) -> bytes | None:
    """Return a shared field as the target takes it; None, and booked, if it takes nothing of it."""
    if pointer == _TIER and json.peek(raw) not in fitting.traits.tiers:
        fitting.ledger.dropped(pointer, "the target has no such tier")
        return None
    if pointer == _STORE and raw == b"true":
        why = "kept in the target's form: it cannot be fetched again in the caller's"
        fitting.ledger.approximated(pointer, why)
    return _cache_options(raw, fitting) if pointer == _CACHE_OPTIONS else raw


def _cache_options(raw: bytes, fitting: Fitting) -> bytes | None:
    pointer = _CACHE_OPTIONS
    names, lifetimes = fitting.traits.cache_options, fitting.traits.options_lifetimes
    if not names or not json.is_object(raw):
        fitting.ledger.dropped(pointer, "the model has no such setting")
        return None
    kept: dict[str, bytes] = {}
    for name, value in json.decode_object(raw).items():
        place = f"{pointer}/{escape(name)}"
        if name not in names:
            fitting.ledger.dropped(place, "not known to the target")
            continue
        kept[name] = bytes(value)
        asked = json.peek(value) if name == "ttl" else None
        if isinstance(asked, str) and (nearest := nearest_lifetime(asked, lifetimes)) != asked:
            fitting.ledger.approximated(place, f"the target's nearest lifetime is {nearest or 'its default'!r}")
            del kept[name]
            if nearest:
                kept[name] = json.encode(nearest)
    return json.with_members(b"{}", kept) if kept else None


def drop_extras(value: Value, fitting: Fitting) -> None:
    """Book every field that only another dialect understands."""
    if value.extras is not None and value.extras.dialect != fitting.traits.dialect:
        for pointer, raw in value.extras.fields.items():
            book_unsaid(value.where + pointer, raw, value.extras.dialect, fitting.traits.dialect, fitting.ledger)


def without_foreign(part: Part, role: Role, fitting: Fitting) -> dict[str, Any]:
    """Return the changes that take from a part of a message what only its own dialect can say, and book them."""
    traits = fitting.traits
    changes: dict[str, Any] = {}
    cache, place = part.cache, fitting.ledger.place("part.cache", part) if part.cache is not None else ""
    if part.extras is not None and part.extras.dialect != traits.dialect:
        borrowed, lifetime = borrowed_mark(part.extras)
        if borrowed is not None and cache is None and traits.cache_marks:
            cache, place = lifetime, part.where + borrowed
        else:
            borrowed = None
        image = isinstance(part, Media) and part.kind == "image"
        shared = shared_in_images(part.extras.dialect, traits.dialect) if image else {}
        kept: dict[str, bytes] = {}
        for pointer, raw in part.extras.fields.items():
            if pointer in shared:
                kept[shared[pointer]] = raw
            elif pointer != borrowed and not is_echo(part, pointer, raw):
                book_unsaid(part.where + pointer, raw, part.extras.dialect, fitting.traits.dialect, fitting.ledger)
        changes["extras"] = Extras(traits.dialect, kept) if kept else None
    if cache is not None:
        fitted = adapt_mark(cache, place, fitting, spoken=role == "assistant" or isinstance(part, ToolCall))
        if fitted != part.cache:
            changes["cache"] = fitted
    if part.signature is not None and part.signature.issuer != traits.issuer:
        drop_signature(part, part.signature, fitting)
        changes["signature"] = None
    return changes


def drop_signature(part: Part, signature: Signature, fitting: Fitting) -> None:
    """Book a signature that the target cannot use, unless it only stands for one that is missing."""
    if not says_nothing(signature):
        fitting.ledger.field_dropped("part.signature", f"signed by {signature.issuer}", part)
