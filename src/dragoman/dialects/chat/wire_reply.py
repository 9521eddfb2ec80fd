"""Wire types of Chat Completions replies, whole and streamed, by the same rules as `wire`."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, field
from msgspec.json import Decoder

from dragoman.dialects.chat.wire import ABSENT, ChatFunctionCall, Part, ReplyCall
from dragoman.wire.shape import Shape, Wire
from dragoman.wire.unread import RawMember


class PromptDetails(Wire):
    """Breakdown of the prompt tokens.

    Fields that vendors send with every reply are declared even if not used, because an undeclared field needs a second
    parse.
    """

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: RawMember = ABSENT
    text_tokens: RawMember = ABSENT
    image_tokens: RawMember = ABSENT
    video_tokens: RawMember = ABSENT


class CompletionDetails(Wire):
    """Breakdown of the completion tokens; unused fields are declared for the same reason."""

    reasoning_tokens: int | None = None
    audio_tokens: RawMember = ABSENT
    accepted_prediction_tokens: RawMember = ABSENT
    rejected_prediction_tokens: RawMember = ABSENT
    image_tokens: RawMember = ABSENT


class ChatUsage(Wire):
    """Token counts; the `RawMember` fields are from OpenRouter, Vercel, Groq, DeepSeek, xAI, Together and others."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    cost: RawMember = ABSENT
    cost_details: RawMember = ABSENT
    is_byok: RawMember = ABSENT
    market_cost: RawMember = ABSENT
    service_tier: RawMember = ABSENT
    queue_time: RawMember = ABSENT
    prompt_time: RawMember = ABSENT
    completion_time: RawMember = ABSENT
    total_time: RawMember = ABSENT
    prompt_cache_hit_tokens: RawMember = ABSENT
    prompt_cache_miss_tokens: RawMember = ABSENT
    num_sources_used: RawMember = ABSENT
    cache_creation_input_tokens: RawMember = ABSENT
    cache_read_input_tokens: RawMember = ABSENT
    cached_tokens: RawMember = ABSENT
    num_cached_tokens: RawMember = ABSENT


class UrlCitation(Wire, forbid_unknown_fields=False):
    """A web page that a text cites."""

    url: str = ""
    title: str | None = None
    content: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class Annotation(Wire, forbid_unknown_fields=False):
    """An annotation of a text; kept as raw JSON, and parsed only for what other dialects can express."""

    url_citation: UrlCitation | None = None


class ReplyFields(Wire):
    """Members that a whole message and a delta have in common."""

    role: str | None = None
    content: str | list[Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    thinking: RawMember = ABSENT
    refusal: str | None = None
    tool_calls: list[ReplyCall] | None = None
    function_call: ChatFunctionCall | None = None
    annotations: list[Raw] | None = None


class ReplyMessage(ReplyFields):
    """The message of a whole reply."""

    audio: RawMember = ABSENT
    reasoning_details: RawMember = ABSENT
    provider_metadata: RawMember = ABSENT


class ReplyChoice(Wire):
    """One choice of a reply."""

    index: int | None = None
    message: ReplyMessage | None = None
    finish_reason: str | None = None
    logprobs: RawMember = ABSENT
    stop_reason: RawMember = ABSENT
    native_finish_reason: RawMember = ABSENT
    content_filter_results: RawMember = ABSENT
    token_ids: RawMember = ABSENT


class Reply(Wire):
    """A whole reply; `usage` is parsed separately, because invalid counts must not fail a valid reply."""

    id: str | None = None
    object: str | None = None
    created: int | float | None = None
    model: str | None = None
    choices: list[ReplyChoice] | None = None
    usage: Raw = ABSENT
    error: Raw = ABSENT
    system_fingerprint: RawMember = ABSENT
    service_tier: RawMember = ABSENT
    provider: RawMember = ABSENT
    timings: RawMember = ABSENT
    prompt_filter_results: RawMember = ABSENT
    prompt_logprobs: RawMember = ABSENT
    prompt_token_ids: RawMember = ABSENT
    kv_transfer_params: RawMember = ABSENT
    x_groq: RawMember = ABSENT
    usage_breakdown: RawMember = ABSENT
    generation_id: RawMember = field(name="generationId", default=ABSENT)


class Delta(ReplyFields):
    """The delta of a message."""

    reasoning_details: Raw = ABSENT


class ChunkChoice(Wire):
    """One choice of a chunk."""

    index: int | None = None
    delta: Delta | None = None
    finish_reason: str | None = None
    logprobs: Raw = ABSENT
    native_finish_reason: Raw = ABSENT
    content_filter_results: Raw = ABSENT


class ChatChunk(Wire):
    """A chunk of a streamed reply."""

    id: str | None = None
    object: str | None = None
    created: int | float | None = None
    model: str | None = None
    choices: list[ChunkChoice] | None = None
    usage: Raw = ABSENT
    error: Raw = ABSENT
    system_fingerprint: Raw = ABSENT
    service_tier: Raw = ABSENT
    provider: Raw = ABSENT
    obfuscation: Raw = ABSENT
    """Random padding against traffic analysis; ignored."""


class ChatTextDelta(Wire):
    """A delta that has text and nothing else."""

    content: Annotated[str, Meta(min_length=1)]
    role: str | None = None
    reasoning_content: None = None
    reasoning: None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None


class TextChoice(Wire):
    """A choice that only appends text."""

    delta: ChatTextDelta
    index: Literal[0] = 0
    finish_reason: None = None
    logprobs: None = None
    native_finish_reason: None = None


class ChatTextChunk(Wire):
    """A chunk that only appends text, as most do. Decoding fails if the chunk has anything else."""

    choices: tuple[TextChoice]
    id: str | None = None
    object: Literal["chat.completion.chunk"] | None = None
    created: int | float | None = None
    model: str | None = None
    usage: None = None
    system_fingerprint: Raw = ABSENT
    service_tier: Raw = ABSENT
    provider: Raw = ABSENT
    obfuscation: Raw = ABSENT


TEXT_CHUNK: Decoder[ChatTextChunk] = Decoder(ChatTextChunk)
REPLY: Shape[Reply] = Shape(Reply)
USAGE: Shape[ChatUsage] = Shape(ChatUsage)
CHUNK: Shape[ChatChunk] = Shape(ChatChunk)
