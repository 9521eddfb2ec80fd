"""The traits of models behind the Messages API, by pattern of the model name. The first match wins.

Platform prefixes are stripped from the name before matching. Source: the vendor's documentation of November 2026. An
unknown model gets the last row; a newer model of a known family gets the strictest row of that family.
"""

import re

from msgspec import structs

from dragoman.core.traits import Traits
from dragoman.dialects.messages.wire import NAME

_CLAUDE = Traits(
    dialect=NAME,
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
    tool_search=True,
    property_keys=True,
    thinking="adaptive",
    efforts=("low", "medium", "high", "xhigh", "max"),
    shows_thinking=True,
    media=frozenset({"image", "document"}),
    result_media=frozenset({"image", "document"}),
    document_types=frozenset({"application/pdf"}),
    text_documents=True,
    document_contexts=True,
    link_schemes=frozenset({"https"}),
    stored_issuer="anthropic",
    output_json=False,
    output_strict_only=True,
    cache_marks=True,
    cache_marks_max=4,
    cache_needs_marks=True,
    marks_anywhere=True,
    cache_lifetimes=("5m", "1h"),
    user=True,
    failed_results=True,
    failed_media=False,
    calls_last=True,
)
_CLAUDE_LATER_SYSTEM = structs.replace(_CLAUDE, later_system=True, system_before_answer=True)
_CLAUDE_5_5 = structs.replace(_CLAUDE_LATER_SYSTEM, forced_choice=False, can_disable_thinking=False)
_CLAUDE_UNKNOWN = structs.replace(_CLAUDE, forced_choice=False, can_disable_thinking=False)
_CLAUDE_4_6 = structs.replace(
    _CLAUDE,
    sampling=frozenset({"temperature", "top_p", "top_k", "max_tokens", "stop"}),
    thinks_without=frozenset({"temperature", "top_p", "top_k"}),
    temperature_or_top_p=True,
    older_thinking="enabled",
    efforts=("low", "medium", "high", "max"),
)
_CLAUDE_4_5 = structs.replace(
    _CLAUDE_4_6,
    thinking="enabled",
    older_thinking="none",
    efforts=(),
    prefill=True,
    prefill_spaced=False,
    prefill_formatted=False,
    budget_min=1024,
    max_tokens_max=64_000,
)
_CLAUDE_OPUS_4_1 = structs.replace(_CLAUDE_4_5, tool_search=False, max_tokens_default=8192, max_tokens_max=32_000)
_CLAUDE_OLD = structs.replace(
    _CLAUDE_4_5,
    tool_search=False,
    temperature_or_top_p=False,
    max_tokens_default=8192,
    strict_tools=False,
    output_schema=False,
)
_CLAUDE_3 = structs.replace(_CLAUDE_OLD, max_tokens_default=4096, max_tokens_max=8192, thinking="none", efforts=())

_VERSION_FIRST = re.compile(r"^claude-([4-9](?:-\d{1,2})?)-([a-z]+)")


def respell_model(name: str) -> str:
    """Return the name of a Claude model as the rows spell it: platforms write `claude-4.5-sonnet` too."""
    return _VERSION_FIRST.sub(r"claude-\2-\1", name.replace(".", "-"))


ROWS = (
    ("claude-3-7*", structs.replace(_CLAUDE_OLD, max_tokens_default=32_000)),
    ("claude-3*", _CLAUDE_3),
    ("claude-2*", _CLAUDE_3),
    ("claude-opus-4-5*", structs.replace(_CLAUDE_4_5, efforts=("low", "medium", "high"))),
    ("claude-*-4-5*", _CLAUDE_4_5),
    ("claude-*-4-6*", _CLAUDE_4_6),
    ("claude-*-4-7*", _CLAUDE),
    ("claude-*-4-8*", _CLAUDE_LATER_SYSTEM),
    ("claude-opus-4-1*", _CLAUDE_OPUS_4_1),
    ("claude-opus-4*", structs.replace(_CLAUDE_OLD, max_tokens_max=32_000)),
    ("claude-*-4*", _CLAUDE_OLD),
    ("claude-*-5-[1-9][0-9]*", _CLAUDE_UNKNOWN),
    ("claude-opus-5-[5-9]*", _CLAUDE_5_5),
    ("claude-sonnet-5-5*", structs.replace(_CLAUDE_5_5, can_disable_thinking=True, thinks_between_tools=True)),
    ("claude-haiku-5-5*", structs.replace(_CLAUDE, forced_choice=False)),
    ("claude-fable-5-[1-9]*", _CLAUDE_5_5),
    ("claude-mythos-5-[1-9]*", _CLAUDE_5_5),
    ("claude-mythos-preview*", structs.replace(_CLAUDE_UNKNOWN, older_thinking="enabled", efforts=_CLAUDE_4_6.efforts)),
    ("claude-fable-5*", structs.replace(_CLAUDE_LATER_SYSTEM, can_disable_thinking=False)),
    ("claude-mythos-5*", structs.replace(_CLAUDE_LATER_SYSTEM, can_disable_thinking=False)),
    ("claude-opus-5*", _CLAUDE_LATER_SYSTEM),
    ("claude-sonnet-5-[6-9]*", _CLAUDE_UNKNOWN),
    ("claude-sonnet-5*", _CLAUDE),
    ("claude-opus-[6-9]*", _CLAUDE_5_5),
    ("claude-fable-[6-9]*", _CLAUDE_5_5),
    ("claude-mythos-[6-9]*", _CLAUDE_5_5),
    ("*", _CLAUDE_UNKNOWN),
)
