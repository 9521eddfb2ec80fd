"""The shape of input items: everything a reply may hold, and what answers it.

Messages come with or without a `type`; before they are held to a shape they are told apart by their role, since the
vendor takes other parts from the assistant than from everyone else. Null means absent: clients write nulls, and the
vendor takes them.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from dragoman.simulator.apis.responses.shape_tools import Tool
from dragoman.simulator.shape import Strict

TEXT_LIMIT = 10_485_760
Text = Annotated[str, Meta(max_length=TEXT_LIMIT)]
CallId = Annotated[str, Meta(min_length=1, max_length=64)]
ItemId = Annotated[str, Meta(max_length=64)]
Name = Annotated[str, Meta(max_length=128)]
Status = Literal["in_progress", "completed", "incomplete"]
INPUT_MESSAGE = "message:input"
OUTPUT_MESSAGE = "message:output"


class Breakpoint(Strict, kw_only=True):
    """A mark up to which the prompt shall be cached."""

    mode: Literal["explicit"]
    ttl: Literal["30m", "12h"] | None = None


class InputText(Strict, tag_field="type", tag="input_text", kw_only=True):
    """Text someone wrote."""

    text: Text
    prompt_cache_breakpoint: Breakpoint | None = None


class InputImage(Strict, tag_field="type", tag="input_image", kw_only=True):
    """A picture someone showed."""

    image_url: str | None = None
    file_id: str | None = None
    detail: Literal["low", "high", "auto", "original"] | None = None
    prompt_cache_breakpoint: Breakpoint | None = None


class InputFile(Strict, tag_field="type", tag="input_file", kw_only=True):
    """A file someone gave."""

    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None
    detail: Literal["auto", "low", "high"] | None = None
    prompt_cache_breakpoint: Breakpoint | None = None


class Audio(Strict, kw_only=True):
    """Sound, encoded."""

    data: str
    format: Literal["mp3", "wav"]


class InputAudio(Strict, tag_field="type", tag="input_audio", kw_only=True):
    """Something someone said."""

    input_audio: Audio


class OutputText(Strict, tag_field="type", tag="output_text", kw_only=True):
    """Text the model wrote."""

    text: str
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[dict[str, Any]] | None = None


class RefusalPart(Strict, tag_field="type", tag="refusal", kw_only=True):
    """What the model would not do."""

    refusal: str


InputPart = InputText | InputImage | InputFile | InputAudio
ResultPart = InputText | InputImage | InputFile


class InputMessage(Strict, tag_field="type", tag=INPUT_MESSAGE, kw_only=True):
    """A message of anyone but the model."""

    role: Literal["user", "system", "developer"]
    content: Text | list[InputPart]
    id: ItemId | None = None
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class OutputMessage(Strict, tag_field="type", tag=OUTPUT_MESSAGE, kw_only=True):
    """A message of the model."""

    role: Literal["assistant"]
    content: Text | list[OutputText | RefusalPart]
    id: ItemId | None = None
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class DirectCaller(Strict, tag_field="type", tag="direct"):
    """The model called."""


class ProgramCaller(Strict, tag_field="type", tag="program", kw_only=True):
    """A program of the model called."""

    caller_id: str


Caller = DirectCaller | ProgramCaller


class FunctionCall(Strict, tag_field="type", tag="function_call", kw_only=True):
    """A call of a function."""

    call_id: CallId
    name: Name
    arguments: str
    id: ItemId | None = None
    status: Status | None = None
    namespace: str | None = None
    caller: Caller | None = None
    is_async: bool | None = field(default=None, name="async")


class FunctionCallOutput(Strict, tag_field="type", tag="function_call_output", kw_only=True):
    """What a function answered."""

    call_id: CallId
    output: Text | list[ResultPart]
    id: ItemId | None = None
    status: Status | None = None
    name: Name | None = None
    namespace: Annotated[str, Meta(max_length=64)] | None = None
    caller: Caller | None = None


class CustomToolCall(Strict, tag_field="type", tag="custom_tool_call", kw_only=True):
    """A call of a custom tool."""

    call_id: CallId
    name: Name
    input: str
    id: ItemId | None = None
    status: Status | None = None
    namespace: str | None = None
    caller: Caller | None = None
    is_async: bool | None = field(default=None, name="async")


class CustomToolCallOutput(Strict, tag_field="type", tag="custom_tool_call_output", kw_only=True):
    """What a custom tool answered."""

    call_id: CallId
    output: Text | list[ResultPart]
    id: ItemId | None = None
    status: Status | None = None
    name: Name | None = None
    caller: Caller | None = None


class ToolSearchCall(Strict, tag_field="type", tag="tool_search_call", kw_only=True):
    """A look for deferred tools."""

    arguments: Any
    call_id: CallId | None = None
    execution: Literal["server", "client"] | None = None
    id: ItemId | None = None
    status: Status | None = None


class ToolSearchOutput(Strict, tag_field="type", tag="tool_search_output", kw_only=True):
    """The tools that were found."""

    tools: list[Tool]
    call_id: CallId | None = None
    execution: Literal["server", "client"] | None = None
    id: ItemId | None = None
    status: Status | None = None


class AdditionalTools(Strict, tag_field="type", tag="additional_tools", kw_only=True):
    """Tools that are there from this point on."""

    role: Literal["developer"]
    tools: list[Tool]
    id: ItemId | None = None


class SummaryText(Strict, tag_field="type", tag="summary_text", kw_only=True):
    """What is told of the model's thoughts."""

    text: str


class ReasoningText(Strict, tag_field="type", tag="reasoning_text", kw_only=True):
    """Thoughts as they were."""

    text: str


class Reasoning(Strict, tag_field="type", tag="reasoning", kw_only=True):
    """What the model thought."""

    summary: list[SummaryText]
    id: ItemId | None = None
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None
    status: Status | None = None
