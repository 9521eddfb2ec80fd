"""The rows: which model accepts what, by pattern. The first pattern that matches the model's bare name wins.

Facts are those of the vendors' documentation of November 2026. A model nobody has heard of gets the last row of its
dialect: for a vendor's dialect the strictest current generation, for Chat a compatible server. A later model of a known
family is taken for the strictest there is of it.
"""

from msgspec import structs

from dragoman.core.request import EFFORTS
from dragoman.core.traits import Traits

_ALL_SAMPLING = frozenset(
    {"temperature", "top_p", "max_tokens", "stop", "seed", "presence_penalty", "frequency_penalty"}
)

_WEB = frozenset({"http", "https"})
_CODE = ("x-javascript", "x-typescript", "x-python-code", "x-ipynb+json")
_GEMINI_DOCUMENTS = frozenset(f"application/{name}" for name in ("pdf", "json", "rtf", "xml", *_CODE))
_OPENAI_LIFETIMES = ("30m", "12h")
_OPENAI_TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
_SOUNDS = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"})

_COMPATIBLE = Traits(
    dialect="chat",
    issuer="openai",
    turns="messages",
    sampling=_ALL_SAMPLING,
    stop_max=4,
    max_tokens_word="max_tokens",
    asks_usage=True,
    strict_tools=True,
    strict_needs_all=True,
    parallel_switch=True,
    thinking="effort",
    efforts=EFFORTS,
    reasoning_text=True,
    media=frozenset({"image", "audio", "document"}),
    audio_types=_SOUNDS,
    needs_file_names=True,
    link_kinds=frozenset({"image"}),
    stored_kinds=frozenset({"document"}),
    stored_issuer="openai",
    user=True,
    user_max=128,
    tiers=_OPENAI_TIERS,
    output_names=True,
    speaker_names=True,
    refusals=True,
    calls_last=True,
)
_GPT_CHAT = structs.replace(
    _COMPATIBLE,
    max_tokens_word="max_completion_tokens",
    media=frozenset({"image", "document"}),
    reasoning_text=False,
    allowed_subset=True,
    allowed_natives=True,
    metadata=True,
    verbosity=True,
    custom_tools=True,
    grammars=True,
)
_GPT_4 = structs.replace(_GPT_CHAT, custom_tools=False, grammars=False, verbosity=False, thinking="none", efforts=())
_GPT_REASONING = structs.replace(
    _GPT_CHAT,
    sampling=frozenset({"max_tokens", "seed"}),
    unthinking_sampling=frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"}),
    efforts=("none", "low", "medium", "high", "xhigh"),
)
_GPT_5_1 = structs.replace(_GPT_REASONING, efforts=("none", "low", "medium", "high"))
_GPT_5 = structs.replace(_GPT_REASONING, efforts=("minimal", "low", "medium", "high"))
_GPT_5_4 = structs.replace(
    _GPT_REASONING, efforts=("none", "low", "medium", "high", "xhigh", "max"), tools_need_no_effort=True
)
_GPT_NEWEST = structs.replace(
    _GPT_5_4,
    cache_marks=True,
    cache_lifetimes=_OPENAI_LIFETIMES,
    cache_options=frozenset({"mode", "ttl"}),
    options_lifetimes=("30m",),
)

