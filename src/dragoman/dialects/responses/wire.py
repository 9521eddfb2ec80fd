"""Wire types of the Responses API: the fields that are parsed, under OpenAI's names.

Rules: `WireItem` is one flat type for all items that are parsed, because the most common item, the "easy" message, has
no `type` to select by; code that parses an item must keep every field that it does not use. `Raw()` and JSON null both
mean absent.
"""

from typing import Annotated, Literal, TypeVar

from msgspec import MsgspecError, Raw, Struct, ValidationError
from msgspec.json import Decoder

from dragoman.wire import json
from dragoman.wire.shape import ABSENT, Wire, core_field, core_location, non_null_bytes
from dragoman.wire.unread import RawMember, Unknown

NAME = "responses"
ISSUER = "openai"

T = TypeVar("T")


class CacheBreakpoint(Wire):
    """The `prompt_cache_breakpoint` of a content part."""

    mode: str | None = None
    ttl: str | None = None


class InputText(Wire, tag_field="type", tag="input_text"):
    """Text sent to the model."""

    text: str
    prompt_cache_breakpoint: CacheBreakpoint | None = None


class OutputText(Wire, tag_field="type", tag="output_text"):
    """Text the model wrote."""

    text: str
    annotations: list[Raw] | None = None
    logprobs: Raw = Raw()
    prompt_cache_breakpoint: CacheBreakpoint | None = None


class RefusalText(Wire, tag_field="type", tag="refusal"):
    """The model's refusal text."""

    refusal: str


class ReasoningText(Wire, tag_field="type", tag="reasoning_text"):
    """One piece of raw reasoning."""

    text: str


class SummaryText(Wire, tag_field="type", tag="summary_text"):
    """One reasoning summary."""

    text: str


class InputImage(Wire, tag_field="type", tag="input_image"):
    """An image by URL, data URL or file id."""

    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None
    prompt_cache_breakpoint: CacheBreakpoint | None = None


class InputFile(Wire, tag_field="type", tag="input_file"):
    """A document by data URL, URL or file id."""

    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    prompt_cache_breakpoint: CacheBreakpoint | None = None


class AudioData(Wire):
    """Inline audio data as base64."""

    data: str
    format: str


class InputAudio(Wire, tag_field="type", tag="input_audio"):
    """Audio input."""

    input_audio: AudioData
    prompt_cache_breakpoint: CacheBreakpoint | None = None


ContentPart = InputText | OutputText | RefusalText | ReasoningText | InputImage | InputFile | InputAudio | Unknown
MARKED = InputText | OutputText | InputImage | InputFile | InputAudio
"""Parts that can have a cache mark."""

ItemType = Literal[
    "message",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
]


class WireItem(Wire):
    """The members of all item types that are parsed; items of other types are kept as opaque."""

    type: ItemType | None = None
    role: str | None = None
    content: str | list[ContentPart] | None = None
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: str | None = None
    input: str | None = None
    output: str | list[ContentPart] | None = None
    summary: list[SummaryText | Unknown] | None = None
    encrypted_content: str | None = None
    caller: RawMember = ABSENT
    internal_chat_message_metadata_passthrough: RawMember = ABSENT


class WireFunctionTool(Wire, tag_field="type", tag="function"):
    """A function that the client runs."""

    name: str
    description: str | None = None
    parameters: Raw = Raw()
    strict: bool | None = None
    defer_loading: RawMember = ABSENT


class CustomTool(Wire, tag_field="type", tag="custom"):
    """A custom tool with free-text input that the client runs."""

    name: str
    description: str | None = None
    format: Raw = Raw()


class NamespaceTool(Wire, tag_field="type", tag="namespace"):
    """A named group of tools."""

    name: str
    tools: list[WireFunctionTool | CustomTool | Unknown]
    description: str | None = None


AnyTool = WireFunctionTool | CustomTool | NamespaceTool | Unknown


class NamedTool(Wire, tag_field="type", tag="function"):
    """A function in a tool choice."""

    name: str


class NamedCustomTool(Wire, tag_field="type", tag="custom"):
    """A custom tool in a tool choice."""

    name: str


