"""Wire types of OpenAI Chat Completions and of compatible servers that extend it.

Rules: only fields that map to the core are declared, plus structural ones and common ones that are only `RawMember`,
that is, kept as extras (an undeclared field is kept too, but needs a second parse). Null counts as absent.
"""

from typing import Annotated, Any

from msgspec import Raw

from dragoman.wire.shape import ABSENT, Shape, Wire, core_field, core_location
from dragoman.wire.unread import UNKNOWN, RawMember, Unknown

NAME = "chat"
NULL = Raw(b"null")


class Breakpoint(Wire):
    """The `prompt_cache_breakpoint` of a part."""

    mode: str | None = None
    ttl: str | None = None


class ChatTextPart(Wire, tag="text"):
    """Plain text."""

    text: str
    prompt_cache_breakpoint: Breakpoint | None = None
    cache_control: RawMember = ABSENT


class Url(Wire):
    """The object that contains the URL of an image or video."""

    url: str
    detail: RawMember = ABSENT


class ImagePart(Wire, tag="image_url"):
    """An image by http or data URL; some servers also accept the URL as a plain string."""

    image_url: Url | str
    prompt_cache_breakpoint: Breakpoint | None = None


class VideoPart(Wire, tag="video_url"):
    """A video by URL: an extension of vLLM and OpenRouter."""

    video_url: Url | str
    prompt_cache_breakpoint: Breakpoint | None = None


class Audio(Wire):
    """Audio data as base64."""

    data: str
    format: str | None = None


class AudioPart(Wire, tag="input_audio"):
    """Audio input."""

    input_audio: Audio
    prompt_cache_breakpoint: Breakpoint | None = None


class File(Wire):
    """A file, by the id of an upload or as a data URL."""

    file_id: str | None = None
    file_data: str | None = None
    filename: str | None = None


class FilePart(Wire, tag="file"):
    """A document."""

    file: File
    prompt_cache_breakpoint: Breakpoint | None = None


class RefusalPart(Wire, tag="refusal"):
    """The model's refusal text."""

    refusal: str


class ThinkingPart(Wire, tag="thinking"):
    """Mistral's reasoning, an item of the content list."""

    thinking: list[Raw]


Part = ChatTextPart | ImagePart | VideoPart | AudioPart | FilePart | RefusalPart | ThinkingPart | Unknown


class GoogleExtra(Wire):
    """Fields that Google's compatible endpoint adds to a call."""

    thought_signature: str | None = None


class ExtraContent(Wire):
    """Vendor fields of a call."""

    google: GoogleExtra | None = None


