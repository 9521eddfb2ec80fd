"""What a reply says beside its words and calls, and how much of that a client's dialect can say.

Counts, sources and fields that have no place at the client are booked leaf by leaf. A leaf that says nothing (null, a
count of zero, an empty text or container) is no loss, and neither is one that says nothing of the answer: the kind of
document (`object`, `type`, `role`), the number of a choice, a call or an event, the time the reply was made.
"""

from collections.abc import Set as AbstractSet
from typing import Any

from msgspec import structs

from dragoman.core.parts import AnyPart, Citation, Opaque
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.dialects.record import Dialect, Holds
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json
from dragoman.wire.lookup import lookup

UNKNOWN = "not known to the client's dialect"
_REPEATED = "it repeats the request, and the client's dialect does not"
_FURTHER = "only the first answer is told"
_ANSWERS = ("/candidates/", "/choices/")
_SILENT: tuple[Any, ...] = (None, "", {}, [])
_NO_COUNT = "the client's dialect has no such count"


def book_usage(usage: Usage, holds: Holds, ledger: Ledger) -> None:
    """Book the counts that the client's dialect has no place for."""
    if usage.cache_written and "cache_written" not in holds.counts:
        ledger.field_dropped("usage.cache_written", _NO_COUNT)
    if usage.extras is None:
        return
    base = ledger.place("usage")
    counted = ledger.pointers.get("usage.counted", ())
    for field, raw in usage.extras.fields.items():
        where = base + field
        gone = [place for place, count in json.leaves(raw, where).items() if count]
        if where not in counted:
            ledger.leaves_dropped(gone, _NO_COUNT)
        elif gone:
            ledger.approximated(where, "counted in with the rest")


def book_field(field: str, raw: bytes, repeated: frozenset[str], said: AbstractSet[str], ledger: Ledger) -> None:
    """Book a field of the whole reply that only its own dialect understands, but for what citations have `said`."""
    if said:
        for where in json.leaves(raw, field):
            if where not in said:
                ledger.dropped(where, UNKNOWN)
        return
    ledger.value_dropped(field, raw, reason_to_drop(field, repeated))


def reason_to_drop(field: str, repeated: frozenset[str]) -> str:
    """Tell why a field of a reply has no place at the client."""
    if field.startswith(_ANSWERS):
        return UNKNOWN if field.split("/", 3)[2] == "0" else _FURTHER
    return _REPEATED if repeated and "/" + field.split("/", 2)[1] in repeated else UNKNOWN


def part_leaves(part: AnyPart, source: Dialect) -> list[str]:
    """Return the pointers of all that a part says in its own dialect, as far as its reply can be written again."""
    if isinstance(part, Opaque):
        return list(json.leaves(part.raw, part.where))
    alone = Response(id="-", model="-", parts=(structs.replace(part, where=""),), finish=Finish("stop", ""))
    try:
        body = source.build_response(alone, None)
        again = next((one for one in source.parse_response(body).parts if type(one) is type(part)), None)
    except Problem:
        return [part.where]
    found = lookup(body, again.where) if again is not None else None
    return [part.where + leaf for leaf in json.leaves(found[1], "")] if found is not None else [part.where]


def book_source(citation: Citation, place: str, holds: Holds, ledger: Ledger) -> None:
    """Book what a client that is told address and title does not hear of a source that stands at `place`."""
    if not citation.raw:
        return
    words: set[Any] = {citation.url, citation.title}
    if "quote" in holds.citation_facts:
        words.add(citation.quote)
    if "span" in holds.citation_facts:
        words |= {citation.start, citation.end}
    for where, value in json.leaves(citation.raw, place).items():
        if value not in _SILENT and value not in words and not where.endswith("/type"):
            ledger.dropped(where, "the client's dialect names a source by address and title")
