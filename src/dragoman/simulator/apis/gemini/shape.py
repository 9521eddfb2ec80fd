"""A request, as the protos write it down.

Sources: wire/gemini.md sections 2 and 13, and which members google-genai sends to which surface. Whatever is not here
is an unknown name.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from dragoman.simulator.apis.gemini.proto import (
    NOT_V1,
    STUDIO,
    VERTEX,
    Bytes,
    Double,
    Fields,
    Float,
    Int32,
    Message,
    Reader,
    Surface,
    Value,
    Words,
)
from dragoman.simulator.apis.gemini.shape_media import (
    AudioTranscriptionConfig,
    ImageConfig,
    ResponseFormat,
    SpeechConfig,
    Transcription,
    TranslationConfig,
)
from dragoman.simulator.apis.gemini.shape_tools import Schema, Tool, ToolConfig
from dragoman.simulator.rule import Violation

RULES = "gemini"
_RESOLUTIONS = (
    "MEDIA_RESOLUTION_UNSPECIFIED",
    "MEDIA_RESOLUTION_LOW",
    "MEDIA_RESOLUTION_MEDIUM",
    "MEDIA_RESOLUTION_HIGH",
    "MEDIA_RESOLUTION_ULTRA_HIGH",
)
_OUTCOMES = ("OUTCOME_UNSPECIFIED", "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED")
_SCHEDULES = ("SCHEDULING_UNSPECIFIED", "SILENT", "WHEN_IDLE", "INTERRUPT")
_TOOLS = (
    "TOOL_TYPE_UNSPECIFIED",
    "GOOGLE_SEARCH_WEB",
    "GOOGLE_SEARCH_IMAGE",
    "URL_CONTEXT",
    "GOOGLE_MAPS",
    "FILE_SEARCH",
    "MEDIA_PROCESSING",
)
_PROCESSINGS = ("MEDIA_PROCESSING_UNSPECIFIED", "STATIC", "AGENTIC")
_CATEGORIES = (
    "HARM_CATEGORY_UNSPECIFIED",
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
    "HARM_CATEGORY_CIVIC_INTEGRITY",
    "HARM_CATEGORY_JAILBREAK",
    "HARM_CATEGORY_IMAGE_HATE",
    "HARM_CATEGORY_IMAGE_DANGEROUS_CONTENT",
    "HARM_CATEGORY_IMAGE_HARASSMENT",
    "HARM_CATEGORY_IMAGE_SEXUALLY_EXPLICIT",
)
_THRESHOLDS = (
    "HARM_BLOCK_THRESHOLD_UNSPECIFIED",
    "BLOCK_LOW_AND_ABOVE",
    "BLOCK_MEDIUM_AND_ABOVE",
    "BLOCK_ONLY_HIGH",
    "BLOCK_NONE",
    "OFF",
)
_METHODS = ("HARM_BLOCK_METHOD_UNSPECIFIED", "SEVERITY", "PROBABILITY")
_LEVELS = ("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH")
_MODALITIES = ("MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "AUDIO", "VIDEO")
_TIERS = ("unspecified", "flex", "standard", "priority")
_Resolution = Annotated[str, Words("MediaResolution", _RESOLUTIONS)]
_Processing = Annotated[str, Words("MediaProcessing", _PROCESSINGS)]


class Blob(Message):
    """Bytes of a media type."""

    mime_type: str = ""
    data: Bytes = ""
    display_name: str | None = None


class FileData(Message):
    """A file that is stored elsewhere."""

    mime_type: str | None = None
    file_uri: str = ""
    display_name: str | None = None


class PartialArg(Message):
    """A piece of an argument."""

    oneofs: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "delta": ("null_value", "number_value", "string_value", "bool_value")
    }

    json_path: str | None = None
    null_value: Annotated[str, Words("NullValue", ("NULL_VALUE",))] | None = None
    number_value: Double | None = None
    string_value: str | None = None
    bool_value: bool | None = None
    will_continue: bool | None = None


class FunctionCall(Message):
    """A call of a function."""

    id: Annotated[str, NOT_V1] | None = None
    name: str = ""
    args: Fields | None = None
    partial_args: Annotated[list[PartialArg], VERTEX] | None = None
    will_continue: Annotated[bool, VERTEX] | None = None


class FunctionResponsePart(Message):
    """Something a function shows beside its answer."""

    oneofs: ClassVar[Mapping[str, tuple[str, ...]]] = {"data": ("inline_data", "file_data")}

    inline_data: Blob | None = None
    file_data: FileData | None = None
    media_processing: Annotated[_Processing, STUDIO] | None = None


class FunctionResponse(Message):
    """What a function answered."""

    id: Annotated[str, NOT_V1] | None = None
    name: str = ""
    response: Fields | None = None
    parts: list[FunctionResponsePart] | None = None
    will_continue: Annotated[bool, STUDIO] | None = None
    scheduling: Annotated[str, Words("FunctionResponse.Scheduling", _SCHEDULES)] | None = None


class ExecutableCode(Message):
    """Code the model wrote."""

    language: Annotated[str, Words("ExecutableCode.Language", ("LANGUAGE_UNSPECIFIED", "PYTHON"))] | None = None
    code: str | None = None
    id: str | None = None


class CodeExecutionResult(Message):
    """What became of it."""

    outcome: Annotated[str, Words("CodeExecutionResult.Outcome", _OUTCOMES)] | None = None
    output: str | None = None
    id: str | None = None


class ToolCall(Message):
    """A call of a tool Google runs itself."""

    id: str | None = None
    tool_type: Annotated[str, Words("ToolType", _TOOLS)] | None = None
    args: Fields | None = None


class ToolResponse(Message):
    """What that tool answered."""

    id: str | None = None
    tool_type: Annotated[str, Words("ToolType", _TOOLS)] | None = None
    response: Fields | None = None


class VideoMetadata(Message):
    """Which part of a video counts."""

    start_offset: str | None = None
    end_offset: str | None = None
    fps: Double | None = None


class PartMediaResolution(Message):
    """How closely to look at one part."""

    level: _Resolution | None = None
    num_tokens: Int32 | None = None


class SpeechMetadata(Message):
    """Who speaks, and how."""

    speaker: str | None = None
    style: str | None = None


class Part(Message):
    """One part of a content; exactly one of its members `data` is given, or a signature alone."""

    oneofs: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "data": (
            "text",
            "inline_data",
            "file_data",
            "function_call",
            "function_response",
            "executable_code",
            "code_execution_result",
            "tool_call",
            "tool_response",
        )
    }

    text: str | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    executable_code: ExecutableCode | None = None
    code_execution_result: CodeExecutionResult | None = None
    tool_call: Annotated[ToolCall, STUDIO] | None = None
    tool_response: Annotated[ToolResponse, STUDIO] | None = None
    thought: bool | None = None
    thought_signature: Bytes | None = None
    video_metadata: VideoMetadata | None = None
    media_resolution: PartMediaResolution | None = None
    media_processing: _Processing | None = None
    audio_transcription: Transcription | None = None
    speech_metadata: SpeechMetadata | None = None
    part_metadata: Annotated[Fields, STUDIO] | None = None

    @property
    def has_data(self) -> bool:
        """Whether any member of the oneof is given."""
        return any(getattr(self, name) is not None for name in self.oneofs["data"])


class Content(Message):
    """One turn, or a piece of one."""

    role: str | None = None
    parts: list[Part] | None = None


class SafetySetting(Message):
    """What is blocked."""

    category: Annotated[str, Words("HarmCategory", _CATEGORIES)] | None = None
    threshold: Annotated[str, Words("SafetySetting.HarmBlockThreshold", _THRESHOLDS)] | None = None
    method: Annotated[str, Words("SafetySetting.HarmBlockMethod", _METHODS), VERTEX] | None = None


class ThinkingConfig(Message):
    """How much the model thinks, and whether that is shown."""

    include_thoughts: bool | None = None
    thinking_budget: Int32 | None = None
    thinking_level: Annotated[str, Words("ThinkingConfig.ThinkingLevel", _LEVELS)] | None = None


class GenerationConfig(Message):
    """How the model writes."""

    temperature: Float | None = None
    top_p: Float | None = None
    top_k: Float | None = None
    candidate_count: Int32 | None = None
    max_output_tokens: Int32 | None = None
    stop_sequences: list[str] | None = None
    presence_penalty: Float | None = None
    frequency_penalty: Float | None = None
    seed: Int32 | None = None
    response_logprobs: bool | None = None
    logprobs: Int32 | None = None
    response_mime_type: str | None = None
    response_schema: Schema | None = None
    response_json_schema: Value | None = None
    response_modalities: list[Annotated[str, Words("GenerationConfig.Modality", _MODALITIES)]] | None = None
    response_format: list[ResponseFormat] | None = None
    thinking_config: ThinkingConfig | None = None
    media_resolution: _Resolution | None = None
    speech_config: SpeechConfig | None = None
    image_config: ImageConfig | None = None
    translation_config: TranslationConfig | None = None
    audio_transcription_config: AudioTranscriptionConfig | None = None
    enable_affective_dialog: bool | None = None
    enable_enhanced_civic_answers: Annotated[bool, STUDIO] | None = None
    audio_timestamp: Annotated[bool, VERTEX] | None = None
    routing_config: Annotated[Fields, VERTEX] | None = None
    model_config: Annotated[Fields, VERTEX] | None = None


class ModelArmorConfig(Message):
    """Templates of a filter."""

    prompt_template_name: str | None = None
    response_template_name: str | None = None


class GenerateContentRequest(Message):
    """A request."""

    model: str | None = None
    contents: list[Content] | None = None
    system_instruction: Content | None = None
    tools: list[Tool] | None = None
    tool_config: ToolConfig | None = None
    safety_settings: list[SafetySetting] | None = None
    generation_config: GenerationConfig | None = None
    cached_content: str | None = None
    labels: Annotated[dict[str, str], VERTEX] | None = None
    service_tier: Annotated[str, Words("ServiceTier", _TIERS), STUDIO] | None = None
    continuation_token: Bytes | None = None
    store: Annotated[bool, STUDIO] | None = None
    model_armor_config: Annotated[ModelArmorConfig, VERTEX] | None = None
    output_config: Annotated[Fields, VERTEX] | None = None


class CountTokensRequest(Message):
    """What is to be counted: on AI Studio contents or a whole request, on Vertex the members of one."""

    model: str | None = None
    contents: list[Content] | None = None
    generate_content_request: Annotated[GenerateContentRequest, STUDIO] | None = None
    system_instruction: Annotated[Content, VERTEX] | None = None
    tools: Annotated[list[Tool], VERTEX] | None = None
    generation_config: Annotated[GenerationConfig, VERTEX] | None = None


def not_json(error: Exception) -> Violation:
    """Say that a body is no JSON that can be read."""
    return Violation(f"Invalid JSON payload received. {error}", rule=f"{RULES}.json")


_SURFACES: tuple[Surface, ...] = ("studio", "vertex", "vertex v1")
_REQUESTS = {surface: Reader(GenerateContentRequest, surface) for surface in _SURFACES}
_COUNTS = {surface: Reader(CountTokensRequest, surface) for surface in _SURFACES}


def read_request(body: bytes, surface: Surface, *, counting: bool = False) -> GenerateContentRequest | Violation:
    """Return the request in a body, or what is wrong with it; counting, the body only holds the request."""
    if not counting:
        return _REQUESTS[surface].read(body, RULES)
    read = _COUNTS[surface].read(body, RULES)
    if isinstance(read, Violation):
        return read
    return read.generate_content_request or GenerateContentRequest(
        contents=read.contents,
        system_instruction=read.system_instruction,
        tools=read.tools,
        generation_config=read.generation_config,
    )