class ChatFunctionCall(Wire):
    """Name and arguments as JSON text; a few servers send an object, or nothing."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CustomCall(Wire):
    """Name and free-text input of a custom tool call."""

    name: str | None = None
    input: str | None = None


class ChatCall(Wire):
    """A tool call."""

    id: str | None = None
    type: str | None = None
    function: ChatFunctionCall | None = None
    custom: CustomCall | None = None
    extra_content: ExtraContent | None = None


class SentCall(ChatCall):
    """A call in the history of a request; clients that accumulate a stream send its `index` back."""

    index: RawMember = ABSENT


class ReplyCall(ChatCall):
    """A call, or a delta of one, in a reply; `index` says which call a delta belongs to."""

    index: int | None = None


class SystemMessage(Wire, tag_field="role", tag="system"):
    """A message with role `system`."""

    content: str | list[Part] | None = None
    name: str | None = None


class DeveloperMessage(Wire, tag_field="role", tag="developer"):
    """A message with role `developer`, the newer name of `system`."""

    content: str | list[Part] | None = None
    name: str | None = None


class UserMessage(Wire, tag_field="role", tag="user"):
    """A message with role `user`."""

    content: str | list[Part] | None = None
    name: str | None = None


class AssistantMessage(Wire, tag_field="role", tag="assistant"):
    """A message with role `assistant`."""

    content: str | list[Part] | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[SentCall] | None = None
    function_call: ChatFunctionCall | None = None
    annotations: RawMember = ABSENT
    reasoning_details: RawMember = ABSENT
    prefix: RawMember = ABSENT


class ToolMessage(Wire, tag_field="role", tag="tool"):
    """The result of one tool call."""

    tool_call_id: str | None = None
    content: str | list[Part] | None = None
    name: str | None = None


class FunctionMessage(Wire, tag_field="role", tag="function"):
    """The result of a legacy `function_call`, which has no id."""

    name: str = ""
    content: str | list[Part] | None = None


class UnknownMessage(Wire, tag_field="role", tag=UNKNOWN):
    """A message with an unknown role."""

    raw: Raw


Message = (
    SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage | UnknownMessage
)


class Function(Wire):
    """A function the model may call."""

    name: str | None = None
    description: str | None = None
    parameters: Raw = ABSENT
    strict: bool | None = None


class Grammar(Wire):
    """A grammar that the input of a custom tool must match."""

    syntax: str
    definition: str


class CustomFormat(Wire):
    """The input format of a custom tool: type `text`, or type `grammar` with a grammar."""

    type: str
    grammar: Grammar | None = None


class Custom(Wire):
    """A custom tool: its input is free text."""

    name: str
    description: str | None = None
    format: CustomFormat | None = None


class ChatTool(Wire):
    """A tool; without a type it is a function."""

    type: str | None = None
    function: Function | None = None
    custom: Custom | None = None


class NamedFunction(Wire):
    """A tool by name."""

    name: str


class AllowedTool(Wire):
    """One of the allowed tools."""

    type: str | None = None
    function: NamedFunction | None = None
    custom: NamedFunction | None = None


class ChatAllowedTools(Wire):
    """The tools the model may choose from."""

    mode: str
    tools: Annotated[list[AllowedTool], core_location("tool_choice.names")]


class ChatChoice(Wire):
    """`tool_choice` as an object."""

    type: str | None = None
    function: NamedFunction | None = None
    custom: NamedFunction | None = None
    allowed_tools: ChatAllowedTools | None = None


class FunctionChoice(Wire):
    """`function_call` as an object."""

    name: str | None = None


class JsonSchema(Wire):
    """The JSON schema of a structured output."""

    name: Annotated[str | None, core_location("output.name")] = None
    description: Annotated[str | None, core_location("output.description")] = None
    schema: Annotated[Raw, core_location("output.schema")] = ABSENT
    strict: Annotated[bool | None, core_location("output.strict")] = None


class ResponseFormat(Wire):
    """The `response_format` of a request."""

    type: str
    json_schema: JsonSchema | None = None


class ChatRequest(Wire):
    """A request. Annotations name the core field that a member maps to; see `fields`."""

    messages: Annotated[list[Message], core_location("messages")]
    model: Annotated[str | None, core_location("model")] = None
    tools: Annotated[Raw, core_location("tools")] = ABSENT
    functions: Annotated[list[Function] | None, core_location("tools")] = None
    tool_choice: Annotated[str | ChatChoice | None, core_location("tool_choice")] = None
    function_call: Annotated[str | FunctionChoice | None, core_location("tool_choice")] = None
    parallel_tool_calls: Annotated[bool | None, core_location("tool_choice.parallel")] = None
    temperature: Annotated[int | float | None, core_field("sampling.temperature")] = None
    top_p: Annotated[int | float | None, core_field("sampling.top_p")] = None
    top_k: Annotated[int | float | None, core_field("sampling.top_k")] = None
    max_completion_tokens: Annotated[int | None, core_location("sampling.max_tokens")] = None
    max_tokens: Annotated[int | None, core_location("sampling.max_tokens")] = None
    stop: Annotated[str | list[str] | None, core_location("sampling.stop")] = None
    seed: Annotated[int | None, core_field("sampling.seed")] = None
    presence_penalty: Annotated[int | float | None, core_field("sampling.presence_penalty")] = None
    frequency_penalty: Annotated[int | float | None, core_field("sampling.frequency_penalty")] = None
    reasoning_effort: Annotated[str | None, core_location("thinking.effort")] = None
    response_format: Annotated[ResponseFormat | None, core_location("output")] = None
    verbosity: Annotated[str | None, core_field("verbosity")] = None
    stream: Annotated[bool | None, core_location("stream")] = None
    n: Annotated[int | None, core_field("candidates")] = None
    safety_identifier: Annotated[str | None, core_location("user")] = None
    user: Annotated[str | None, core_location("user")] = None
    metadata: Annotated[Raw, core_location("metadata")] = ABSENT
    stream_options: RawMember = ABSENT
    service_tier: RawMember = ABSENT
    logprobs: RawMember = ABSENT
    usage: RawMember = ABSENT
    reasoning: RawMember = ABSENT
    thinking: RawMember = ABSENT
    enable_thinking: RawMember = ABSENT
    thinking_budget: RawMember = ABSENT
    thinking_token_budget: RawMember = ABSENT
    chat_template_kwargs: RawMember = ABSENT
    provider: RawMember = ABSENT


REQUEST: Shape[ChatRequest] = Shape(ChatRequest)
TOOLS: Shape[list[ChatTool] | None] = Shape(list[ChatTool] | None)