_UNKEPT = (("/store", b"false"),)
_SEALED = (*_UNKEPT, ("/include", b'["reasoning.encrypted_content"]'))
"""Models that do not think refuse to be asked for sealed thoughts."""
_RESPONSES = Traits(
    dialect="responses",
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
    audio_types=_SOUNDS,
    result_media=frozenset({"image", "document"}),
    needs_file_names=True,
    stored_issuer="openai",
    verbosity=True,
    metadata=True,
    user=True,
    user_max=128,
    tiers=(*_OPENAI_TIERS, "ultrafast"),
    output_names=True,
    unkept=_UNKEPT,
    continues=True,
)
_RESPONSES_GPT = structs.replace(_RESPONSES, media=frozenset({"image", "document"}))
_RESPONSES_REASONING = structs.replace(
    _RESPONSES_GPT,
    sampling=frozenset({"max_tokens"}),
    unthinking_sampling=frozenset({"temperature", "top_p"}),
    efforts=("none", "low", "medium", "high", "xhigh"),
    cache_marks=False,
    unkept=_SEALED,
)
_RESPONSES_5_1 = structs.replace(_RESPONSES_REASONING, efforts=("none", "low", "medium", "high"))
_RESPONSES_5 = structs.replace(_RESPONSES_REASONING, efforts=("minimal", "low", "medium", "high"))
_RESPONSES_NEWEST = structs.replace(
    _RESPONSES_REASONING,
    efforts=("none", "low", "medium", "high", "xhigh", "max"),
    cache_marks=True,
    cache_lifetimes=_OPENAI_LIFETIMES,
    cache_options=frozenset({"mode", "ttl", "prewarm", "comparison_response_id"}),
    options_lifetimes=_OPENAI_LIFETIMES,
)
_ALWAYS_THINKS = ("low", "medium", "high", "xhigh", "max")

_CLAUDE = Traits(
    dialect="messages",
    issuer="anthropic",
    turns="alternating",
    sampling=frozenset({"max_tokens", "stop"}),
    temperature_max=1.0,
    max_tokens_default=32_000,
    max_tokens_max=128_000,
    max_tokens_min=1,
    blank_stops=False,
    later_system=False,
    starts_with_user=True,
    prefill=False,
    empty_text=False,
    id_max=64,
    object_arguments=True,
    strict_tools=True,
    strict_max=20,
    strict_optional_max=24,
    strict_unions_max=16,
    needs_parameters=True,
    parallel_needs_mode=True,
    parallel_switch=True,
    stub_tools=True,
    property_keys=True,
    thinking="adaptive",
    efforts=("low", "medium", "high", "xhigh", "max"),
    shows_thinking=True,
    media=frozenset({"image", "document"}),
    result_media=frozenset({"image", "document"}),
    document_types=frozenset({"application/pdf"}),
    text_documents=True,
    link_schemes=frozenset({"https"}),
    stored_issuer="anthropic",
    output_json=False,
    output_strict_only=True,
    cache_marks=True,
    cache_marks_max=4,
    marks_anywhere=True,
    cache_lifetimes=("5m", "1h"),
    user=True,
    failed_results=True,
    failed_media=False,
    calls_last=True,
)
_CLAUDE_LATER_SYSTEM = structs.replace(_CLAUDE, later_system=True, system_before_answer=True)
_CLAUDE_5_5 = structs.replace(_CLAUDE_LATER_SYSTEM, forced_choice=False, can_disable_thinking=False)
_CLAUDE_UNHEARD_OF = structs.replace(_CLAUDE, forced_choice=False, can_disable_thinking=False)
_CLAUDE_4_6 = structs.replace(
    _CLAUDE,
    sampling=frozenset({"temperature", "top_p", "top_k", "max_tokens", "stop"}),
    thinks_without=frozenset({"temperature", "top_p", "top_k"}),
    temperature_or_top_p=True,
    efforts=("low", "medium", "high", "max"),
)
_CLAUDE_4_5 = structs.replace(
    _CLAUDE_4_6,
    thinking="enabled",
    prefill=True,
    prefill_spaced=False,
    prefill_formatted=False,
    budget_min=1024,
    max_tokens_max=64_000,
)
_CLAUDE_OPUS_4_1 = structs.replace(_CLAUDE_4_5, max_tokens_default=8192, max_tokens_max=32_000)
_CLAUDE_OLD = structs.replace(
    _CLAUDE_4_5, temperature_or_top_p=False, max_tokens_default=8192, strict_tools=False, output_schema=False
)
_CLAUDE_3 = structs.replace(_CLAUDE_OLD, max_tokens_default=4096, max_tokens_max=8192, thinking="none", efforts=())

