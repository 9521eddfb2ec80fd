"""Shapes of Anthropic Messages: exactly the fields that reach the core, in the vendor's names.

Fields of the type `Carried` are not read: they are named here so that everyday traffic is decoded in one pass, and end
up in extras like any field that is not named.
"""

from typing import Annotated, Literal

from msgspec import Raw

from dragoman.wire.shape import ABSENT, Wire, core_field, core_place
from dragoman.wire.unread import Carried, Unknown

NAME = "messages"
ISSUER = "anthropic"


class CacheControl(Wire):
    """A cache breakpoint; a type we do not know is refused, since it could not be given back."""

    type: Literal["ephemeral"]
    ttl: str | None = None


class TextBlock(Wire, tag_field="type", tag="text"):
    """Text, of either side."""

    text: str
    citations: list[Raw] | None = None
    cache_control: CacheControl | None = None


class Base64Source(Wire, tag_field="type", tag="base64"):
    """Bytes in the request."""

    media_type: str
    data: str


class UrlSource(Wire, tag_field="type", tag="url"):
    """Bytes behind a URL."""

    url: str


class FileSource(Wire, tag_field="type", tag="file"):
    """Bytes uploaded before."""

    file_id: str


class TextSource(Wire, tag_field="type", tag="text"):
    """A plain text document."""

    media_type: str
    data: str


class ContentSource(Wire, tag_field="type", tag="content"):
    """A document made of blocks; nobody else has it."""

    content: Raw


Source = Base64Source | UrlSource | FileSource | TextSource | ContentSource | Unknown


class ImageBlock(Wire, tag_field="type", tag="image"):
    """A picture."""

    source: Source
    cache_control: CacheControl | None = None


class DocumentBlock(Wire, tag_field="type", tag="document"):
    """A PDF or text."""

    source: Source
    title: str | None = None
    cache_control: CacheControl | None = None
    citations: Carried = ABSENT


class ThinkingBlock(Wire, tag_field="type", tag="thinking"):
    """Reasoning with its proof."""

    thinking: str
    signature: str | None = None


class RedactedBlock(Wire, tag_field="type", tag="redacted_thinking"):
    """Reasoning nobody may read."""

    data: str


class ToolUseBlock(Wire, tag_field="type", tag="tool_use"):
    """A call of a client's tool."""

    id: str
    name: str
    input: Raw = ABSENT
    cache_control: CacheControl | None = None
    caller: Raw = ABSENT


ResultBlock = TextBlock | ImageBlock | DocumentBlock | Unknown


class ToolResultBlock(Wire, tag_field="type", tag="tool_result"):
    """What the client's tool answered."""

    tool_use_id: str
    content: str | list[ResultBlock] | None = None
    is_error: bool | None = None
    cache_control: CacheControl | None = None


Block = (
    TextBlock | ImageBlock | DocumentBlock | ThinkingBlock | RedactedBlock | ToolUseBlock | ToolResultBlock | Unknown
)


class MessageShape(Wire):
    """One turn."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class ToolShape(Wire):
    """A client's tool; a typed tool is recognised by `type` and kept whole."""

    name: str = ""
    type: str | None = None
    description: str | None = None
    input_schema: Raw = ABSENT
    strict: bool | None = None
    cache_control: CacheControl | None = None
    input_examples: Carried = ABSENT
    defer_loading: Carried = ABSENT
    allowed_callers: Carried = ABSENT
    eager_input_streaming: Carried = ABSENT


class ChoiceShape(Wire):
    """How free the model is."""

    type: str
    name: str | None = None
    disable_parallel_tool_use: Annotated[bool | None, core_place("tool_choice.parallel")] = None


class ThinkingShape(Wire):
    """How to think."""

    type: Annotated[str, core_place("thinking.mode")]
    budget_tokens: Annotated[int | None, core_place("thinking.budget")] = None
    display: Annotated[str | None, core_place("thinking.visible")] = None


class FormatShape(Wire):
    """The shape of the answer."""

    type: str
    schema: Raw = ABSENT


class OutputConfig(Wire):
    """Effort and shape of the answer."""

    effort: Annotated[str | None, core_place("thinking.effort")] = None
    format: Annotated[Raw, core_place("output")] = ABSENT


class MetadataShape(Wire):
    """Who asks."""

    user_id: Annotated[str | None, core_field("user")] = None


