"""Report the fields of a reply that the client's dialect does not have.

An empty leaf (null, an empty text or container) is no loss, and neither is a leaf that citations have sent.
"""

from typing import Any

from msgspec import structs

from dragoman.core.parts import AnyPart, Citation, Opaque
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response
from dragoman.dialects.record import Dialect
from dragoman.interpreter.foreign_fields import report_unknown_in_reply
from dragoman.interpreter.reply_adapter import UNKNOWN_TO_CLIENT, ReplyAdapter
from dragoman.wire.lookup import find_leaves, lookup

_ONLY_FIRST_ANSWER = "only the first candidate is sent"
_ANSWERS = ("/candidates/", "/choices/")
_FIRST_ANSWER = ("/candidates/0/", "/choices/0/")
_NO_SOURCE = "the client's dialect cannot express this citation"
_EMPTY_VALUES: tuple[Any, ...] = (None, "", {}, [])
"""Leaves with nothing in them."""


def can_cite(adapter: ReplyAdapter, citation: Citation, part: AnyPart, number: int) -> bool:
    """Return whether a citation of a part is sent to the client; report the part of it that is not sent."""
    ledger = adapter.ledger
    listed = ledger.find_pointer("part.citations", part)
    pointers = citation.places or (f"{listed}/{number}" if listed != part.where else listed,)
    foreign = citation.dialect != adapter.client.name
    if not adapter.capabilities.citations or (foreign and not citation.url):
        for pointer in pointers:
            # A citation without JSON of its own is one leaf.
            ledger.report_dropped_value(pointer, citation.raw or b"0", _NO_SOURCE)
        return False
    if foreign and citation.raw:
        _report_source(adapter, citation, pointers[0])
    adapter.mark_sent(citation.places)
    if citation.url:
        adapter.cited_pages.setdefault(citation.url, citation.title)
    return True


def _report_source(adapter: ReplyAdapter, citation: Citation, pointer: str) -> None:
    """Report the leaves of the citation at `pointer` that are not sent; URL and title are, quote and span may be."""
    sent: set[Any] = {citation.url, citation.title}
    if "quote" in adapter.capabilities.citation_facts:
        sent.add(citation.quote)
    is_whole_text = citation.start == citation.end  # an empty span, as OpenRouter sends it
    is_cut = adapter.options.searches and adapter.capabilities.block_citations
    if "span" in adapter.capabilities.citation_facts or is_whole_text or is_cut:
        sent |= {citation.start, citation.end}
    for where, value in find_leaves(citation.raw, pointer).items():
        if value not in _EMPTY_VALUES and value not in sent and not where.endswith("/type"):
            adapter.ledger.report_dropped(where, "citations in the client's dialect have no field for it")


def drop_reply_fields(adapter: ReplyAdapter, fields: dict[str, bytes]) -> None:
    """Report fields of the whole reply that only its own dialect has, except for what citations have sent."""
    ledger, cited, repeated = adapter.ledger, adapter.cited_pointers, adapter.source.repeated
    pointers = ledger.pointers
    if "searches" in adapter.capabilities.counts:
        adapter.mark_sent(pointers.get("usage.searches", ()))
    for field, raw in fields.items():
        if field in pointers.get("finish.sequence", ()) and raw.startswith(b'"'):
            adapter.has_sequence = True
            continue
        if field in pointers.get("finish.blocked", ()):
            adapter.block_reason = raw
        if field in pointers.get("finish.message", ()):
            adapter.finish_message = raw
        if field in cited:
            for where, value in find_leaves(raw, field).items():
                if where not in cited[field] and value not in _EMPTY_VALUES:
                    ledger.report_dropped(where, UNKNOWN_TO_CLIENT)
            continue
        if repeated and (field in repeated or "/" + field.split("/", 2)[1] in repeated):
            continue  # it only repeats the request
        reason = UNKNOWN_TO_CLIENT
        if field.startswith(_ANSWERS) and not f"{field}/".startswith(_FIRST_ANSWER):
            reason = _ONLY_FIRST_ANSWER
            if not ledger.has_no_document:
                ledger.report_dropped("/".join(field.split("/", 3)[:3]), reason)
                continue
        report_unknown_in_reply(field, raw, adapter.source, ledger, reason)


def list_part_leaves(part: AnyPart, source: Dialect) -> list[str]:
    """Return the pointers of all leaves of a part in its own dialect, by rendering a reply of that part alone.

    If that fails, the part's own pointer is returned.
    """
    if isinstance(part, Opaque):
        return list(find_leaves(part.raw, part.where))
    alone = Response(id="-", model="-", parts=(structs.replace(part, where=""),), finish=Finish("stop", ""))
    try:
        body = source.build_response(alone, None)
        again = next((one for one in source.parse_response(body).parts if type(one) is type(part)), None)
    except Problem:
        return [part.where]
    found = lookup(body, again.where) if again is not None else None
    return [part.where + leaf for leaf in find_leaves(found[1], "")] if found is not None else [part.where]