_GEMINI = Traits(
    dialect="gemini",
    issuer="google",
    turns="alternating",
    sampling=frozenset({"max_tokens", "stop", "seed"}),
    max_tokens_min=1,
    stop_max=5,
    later_system=False,
    starts_with_user=True,
    prefill=False,
    results_apart=True,
    empty_text=False,
    name_max=128,
    name_symbols="_-.:",
    name_first_digit=False,
    strict_by_mode=True,
    id_max=64,
    object_arguments=True,
    native_mix=(("/toolConfig/includeServerSideToolInvocations", b"true"),),
    allowed_subset=True,
    thinking="level",
    efforts=("low", "medium", "high"),
    can_disable_thinking=False,
    shows_thinking=True,
    call_signatures=True,
    text_signatures=True,
    signed_calls=True,
    media=frozenset({"image", "document", "audio", "video"}),
    result_media=frozenset({"image", "document"}),
    assistant_media=True,
    image_types=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
    document_types=_GEMINI_DOCUMENTS,
    text_types=True,
    result_types=frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}),
    media_names=False,
    link_kinds=frozenset({"image", "document", "audio", "video"}),
    link_types=True,
    link_schemes=_WEB | {"gs"},
    result_links=frozenset({"gs"}),
    stored_issuer="google",
    result_names=True,
    failed_results=True,
)
_GEMINI_3 = structs.replace(
    _GEMINI,
    sampling=_ALL_SAMPLING | {"top_k"},
    prefill=True,
    results_apart=False,
)
_GEMINI_3_FLASH = structs.replace(_GEMINI_3, efforts=("minimal", "low", "medium", "high"))
_GEMINI_3_5_LITE = structs.replace(
    _GEMINI_3_FLASH,
    sampling=_GEMINI_3.sampling - {"presence_penalty", "frequency_penalty"},
    prefill=False,
    results_apart=True,
)
_GEMINI_3_6_FLASH = structs.replace(_GEMINI, efforts=("minimal", "low", "medium", "high"))
_GEMINI_2_5 = structs.replace(
    _GEMINI_3,
    name_max=64,
    native_tools=False,
    native_mix=(),
    sends_ids=False,
    signed_calls=False,
    thinking="budget",
    efforts=EFFORTS,
    can_disable_thinking=True,
    budget_max=24_576,
    result_media=frozenset(),
    output_with_tools=False,
)
_GEMINI_2_5_PRO = structs.replace(_GEMINI_2_5, can_disable_thinking=False, budget_min=128, budget_max=32_768)
_GEMINI_2 = structs.replace(_GEMINI_2_5, thinking="none", efforts=(), shows_thinking=False)

