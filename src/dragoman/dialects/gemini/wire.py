"""Structs of the generateContent API: the fields that reach the core, under Google's names.

Rules: only fields that are read are declared, and common ones as `RawMember` (all others are kept as unread members); a
`Raw` that was not sent is `ABSENT`. A part has no type tag: it is one struct with optional fields. Proto JSON allows
one object for a list, snake_case names and numbers as strings; all are read, and only the canonical form is written.
"""

import re
from math import isfinite
from typing import Annotated, Literal

from msgspec import Meta, Raw, field

from dragoman.core.problems import Problem
from dragoman.wire.shape import ABSENT, Shape, Wire, core_field, core_location, get_raw_members
from dragoman.wire.unread import RawMember, Unread

NAME = "gemini"
ISSUER = "google"
AnyNumber = int | float | str
"""A number as proto JSON accepts it."""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def read_number(value: AnyNumber, where: str) -> int | float:
    """Return a number that may have been sent as a string."""
    if not isinstance(value, str):
        return value
    found = _NUMBER.fullmatch(value)
    if found is None or not isfinite(float(value)):
        raise Problem("invalid_request", f"{value[:40]!r} is not a number", where=where)
    return float(value) if found[1] or found[2] else int(value)


def read_whole(value: AnyNumber, where: str) -> int:
    """Return an integer that may have been sent as a string or with a zero fraction."""
    number = read_number(value, where)
    if not isinstance(number, float):
        return number
    if not number.is_integer():
        raise Problem("invalid_request", f"{number} is not an integer", where=where)
    return int(number)


class Camel(Wire, rename="camel"):
    """Base of structs with camelCase names."""


class Blob(Camel):
    """Media as base64 data."""

    mime_type: str = ""
    data: str | None = None
    display_name: str = ""


class FileData(Camel):
    """Media at a URI."""

    mime_type: str = ""
    file_uri: str | None = None
    display_name: str = ""


class FunctionCall(Camel):
    """A call; Vertex streams its arguments with `partialArgs` and `willContinue`."""

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
    """A tool result; `response` is any object."""

    id: str | None = None
    name: str | None = None
    response: Raw = ABSENT
    parts: list[FunctionResponsePart] | None = None


class GeminiPart(Camel):
    """A part: at most one of text, call, response and data is set."""

    text: str | None = None
    thought: bool | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None
    thought_signature: str | None = None


class Content(Camel):
    """A message: its role and parts."""

    parts: list[GeminiPart] | GeminiPart | None = None
    role: str | None = None


class FunctionDeclaration(Camel):
    """A client-side tool."""

    name: str
    description: str | None = None
    parameters: Raw = ABSENT
    parameters_json_schema: Raw = ABSENT
    snake_schema: Raw = field(default=ABSENT, name="parameters_json_schema")
    response_json_schema: RawMember = ABSENT
    snake_response_schema: RawMember = field(default=ABSENT, name="response_json_schema")


class GeminiTool(Camel):
    """A Tool object: function declarations, and tools that Google runs, which are not read."""

    function_declarations: list[FunctionDeclaration] | None = None
    google_search: RawMember = ABSENT
    code_execution: RawMember = ABSENT
    url_context: RawMember = ABSENT


class FunctionCallingConfig(Camel):
    """The tool choice."""

    mode: str | None = None
    allowed_function_names: Annotated[list[str] | None, core_location("tool_choice.names")] = None


class ToolConfig(Camel):
    """Settings for all tools."""

    function_calling_config: Annotated[FunctionCallingConfig | None, core_location("tool_choice")] = None
    include_server_side_tool_invocations: RawMember = ABSENT


class ThinkingConfig(Camel):
    """The thinking settings."""

    include_thoughts: Annotated[bool | None, core_field("thinking.visible")] = None
    thinking_level: Annotated[str | None, core_location("thinking.effort")] = None
    thinking_budget: Annotated[AnyNumber | None, core_field("thinking.budget", read_whole)] = None


class GenerationConfig(Camel):
    """Sampling, thinking and output settings. Members that map to a core field are annotated with its name."""

    temperature: Annotated[AnyNumber | None, core_field("sampling.temperature", read_number)] = None
    top_p: Annotated[AnyNumber | None, core_field("sampling.top_p", read_number)] = None
    top_k: Annotated[AnyNumber | None, core_field("sampling.top_k", read_number)] = None
    max_output_tokens: Annotated[AnyNumber | None, core_field("sampling.max_tokens", read_whole)] = None
    seed: Annotated[AnyNumber | None, core_field("sampling.seed", read_whole)] = None
    presence_penalty: Annotated[AnyNumber | None, core_field("sampling.presence_penalty", read_number)] = None
    frequency_penalty: Annotated[AnyNumber | None, core_field("sampling.frequency_penalty", read_number)] = None
    stop_sequences: Annotated[list[str] | None, core_location("sampling.stop")] = None
    candidate_count: Annotated[AnyNumber | None, core_field("candidates", read_whole)] = None
    response_mime_type: Annotated[str | None, core_location("output")] = None
    response_json_schema: Annotated[Raw, core_location("output.schema")] = ABSENT
    response_schema: Annotated[Raw, core_location("output.schema")] = ABSENT
    thinking_config: ThinkingConfig | None = None
    response_modalities: RawMember = ABSENT


