"""What the record of OpenAI Chat Completions says of itself."""

from typing import Any

from dialects.pointing import check_pointers
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.record import ReplyCapabilities
from laws.maximal import REQUESTS

OLDER: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "f", "content": "1"},
        {
            "role": "assistant",
            "content": "a",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "dragoman-v1", "index": 0},
                {"type": "reasoning.encrypted", "data": "d", "format": "dragoman-v1", "index": 1},
            ],
        },
    ],
    "functions": [{"name": "f", "parameters": {"type": "object"}}],
    "function_call": {"name": "f"},
    "max_tokens": 5,
    "user": "ann",
    "top_k": 3,
}


def test_a_reply_in_this_dialect_holds_what_the_vendor_documents():
    assert (DIALECT.name, DIALECT.issuer, DIALECT.call_prefix) == ("chat", "openai", "call_")
    assert DIALECT.capabilities == ReplyCapabilities(
        reasoning=True,
        signatures=frozenset({"call", "reasoning"}),
        unsigned_reasoning=True,
        call_issuers=frozenset({"google"}),
        any_issuer=False,
        refusal=True,
        custom_calls=True,
        plain_ids=False,
        partial_calls=True,
        object_arguments=False,
        media=False,
        citations=True,
        citation_facts=frozenset({"span", "quote"}),
        order=False,
        finishes=frozenset({"stop", "length", "tool_calls", "filtered", "refused"}),
    )


THINKING = [
    {"thinking": {"type": "enabled", "budget_tokens": 9}},
    {"enable_thinking": True, "thinking_budget": 9},
    {"chat_template_kwargs": {"enable_thinking": False}},
    {"chat_template_kwargs": {"thinking": False}},
    {"reasoning": {"enabled": True, "effort": "low", "max_tokens": 9, "exclude": True}},
    {"thinking_token_budget": 9},
]


def test_every_pointer_of_the_record_leads_to_its_field():
    asked = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    check_pointers(DIALECT, [REQUESTS["chat"], OLDER, *(asked | form for form in THINKING)], ("part.citations",))
    assert DIALECT.pointers["part.citations"] == ("/annotations",)
