"""Structs of the Anthropic Messages API: exactly the fields that reach the core, under the vendor's names.

Fields of the type `RawMember` are not read: they are declared so that common traffic is decoded in one pass, and go to
extras like any undeclared field.
"""

from typing import Annotated, Literal

from msgspec import Raw

from dragoman.wire.shape import ABSENT, Wire, core_field, core_location
from dragoman.wire.unread import RawMember, Unknown

NAME = "messages"
ISSUER = "anthropic"


class CacheControl(Wire):
    """A cache breakpoint. An unknown type is rejected, because it could not be rendered again."""

    type: Literal["ephemeral"]
    ttl: str | None = None


class TextBlock(Wire, tag_field="type", tag="text"):
    """Text of the user or the model."""

    text: str
    citations: list[Raw] | None = None
    cache_control: CacheControl | None = None


class Base64Source(Wire, tag_field="type", tag="base64"):
    """Base64 data in the request."""

    media_type: str
    data: str


class UrlSource(Wire, tag_field="type", tag="url"):
    """A file at a URL."""

    url: str


class FileSource(Wire, tag_field="type", tag="file"):
    """A file uploaded earlier."""

    file_id: str


class TextSource(Wire, tag_field="type", tag="text"):
    """A plain-text document."""

    media_type: str
    data: str


class ContentSource(Wire, tag_field="type", tag="content"):
    """A document made of blocks; no other dialect has it."""

    content: Raw


Source = Base64Source | UrlSource | FileSource | TextSource | ContentSource | Unknown


class ImageBlock(Wire, tag_field="type", tag="image"):
    """An image."""

    source: Source
    cache_control: CacheControl | None = None


class DocumentBlock(Wire, tag_field="type", tag="document"):
    """A PDF or text document."""

    source: Source
    title: str | None = None
    context: str | None = None
    cache_control: CacheControl | None = None
    citations: RawMember = ABSENT


class ThinkingBlock(Wire, tag_field="type", tag="thinking"):
    """Reasoning with its signature."""

    thinking: str
    signature: str | None = None


class RedactedBlock(Wire, tag_field="type", tag="redacted_thinking"):
    """Encrypted reasoning."""

    data: str


class ToolUseBlock(Wire, tag_field="type", tag="tool_use"):
    """A call of a client-side tool."""

    id: str
    name: str
    input: Raw = ABSENT
    cache_control: CacheControl | None = None
    caller: Raw = ABSENT
    toolset_name: str | None = None


ResultBlock = TextBlock | ImageBlock | DocumentBlock | Unknown


class ToolResultBlock(Wire, tag_field="type", tag="tool_result"):
    """The result of a client-side tool."""

    tool_use_id: str
    content: str | list[ResultBlock] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None = None


Block = (
    TextBlock | ImageBlock | DocumentBlock | ThinkingBlock | RedactedBlock | ToolUseBlock | ToolResultBlock | Unknown
)