class GenerateContentRequest(Camel):
    """The body of generateContent, or Code Assist's envelope around it, which has `request` and `project`."""

    contents: Annotated[list[Content] | Content | None, core_location("messages")] = None
    system_instruction: Content | str | None = None
    tools: Annotated[Raw, core_location("tools")] = ABSENT
    tool_config: ToolConfig | None = None
    generation_config: GenerationConfig | None = None
    labels: Annotated[dict[str, str] | None, core_field("metadata")] = None
    request: Raw = ABSENT
    model: RawMember = ABSENT
    safety_settings: RawMember = ABSENT
    project: RawMember = ABSENT
    user_prompt_id: RawMember = field(default=ABSENT, name="user_prompt_id")
    session_id: RawMember = field(default=ABSENT, name="session_id")


class Source(Camel):
    """A web page or document."""

    uri: str | None = None
    title: str | None = None


class GroundingChunk(Camel):
    """A source, in the member for its kind."""

    web: Source | None = None
    retrieved_context: Source | None = None
    maps: Source | None = None


class Segment(Camel):
    """A range of bytes in a part; absent numbers are 0."""

    part_index: int | None = None
    start_index: int | None = None
    end_index: int | None = None
    text: str | None = None


class GroundingSupport(Camel):
    """The grounding chunks that support a segment."""

    segment: Segment | None = None
    grounding_chunk_indices: list[int] | None = None


class GroundingMetadata(Camel):
    """The sources of an answer and the segments they support."""

    grounding_chunks: list[GroundingChunk] | None = None
    grounding_supports: list[GroundingSupport] | None = None
    web_search_queries: list[str] | None = None


class CitationSource(Camel):
    """A source that a range of bytes of the answer repeats."""

    uri: str | None = None
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class CitationMetadata(Camel):
    """The sources that the answer repeats: `citations` on Vertex, `citationSources` on AI Studio."""

    citations: list[CitationSource] | None = None
    citation_sources: list[CitationSource] | None = None


class Candidate(Camel):
    """One candidate. Common members that only Google's clients understand are declared as `RawMember`."""

    content: Content | None = None
    finish_reason: str | int | None = None
    index: int | None = None
    avg_logprobs: RawMember = ABSENT
    safety_ratings: RawMember = ABSENT
    finish_message: RawMember = ABSENT
    url_context_metadata: RawMember = ABSENT
    grounding_metadata: Raw = ABSENT
    citation_metadata: Raw = ABSENT


class GenerateContentResponse(Camel):
    """A reply or one chunk of it, or Code Assist's envelope around it, which has `response`."""

    candidates: list[Candidate] | None = None
    usage_metadata: Raw = ABSENT
    model_version: str | None = None
    response_id: str | None = None
    prompt_feedback: Raw = ABSENT
    create_time: RawMember = ABSENT
    turn_token: RawMember = ABSENT
    response: Raw = ABSENT
    trace_id: Raw = ABSENT
    error: Raw = ABSENT


class TextPart(Camel):
    """A piece of text or thought without other members."""

    text: Annotated[str, Meta(min_length=1)]
    thought: bool = False


class TextContent(Camel):
    """The content of a candidate with one such part."""

    parts: tuple[TextPart]
    role: str | None = None


class TextCandidate(Camel):
    """A candidate that only continues a text."""

    content: TextContent
    index: Literal[0] = 0


class TextChunk(Camel):
    """A chunk that only continues a text, as most do. Decoding fails if there is anything else."""

    candidates: tuple[TextCandidate]
    usage_metadata: Raw = ABSENT
    model_version: str | None = None
    response_id: str | None = None


class UsageMetadata(Camel):
    """Token counts. The details are in every reply, so they are declared as `RawMember`."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    total_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    prompt_tokens_details: RawMember = ABSENT
    candidates_tokens_details: RawMember = ABSENT
    cache_tokens_details: RawMember = ABSENT
    tool_use_prompt_tokens_details: RawMember = ABSENT
    traffic_type: RawMember = ABSENT
    service_tier: RawMember = ABSENT


class PromptFeedback(Camel):
    """The reason why a prompt was blocked."""

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
    """The unread members of a request below `prefix`, accessed by pointers that include the prefix."""

    __slots__ = ("_offset", "_prefix", "_unread")

    def __init__(self, unread: Unread, prefix: str) -> None:
        self._unread = unread
        self._prefix = prefix
        self._offset = len(prefix)

    def take(self, where: str) -> dict[str, bytes] | None:
        """Remove and return the members below `where`, by pointer relative to it."""
        return self._unread.take(where[self._offset :])

    def add(self, where: str, raw: bytes) -> None:
        """Add a member that the core cannot represent."""
        self._unread.add(where[self._offset :], raw)

    def add_raw_members(self, value: Wire, where: str) -> None:
        """Add the `RawMember` members of `value`; `where` is its pointer relative to the prefix."""
        fields = get_raw_members(value)
        if fields is not None:
            for pointer, raw in fields.items():
                self._unread.add(where + pointer, raw)

    def rest(self) -> dict[str, bytes]:
        """Return the members that were not taken."""
        rest = self._unread.rest()
        return {self._prefix + pointer: raw for pointer, raw in rest.items()} if self._prefix else rest
