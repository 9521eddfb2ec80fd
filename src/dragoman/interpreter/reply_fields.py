"""Report what a reply says in fields that the client's dialect does not have, leaf by leaf.

A leaf that says nothing (null, an empty text or container) is no loss, and neither is what citations have told.
"""

from typing import Any

from msgspec import structs

from dragoman.core.parts import AnyPart, Citation, Opaque
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response
from dragoman.dialects.record import Dialect
from dragoman.interpreter.reply_adapter import UNKNOWN_TO_CLIENT, ReplyAdapter
from dragoman.wire import json
from dragoman.wire.lookup import lookup

_REPEATED = "it repeats the request, and the client's dialect does not"
_ONLY_FIRST_ANSWER = "only the first answer is told"
_ANSWERS = ("/candidates/", "/choices/")
_FIRST_ANSWER = ("/candidates/0/", "/choices/0/")
_NO_SOURCE = "the client's dialect cannot name this source"
_EMPTY_VALUES: tuple[Any, ...] = (None, "", {}, [])


def can_cite(adapter: ReplyAdapter, citation: Citation, part: AnyPart, number: int) -> bool:
    """Tell whether the client is told a citation of a part; report what it is not told of it."""
    ledger = adapter.ledger
    listed = ledger.find_pointer("part.citations", part)
    places = citation.places or (f"{listed}/{number}" if listed != part.where else listed,)
    foreign = citation.dialect != adapter.client.name
    if not adapter.capabilities.citations or (foreign and not citation.url):
        for place in places:
            # Without JSON of its own it is told by its leaves.
            ledger.report_dropped_value(place, citation.raw or b"0", _NO_SOURCE)
        return False
    if foreign and citation.raw:
        _report_source(adapter, citation, places[0])
    for place in citation.places:
        above = place
        while above := above.rpartition("/")[0]:
            adapter.cited_pointers.setdefault(above, set()).add(place)
    return True


def _report_source(adapter: ReplyAdapter, citation: Citation, pointer: str) -> None:
    """Report what a client that is told address and title does not hear of a source that stands at `place`."""
    words: set[Any] = {citation.url, citation.title}
    if "quote" in adapter.capabilities.citation_facts:
        words.add(citation.quote)
    if "span" in adapter.capabilities.citation_facts:
        words |= {citation.start, citation.end}
    for where, value in json.find_leaves(citation.raw, pointer).items():
        if value not in _EMPTY_VALUES and value not in words and not where.endswith("/type"):
            adapter.ledger.report_dropped(where, "the client's dialect names a source by address and title")


def drop_reply_fields(adapter: ReplyAdapter, fields: dict[str, bytes]) -> None:
    """Report fields of the whole reply that only its own dialect understands, but for what citations told."""
    ledger, cited, repeated = adapter.ledger, adapter.cited_pointers, adapter.source.repeated
    pointers = ledger.pointers
    for field, raw in fields.items():
        if field in pointers.get("finish.sequence", ()):
            adapter.has_sequence = True
            continue
        if field in pointers.get("finish.blocked", ()):
            adapter.block_reason = raw
        if field in cited:
            for where in json.find_leaves(raw, field).keys() - cited[field]:
                ledger.report_dropped(where, UNKNOWN_TO_CLIENT)
            continue
        why = UNKNOWN_TO_CLIENT
        if repeated and (field in repeated or "/" + field.split("/", 2)[1] in repeated):
            why = _REPEATED
        elif field.startswith(_ANSWERS) and not f"{field}/".startswith(_FIRST_ANSWER):
            why = _ONLY_FIRST_ANSWER
        ledger.report_dropped_value(field, raw, why)


def list_part_leaves(part: AnyPart, source: Dialect) -> list[str]:
    """Return the pointers of all that a part says in its own dialect, as far as its reply can be written again."""
    if isinstance(part, Opaque):
        return list(json.find_leaves(part.raw, part.where))
    alone = Response(id="-", model="-", parts=(structs.replace(part, where=""),), finish=Finish("stop", ""))
    try:
        body = source.build_response(alone, None)
        again = next((one for one in source.parse_response(body).parts if type(one) is type(part)), None)
    except Problem:
        return [part.where]
    found = lookup(body, again.where) if again is not None else None
    return [part.where + leaf for leaf in json.find_leaves(found[1], "")] if found is not None else [part.where]
