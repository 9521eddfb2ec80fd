"""Traits of models called through Responses, by name pattern. The first pattern that matches the bare name wins.

The facts are from OpenAI's documentation of November 2026. An unknown model gets the last row; a newer model of a known
family gets the strictest traits of that family.
"""

from msgspec import structs

from dragoman.core.request import EFFORTS
from dragoman.core.traits import WAV_AND_MP3, RefusedField, Traits
from dragoman.dialects.responses.wire import NAME

_LIFETIMES = ("30m", "12h")
_TIERS = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")
_ALWAYS_THINKS = ("low", "medium", "high", "xhigh", "max")

_NOT_STORED = (("/store", b"false"),)
_ENCRYPTED_REASONING = (*_NOT_STORED, ("/include", b'["reasoning.encrypted_content"]'))
"""For reasoning models only: other models reject a request for encrypted reasoning."""
_CACHE_OPTIONS = RefusedField("/prompt_cache_options")
_ENCRYPTED = RefusedField("/include", "reasoning.encrypted_content", has_effect=False)
_REASONING_REFUSES = (
    RefusedField("/include", "message.output_text.logprobs", while_thinking=True),
    RefusedField("/top_logprobs", while_thinking=True),
)
_RESPONSES = Traits(
    dialect=NAME,
    issuer="openai",
    turns="items",
    sampling=frozenset({"temperature", "top_p", "max_tokens"}),
    max_tokens_min=16,
    name_max=128,
    id_max=64,
    custom_tools=True,
    grammars=True,
    namespaces=True,
    strict_tools=True,
    strict_needs_all=True,
    strict_explicit=True,
    needs_parameters=True,
    allowed_subset=True,
    allowed_natives=True,
    parallel_switch=True,
    thinking="effort",
    efforts=EFFORTS,
    shows_thinking=True,
    media=frozenset({"image", "document", "audio"}),
    audio_types=WAV_AND_MP3,
    result_media=frozenset({"image", "document"}),
    needs_file_names=True,
    stored_issuer="openai",
    verbosity=True,
    metadata=True,
    user=True,
    user_max=128,
    tiers=_TIERS,
    output_names=True,
    unkept=_NOT_STORED,
    continues=True,
)
_RESPONSES_GPT = structs.replace(
    _RESPONSES,
    tools_max=128,
    media=frozenset({"image", "document"}),
    search_fields=(("/include", b'["web_search_call.action.sources"]'),),
)
_RESPONSES_REASONING = structs.replace(
    _RESPONSES_GPT,
    sampling=frozenset({"max_tokens"}),
    unthinking_sampling=frozenset({"temperature", "top_p"}),
    efforts=("none", "low", "medium", "high", "xhigh"),
    cache_marks=False,
    unkept=_ENCRYPTED_REASONING,
    refused_fields=(_CACHE_OPTIONS, *_REASONING_REFUSES),
)
_RESPONSES_5_1 = structs.replace(_RESPONSES_REASONING, efforts=("none", "low", "medium", "high"))
_RESPONSES_5 = structs.replace(_RESPONSES_REASONING, efforts=("minimal", "low", "medium", "high"))
_RESPONSES_5_4 = structs.replace(_RESPONSES_REASONING, tool_search=True)
_RESPONSES_NEWEST = structs.replace(
    _RESPONSES_REASONING,
    tool_search=True,
    efforts=("none", "low", "medium", "high", "xhigh", "max"),
    cache_marks=True,
    cache_lifetimes=_LIFETIMES,
    cache_options=frozenset({"mode", "ttl", "prewarm", "comparison_response_id"}),
    options_lifetimes=_LIFETIMES,
    refused_fields=_REASONING_REFUSES,
)
_NOT_REASONING = {
    "thinking": "none",
    "efforts": (),
    "custom_tools": False,
    "refused_fields": (_CACHE_OPTIONS, _ENCRYPTED),
}

ROWS = (
    ("gpt-*audio*", structs.replace(_RESPONSES, tools_max=128, **_NOT_REASONING)),
    ("gpt-4*", structs.replace(_RESPONSES_GPT, verbosity=False, **_NOT_REASONING)),
    ("gpt-5-pro*", structs.replace(_RESPONSES_5, efforts=("high",))),
    ("gpt-[5-9]*-pro*", structs.replace(_RESPONSES_REASONING, efforts=("medium", "high", "xhigh"))),
    ("gpt-5.[1-9][0-9]*", _RESPONSES_NEWEST),
    ("gpt-5.[6-9]*", _RESPONSES_NEWEST),
    ("gpt-5.1-codex-max*", _RESPONSES_REASONING),
    ("gpt-5.1-c*", _RESPONSES_5_1),
    ("gpt-5.1*", structs.replace(_RESPONSES_5_1, thinks_by_default=False)),
    ("gpt-5.4-c*", _RESPONSES_5_4),
    ("gpt-5.4*", structs.replace(_RESPONSES_5_4, thinks_by_default=False)),
    ("gpt-5.5*", _RESPONSES_5_4),
    ("gpt-5.*-c*", _RESPONSES_REASONING),
    ("gpt-5.*", structs.replace(_RESPONSES_REASONING, thinks_by_default=False)),
    ("gpt-5*", _RESPONSES_5),
    ("gpt-oss*", _RESPONSES),
    ("gpt-6-astra*", structs.replace(_RESPONSES_NEWEST, efforts=_ALWAYS_THINKS)),
    ("gpt-6.1-sol*", structs.replace(_RESPONSES_NEWEST, efforts=_ALWAYS_THINKS)),
    ("gpt-*", _RESPONSES_NEWEST),
    (
        "o[134]*",
        structs.replace(_RESPONSES_5, efforts=("low", "medium", "high"), custom_tools=False, verbosity=False),
    ),
    ("*", _RESPONSES),
)