class RequestShape(Wire):
    """The body of `POST /v1/messages`. A member that is a field of the core says which."""

    messages: Annotated[list[MessageShape], core_place("messages")]
    model: Annotated[str | None, core_place("model")] = None
    system: str | list[Block] | None = None
    tools: Annotated[Raw, core_place("tools")] = ABSENT
    tool_choice: Annotated[Raw, core_place("tool_choice")] = ABSENT
    max_tokens: Annotated[int | None, core_field("sampling.max_tokens")] = None
    temperature: Annotated[int | float | None, core_field("sampling.temperature")] = None
    top_p: Annotated[int | float | None, core_field("sampling.top_p")] = None
    top_k: Annotated[int | float | None, core_field("sampling.top_k")] = None
    stop_sequences: Annotated[list[str] | None, core_place("sampling.stop")] = None
    stream: Annotated[bool | None, core_place("stream")] = None
    thinking: Raw = ABSENT
    output_config: OutputConfig | None = None
    output_format: Annotated[Raw, core_place("output")] = ABSENT
    metadata: MetadataShape | None = None
    cache_control: Carried = ABSENT
    context_management: Carried = ABSENT
    container: Carried = ABSENT
    mcp_servers: Carried = ABSENT
    service_tier: Carried = ABSENT
    speed: Carried = ABSENT
    thread: Carried = ABSENT
    diagnostics: Carried = ABSENT
    inference_geo: Carried = ABSENT
    anthropic_version: Carried = ABSENT
    anthropic_beta: Carried = ABSENT


class OutputDetails(Wire):
    """What of the output was thinking."""

    thinking_tokens: int | None = None


class UsageShape(Wire):
    """Tokens; `input_tokens` excludes both cache counts."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None
    cache_creation: Carried = ABSENT
    service_tier: Carried = ABSENT
    inference_geo: Carried = ABSENT
    server_tool_use: Carried = ABSENT
    iterations: Carried = ABSENT
    speed: Carried = ABSENT


class ReplyShape(Wire):
    """A whole reply, and the `message` of `message_start`, where content may be missing."""

    content: list[Block] | None = None
    id: str | None = None
    type: str | None = None
    role: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: UsageShape | None = None
    stop_details: Carried = ABSENT
    container: Carried = ABSENT
    context_management: Carried = ABSENT
    diagnostics: Carried = ABSENT


class TextDelta(Wire, tag_field="type", tag="text_delta"):
    """Text grows."""

    text: str


class JsonDelta(Wire, tag_field="type", tag="input_json_delta", rename={"text": "partial_json"}):
    """The JSON text of an input grows."""

    text: str


class ThinkingDelta(Wire, tag_field="type", tag="thinking_delta", rename={"text": "thinking"}):
    """Thinking grows."""

    text: str


class SignatureDelta(Wire, tag_field="type", tag="signature_delta"):
    """The proof of a thinking block."""

    signature: str


class CitationsDelta(Wire, tag_field="type", tag="citations_delta"):
    """One source of a text block."""

    citation: Raw


Delta = TextDelta | JsonDelta | ThinkingDelta | SignatureDelta | CitationsDelta | Unknown


class MessageStart(Wire, tag_field="type", tag="message_start"):
    """The reply begins."""

    message: ReplyShape


class BlockStart(Wire, tag_field="type", tag="content_block_start"):
    """A block begins."""

    index: int
    content_block: Block


class BlockDelta(Wire, tag_field="type", tag="content_block_delta"):
    """A block grows."""

    index: int
    delta: Delta


class BlockStop(Wire, tag_field="type", tag="content_block_stop"):
    """A block is over."""

    index: int


class FinalDelta(Wire):
    """Why the reply ended."""

    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Carried = ABSENT
    container: Carried = ABSENT


class MessageDelta(Wire, tag_field="type", tag="message_delta"):
    """The reply is about to end."""

    delta: FinalDelta
    usage: UsageShape | None = None
    context_management: Carried = ABSENT


class MessageStop(Wire, tag_field="type", tag="message_stop"):
    """The reply is over."""


class Ping(Wire, tag_field="type", tag="ping"):
    """Nothing."""


class ErrorEvent(Wire, tag_field="type", tag="error"):
    """The reply failed; `errors` reads the frame itself."""

    error: Raw = ABSENT
    request_id: Raw = ABSENT


StreamEvent = (
    BlockDelta | BlockStart | BlockStop | MessageStart | MessageDelta | MessageStop | Ping | ErrorEvent | Unknown
)