ROWS: dict[str, tuple[tuple[str, Traits], ...]] = {
    "chat": (
        ("gpt-*audio*", structs.replace(_GPT_4, media=_COMPATIBLE.media)),
        ("gpt-[34]*", _GPT_4),
        ("chatgpt-4o*", _GPT_4),
        ("gpt-5.[1-9][0-9]*", _GPT_NEWEST),
        ("gpt-5.[45]*", _GPT_5_4),
        ("gpt-5.[6-9]*", _GPT_NEWEST),
        ("gpt-5.1-codex-max*", _GPT_REASONING),
        ("gpt-5.1*", _GPT_5_1),
        ("gpt-5.*", _GPT_REASONING),
        ("gpt-5*", _GPT_5),
        ("gpt-oss*", _COMPATIBLE),
        ("gpt-6-astra*", structs.replace(_GPT_NEWEST, efforts=_ALWAYS_THINKS, function_tools=False)),
        ("gpt-6.1-sol*", structs.replace(_GPT_NEWEST, efforts=_ALWAYS_THINKS, function_tools=False)),
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
        ("*", _COMPATIBLE),
    ),
    "responses": (
        ("gpt-*audio*", structs.replace(_RESPONSES, thinking="none", efforts=(), custom_tools=False)),
        ("gpt-4*", structs.replace(_RESPONSES_GPT, thinking="none", efforts=(), custom_tools=False, verbosity=False)),
        ("gpt-5-pro*", structs.replace(_RESPONSES_5, efforts=("high",))),
        ("gpt-[5-9]*-pro*", structs.replace(_RESPONSES_REASONING, efforts=("medium", "high", "xhigh"))),
        ("gpt-5.[1-9][0-9]*", _RESPONSES_NEWEST),
        ("gpt-5.[6-9]*", _RESPONSES_NEWEST),
        ("gpt-5.1-codex-max*", _RESPONSES_REASONING),
        ("gpt-5.1*", _RESPONSES_5_1),
        ("gpt-5.*", _RESPONSES_REASONING),
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
    ),
    "messages": (
        ("claude-3-7*", structs.replace(_CLAUDE_OLD, max_tokens_default=32_000)),
        ("claude-3*", _CLAUDE_3),
        ("claude-2*", _CLAUDE_3),
        ("claude-*-4-5*", _CLAUDE_4_5),
        ("claude-*-4-6*", _CLAUDE_4_6),
        ("claude-*-4-7*", _CLAUDE),
        ("claude-*-4-8*", _CLAUDE_LATER_SYSTEM),
        ("claude-opus-4-1*", _CLAUDE_OPUS_4_1),
        ("claude-opus-4*", structs.replace(_CLAUDE_OLD, max_tokens_max=32_000)),
        ("claude-*-4*", _CLAUDE_OLD),
        ("claude-*-5-[1-9][0-9]*", _CLAUDE_UNHEARD_OF),
        ("claude-opus-5-[5-9]*", _CLAUDE_5_5),
        ("claude-sonnet-5-5*", structs.replace(_CLAUDE_5_5, can_disable_thinking=True, thinks_between_tools=True)),
        ("claude-haiku-5-5*", structs.replace(_CLAUDE, forced_choice=False)),
        ("claude-fable-5-[1-9]*", _CLAUDE_5_5),
        ("claude-mythos-5-[1-9]*", _CLAUDE_5_5),
        ("claude-mythos-preview*", structs.replace(_CLAUDE_UNHEARD_OF, efforts=_CLAUDE_4_6.efforts)),
        ("claude-fable-5*", structs.replace(_CLAUDE_LATER_SYSTEM, can_disable_thinking=False)),
        ("claude-mythos-5*", structs.replace(_CLAUDE_LATER_SYSTEM, can_disable_thinking=False)),
        ("claude-opus-5*", _CLAUDE_LATER_SYSTEM),
        ("claude-sonnet-5-[6-9]*", _CLAUDE_UNHEARD_OF),
        ("claude-sonnet-5*", _CLAUDE),
        ("claude-opus-[6-9]*", _CLAUDE_5_5),
        ("claude-fable-[6-9]*", _CLAUDE_5_5),
        ("claude-mythos-[6-9]*", _CLAUDE_5_5),
        ("*", _CLAUDE_UNHEARD_OF),
    ),
    "gemini": (
        ("gemma*", _GEMINI_2),
        ("gemini-1.*", structs.replace(_GEMINI_2, schema="openapi")),
        ("gemini-2.0*", _GEMINI_2),
        ("gemini-2.5-pro*", _GEMINI_2_5_PRO),
        ("gemini-2*", _GEMINI_2_5),
        ("gemini-3.[1-9][0-9]*", _GEMINI),
        ("gemini-3.[678]-flash-lite*", _GEMINI_3_6_FLASH),
        ("gemini-3.8*", _GEMINI),
        ("gemini-3.[67]*flash*", _GEMINI_3_6_FLASH),
        ("gemini-3.[679]*", _GEMINI),
        ("gemini-3.5-flash-lite*", _GEMINI_3_5_LITE),
        ("gemini-3*flash*", _GEMINI_3_FLASH),
        ("gemini-3*", _GEMINI_3),
        ("*", _GEMINI),
    ),
}
