"""The shapes of generateContent that reach the core, in Google's names.

Rules: only fields that are read are declared, and common ones that are only `Carried` (the rest is kept as unread
members); a `Raw` that was not sent is `ABSENT`. Parts are untagged: one struct with optional fields. Proto JSON lets a
list be one object, every name be snake_case and a number of a request be a text; all are read, only the canonical form
is written.
"""

import re
from math import isfinite
from typing import Annotated, Literal

from msgspec import Meta, Raw, field

from dragoman.core.problems import Problem
from dragoman.wire.shape import ABSENT, Shape, Wire, carried, core_field, core_place
from dragoman.wire.unread import Carried, Unread

NAME = "gemini"
ISSUER = "google"
AnyNumber = int | float | str
"""A number as proto JSON takes it."""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def read_number(value: AnyNumber, where: str) -> int | float:
    """Return a number that may be written as a text."""
    if not isinstance(value, str):
        return value
    found = _NUMBER.fullmatch(value)
    if found is None or not isfinite(float(value)):
        raise Problem("invalid_request", f"not a number: {value[:40]!r}", where=where)
    return float(value) if found[1] or found[2] else int(value)


def read_whole(value: AnyNumber, where: str) -> int:
    """Return a whole number that may be written as a text, or with a fraction of zero."""
    read = read_number(value, where)
    if not isinstance(read, float):
        return read
    if not read.is_integer():
        raise Problem("invalid_request", f"not a whole number: {read}", where=where)
    return int(read)


class Camel(Wire, rename="camel"):
    """Base of shapes with camelCase names."""


class Blob(Camel):
    """Media in the request itself."""

    mime_type: str = ""
    data: str | None = None
    display_name: str = ""


class FileData(Camel):
    """Media behind a URI."""

    mime_type: str = ""
    file_uri: str | None = None
    display_name: str = ""


class FunctionCall(Camel):
    """A call; `partialArgs` and `willContinue` are Vertex's way to stream it."""

    id: str | None = None
    name: str | None = None
    args: Raw = ABSENT
    partial_args: Raw = ABSENT
    will_continue: Raw = ABSENT


class FunctionResponsePart(Camel):
    """Media in a tool result."""

    inline_data: Blob | None = None
    file_data: FileData | None = None


class FunctionResponse(Camel):
    """A tool's answer; `response` is any object."""

    id: str | None = None
    name: str | None = None
    response: Raw = ABSENT
    parts: list[FunctionResponsePart] | None = None


class GeminiPart(Camel):
    """A piece of content: at most one of text, call, response and data is set."""

    text: str | None = None
    thought: bool | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None
    thought_signature: str | None = None


class Content(Camel):
    """A turn."""

    parts: list[GeminiPart] | GeminiPart | None = None
    role: str | None = None


class FunctionDeclaration(Camel):
    """A tool the caller runs."""

    name: str
    description: str | None = None
    parameters: Raw = ABSENT
    parameters_json_schema: Raw = ABSENT
    snake_schema: Raw = field(default=ABSENT, name="parameters_json_schema")
    response_json_schema: Carried = ABSENT
    snake_response_schema: Carried = field(default=ABSENT, name="response_json_schema")


class GeminiTool(Camel):
    """A bundle of declarations; tools Google runs stand beside them and are not read."""

    function_declarations: list[FunctionDeclaration] | None = None
    google_search: Carried = ABSENT
    code_execution: Carried = ABSENT
    url_context: Carried = ABSENT


class FunctionCallingConfig(Camel):
    """How free the model is to call."""

    mode: str | None = None
    allowed_function_names: Annotated[list[str] | None, core_place("tool_choice.names")] = None


class ToolConfig(Camel):
    """Settings of all tools."""

    function_calling_config: Annotated[FunctionCallingConfig | None, core_place("tool_choice")] = None
    include_server_side_tool_invocations: Carried = ABSENT


