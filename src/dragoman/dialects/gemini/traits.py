"""The traits of models behind the Gemini API, by pattern of the model name. The first match wins.

Platform prefixes are stripped from the name before matching. Source: the vendor's documentation of November 2026. An
unknown model gets the last row; a newer model of a known family gets the strictest row of that family.
"""

from msgspec import structs

from dragoman.core.request import EFFORTS
from dragoman.core.traits import ALL_SAMPLING, Traits
from dragoman.dialects.gemini.wire import NAME

_CODE = ("x-javascript", "x-typescript", "x-python-code", "x-ipynb+json")
_DOCUMENTS = frozenset(f"application/{name}" for name in ("pdf", "json", "rtf", "xml", *_CODE))

_GIVEN_IDS = r"[A-Za-z0-9]{8}|call_[0-9]{4,8}"
"""The recorded forms of the ids that Gemini and Code Assist give."""

_GEMINI = Traits(
    dialect=NAME,
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
    given_ids=_GIVEN_IDS,
    object_arguments=True,
    tools_max=512,
    native_mix=(("/toolConfig/includeServerSideToolInvocations", b"true"),),
    allowed_subset=True,
    choice_of_functions=True,
    thinking="level",
    efforts=("low", "medium", "high"),
    can_disable_thinking=False,
    shows_thinking=True,
    unsigned_reasoning=True,
    call_signatures=True,
    text_signatures=True,
    signed_calls=True,
    media=frozenset({"image", "document", "audio", "video"}),
    result_media=frozenset({"image", "document"}),
    assistant_media=True,
    image_types=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
    document_types=_DOCUMENTS,
    text_types=True,
    result_types=frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}),
    media_names=False,
    link_kinds=frozenset({"image", "document", "audio", "video"}),
    link_types=True,
    link_schemes=frozenset({"http", "https", "gs"}),
    result_links=frozenset({"gs"}),
    stored_issuer="google",
    result_names=True,
    failed_results=True,
)
_GEMINI_3 = structs.replace(
    _GEMINI,
    sampling=ALL_SAMPLING | {"top_k"},
    older_thinking="budget",
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
    older_thinking="none",
    efforts=EFFORTS,
    can_disable_thinking=True,
    budget_max=24_576,
    result_media=frozenset(),
    output_with_tools=False,
)
_GEMINI_2_5_PRO = structs.replace(_GEMINI_2_5, can_disable_thinking=False, budget_min=128, budget_max=32_768)
_GEMINI_2 = structs.replace(_GEMINI_2_5, thinking="none", efforts=(), shows_thinking=False)

ROWS = (
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
)
