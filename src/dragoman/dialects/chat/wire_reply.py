"""Shapes of replies of Chat Completions, whole and in chunks, by the same rules as `wire`."""

from msgspec import Raw, field
from msgspec.json import Decoder

from dragoman.dialects.chat.wire import ABSENT, FunctionCall, Part, ReplyCall
from dragoman.wire.carried import Carried
from dragoman.wire.shape import Shape, Wire


class PromptDetails(Wire):
    """What the prompt's tokens were. What vendors send with every reply is declared, though it is only carried."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: Raw = ABSENT
    text_tokens: Raw = ABSENT
    image_tokens: Raw = ABSENT
    video_tokens: Raw = ABSENT


class CompletionDetails(Wire):
    """What the answer's tokens were, by the same rule."""

    reasoning_tokens: int | None = None
    audio_tokens: Raw = ABSENT
    accepted_prediction_tokens: Raw = ABSENT
    rejected_prediction_tokens: Raw = ABSENT
    image_tokens: Raw = ABSENT


class Usage(Wire):
    """Tokens; what is only carried is from OpenRouter, Vercel, Groq, DeepSeek, xAI and gateways to Claude."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    cost: Raw = ABSENT
    cost_details: Raw = ABSENT
    is_byok: Raw = ABSENT
    market_cost: Raw = ABSENT
    service_tier: Raw = ABSENT
    queue_time: Raw = ABSENT
    prompt_time: Raw = ABSENT
    completion_time: Raw = ABSENT
    total_time: Raw = ABSENT
    prompt_cache_hit_tokens: Raw = ABSENT
    prompt_cache_miss_tokens: Raw = ABSENT
    num_sources_used: Raw = ABSENT
    cache_creation_input_tokens: Raw = ABSENT
    cache_read_input_tokens: Raw = ABSENT


class UrlCitation(Wire, forbid_unknown_fields=False):
    """A page a text names."""

    url: str = ""
    title: str | None = None
    content: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class Annotation(Wire, forbid_unknown_fields=False):
    """A note on the text; read only for what other dialects can say, and kept whole."""

    url_citation: UrlCitation | None = None


class Said(Wire):
    """What a whole message and a piece of one have in common."""

    role: str | None = None
    content: str | list[Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ReplyCall] | None = None
    function_call: FunctionCall | None = None
    annotations: list[Raw] | None = None


class ReplyMessage(Said):
    """The message of a whole reply."""

    audio: Raw = ABSENT
    reasoning_details: Raw = ABSENT
    provider_metadata: Raw = ABSENT


class ReplyChoice(Wire):
    """One answer."""

    index: int | None = None
    message: ReplyMessage | None = None
    finish_reason: str | None = None
    logprobs: Raw = ABSENT
    stop_reason: Raw = ABSENT
    native_finish_reason: Raw = ABSENT
    content_filter_results: Raw = ABSENT
    token_ids: Raw = ABSENT


class Reply(Wire):
    """A whole reply; usage is read on its own, because odd counts must not spoil a good answer."""

    id: str | None = None
    object: str | None = None
    created: int | float | None = None
    model: str | None = None
    choices: list[ReplyChoice] | None = None
    usage: Raw = ABSENT
    error: Raw = ABSENT
    system_fingerprint: Raw = ABSENT
    service_tier: Raw = ABSENT
    provider: Raw = ABSENT
    timings: Raw = ABSENT
    prompt_filter_results: Raw = ABSENT
    prompt_logprobs: Raw = ABSENT
    prompt_token_ids: Raw = ABSENT
    kv_transfer_params: Raw = ABSENT
    x_groq: Raw = ABSENT
    usage_breakdown: Raw = ABSENT
    generation_id: Raw = field(name="generationId", default=ABSENT)


class Delta(Said):
    """A piece of a message."""

    reasoning_details: Raw = ABSENT


class ChunkChoice(Wire):
    """A piece of one answer."""

    index: int | None = None
    delta: Delta | None = None
    finish_reason: str | None = None
    logprobs: Raw = ABSENT
    native_finish_reason: Raw = ABSENT
    content_filter_results: Raw = ABSENT


class Chunk(Wire):
    """A piece of a reply."""

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
    """Padding against eavesdroppers; means nothing."""


class MoreDelta(Wire):
    """A piece of text and nothing else."""

    content: str


class MoreChoice(Wire):
    """An answer that only goes on."""

    delta: MoreDelta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None


class More(Wire):
    """A chunk in which text goes on: what most of a stream is. Any other member, and it is not one of these."""

    choices: list[MoreChoice]
    id: str | None = None
    object: str | None = None
    created: int | float | None = None
    model: str | None = None
    usage: None = None
    system_fingerprint: Raw = ABSENT
    service_tier: Raw = ABSENT
    obfuscation: Raw = ABSENT


MORE: Decoder[More] = Decoder(More)
REPLY_CARRIED = Carried(Reply, "usage", "error")
CHOICE_CARRIED = Carried(ReplyChoice)
MESSAGE_CARRIED = Carried(ReplyMessage)
USAGE_CARRIED = Carried(Usage)
PROMPT_CARRIED = Carried(PromptDetails)
COMPLETION_CARRIED = Carried(CompletionDetails)
REPLY: Shape[Reply] = Shape(Reply)
USAGE: Shape[Usage] = Shape(Usage)
CHUNK: Shape[Chunk] = Shape(Chunk)