class ThinkingConfig(Camel):
    """How much to think."""

    include_thoughts: Annotated[bool | None, core_field("thinking.visible")] = None
    thinking_level: Annotated[str | None, core_place("thinking.effort")] = None
    thinking_budget: Annotated[AnyNumber | None, core_field("thinking.budget", read_whole)] = None


class GenerationConfig(Camel):
    """Settings of the sampler and the shape of the answer. A member that is a field of the core says which."""

    temperature: Annotated[AnyNumber | None, core_field("sampling.temperature", read_number)] = None
    top_p: Annotated[AnyNumber | None, core_field("sampling.top_p", read_number)] = None
    top_k: Annotated[AnyNumber | None, core_field("sampling.top_k", read_number)] = None
    max_output_tokens: Annotated[AnyNumber | None, core_field("sampling.max_tokens", read_whole)] = None
    seed: Annotated[AnyNumber | None, core_field("sampling.seed", read_whole)] = None
    presence_penalty: Annotated[AnyNumber | None, core_field("sampling.presence_penalty", read_number)] = None
    frequency_penalty: Annotated[AnyNumber | None, core_field("sampling.frequency_penalty", read_number)] = None
    stop_sequences: Annotated[list[str] | None, core_place("sampling.stop")] = None
    candidate_count: Annotated[AnyNumber | None, core_field("candidates", read_whole)] = None
    response_mime_type: Annotated[str | None, core_place("output")] = None
    response_json_schema: Annotated[Raw, core_place("output.schema")] = ABSENT
    response_schema: Annotated[Raw, core_place("output.schema")] = ABSENT
    thinking_config: ThinkingConfig | None = None
    response_modalities: Carried = ABSENT


class GenerateContentRequest(Camel):
    """A request; `request` and `project` are there only in Code Assist's envelope."""

    contents: Annotated[list[Content] | Content | None, core_place("messages")] = None
    system_instruction: Content | str | None = None
    tools: Annotated[Raw, core_place("tools")] = ABSENT
    tool_config: ToolConfig | None = None
    generation_config: GenerationConfig | None = None
    labels: Annotated[dict[str, str] | None, core_field("metadata")] = None
    request: Raw = ABSENT
    model: Carried = ABSENT
    safety_settings: Carried = ABSENT
    project: Carried = ABSENT
    user_prompt_id: Carried = field(default=ABSENT, name="user_prompt_id")
    session_id: Carried = field(default=ABSENT, name="session_id")


class Source(Camel):
    """A page."""

    uri: str | None = None
    title: str | None = None


class GroundingChunk(Camel):
    """Something that was found, by where it was found."""

    web: Source | None = None
    retrieved_context: Source | None = None
    maps: Source | None = None


class Segment(Camel):
    """A stretch of a part, in bytes; absent numbers are 0."""

    part_index: int | None = None
    start_index: int | None = None
    end_index: int | None = None
    text: str | None = None


class GroundingSupport(Camel):
    """Which chunks a segment rests on."""

    segment: Segment | None = None
    grounding_chunk_indices: list[int] | None = None


class GroundingMetadata(Camel):
    """What was found and where it went."""

    grounding_chunks: list[GroundingChunk] | None = None
    grounding_supports: list[GroundingSupport] | None = None


class CitationSource(Camel):
    """A page that a stretch of the answer repeats, in bytes."""

    uri: str | None = None
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class CitationMetadata(Camel):
    """Pages the answer repeats: `citations` on Vertex, `citationSources` elsewhere."""

    citations: list[CitationSource] | None = None
    citation_sources: list[CitationSource] | None = None


class Candidate(Camel):
    """One answer. What comes often and only Google's clients understand is declared, but only carried."""

    content: Content | None = None
    finish_reason: str | int | None = None
    index: int | None = None
    avg_logprobs: Carried = ABSENT
    safety_ratings: Carried = ABSENT
    finish_message: Carried = ABSENT
    url_context_metadata: Carried = ABSENT
    grounding_metadata: Raw = ABSENT
    citation_metadata: Raw = ABSENT


