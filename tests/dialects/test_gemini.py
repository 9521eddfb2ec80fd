"""What the record of Gemini says of itself."""

from typing import Any

from dialects.pointing import check_pointers
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.record import ReplyCapabilities
from laws.maximal import REQUESTS

OTHER: dict[str, Any] = {
    "contents": [
        {
            "role": "user",
            "parts": [
                {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "a.png"}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/b", "displayName": "b.png"}},
            ],
        }
    ],
    "generationConfig": {
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT"},
        "thinkingConfig": {"thinkingLevel": "HIGH"},
    },
}


def test_a_reply_in_this_dialect_holds_what_the_vendor_documents():
    assert (DIALECT.name, DIALECT.issuer, DIALECT.call_prefix) == ("gemini", "google", "")
    assert DIALECT.capabilities == ReplyCapabilities(
        reasoning=True,
        signatures=frozenset({"reasoning", "call", "text"}),
        call_issuers=frozenset(),
        any_issuer=True,
        refusal=False,
        custom_calls=False,
        plain_ids=False,
        partial_calls=False,
        object_arguments=True,
        media=True,
        citations=True,
        citation_facts=frozenset({"span"}),
        counts=frozenset({"cached", "reasoning"}),
        searches=True,
        search_titles=True,
        stop_sequence=False,
        namespaces=False,
        order=True,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused", "malformed_call", "other"}),
    )


def test_every_pointer_of_the_record_leads_to_its_field():
    enveloped = [{"model": "m", "project": "p", "request": document} for document in (REQUESTS["gemini"], OTHER)]
    check_pointers(DIALECT, [REQUESTS["gemini"], OTHER, *enveloped])
