"""What the record of Anthropic Messages says of itself."""

from typing import Any

from dialects.pointing import check_pointers
from dragoman.dialects.messages import DIALECT
from dragoman.dialects.record import ReplyCapabilities
from laws.maximal import REQUESTS

OLDER: dict[str, Any] = {
    "model": "m",
    "max_tokens": 5,
    "messages": [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "x", "citations": [{"type": "char_location", "cited_text": "x"}]}],
        }
    ],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "output_format": {"type": "json_schema", "schema": {"type": "object"}},
}


def test_a_reply_in_this_dialect_holds_what_the_vendor_documents():
    assert (DIALECT.name, DIALECT.issuer, DIALECT.call_prefix) == ("messages", "anthropic", "toolu_")
    assert DIALECT.capabilities == ReplyCapabilities(
        reasoning=True,
        signatures=frozenset({"reasoning"}),
        call_issuers=frozenset(),
        any_issuer=True,
        refusal=False,
        custom_calls=False,
        plain_ids=True,
        partial_calls=True,
        object_arguments=True,
        media=False,
        citations=True,
        citation_facts=frozenset({"quote"}),
        counts=frozenset({"cached", "cache_written", "reasoning", "searches"}),
        searches=True,
        search_titles=True,
        block_citations=True,
        stop_sequence=True,
        namespaces=True,
        tool_search=True,
        order=True,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused", "paused"}),
    )


def test_every_pointer_of_the_record_leads_to_its_field():
    check_pointers(DIALECT, [REQUESTS["messages"], OLDER])
