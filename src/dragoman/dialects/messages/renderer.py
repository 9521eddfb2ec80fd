"""Renders a request as a Messages body: its messages, tools and other fields.

Rules: leading system messages become the top-level `system`. `spelling` restores members that were sent empty or under
another name.
"""

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from msgspec import Raw

from dragoman.core.parts import Text
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.messages.automatic_marks import mark_content, mark_tools, mark_turns
from dragoman.dialects.messages.fields import METADATA_FIELDS, SAMPLING_FIELDS
from dragoman.dialects.messages.parts import is_plain, write_cache_mark, write_parts
from dragoman.dialects.messages.wire import (
    ABSENT,
    NAME,
    ChoiceShape,
    FormatShape,
    ThinkingShape,
    ToolShape,
)
from dragoman.dialects.record import Call
from dragoman.wire.json import encode
from dragoman.wire.splice import graft

_NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')
_DISPLAY = {True: "summarized", False: "omitted"}


def render_request(request: Request, traits: Traits) -> Call:
    """Render a request that has been adapted to Messages."""
    body = encode(_write_request(request, traits))
    fields = own_extras(request, NAME)
    return Call(graft(body, fields) if fields else body, request.model, request.stream)


def _write_request(request: Request, traits: Traits) -> dict[str, Any]:
    leading = list(takewhile(_is_leading, request.messages))
    body: dict[str, Any] = {"model": request.model} if "no model" not in request.spelling else {}
    if leading and (system := _write_system(leading)) is not None:
        body["system"] = Raw(mark_content(encode(system))) if request.marks_ends else system
    if (tools := _write_tools(request)) is not None:
        if request.marks_ends and request.tools:
            tools = Raw(mark_tools(request.written_tools or encode(tools), request.tools[-1]))
        body["tools"] = tools
    if (choice := write_choice(request.tool_choice, tools=bool(request.tools))) is not None:
        body["tool_choice"] = choice
    body |= write_fields(request, traits)
    following = request.messages[len(leading) :]
    messages: list[Any] = [_write_message(message) for message in following]
    if request.marks_ends:
        roles = [message.role for message in following]
        messages = mark_turns(request.written, roles, messages, has_tools=bool(request.tools))
    elif request.written:
        messages.insert(0, Raw(request.written))
    body["messages"] = messages
    return body


def _write_tools(request: Request) -> Any:
    if request.written_tools:
        return Raw(request.written_tools)
    return write_tools(request.tools) if request.tools or "tools" in request.spelling else None


def _is_leading(message: Message) -> bool:
    return message.role == "system" and "inline" not in message.spelling


def _write_system(messages: list[Message]) -> Any:
    """Render the top-level instructions: a string if that loses nothing, else blocks, which keep cache breakpoints."""
    match messages:
        case [Message(parts=(only,), spelling=spelling)] if "blocks" not in spelling and isinstance(only, Text):
            return only.text if is_plain(only) else write_parts((only,))
        case _:
            blocks = write_parts(part for message in messages for part in message.parts)
            return blocks if blocks or "blocks" in messages[0].spelling else None


def _write_message(message: Message) -> Any:
    match message.parts:
        case (Text(text=text) as only,) if "blocks" not in message.spelling and is_plain(only):
            content: Any = text
        case parts:
            content = write_parts(parts)
    written = {"role": message.role, "content": content}
    fields = own_extras(message, NAME)
    return Raw(graft(encode(written), fields)) if fields else written


def write_tools(tools: Iterable[Tool | NativeTool]) -> list[Any]:
    """Render tools as the items of the array `tools`."""
    return [_write_tool(tool) for tool in tools]


def _write_tool(tool: Tool | NativeTool) -> Any:
    if isinstance(tool, NativeTool):
        return Raw(tool.raw)
    shape = ToolShape(
        name=tool.name,
        type="custom" if "custom" in tool.spelling else None,
        description=tool.description or ("" if "description" in tool.spelling else None),
        input_schema=_write_schema(tool),
        strict=tool.strict,
        cache_control=write_cache_mark(tool.cache),
    )
    fields = own_extras(tool, NAME)
    return Raw(graft(encode(shape), fields)) if fields else shape


def _write_schema(tool: Tool) -> Raw:
    if tool.parameters is not None:
        return Raw(tool.parameters)
    return ABSENT if "bare" in tool.spelling else _NO_PARAMETERS


def write_choice(choice: ToolChoice | None, *, tools: bool) -> Any:
    """Render `tool_choice`; None if the request does not set it."""
    if choice is None:
        return None
    if choice.mode is None and (choice.parallel is not False or not tools):
        return None
    flag = None if choice.parallel is None else not choice.parallel
    match choice.mode:
        case "none":
            shape = ChoiceShape("none")
        case "required" if len(choice.names) == 1:
            shape = ChoiceShape("tool", choice.names[0], flag)
        case "required":
            shape = ChoiceShape("any", None, flag)
        case _:
            shape = ChoiceShape("auto", None, flag)
    fields = own_extras(choice, NAME)
    return Raw(graft(encode(shape), fields)) if fields else shape


def write_fields(request: Request, traits: Traits) -> dict[str, Any]:
    """Return the members of the body other than messages and tools."""
    spelling = request.spelling
    body = SAMPLING_FIELDS.write(request.sampling)
    if request.sampling.stop or "stop_sequences" in spelling:
        body["stop_sequences"] = request.sampling.stop
    if (thinking := _write_thinking(request, traits)) is not None:
        body["thinking"] = thinking
    output_format = _write_format(request.output)
    config: dict[str, Any] = {}
    if request.thinking is not None and request.thinking.effort is not None:
        config["effort"] = request.thinking.effort
    if output_format is not None and "output_format" in spelling:
        body["output_format"] = output_format
    elif output_format is not None:
        config["format"] = output_format
    if config or "output_config" in spelling:
        body["output_config"] = config
    if request.user is not None or "metadata" in spelling:
        body["metadata"] = METADATA_FIELDS.write(request)
    if request.stream and "no stream" not in spelling:
        body["stream"] = True
    elif not request.stream and "stream" in spelling:
        body["stream"] = False
    return body


def _write_thinking(request: Request, traits: Traits) -> ThinkingShape | None:
    thinking = request.thinking
    if thinking is None or thinking.mode is None:
        return None
    if thinking.mode == "disabled":
        between = traits.thinks_between_tools or "between_tools" in request.spelling
        return ThinkingShape("between_tools" if between else "disabled")
    display = None if thinking.visible is None else _DISPLAY[thinking.visible]
    return ThinkingShape(thinking.mode, thinking.budget, display)


def _write_format(output: OutputFormat | None) -> FormatShape | None:
    if output is None or output.kind != "json_schema":
        return None
    return FormatShape("json_schema", ABSENT if output.schema is None else Raw(output.schema))
