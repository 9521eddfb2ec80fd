"""Traits: what a model accepts, as data. The rows are in each dialect's `traits.py`."""

from typing import Literal

from msgspec import Raw, Struct

from dragoman.core.request import Effort

TextCalls = Literal["", "json", "legacy"]
ThinkingStyle = Literal["effort", "adaptive", "enabled", "level", "budget", "switch", "none"]
"""effort: an effort name; adaptive: Claude's adaptive mode with an effort name; enabled: Claude's token budget;
level: Gemini's level name; budget: Gemini's token budget; switch: fields that turn thinking on or off (Chat)."""
ALL_SAMPLING = frozenset(
    {"temperature", "top_p", "max_tokens", "stop", "seed", "presence_penalty", "frequency_penalty"}
)
"""The sampling fields that several dialects have."""
WAV_AND_MP3 = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"})
"""Media types of the two audio formats that OpenAI's dialects take."""


class RefusedField(Struct, frozen=True):
    """A field of a request that a model rejects although its API has the field."""

    where: str
    item: str = ""
    """The item that it rejects in the list at `where`; "" for the whole field."""
    while_thinking: bool = False
    """It rejects the field only while it thinks."""
    has_effect: bool = True
    """Without the field the reply of this model is another; otherwise its loss is informational."""


