"""The request body of Chat Completions, with exactly OpenAI's members.

Null stands for absence wherever OpenAI lets a member out. Members that are no part of the documented request, but were
recorded in requests that got an answer, are marked as tolerated; everything else unknown is refused.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman.simulator.apis.chat.shape_parts import Content, TextPart
from dragoman.simulator.shape import Strict

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Level = Literal["low", "medium", "high"]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Bias = Annotated[float, Meta(ge=-100, le=100)]


class FunctionCall(Strict):
    """A function's name and arguments; what openai-python's `parse` adds is tolerated (clients/captures/sdk-openai)."""

    name: str
    arguments: str
    parsed_arguments: Any = None


class FunctionToolCall(Strict, tag_field="type", tag="function"):
    """A call of a function; `index` of streamed calls is tolerated (recorded: opentelemetry-js-contrib-0007)."""

    id: str
    function: FunctionCall
    index: int | None = None


class CustomCall(Strict):
    """A custom tool's name and its input."""

    name: str
    input: str


class CustomToolCall(Strict, tag_field="type", tag="custom"):
    """A call of a custom tool."""

    id: str
    custom: CustomCall
    index: int | None = None


ToolCall = FunctionToolCall | CustomToolCall


class Reference(Strict):
    """Something OpenAI keeps: an audio answer given before, a custom voice."""

    id: str


class DeveloperMessage(Strict, tag_field="role", tag="developer"):
    """Instructions; the one role whose content may not be null (see rule `chat.content-required` for the others)."""

    content: Content
    name: str | None = None


class SystemMessage(Strict, tag_field="role", tag="system"):
    """Instructions."""

    content: Content | None = None
    name: str | None = None


class UserMessage(Strict, tag_field="role", tag="user"):
    """What the user says and shows."""

    content: Content | None = None
    name: str | None = None


class AssistantMessage(Strict, tag_field="role", tag="assistant"):
    """What the model said; `annotations` (recorded: activeagent-0036) and the `parsed` of clients are tolerated."""

    content: Content | None = None
    name: str | None = None
    refusal: str | None = None
    audio: Reference | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: FunctionCall | None = None
    annotations: list[Any] | None = None
    parsed: Any = None


class ToolMessage(Strict, tag_field="role", tag="tool"):
    """A tool's result; `name` is tolerated (recorded: crewai-0002)."""

    tool_call_id: str
    content: Content | None = None
    name: str | None = None


class FunctionMessage(Strict, tag_field="role", tag="function"):
    """A function's result, as it was before there were tools."""

    name: str
    content: Content | None = None


Message = DeveloperMessage | SystemMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage


class FunctionDefinition(Struct, omit_defaults=True):
    """A function. Unknown members are let pass: OpenAI ignores them (recorded: openinference-0001)."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Strict, tag_field="type", tag="function"):
    """A tool with JSON arguments."""

    function: FunctionDefinition


class Grammar(Strict):
    """What a custom tool's input must look like."""

    syntax: Literal["lark", "regex"]
    definition: str


class TextFormat(Strict, tag_field="type", tag="text"):
    """Any text."""


class GrammarFormat(Strict, tag_field="type", tag="grammar"):
    """Text by a grammar."""

    grammar: Grammar


class CustomDefinition(Strict):
    """A tool that takes text."""

    name: str
    description: str | None = None
    format: TextFormat | GrammarFormat | None = None


class CustomTool(Strict, tag_field="type", tag="custom"):
    """A tool that takes text."""

    custom: CustomDefinition


Tool = FunctionTool | CustomTool


class Named(Strict):
    """A tool's name."""

    name: str


class NamedFunction(Strict, tag_field="type", tag="function"):
    """One function."""

    function: Named


class NamedCustom(Strict, tag_field="type", tag="custom"):
    """One custom tool."""

    custom: Named


class Allowed(Strict):
    """The tools that may be called."""

    mode: Literal["auto", "required"]
    tools: list[NamedFunction | NamedCustom]


class AllowedTools(Strict, tag_field="type", tag="allowed_tools"):
    """A choice among some of the tools."""

    allowed_tools: Allowed


ToolChoice = Literal["none", "auto", "required"] | NamedFunction | NamedCustom | AllowedTools


class JsonSchema(Strict):
    """The schema of an answer."""

    name: str
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class TextAnswer(Strict, tag_field="type", tag="text"):
    """Plain text."""


class JsonObjectAnswer(Strict, tag_field="type", tag="json_object"):
    """Any JSON object."""


class JsonSchemaAnswer(Strict, tag_field="type", tag="json_schema"):
    """JSON by a schema."""

    json_schema: JsonSchema


ResponseFormat = TextAnswer | JsonObjectAnswer | JsonSchemaAnswer


class StreamOptions(Strict):
    """What a stream carries beside the answer."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class CacheOptions(Strict):
    """How prefixes are cached."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: Literal["30m"] | None = None


class AudioAnswer(Strict):
    """How a spoken answer sounds."""

    format: Literal["wav", "aac", "mp3", "flac", "opus", "pcm16"]
    voice: str | Reference


class Prediction(Strict, tag_field="type", tag="content"):
    """What the answer is expected to be."""

    content: str | list[TextPart]


class ModerationMode(Strict):
    """Whether to score or to block."""

    mode: Literal["score", "block"]


class ModerationPolicy(Strict):
    """What is done on either side."""

    input: ModerationMode | None = None
    output: ModerationMode | None = None


class Moderation(Strict):
    """Moderation along the way."""

    model: str
    policy: ModerationPolicy | None = None


class Place(Strict):
    """Roughly where the user is."""

    city: str | None = None
    country: str | None = None
    region: str | None = None
    timezone: str | None = None


class Location(Strict):
    """Where the user is."""

    type: Literal["approximate"]
    approximate: Place


class SearchOptions(Strict):
    """How a search model searches."""

    search_context_size: Level | None = None
    user_location: Location | None = None


class ChatRequest(Strict):
    """The body of POST /v1/chat/completions."""

    model: str
    messages: list[Message]
    audio: AudioAnswer | None = None
    frequency_penalty: Penalty | None = None
    function_call: Literal["none", "auto"] | Named | None = None
    functions: list[FunctionDefinition] | None = None
    logit_bias: dict[str, Bias] | None = None
    logprobs: bool | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    metadata: dict[str, str] | None = None
    modalities: list[Literal["text", "audio"]] | None = None
    moderation: Moderation | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    parallel_tool_calls: bool | None = None
    prediction: Prediction | None = None
    presence_penalty: Penalty | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: CacheOptions | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    reasoning_effort: Effort | None = None
    response_format: ResponseFormat | None = None
    safety_identifier: str | None = None
    seed: int | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority", "fast"] | None = None
    stop: str | list[str] | None = None
    store: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    tool_choice: ToolChoice | None = None
    tools: list[Tool] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    user: str | None = None
    verbosity: Level | None = None
    web_search_options: SearchOptions | None = None