class AllowedTools(Wire, tag_field="type", tag="allowed_tools"):
    """A tool choice that allows a subset of the tools."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedTool | NamedCustomTool | Unknown], core_location("tool_choice.names")]


Choice = NamedTool | NamedCustomTool | AllowedTools | Unknown


class TextFormat(Wire, tag_field="type", tag="text"):
    """Plain text output."""


class JsonFormat(Wire, tag_field="type", tag="json_object"):
    """Output that is any JSON object."""


class SchemaFormat(Wire, tag_field="type", tag="json_schema"):
    """Output that matches a JSON schema."""

    name: Annotated[str | None, core_location("output.name")] = None
    schema: Annotated[Raw, core_location("output.schema")] = Raw()
    strict: Annotated[bool | None, core_location("output.strict")] = None
    description: Annotated[str | None, core_location("output.description")] = None


class TextSettings(Wire):
    """The `text` member of a request."""

    format: Annotated[TextFormat | JsonFormat | SchemaFormat | Unknown | None, core_location("output")] = None
    verbosity: Annotated[str | None, core_field("verbosity")] = None


class ReasoningSettings(Wire):
    """The `reasoning` member of a request."""

    effort: Annotated[str | None, core_location("thinking.effort")] = None
    summary: Annotated[str | None, core_location("thinking.visible")] = None
    mode: RawMember = ABSENT
    context: RawMember = ABSENT


class ResponsesRequest(Wire):
    """A request. Annotations name the core field that a member maps to; `Raw` members can have several types."""

    input: Annotated[Raw, core_location("messages")] = ABSENT
    model: Annotated[str | None, core_location("model")] = None
    instructions: Raw = ABSENT
    tools: Annotated[Raw, core_location("tools")] = ABSENT
    tool_choice: Annotated[Raw, core_location("tool_choice")] = ABSENT
    parallel_tool_calls: Annotated[bool | None, core_location("tool_choice.parallel")] = None
    max_output_tokens: Annotated[int | None, core_field("sampling.max_tokens")] = None
    temperature: Annotated[int | float | None, core_field("sampling.temperature")] = None
    top_p: Annotated[int | float | None, core_field("sampling.top_p")] = None
    reasoning: Raw = ABSENT
    text: Raw = ABSENT
    metadata: Annotated[Raw, core_location("metadata")] = ABSENT
    safety_identifier: Annotated[str | None, core_location("user")] = None
    user: Annotated[Raw, core_location("user")] = ABSENT
    previous_response_id: Annotated[str | None, core_field("continues")] = None
    stream: Annotated[bool | None, core_location("stream")] = None
    max_tool_calls: RawMember = ABSENT
    top_logprobs: RawMember = ABSENT
    include: RawMember = ABSENT
    store: RawMember = ABSENT
    truncation: RawMember = ABSENT
    service_tier: RawMember = ABSENT
    prompt_cache_key: RawMember = ABSENT
    context_management: RawMember = ABSENT
    background: RawMember = ABSENT
    client_metadata: RawMember = ABSENT
    conversation: RawMember = ABSENT
    moderation: RawMember = ABSENT
    prompt: RawMember = ABSENT
    prompt_cache_options: RawMember = ABSENT
    prompt_cache_retention: RawMember = ABSENT
    stream_options: RawMember = ABSENT


class InputDetails(Wire):
    """Breakdown of the input tokens."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class ResponsesOutputDetails(Wire):
    """Breakdown of the output tokens."""

    reasoning_tokens: int | None = None


class TokenCounts(Wire):
    """The `usage` member of a reply."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: ResponsesOutputDetails | None = None


class StreamEvent(Struct):
    """The members of all stream events that are parsed; other members are ignored."""

    type: str = ""
    output_index: int | None = None
    item_id: str | None = None
    content_index: int | None = None
    summary_index: int | None = None
    delta: str = ""
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    input: str | None = None
    item: Raw = Raw()
    part: Raw = Raw()
    annotation: Raw = Raw()
    response: Raw = Raw()
    error: Raw = Raw()


PADDING = frozenset({"ping", "keepalive", "response.keepalive", "response.heartbeat"})
"""Keep-alive events, which are ignored."""

PROGRESS = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "code_interpreter_call_code",
        "image_generation_call",
        "mcp_list_tools",
        "mcp_call",
        "mcp_call_arguments",
        "shell_call",
        "shell_call_command",
        "shell_call_output_content",
        "apply_patch_call",
        "apply_patch_call_operation_diff",
        "computer_call",
        "local_shell_call",
        "tool_search_call",
        "compaction",
    }
)
"""Types of hosted-tool items whose progress events are ignored: the finished item has the same data."""


def decode_known(decoder: Decoder[T], raw: Raw | bytes) -> T | None:
    """Decode a value; None if it is of another type, `Malformed` if it is not valid JSON."""
    if type(raw) is bytes:
        json.require_utf8(raw)
    try:
        return decoder.decode(raw)
    except ValidationError:
        # Decoding stops at the first member of a wrong type, so the rest has not been validated yet.
        json.require_json(raw)
        return None
    except (MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise json.to_malformed(error) from None


def take_optional(members: dict[str, Raw], name: str, decoder: Decoder[T]) -> T | None:
    """Remove the member `name` from `members` and decode it; None if it is absent or null."""
    raw = members.pop(name, None)
    if raw is None:
        return None
    try:
        return decoder.decode(raw)
    except (MsgspecError, RecursionError, UnicodeDecodeError) as error:
        if non_null_bytes(raw) is None:
            return None
        problem = json.to_malformed(error)
        raise json.Malformed(problem.message, f"/{name}{problem.where}") from None
