"""The rows: each vendor's current generation whole, every other model by how it differs from a neighbour."""

import pytest

from dragoman.core.problems import Problem
from dragoman.core.request import EFFORTS
from dragoman.core.traits import Traits
from dragoman.interpreter.adaptation import traits_for

SAMPLING = {"temperature", "top_p", "max_tokens", "stop", "seed", "presence_penalty", "frequency_penalty"}
SOUNDS = {"audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"}
TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
COMPATIBLE = {
    "tiers": TIERS,
    "web_search": False,
    "audio_types": SOUNDS,
    "issuer": "openai",
    "sampling": SAMPLING,
    "stop_max": 4,
    "max_tokens_member": "max_tokens",
    "stream_fields": (("/stream_options", b'{"include_usage":true}'),),
    "strict_tools": True,
    "strict_needs_all": True,
    "parallel_switch": True,
    "thinking": "effort",
    "efforts": EFFORTS,
    "reasoning_text": True,
    "reasoning_issuer": "openrouter",
    "media": {"image", "audio", "document"},
    "needs_file_names": True,
    "link_kinds": {"image"},
    "stored_kinds": {"document"},
    "stored_issuer": "openai",
    "user": True,
    "user_max": 128,
    "output_names": True,
    "speaker_names": True,
    "refusals": True,
    "calls_last": True,
}
RESPONSES = {
    "tiers": (*TIERS, "ultrafast"),
    "issuer": "openai",
    "turns": "items",
    "sampling": {"temperature", "top_p", "max_tokens"},
    "max_tokens_min": 16,
    "name_max": 128,
    "id_max": 64,
    "custom_tools": True,
    "grammars": True,
    "namespaces": True,
    "strict_tools": True,
    "strict_needs_all": True,
    "strict_explicit": True,
    "needs_parameters": True,
    "allowed_subset": True,
    "allowed_natives": True,
    "parallel_switch": True,
    "thinking": "effort",
    "efforts": EFFORTS,
    "shows_thinking": True,
    "media": {"image", "document", "audio"},
    "audio_types": SOUNDS,
    "result_media": {"image", "document"},
    "needs_file_names": True,
    "stored_issuer": "openai",
    "verbosity": True,
    "metadata": True,
    "user": True,
    "user_max": 128,
    "output_names": True,
    "unkept": (("/store", b"false"),),
    "continues": True,
}
CLAUDE = {
    "tool_search": True,
    "issuer": "anthropic",
    "turns": "alternating",
    "sampling": {"max_tokens", "stop"},
    "temperature_max": 1.0,
    "max_tokens_default": 32_000,
    "max_tokens_max": 128_000,
    "max_tokens_min": 1,
    "blank_stops": False,
    "strict_optional_max": 24,
    "strict_unions_max": 16,
    "later_system": False,
    "starts_with_user": True,
    "prefill": False,
    "empty_text": False,
    "id_max": 64,
    "object_arguments": True,
    "strict_tools": True,
    "strict_max": 20,
    "needs_parameters": True,
    "parallel_needs_mode": True,
    "parallel_switch": True,
    "stub_tools": True,
    "property_keys": True,
    "thinking": "adaptive",
    "efforts": ("low", "medium", "high", "xhigh", "max"),
    "shows_thinking": True,
    "media": {"image", "document"},
    "result_media": {"image", "document"},
    "document_types": {"application/pdf"},
    "text_documents": True,
    "document_contexts": True,
    "link_schemes": frozenset({"https"}),
    "stored_issuer": "anthropic",
    "output_json": False,
    "output_strict_only": True,
    "cache_marks": True,
    "cache_marks_max": 4,
    "cache_needs_marks": True,
    "marks_anywhere": True,
    "cache_lifetimes": ("5m", "1h"),
    "user": True,
    "failed_results": True,
    "failed_media": False,
    "calls_last": True,
    "forced_choice": False,
    "can_disable_thinking": False,
}
GEMINI = {
    "strict_by_mode": True,
    "image_types": {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"},
    "document_types": {
        *("application/pdf", "application/json", "application/rtf", "application/xml"),
        *("application/x-javascript", "application/x-typescript"),
        *("application/x-python-code", "application/x-ipynb+json"),
    },
    "text_types": True,
    "result_types": {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"},
    "issuer": "google",
    "turns": "alternating",
    "sampling": {"max_tokens", "stop", "seed"},
    "max_tokens_min": 1,
    "stop_max": 5,
    "later_system": False,
    "starts_with_user": True,
    "prefill": False,
    "results_apart": True,
    "empty_text": False,
    "name_max": 128,
    "name_symbols": "_-.:",
    "name_first_digit": False,
    "given_ids": "[A-Za-z0-9]{8}|call_[0-9]{4,8}",
    "id_max": 64,
    "object_arguments": True,
    "tools_max": 512,
    "native_mix": (("/toolConfig/includeServerSideToolInvocations", b"true"),),
    "allowed_subset": True,
    "choice_of_functions": True,
    "thinking": "level",
    "efforts": ("low", "medium", "high"),
    "can_disable_thinking": False,
    "shows_thinking": True,
    "unsigned_reasoning": True,
    "call_signatures": True,
    "text_signatures": True,
    "signed_calls": True,
    "media": {"image", "document", "audio", "video"},
    "result_media": {"image", "document"},
    "assistant_media": True,
    "media_names": False,
    "link_kinds": {"image", "document", "audio", "video"},
    "link_types": True,
    "link_schemes": {"http", "https", "gs"},
    "result_links": {"gs"},
    "stored_issuer": "google",
    "result_names": True,
    "failed_results": True,
}


def differences(traits, neighbour):
    """The fields that differ, without those that only requests of the model's own dialect have (test_same_dialect)."""
    names = (name for name in Traits.__struct_fields__ if getattr(traits, name) != getattr(neighbour, name))
    return {name: getattr(traits, name) for name in names if name != "refused_fields"}


@pytest.mark.parametrize(
    ("dialect", "row"), [("chat", COMPATIBLE), ("responses", RESPONSES), ("messages", CLAUDE), ("gemini", GEMINI)]
)
def test_an_unknown_model_gets_the_last_row_of_its_dialect(dialect, row):
    assert differences(traits_for(dialect, "nobody-1"), Traits(dialect=dialect)) == row


OF_CHAT = {
    "tools_max": 128,
    "max_tokens_member": "max_completion_tokens",
    "media": {"image", "document"},
    "reasoning_text": False,
    "reasoning_issuer": "",
    "allowed_subset": True,
    "allowed_natives": True,
    "metadata": True,
}
NEWEST = ("none", "low", "medium", "high", "xhigh", "max")
NO_SAMPLING = {"max_tokens", "seed"}
OF_GPT_5 = {
    "verbosity": True,
    "custom_tools": True,
    "grammars": True,
    "sampling": NO_SAMPLING,
    "unthinking_sampling": {"temperature", "top_p", "presence_penalty", "frequency_penalty"},
}
WITH_SOURCES = {"search_fields": (("/include", b'["web_search_call.action.sources"]'),)}
OF_RESPONSES_5 = WITH_SOURCES | {
    "tools_max": 128,
    "media": {"image", "document"},
    "sampling": {"max_tokens"},
    "unthinking_sampling": {"temperature", "top_p"},
}
ON_3_0 = {"sampling": SAMPLING | {"top_k"}, "older_thinking": "budget", "prefill": True, "results_apart": False}
FLASH = ("minimal", "low", "medium", "high")
ON_2_5 = {
    "name_max": 64,
    "native_tools": False,
    "native_mix": (),
    "sends_ids": False,
    "signed_calls": False,
    "thinking": "budget",
    "older_thinking": "none",
    "efforts": EFFORTS,
    "can_disable_thinking": True,
    "budget_max": 24_576,
    "result_media": frozenset(),
    "output_with_tools": False,
}
MARKS = {
    "cache_marks": True,
    "cache_lifetimes": ("30m", "12h"),
    "cache_options": {"mode", "ttl"},
    "options_lifetimes": ("30m",),
}
SEALED = (("/store", b"false"), ("/include", b'["reasoning.encrypted_content"]'))
RESPONSES_MARKS = MARKS | {
    "cache_options": {"mode", "ttl", "prewarm", "comparison_response_id"},
    "options_lifetimes": ("30m", "12h"),
}
RESPONSES_KIND = "OpenAI's Responses API: use an upstream of kind 'openai-responses'"
NO_MARKS = {
    "cache_marks": False,
    "cache_lifetimes": (),
    "cache_options": frozenset(),
    "options_lifetimes": (),
}
WITHOUT_THINKING = {"thinking": "none", "efforts": ()}


@pytest.mark.parametrize(
    ("dialect", "model", "neighbour", "difference"),
    [
        ("chat", "gpt-4.1", "nobody", OF_CHAT | WITHOUT_THINKING | {"takes_both_limits": True}),
        (
            "chat",
            "gpt-5.6",
            "nobody",
            OF_CHAT
            | OF_GPT_5
            | MARKS
            | {"efforts": NEWEST, "tools_need_no_effort": True, "tools_need_stated_effort": True},
        ),
        ("chat", "gpt-5.4", "gpt-5.6", NO_MARKS | {"thinks_by_default": False, "tools_need_stated_effort": False}),
        ("chat", "gpt-5.5", "gpt-5.4", {"thinks_by_default": True}),
        ("chat", "gpt-5.2-codex", "gpt-5.2", {"thinks_by_default": True}),
        ("chat", "gpt-5.2", "gpt-5.4", {"efforts": NEWEST[:-1], "tools_need_no_effort": False}),
        ("chat", "gpt-5.1", "gpt-5.2", {"efforts": NEWEST[:-2]}),
        ("chat", "gpt-5", "gpt-5.1", {"efforts": FLASH, "thinks_by_default": True}),
        ("chat", "o3", "gpt-5", {"efforts": FLASH[1:], "custom_tools": False, "verbosity": False}),
        ("chat", "gemini-3-pro", "nobody", {"issuer": "google", "call_signatures": True, "efforts": EFFORTS[:5]}),
        ("chat", "claude-opus-5", "nobody", {"temperature_max": 1.0}),
        ("chat", "mistral-large", "nobody", {"id_exact": 9}),
        ("responses", "gpt-audio", "nobody", WITHOUT_THINKING | {"custom_tools": False, "tools_max": 128}),
        ("responses", "gpt-4.1", "gpt-audio", WITH_SOURCES | {"media": {"image", "document"}, "verbosity": False}),
        ("chat", "gpt-6-astra", "gpt-6-luna", {"efforts": NEWEST[1:], "tools_elsewhere": RESPONSES_KIND}),
        ("chat", "gpt-6.1-sol", "gpt-6-astra", {}),
        ("responses", "gpt-6-astra", "gpt-6-luna", {"efforts": NEWEST[1:]}),
        ("responses", "gpt-6.1-sol", "gpt-6-astra", {}),
        (
            "responses",
            "gpt-5.6",
            "nobody",
            OF_RESPONSES_5 | RESPONSES_MARKS | {"efforts": NEWEST, "unkept": SEALED, "tool_search": True},
        ),
        ("responses", "gpt-5.4", "gpt-5.6", NO_MARKS | {"efforts": NEWEST[:-1], "thinks_by_default": False}),
        ("responses", "gpt-5.5", "gpt-5.4", {"thinks_by_default": True}),
        ("responses", "gpt-5.2", "gpt-5.4", {"tool_search": False}),
        ("responses", "gpt-5", "gpt-5.2", {"efforts": FLASH, "thinks_by_default": True}),
        ("responses", "gpt-5-pro", "gpt-5", {"efforts": ("high",)}),
        ("responses", "gpt-5.4-pro", "gpt-5.2", {"efforts": ("medium", "high", "xhigh"), "thinks_by_default": True}),
        ("responses", "gpt-5.1", "gpt-5.2", {"efforts": NEWEST[:-2]}),
        ("responses", "o3", "gpt-5", {"efforts": FLASH[1:], "custom_tools": False, "verbosity": False}),
        ("messages", "claude-opus-4-7", "nobody", {"forced_choice": True, "can_disable_thinking": True}),
        ("messages", "claude-opus-4-8", "claude-opus-4-7", {"later_system": True, "system_before_answer": True}),
        (
            "messages",
            "claude-mythos-preview",
            "nobody",
            {"efforts": ("low", "medium", "high", "max"), "older_thinking": "enabled"},
        ),
        ("messages", "claude-opus-5-5", "claude-opus-4-8", {"forced_choice": False, "can_disable_thinking": False}),
        (
            "messages",
            "claude-sonnet-5-5",
            "claude-opus-5-5",
            {"can_disable_thinking": True, "thinks_between_tools": True},
        ),
        ("messages", "claude-fable-5", "claude-opus-4-8", {"can_disable_thinking": False}),
        (
            "messages",
            "claude-opus-4-6",
            "claude-opus-4-7",
            {
                "sampling": {"temperature", "top_p", "top_k", "max_tokens", "stop"},
                "thinks_without": {"temperature", "top_p", "top_k"},
                "temperature_or_top_p": True,
                "older_thinking": "enabled",
                "efforts": ("low", "medium", "high", "max"),
            },
        ),
        (
            "messages",
            "claude-opus-4-5",
            "claude-opus-4-6",
            {
                "thinking": "enabled",
                "older_thinking": "none",
                "efforts": ("low", "medium", "high"),
                "prefill": True,
                "prefill_spaced": False,
                "prefill_formatted": False,
                "budget_min": 1024,
                "max_tokens_max": 64_000,
            },
        ),
        ("messages", "claude-haiku-5-5", "nobody", {"can_disable_thinking": True}),
        ("messages", "claude-haiku-4-5", "claude-opus-4-5", {"efforts": ()}),
        (
            "messages",
            "claude-opus-4-1",
            "claude-haiku-4-5",
            {"max_tokens_default": 8192, "max_tokens_max": 32_000, "tool_search": False},
        ),
        (
            "messages",
            "claude-sonnet-4",
            "claude-haiku-4-5",
            {
                "temperature_or_top_p": False,
                "max_tokens_default": 8192,
                "strict_tools": False,
                "output_schema": False,
                "tool_search": False,
            },
        ),
        ("messages", "claude-opus-4-0", "claude-sonnet-4", {"max_tokens_max": 32_000}),
        ("messages", "claude-3-7-sonnet", "claude-sonnet-4", {"max_tokens_default": 32_000}),
        (
            "messages",
            "claude-3-5-sonnet",
            "claude-sonnet-4",
            {"thinking": "none", "max_tokens_default": 4096, "max_tokens_max": 8192},
        ),
        ("gemini", "gemini-3.6-flash", "nobody", {"efforts": FLASH}),
        ("gemini", "gemini-3-pro", "nobody", ON_3_0),
        ("gemini", "gemini-3-flash", "gemini-3-pro", {"efforts": FLASH}),
        (
            "gemini",
            "gemini-3.5-flash-lite",
            "gemini-3-flash",
            {
                "sampling": ON_3_0["sampling"] - {"presence_penalty", "frequency_penalty"},
                "prefill": False,
                "results_apart": True,
            },
        ),
        ("gemini", "gemini-2.5-flash", "gemini-3-pro", ON_2_5),
        (
            "gemini",
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            {"can_disable_thinking": False, "budget_min": 128, "budget_max": 32_768},
        ),
        ("gemini", "gemini-2.0-flash", "gemini-2.5-flash", WITHOUT_THINKING | {"shows_thinking": False}),
        ("gemini", "gemini-1.5-pro", "gemini-2.0-flash", {"schema": "openapi"}),
    ],
)
def test_a_generation_differs_from_its_neighbour_in_just_this(dialect, model, neighbour, difference):
    assert differences(traits_for(dialect, model), traits_for(dialect, neighbour)) == difference


def test_an_unknown_dialect_is_a_problem():
    with pytest.raises(Problem) as caught:
        traits_for("latin", "m")
    assert caught.value == Problem("invalid_request", "unknown dialect 'latin'")