class MessageShape(Wire):
    """One message of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class ToolShape(Wire):
    """A client-side tool. A tool with a type other than "custom" is kept whole as a native tool."""

    name: str = ""
    type: str | None = None
    description: str | None = None
    input_schema: Raw = ABSENT
    strict: bool | None = None
    cache_control: CacheControl | None = None
    input_examples: RawMember = ABSENT
    defer_loading: RawMember = ABSENT
    allowed_callers: RawMember = ABSENT
    eager_input_streaming: RawMember = ABSENT


class ChoiceShape(Wire):
    """The tool choice."""

    type: str
    name: str | None = None
    disable_parallel_tool_use: Annotated[bool | None, core_location("tool_choice.parallel")] = None


class ThinkingShape(Wire):
    """The thinking settings."""

    type: Annotated[str, core_location("thinking.mode")]
    budget_tokens: Annotated[int | None, core_location("thinking.budget")] = None
    display: Annotated[str | None, core_location("thinking.visible")] = None


class FormatShape(Wire):
    """The output format."""

    type: str
    schema: Raw = ABSENT


class OutputConfig(Wire):
    """The effort and the output format."""

    effort: Annotated[str | None, core_location("thinking.effort")] = None
    format: Annotated[Raw, core_location("output")] = ABSENT


class MetadataShape(Wire):
    """Request metadata: the end user."""

    user_id: Annotated[str | None, core_field("user")] = None


class RequestShape(Wire):
    """The body of `POST /v1/messages`. Members that map to a core field are annotated with its name."""

    messages: Annotated[list[MessageShape], core_location("messages")]
    model: Annotated[str | None, core_location("model")] = None
    system: str | list[Block] | None = None
    tools: Annotated[Raw, core_location("tools")] = ABSENT
    tool_choice: Annotated[Raw, core_location("tool_choice")] = ABSENT
    max_tokens: Annotated[int | None, core_field("sampling.max_tokens")] = None
    temperature: Annotated[int | float | None, core_field("sampling.temperature")] = None
    top_p: Annotated[int | float | None, core_field("sampling.top_p")] = None
    top_k: Annotated[int | float | None, core_field("sampling.top_k")] = None
    stop_sequences: Annotated[list[str] | None, core_location("sampling.stop")] = None
    stream: Annotated[bool | None, core_location("stream")] = None
    thinking: Raw = ABSENT
    output_config: OutputConfig | None = None
    output_format: Annotated[Raw, core_location("output")] = ABSENT
    metadata: MetadataShape | None = None
    cache_control: RawMember = ABSENT
    context_management: RawMember = ABSENT
    container: RawMember = ABSENT
    mcp_servers: RawMember = ABSENT
    service_tier: RawMember = ABSENT
    speed: RawMember = ABSENT
    thread: RawMember = ABSENT
    diagnostics: RawMember = ABSENT
    inference_geo: RawMember = ABSENT
    anthropic_version: RawMember = ABSENT
    anthropic_beta: RawMember = ABSENT


class OutputDetails(Wire):
    """A breakdown of the output tokens."""

    thinking_tokens: int | None = None


class UsageShape(Wire):
    """Token counts; `input_tokens` excludes both cache counts."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None
    cache_creation: RawMember = ABSENT
    service_tier: RawMember = ABSENT
    inference_geo: RawMember = ABSENT
    server_tool_use: RawMember = ABSENT
    iterations: RawMember = ABSENT
    speed: RawMember = ABSENT


class ReplyShape(Wire):
    """A whole reply, or the `message` of `message_start`, where content may be missing."""

    content: list[Block] | None = None
    id: str | None = None
    type: str | None = None
    role: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: UsageShape | None = None
    stop_details: RawMember = ABSENT
    container: RawMember = ABSENT
    context_management: RawMember = ABSENT
    diagnostics: RawMember = ABSENT


class TextDelta(Wire, tag_field="type", tag="text_delta"):
    """Text to append."""

    text: str


class JsonDelta(Wire, tag_field="type", tag="input_json_delta", rename={"text": "partial_json"}):
    """JSON text to append to a call's input."""

    text: str


class ThinkingDelta(Wire, tag_field="type", tag="thinking_delta", rename={"text": "thinking"}):
    """Thinking text to append."""

    text: str


class SignatureDelta(Wire, tag_field="type", tag="signature_delta"):
    """The signature of a thinking block."""

    signature: str


class CitationsDelta(Wire, tag_field="type", tag="citations_delta"):
    """One citation of a text block."""

    citation: Raw


Delta = TextDelta | JsonDelta | ThinkingDelta | SignatureDelta | CitationsDelta | Unknown


class MessageStart(Wire, tag_field="type", tag="message_start"):
    """The start of the reply."""

    message: ReplyShape


class BlockStart(Wire, tag_field="type", tag="content_block_start"):
    """The start of a block."""

    index: int
    content_block: Block


class BlockDelta(Wire, tag_field="type", tag="content_block_delta"):
    """A delta of a block."""

    index: int
    delta: Delta


class BlockStop(Wire, tag_field="type", tag="content_block_stop"):
    """The end of a block."""

    index: int


class FinalDelta(Wire):
    """The stop reason."""

    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: RawMember = ABSENT
    container: RawMember = ABSENT


class MessageDelta(Wire, tag_field="type", tag="message_delta"):
    """The stop reason and the final usage, before the end of the reply."""

    delta: FinalDelta
    usage: UsageShape | None = None
    context_management: RawMember = ABSENT


class MessageStop(Wire, tag_field="type", tag="message_stop"):
    """The end of the reply."""


class Ping(Wire, tag_field="type", tag="ping"):
    """A keep-alive without content."""


class ErrorEvent(Wire, tag_field="type", tag="error"):
    """An error in the stream; `errors` parses the raw frame."""

    error: Raw = ABSENT
    request_id: Raw = ABSENT


StreamEvent = (
    BlockDelta | BlockStart | BlockStop | MessageStart | MessageDelta | MessageStop | Ping | ErrorEvent | Unknown
)
