"""Traits of models that are called through Chat, by name pattern. The first pattern that matches the bare name wins.

The facts are from the vendors' documentation of November 2026. An unknown model gets the traits of a compatible server;
a newer model of a known family gets the strictest traits of that family.
"""

from msgspec import structs

from dragoman.core.request import EFFORTS
from dragoman.core.traits import ALL_SAMPLING, WAV_AND_MP3, RefusedField, Traits
from dragoman.dialects.chat.reasoning_details import OPENROUTER
from dragoman.dialects.chat.wire import NAME

_LIFETIMES = ("30m", "12h")
_TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
_ALWAYS_THINKS = ("low", "medium", "high", "xhigh", "max")
_RESPONSES = "OpenAI's Responses API: use an upstream of kind 'openai-responses'"

_CACHE_OPTIONS = RefusedField("/prompt_cache_options")
_REASONING_REFUSES = (
    RefusedField("/logit_bias"),
    RefusedField("/prediction"),
    RefusedField("/logprobs", while_thinking=True),
    RefusedField("/top_logprobs", while_thinking=True),
)

_COMPATIBLE = Traits(
    dialect=NAME,
    issuer="openai",
    turns="single_results",
    sampling=ALL_SAMPLING,
    stop_max=4,
    max_tokens_member="max_tokens",
    stream_fields=(("/stream_options", b'{"include_usage":true}'),),
    strict_tools=True,
    strict_needs_all=True,
    parallel_switch=True,
    thinking="effort",
    efforts=EFFORTS,
    reasoning_text=True,
    reasoning_issuer=OPENROUTER,
    media=frozenset({"image", "audio", "document"}),
    audio_types=WAV_AND_MP3,
    needs_file_names=True,
    link_kinds=frozenset({"image"}),
    stored_kinds=frozenset({"document"}),
    stored_issuer="openai",
    user=True,
    user_max=128,
    tiers=_TIERS,
    output_names=True,
    speaker_names=True,
    refusals=True,
    calls_last=True,
    web_search=False,
)
_GPT_CHAT = structs.replace(
    _COMPATIBLE,
    tools_max=128,
    max_tokens_member="max_completion_tokens",
    media=frozenset({"image", "document"}),
    reasoning_text=False,
    reasoning_issuer="",
    allowed_subset=True,
    allowed_natives=True,
    metadata=True,
    verbosity=True,
    custom_tools=True,
    grammars=True,
    refused_fields=(_CACHE_OPTIONS,),
)
_GPT_4 = structs.replace(
    _GPT_CHAT,
    takes_both_limits=True,
    custom_tools=False,
    grammars=False,
    verbosity=False,
    thinking="none",
    efforts=(),
)
_GPT_REASONING = structs.replace(
    _GPT_CHAT,
    sampling=frozenset({"max_tokens", "seed"}),
    unthinking_sampling=frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"}),
    efforts=("none", "low", "medium", "high", "xhigh"),
    refused_fields=(_CACHE_OPTIONS, *_REASONING_REFUSES),
)
_GPT_5_1 = structs.replace(_GPT_REASONING, efforts=("none", "low", "medium", "high"))
_GPT_5 = structs.replace(_GPT_REASONING, efforts=("minimal", "low", "medium", "high"))
_GPT_5_4 = structs.replace(
    _GPT_REASONING, efforts=("none", "low", "medium", "high", "xhigh", "max"), tools_need_no_effort=True
)
_SEARCHES = structs.replace(_GPT_4, web_search=True, sampling=frozenset({"max_tokens", "stop", "seed"}))
_GPT_NEWEST = structs.replace(
    _GPT_5_4,
    tools_need_stated_effort=True,
    cache_marks=True,
    cache_lifetimes=_LIFETIMES,
    cache_options=frozenset({"mode", "ttl"}),
    options_lifetimes=("30m",),
    refused_fields=_REASONING_REFUSES,
)

ROWS = (
    ("gpt-[34]*-search-*", _SEARCHES),
    ("gpt-*-search-*", structs.replace(_GPT_5, web_search=True)),
    ("gpt-*audio*", structs.replace(_GPT_4, media=_COMPATIBLE.media)),
    ("gpt-[34]*", _GPT_4),
    ("chatgpt-4o*", _GPT_4),
    ("gpt-5.[1-9][0-9]*", _GPT_NEWEST),
    ("gpt-5.4-c*", _GPT_5_4),
    ("gpt-5.4*", structs.replace(_GPT_5_4, thinks_by_default=False)),
    ("gpt-5.5*", _GPT_5_4),
    ("gpt-5.[6-9]*", _GPT_NEWEST),
    ("gpt-5.1-codex-max*", _GPT_REASONING),
    ("gpt-5.1-c*", _GPT_5_1),
    ("gpt-5.1*", structs.replace(_GPT_5_1, thinks_by_default=False)),
    ("gpt-5.*-c*", _GPT_REASONING),
    ("gpt-5.*", structs.replace(_GPT_REASONING, thinks_by_default=False)),
    ("gpt-5*", _GPT_5),
    ("gpt-oss*", _COMPATIBLE),
    ("gpt-6-astra*", structs.replace(_GPT_NEWEST, efforts=_ALWAYS_THINKS, tools_elsewhere=_RESPONSES)),
    ("gpt-6.1-sol*", structs.replace(_GPT_NEWEST, efforts=_ALWAYS_THINKS, tools_elsewhere=_RESPONSES)),
    ("gpt-*", _GPT_NEWEST),
    ("o[134]*", structs.replace(_GPT_5, efforts=("low", "medium", "high"), custom_tools=False, verbosity=False)),
    (
        "gemini-*",
        structs.replace(
            _COMPATIBLE, issuer="google", call_signatures=True, efforts=("none", "minimal", "low", "medium", "high")
        ),
    ),
    ("claude-*", structs.replace(_COMPATIBLE, temperature_max=1.0)),
    ("mistral*", structs.replace(_COMPATIBLE, id_exact=9)),
    ("kimi-k3*", structs.replace(_COMPATIBLE, id_template="{name}:{number}")),
    ("kimi*", structs.replace(_COMPATIBLE, id_template="functions.{name}:{number}")),
    ("*", _COMPATIBLE),
)