class Traits(Struct, frozen=True, kw_only=True):
    """One row: the dialect of a model family and everything that decides how a request to it is rendered."""

    dialect: str
    issuer: str = ""
    """The vendor whose signatures the model verifies."""
    turns: Literal["alternating", "single_results", "items"] = "single_results"
    """How a history is divided: alternating turns, messages with one tool result each, or one item for each part."""

    sampling: frozenset[str] = frozenset()
    """Names of `Sampling` fields that are accepted."""
    unthinking_sampling: frozenset[str] = frozenset()
    """Names of further `Sampling` fields that are accepted when thinking is off."""
    temperature_max: float = 2.0
    thinks_without: frozenset[str] = frozenset()
    """Names of `Sampling` fields that are rejected while thinking is on."""
    temperature_or_top_p: bool = False
    """Only one of `temperature` and `top_p` may be sent."""
    stop_max: int = 1_000_000
    max_tokens_max: int | None = None
    """The largest `max_tokens` that the model accepts."""
    max_tokens_min: int = 0
    blank_stops: bool = True
    """A stop sequence may be white space only."""
    max_tokens_default: int | None = None
    """Sent when the client set none and the target requires one."""
    max_tokens_member: str = "max_completion_tokens"
    """Chat only: which of the two field names for the limit the model takes."""
    takes_both_limits: bool = False
    """Chat only: the model takes the other name too."""

    later_system: bool = True
    """A system message may follow the first turn."""
    system_before_answer: bool = False
    """A later system message must be between a user turn and the assistant turn after it (Claude)."""
    starts_with_user: bool = False
    prefill: bool = True
    """The last turn may be the assistant's."""
    prefill_spaced: bool = True
    """A final assistant turn may end in white space."""
    prefill_formatted: bool = True
    """The last turn may be the assistant's also when the request has an output schema."""
    results_apart: bool = False
    """Tool results need a turn of their own; other user content follows in another turn (Gemini 3.6)."""
    empty_text: bool = True

    name_max: int = 64
    name_symbols: str = "_-"
    """Characters other than letters and digits that a tool name may contain."""
    name_first_digit: bool = True
    id_max: int = 40
    id_exact: int | None = None
    """Call ids must have exactly this many letters and digits (Mistral's template: 9)."""
    id_template: str = ""
    """Call ids have this form, with the name and the number of the call in the conversation (Kimi's models)."""
    sends_ids: bool = True
    """Call ids of any origin are sent; else only those that the vendor gave."""
    given_ids: str = ""
    """A pattern of the ids that the vendor gives; those of calls that it signed may have other forms."""
    object_arguments: bool = False
    """Arguments are a JSON object on the wire, so text that is not one cannot be sent."""
    custom_tools: bool = False
    grammars: bool = False
    namespaces: bool = False
    strict_tools: bool = False
    strict_by_mode: bool = False
    """The tool choice mode constrains calls to their schemas, for all tools at once (Gemini's VALIDATED and ANY)."""
    strict_explicit: bool = False
    """A tool without a `strict` field is strict (Responses)."""
    strict_max: int = 1_000_000
    strict_optional_max: int | None = None
    """How many parameters of all strict tools together may be optional."""
    strict_unions_max: int | None = None
    """How many parameters of all strict tools together may have several types."""
    strict_needs_all: bool = False
    """A strict schema must require every property (OpenAI)."""
    needs_parameters: bool = False
    """A tool without arguments still has a schema."""
    native_tools: bool = True
    """The vendor's own tools may be combined with the client's."""
    tools_max: int = 1_000_000
    """How many tools a request may have; a namespace counts once where the target has namespaces."""
    tool_search: bool = False
    """The vendor runs a search for deferred tools."""
    web_search: bool = True
    """The vendor's own web search can be declared, if its dialect has one."""
    native_mix: tuple[tuple[str, bytes], ...] = ()
    """Request fields that must be set when they are combined."""
    forced_choice: bool = True
    forced_unthinking: bool = False
    """A call can be forced while thinking is turned off."""
    allowed_subset: bool = False
    """A subset of the declared tools can be allowed without leaving the others out."""
    allowed_natives: bool = False
    """The list of allowed tools includes the vendor's own (OpenAI): one that is not listed may not be used."""
    choice_of_functions: bool = False
    """The tool choice is about functions only, and one without functions is rejected (Gemini)."""
    parallel_switch: bool = False
    parallel_needs_mode: bool = False
    """Parallel calls can be disabled only together with a tool choice mode."""
    stub_tools: bool = False
    """Tools must be declared when the history has calls, so stubs are declared if the request has no tools."""
    text_calls: TextCalls = ""
    """The prompt describes the tools and the model calls them in its text, in this form; "" for native tool calling."""
    schema: Literal["json", "openapi"] = "json"
    root_object: bool = True
    """A parameter schema must have type object at the root, without combinators (anyOf, oneOf, allOf) there."""
    property_keys: bool = False
    """Top-level property names must match Anthropic's pattern."""

    thinking: ThinkingStyle = "none"
    thinks_by_default: bool = True
    """The model thinks if the request has no thinking settings."""
    older_thinking: ThinkingStyle = "none"
    """A style that the model still accepts from clients of its own dialect."""
    efforts: tuple[Effort, ...] = ()
    thinking_on: tuple[tuple[str, Raw], ...] = ()
    thinking_off: tuple[tuple[str, Raw], ...] = ()
    """Members of a request that turn thinking on and off, with their values (Chat)."""
    effort_member: str = "reasoning_effort"
    budget_member: str = ""
    """The member for the effort and for the token budget; `a/b` is the member b of the object a (Chat)."""
    can_disable_thinking: bool = True
    thinks_between_tools: bool = False
    """With thinking disabled the model still thinks between tool calls (Claude Sonnet 5.5)."""
    budget_min: int = 0
    budget_max: int | None = None
    shows_thinking: bool = False
    """A request can ask for visible thinking."""
    unsigned_reasoning: bool = False
    """Its own reasoning without a signature may be in the history."""
    reasoning_text: bool = False
    """Reasoning text of any vendor may be in the history (`reasoning_content`)."""
    reasoning_member: str = "reasoning_content"
    """The message member for reasoning that did not come with a name; "thinking" for Mistral's content part (Chat)."""
    reasoning_required: Literal["", "calls", "turns"] = ""
    """Assistant turns, or those with calls, must have that member, even if it is empty."""
    reasoning_issuer: str = ""
    """The issuer whose signatures that reasoning may have; "" if there is no field for a signature."""
    call_signatures: bool = False
    """Calls in the history may have a signature of `issuer`."""
    text_signatures: bool = False
    """Text in the history may have a signature of `issuer`."""
    signed_calls: bool = False
    """The first call of each step must have a signature or Google's documented placeholder."""
    tools_elsewhere: str = ""
    """The API in which the model accepts function tools, for an error; "" for this one. Some GPT models: Responses."""
    tools_need_no_effort: bool = False
    """Function tools are rejected unless effort is "none" (newer GPT models on Chat)."""
    tools_need_stated_effort: bool = False
    """They are rejected without an effort too, because the model reasons by default."""

    media: frozenset[str] = frozenset()
    """Kinds of media that a user turn may contain."""
    result_media: frozenset[str] = frozenset()
    """Kinds of media that a tool result may contain."""
    result_types: frozenset[str] = frozenset()
    """Media types that a tool result may contain; empty means all that the target accepts."""
    result_links: frozenset[str] = frozenset({"http", "https"})
    """URL schemes of links that a tool result may contain."""
    failed_media: bool = True
    """A tool result marked as failed may contain media."""
    assistant_media: bool = False
    media_names: bool = True
    """A document may have a name."""
    document_contexts: bool = False
    """A document may have a context."""
    document_types: frozenset[str] = frozenset()
    """Media types of inline documents; empty means any. Plain text that is not among them is sent as text."""
    image_types: frozenset[str] = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
    """Media types of inline images."""
    audio_types: frozenset[str] = frozenset()
    """Media types of inline audio; empty means any."""
    text_types: bool = False
    """Documents of every `text/*` type are accepted too."""
    text_documents: bool = False
    """A document may be given as plain text."""
    link_types: bool = False
    """A link has a media type field."""
    link_kinds: frozenset[str] = frozenset({"image", "document"})
    """Kinds of media that may be given by URL."""
    link_schemes: frozenset[str] = frozenset({"http", "https"})
    """URL schemes that the target fetches."""
    needs_file_names: bool = False
    """An inline document must have a name."""
    stored_kinds: frozenset[str] = frozenset({"image", "document", "audio", "video"})
    """Kinds of media that may be given by file id."""
    stored_issuer: str = ""
    """The vendor whose file ids are accepted."""
    output_schema: bool = True
    output_json: bool = True
    output_with_tools: bool = True
    output_names: bool = False
    """An output schema must have a name."""
    output_strict_only: bool = False
    """An output schema must be closed (no additional properties) and within Anthropic's subset."""
    verbosity: bool = False
    cache_marks: bool = False
    cache_marks_max: int | None = None
    """The largest number of cache marks; no mark may have a longer lifetime than one before it. None: no limit."""
    cache_needs_marks: bool = False
    """The vendor caches only what is marked, so a request without any mark may get some (Claude)."""
    marks_anywhere: bool = False
    """A cache mark may also be in an assistant turn, and on a tool result itself instead of on its content."""
    cache_lifetimes: tuple[str, ...] = ()
    """Lifetimes that a cache mark may request; a mark without one gets the target's default."""
    cache_options: frozenset[str] = frozenset()
    """Fields of the prompt cache options of a whole request (OpenAI)."""
    options_lifetimes: tuple[str, ...] = ()
    """Lifetimes that the prompt cache options may request."""
    tiers: tuple[str, ...] = ()
    """Service tiers that may be requested (OpenAI)."""
    stream_fields: tuple[tuple[str, bytes], ...] = ()
    """Request fields without which a streamed reply does not report usage."""
    unkept: tuple[tuple[str, bytes], ...] = ()
    """Request fields for a client that resends the history: store nothing, and return the reasoning to the client."""
    refused_fields: tuple[RefusedField, ...] = ()
    """Fields that only requests of its own dialect have, and that are removed because the model rejects them."""
    search_fields: tuple[tuple[str, bytes], ...] = ()
    """Request fields, each a list, without which a reply does not have the pages that a web search found."""
    metadata: bool = False
    user: bool = False
    user_max: int = 1_000_000
    """The maximum length of `user`."""
    continues: bool = False
    speaker_names: bool = False
    developer_role: bool = True
    """A system message may have the role `developer` (Chat)."""
    result_names: bool = False
    """A tool result has the name of its tool."""
    failed_results: bool = False
    """A tool result has a field for failure."""
    calls_last: bool = False
    """Text of an assistant turn comes before its calls."""
    refusals: bool = False
    """The history can contain refusal parts."""
