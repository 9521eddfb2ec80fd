"""What the record of OpenAI Responses says of itself."""

from typing import Any

from dialects.pointing import check_pointers
from dragoman.dialects.record import ReplyCapabilities
from dragoman.dialects.responses import DIALECT
from laws.maximal import REQUESTS

OTHER: dict[str, Any] = {
    "model": "m",
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "x", "annotations": [{"type": "file_citation", "file_id": "f"}]}
            ],
        },
        {"type": "function_call_output", "call_id": "call_1", "name": "f", "output": "1"},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
    "text": {"format": {"type": "json_schema", "name": "a", "description": "d", "schema": {}, "strict": False}},
    "previous_response_id": "resp_1",
    "user": "ann",
}


def test_a_reply_in_this_dialect_holds_what_the_vendor_documents():
    assert (DIALECT.name, DIALECT.issuer, DIALECT.call_prefix) == ("responses", "openai", "call_")
    assert DIALECT.capabilities == ReplyCapabilities(
        reasoning=True,
        signatures=frozenset({"reasoning"}),
        call_issuers=frozenset(),
        any_issuer=True,
        refusal=True,
        custom_calls=True,
        plain_ids=False,
        partial_calls=True,
        object_arguments=False,
        media=False,
        citations=True,
        citation_facts=frozenset({"span"}),
        counts=frozenset({"cached", "cache_written", "reasoning", "searches"}),
        searches=True,
        stop_sequence=False,
        namespaces=True,
        tool_search=True,
        order=True,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused"}),
    )


def test_every_pointer_of_the_record_leads_to_its_field():
    check_pointers(DIALECT, [REQUESTS["responses"], OTHER])