class GenerateContentResponse(Camel):
    """A reply, or one chunk of it; `response` is there only in Code Assist's envelope."""

    candidates: list[Candidate] | None = None
    usage_metadata: Raw = ABSENT
    model_version: str | None = None
    response_id: str | None = None
    prompt_feedback: Raw = ABSENT
    create_time: Carried = ABSENT
    turn_token: Carried = ABSENT
    response: Raw = ABSENT
    trace_id: Raw = ABSENT
    error: Raw = ABSENT


class TextPart(Camel):
    """A piece of text, or of a thought, and nothing else."""

    text: Annotated[str, Meta(min_length=1)]
    thought: bool = False


class TextContent(Camel):
    """A turn of one such part."""

    parts: tuple[TextPart]
    role: str | None = None


class TextCandidate(Camel):
    """An answer that only continues."""

    content: TextContent
    index: Literal[0] = 0


class TextChunk(Camel):
    """A chunk that only continues a text, as most do: its type says that it holds nothing else."""

    candidates: tuple[TextCandidate]
    usage_metadata: Raw = ABSENT
    model_version: str | None = None
    response_id: str | None = None


class UsageMetadata(Camel):
    """Tokens. The details come with every reply, so they are declared, but only carried."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    total_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    prompt_tokens_details: Carried = ABSENT
    candidates_tokens_details: Carried = ABSENT
    cache_tokens_details: Carried = ABSENT
    tool_use_prompt_tokens_details: Carried = ABSENT
    traffic_type: Carried = ABSENT
    service_tier: Carried = ABSENT


class PromptFeedback(Camel):
    """Why a prompt was refused."""

    block_reason: str | int | None = None
    block_reason_message: str | None = None


class PartialArg(Camel):
    """A piece of streamed arguments: the value at `jsonPath`, or a piece of a string there."""

    json_path: str = ""
    string_value: str | None = None
    number_value: Raw = ABSENT
    bool_value: bool | None = None
    null_value: Raw = ABSENT
    will_continue: bool | None = None


REQUEST: Shape[GenerateContentRequest] = Shape(GenerateContentRequest, snake=True)
TOOLS: Shape[list[GeminiTool] | GeminiTool | None] = Shape(list[GeminiTool] | GeminiTool | None, snake=True)
REPLY: Shape[GenerateContentResponse] = Shape(GenerateContentResponse, snake=True)
USAGE: Shape[UsageMetadata] = Shape(UsageMetadata, snake=True)
PROMPT_FEEDBACK: Shape[PromptFeedback] = Shape(PromptFeedback, snake=True)
GROUNDING: Shape[GroundingMetadata] = Shape(GroundingMetadata, snake=True)
CITATIONS: Shape[CitationMetadata] = Shape(CitationMetadata, snake=True)
PARTIAL_ARGS: Shape[list[PartialArg]] = Shape(list[PartialArg], snake=True)


class UnreadMembers:
    """Unread members of a request, found and told by absolute pointers though read below `prefix`."""

    __slots__ = ("_offset", "_prefix", "_unread")

    def __init__(self, unread: Unread, prefix: str) -> None:
        self._unread = unread
        self._prefix = prefix
        self._offset = len(prefix)

    def take(self, where: str) -> dict[str, bytes] | None:
        """Remove and return what lies below `where`, relative to it."""
        return self._unread.take(where[self._offset :])

    def add(self, where: str, raw: bytes) -> None:
        """Note one more member that did not reach the core."""
        self._unread.add(where[self._offset :], raw)

    def add_carried(self, value: Wire, where: str) -> None:
        """Note the members that `value`, which stands at `where` below `prefix`, only carries."""
        fields = carried(value)
        if fields is not None:
            for pointer, raw in fields.items():
                self._unread.add(where + pointer, raw)

    def rest(self) -> dict[str, bytes]:
        """Return what nobody took."""
        rest = self._unread.rest()
        return {self._prefix + pointer: raw for pointer, raw in rest.items()} if self._prefix else rest
