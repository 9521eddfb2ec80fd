"""What a model behind a dialect accepts: data, not code. The rows are in each dialect's `traits.py`."""

from typing import Literal

from msgspec import Struct

from dragoman.core.request import Effort

TextCalls = Literal["", "json", "legacy"]
ThinkingStyle = Literal["effort", "adaptive", "enabled", "level", "budget", "none"]
"""effort: a word; adaptive: Claude's mode and a word; enabled: Claude's token budget; level: Gemini's word;
budget: Gemini's token budget."""
ALL_SAMPLING = frozenset(
    {"temperature", "top_p", "max_tokens", "stop", "seed", "presence_penalty", "frequency_penalty"}
)
"""The sampling fields that several dialects have."""
WAV_AND_MP3 = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"})
"""Media types of the two audio formats that OpenAI's dialects take."""


class Traits(Struct, frozen=True, kw_only=True):
    """One row: a target's dialect and everything about a model family that decides how to write to it."""

    dialect: str
    issuer: str = ""
    """Whose signatures the model verifies."""
    turns: Literal["alternating", "single_results", "items"] = "single_results"
    """How a history is cut up: alternating turns, messages with one tool result each, or one item a thing."""

    sampling: frozenset[str] = frozenset()
    unthinking_sampling: frozenset[str] = frozenset()
    """Knobs it accepts beside those when it is asked not to think."""
    """Names of `Sampling` fields that are accepted."""
    temperature_max: float = 2.0
    thinks_without: frozenset[str] = frozenset()
    """Names of `Sampling` fields that are refused while the model thinks."""
    temperature_or_top_p: bool = False
    """Only one of the two may be sent."""
    stop_max: int = 1_000_000
    max_tokens_max: int | None = None
    """More than that the model refuses to be allowed."""
    max_tokens_min: int = 0
    blank_stops: bool = True
    """A stop sequence may be white space only."""
    max_tokens_default: int | None = None
    """Sent when the caller gave none and the target demands one."""
    max_tokens_word: str = "max_completion_tokens"
    """Chat only: which of its two words for the limit the model takes."""

    later_system: bool = True
    """A system message may stand after the first turn."""
    system_before_answer: bool = False
    """There it stands between what the user said and what the model answers, and nowhere else (Claude)."""
    starts_with_user: bool = False
    prefill: bool = True
    """The last turn may be the assistant's."""
    prefill_spaced: bool = True
    """It may end in white space then."""
    prefill_formatted: bool = True
    """It may be so beside a schema for the answer."""
    results_apart: bool = False
    """Tool results stand in a turn of their own; what the user says beside them follows in another (Gemini 3.6)."""
    empty_text: bool = True

    name_max: int = 64
    name_symbols: str = "_-"
    """Characters beside letters and digits that a tool name may hold."""
    name_first_digit: bool = True
    id_max: int = 40
    id_exact: int | None = None
    """Call ids must have exactly this many letters and digits (Mistral's template: 9)."""
    sends_ids: bool = True
    object_arguments: bool = False
    """Arguments are a JSON object on the wire, so text that is not one cannot be said."""
    custom_tools: bool = False
    grammars: bool = False
    namespaces: bool = False
    strict_tools: bool = False
    strict_by_mode: bool = False
    """Calls are held to their schemas by the mode of choosing, for all tools at once (Gemini's VALIDATED and ANY)."""
    strict_explicit: bool = False
    """A tool that does not say whether it is strict is taken to be (Responses)."""
    strict_max: int = 1_000_000
    strict_optional_max: int | None = None
    strict_unions_max: int | None = None
    """How many parameters of all strict tools may be absent, or of several types."""
    strict_needs_all: bool = False
    """A strict schema must require every property (OpenAI)."""
    needs_parameters: bool = False
    """A tool without arguments still has a schema."""
    native_tools: bool = True
    """The vendor's own tools may stand beside the caller's."""
    native_mix: tuple[tuple[str, bytes], ...] = ()
    """Request fields that must be set when they do."""
    forced_choice: bool = True
    allowed_subset: bool = False
    """A subset of the declared tools can be allowed without leaving the others out."""
    allowed_natives: bool = False
    """The list of them is of the vendor's own too (OpenAI): one that is not on it may not be used."""
    parallel_switch: bool = False
    parallel_needs_mode: bool = False
    """Parallel calls can be switched off only beside a mode."""
    stub_tools: bool = False
    """Tools must be declared when the history has calls."""
    text_calls: TextCalls = ""
    """Tools are told in the prompt and called in the model's text, in this form; "" where the model has its own."""
    schema: Literal["json", "openapi"] = "json"
    root_object: bool = True
    """Parameters need an object at the root without combinators there."""
    property_keys: bool = False
    """Top-level property names must match Anthropic's pattern."""

    thinking: ThinkingStyle = "none"
    efforts: tuple[Effort, ...] = ()
    can_disable_thinking: bool = True
    thinks_between_tools: bool = False
    """Its word for thinking that is off keeps thinking to the gaps between tools (Claude Sonnet 5.5)."""
    budget_min: int = 0
    budget_max: int | None = None
    shows_thinking: bool = False
    """Visible thinking can be asked for."""
    reasoning_text: bool = False
    """Reasoning text of any origin is replayed (`reasoning_content`)."""
    call_signatures: bool = False
    """Calls in history may carry the signature of `issuer`."""
    text_signatures: bool = False
    """Text in history may carry it too."""
    signed_calls: bool = False
    """The first call of each step must carry a signature or the documented skip value."""
    function_tools: bool = True
    """The model takes functions here; some GPT do so only on Responses."""
    tools_need_no_effort: bool = False
    """Function tools are refused unless effort is "none" (newer GPT on Chat)."""

    media: frozenset[str] = frozenset()
    """Kinds of media a user turn may hold."""
    result_media: frozenset[str] = frozenset()
    """Kinds of media a tool result may hold."""
    result_types: frozenset[str] = frozenset()
    """Media types that may stand in one; empty means all that the target takes."""
    result_links: frozenset[str] = frozenset({"http", "https"})
    """Schemes of links that may stand in one."""
    failed_media: bool = True
    """One that says it failed may hold media too."""
    assistant_media: bool = False
    media_names: bool = True
    """A document may have a name."""
    document_types: frozenset[str] = frozenset()
    """Media types of inline documents; empty means any. Plain text is sent as such where it is not among them."""
    image_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
    """Media types of inline images."""
    audio_types: frozenset[str] = frozenset()
    """Media types of inline sounds; empty means any."""
    text_types: bool = False
    """Documents of every text type are taken as they are, too."""
    text_documents: bool = False
    """A document may be given as plain text."""
    link_types: bool = False
    """A link says its media type."""
    link_kinds: frozenset[str] = frozenset({"image", "document"})
    """Kinds of media that may be given by URL."""
    link_schemes: frozenset[str] = frozenset({"http", "https"})
    """Schemes of URLs that are fetched."""
    needs_file_names: bool = False
    """An inline document must have a name."""
    stored_kinds: frozenset[str] = frozenset({"image", "document", "audio", "video"})
    """Kinds of media that may be given by file id."""
    stored_issuer: str = ""
    """Whose file ids are understood."""
    output_schema: bool = True
    output_json: bool = True
    output_with_tools: bool = True
    output_names: bool = False
    """A schema for the answer has a name beside it."""
    output_strict_only: bool = False
    """The schema must be closed and within Anthropic's subset."""
    verbosity: bool = False
    cache_marks: bool = False
    cache_marks_max: int | None = None
    """How many there may be, each living no longer than those before it; None where nobody counts them."""
    marks_anywhere: bool = False
    """A cache mark may also stand in what the model said, and on a result instead of in it."""
    cache_lifetimes: tuple[str, ...] = ()
    """How long a mark may ask to be kept; one that does not ask is kept as long as the target likes."""
    cache_options: frozenset[str] = frozenset()
    """What may be said of caching a whole request (OpenAI)."""
    options_lifetimes: tuple[str, ...] = ()
    """How long that may ask for."""
    tiers: tuple[str, ...] = ()
    """Tiers of service that may be asked for (OpenAI)."""
    asks_usage: bool = False
    """A streamed reply reports usage only when asked to."""
    unkept: tuple[tuple[str, bytes], ...] = ()
    """Request fields by which it keeps nothing, and gives its thoughts to a caller who resends the history."""
    metadata: bool = False
    user: bool = False
    user_max: int = 1_000_000
    """How long the name of a user may be."""
    continues: bool = False
    speaker_names: bool = False
    result_names: bool = False
    """A tool result names its tool."""
    failed_results: bool = False
    """A tool result can say that it failed."""
    calls_last: bool = False
    """Text of an assistant turn stands before its calls."""
    refusals: bool = False
    """History can hold refusal parts."""
