"""Shapes of replies of Chat Completions, whole and in chunks, by the same rules as `wire`."""

from typing import Annotated, Literal

from msgspec import Meta, Raw
from msgspec.json import Decoder

from dragoman.dialects.chat.wire import ABSENT, FunctionCall, Part, ReplyCall
from dragoman.wire.shape import Shape, Wire


class PromptDetails(Wire):
    """What the prompt's tokens were. What comes with every reply and is nobody's else is declared, but only carried."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: Raw = ABSENT


class CompletionDetails(Wire):
    """What the answer's tokens were, by the same rule."""

    reasoning_tokens: int | None = None
    audio_tokens: Raw = ABSENT
    accepted_prediction_tokens: Raw = ABSENT
    rejected_prediction_tokens: Raw = ABSENT


class Usage(Wire):
    """Tokens."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


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


class ReplyChoice(Wire):
    """One answer."""

    index: int | None = None
    message: Said | None = None
    finish_reason: str | None = None


class Reply(Wire):
    """A whole reply; answers and usage are read on their own, so that what they hold unread has short pointers."""

    id: str | None = None
    object: str | None = None
    created: int | float | None = None
    model: str | None = None
    choices: list[Raw] | None = None
    usage: Raw = ABSENT
    error: Raw = ABSENT


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


class TextDelta(Wire):
    """A piece of text and nothing else."""

    content: Annotated[str, Meta(min_length=1)]
    role: str | None = None
    reasoning_content: None = None
    reasoning: None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None


class TextChoice(Wire):
    """An answer that only continues."""

    delta: TextDelta
    index: Literal[0] = 0
    finish_reason: None = None
    logprobs: None = None
    native_finish_reason: None = None


class TextChunk(Wire):
    """A chunk that only continues a text, as most do: its type says that it holds nothing else."""

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


TEXT_CHUNK: Decoder[TextChunk] = Decoder(TextChunk)
REPLY: Shape[Reply] = Shape(Reply)
REPLY_CHOICE: Shape[ReplyChoice] = Shape(ReplyChoice)
USAGE: Shape[Usage] = Shape(Usage)
CHUNK: Shape[Chunk] = Shape(Chunk)
