"""A Messages request: bytes to core and back.

The top-level `system` is the first message. Spellings of a message: "string" or "blocks" for its content, and "inline"
for a system message that stood among the turns. Words in `Request.spelling` say which optional members were written out
empty, or were absent because the URL had said them, so that a request read here is written back as it was.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, TypeVar

from msgspec import Raw

from dragoman.core.parts import AnyPart, Text
from dragoman.core.problems import Problem
from dragoman.core.request import (
    EFFORTS,
    Message,
    NativeTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.messages.parts import (
    cache_control,
    cache_mark,
    extras_of,
    is_plain,
    read_part,
    write_parts,
)
from dragoman.dialects.messages.threads import thread_references
from dragoman.dialects.messages.wire import (
    ABSENT,
    NAME,
    Block,
    ChoiceShape,
    FormatShape,
    RequestShape,
    ThinkingShape,
    ToolShape,
)
from dragoman.dialects.record import Call
from dragoman.wire.json import Malformed, encode, graft
from dragoman.wire.shape import Shape, Unread, carried

T = TypeVar("T")

_REQUEST: Shape[RequestShape] = Shape(RequestShape)
_TOOL: Shape[ToolShape] = Shape(ToolShape)
_CHOICE: Shape[ChoiceShape] = Shape(ChoiceShape)
_THINKING: Shape[ThinkingShape] = Shape(ThinkingShape)
_FORMAT: Shape[FormatShape] = Shape(FormatShape)

_CHOICE_MODES: dict[str, Any] = {"auto": "auto", "any": "required", "tool": "required", "none": "none"}
_THINKING_MODES: dict[str, Any] = {
    "adaptive": "adaptive",
    "enabled": "enabled",
    "disabled": "disabled",
    "between_tools": "disabled",
}
_VISIBLE = {"summarized": True, "omitted": False}
_DISPLAY = {True: "summarized", False: "omitted"}
_NO_PARAMETERS = Raw(b'{"type":"object","properties":{}}')


def parse_request(call: Call) -> Request:
    """Read a request; what nobody reads stays in extras."""
    try:
        shape, unread = _REQUEST.read(call.body)
        return _read_request(call, shape, unread)
    except Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    except UnicodeDecodeError:
        raise Problem("invalid_request", "the body is not UTF-8") from None


def _read_request(call: Call, shape: RequestShape, unread: Unread | None) -> Request:
    fields = carried(shape) or {}
    words = _empty_words(shape, call)
    messages = tuple(_read_messages(shape, unread, call.known))
    tools = tuple(_read_tool(raw, f"/tools/{index}") for index, raw in enumerate(shape.tools or ()))
    choice = _read_choice(shape.tool_choice, fields)
    thinking = _read_thinking(shape, fields, words)
    output = _read_output(shape, fields, words)
    if unread is not None:
        fields.update(unread.rest())
    return Request(
        model=call.model if shape.model is None else shape.model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=Sampling(
            temperature=shape.temperature,
            top_p=shape.top_p,
            top_k=shape.top_k,
            max_tokens=shape.max_tokens,
            stop=tuple(shape.stop_sequences or ()),
        ),
        thinking=thinking,
        output=output,
        stream=call.stream if shape.stream is None else shape.stream,
        references=thread_references(shape.thread),
        user=None if shape.metadata is None else shape.metadata.user_id,
        extras=extras_of(fields),
        spelling=frozenset(words),
    )


def _empty_words(shape: RequestShape, call: Call) -> set[str]:
    words: set[str] = set()
    if shape.model is None:
        words.add("no model")
    if shape.stream is False:
        words.add("stream")
    elif shape.stream is None and call.stream:
        words.add("no stream")
    if shape.tools == []:
        words.add("tools")
    if shape.stop_sequences == []:
        words.add("stop_sequences")
    if shape.metadata is not None:
        words.add("metadata")
    if shape.output_config is not None:
        words.add("output_config")
    return words


def _read_messages(shape: RequestShape, unread: Unread | None, known: int) -> Iterator[Message]:
    if unread is not None:
        unread.renumber("messages", known)
    if shape.system is not None:
        spelling, parts = _read_content(shape.system, "/system", unread)
        yield Message(where="/system", spelling=spelling, role="system", parts=parts)
    for index, message in enumerate(shape.messages, known):
        where = f"/messages/{index}"
        spelling, parts = _read_content(message.content, where + "/content", unread)
        if message.role == "system":
            spelling += " inline"
        extras = None if unread is None else extras_of(unread.take(where))
        yield Message(where=where, spelling=spelling, extras=extras, role=message.role, parts=parts)


def _read_content(content: str | list[Block], where: str, unread: Unread | None) -> tuple[str, tuple[AnyPart, ...]]:
    if isinstance(content, str):
        return "string", (Text(where=where, text=content),)
    return "blocks", tuple([read_part(block, f"{where}/{index}", unread) for index, block in enumerate(content)])


def _read_at(shape: Shape[T], raw: Raw, where: str) -> tuple[T, dict[str, bytes]]:
    """Read a value that stands alone at `where`; its unread members come by pointer relative to it."""
    try:
        value, unread = shape.read(raw)
    except Malformed as error:
        raise Malformed(error.message, where + error.where) from None
    return value, {} if unread is None else unread.rest()


def _read_tool(raw: Raw, where: str) -> Tool | NativeTool:
    shape, fields = _read_at(_TOOL, raw, where)
    if shape.type not in (None, "custom"):
        return NativeTool(where=where, dialect=NAME, raw=bytes(raw))
    if not shape.name:
        raise Malformed("a tool needs a name", where + "/name")
    fields.update(carried(shape) or {})
    spelling = "custom" if shape.type else ""
    if shape.description == "":
        spelling += " description"
    if shape.input_schema is ABSENT:
        spelling += " bare"
    return Tool(
        where=where,
        spelling=spelling,
        extras=extras_of(fields),
        name=shape.name,
        description=shape.description or "",
        parameters=None if shape.input_schema is ABSENT else bytes(shape.input_schema),
        strict=shape.strict,
        cache=cache_mark(shape.cache_control),
    )


def _read_choice(raw: Raw, fields: dict[str, bytes]) -> ToolChoice | None:
    if raw is ABSENT or bytes(raw) == b"null":
        return None
    shape, below = _read_at(_CHOICE, raw, "/tool_choice")
    if shape.type not in _CHOICE_MODES:
        fields["/tool_choice"] = bytes(raw)
        return None
    if shape.type == "tool" and not shape.name:
        raise Malformed("a forced tool needs a name", "/tool_choice/name")
    if shape.type != "tool" and shape.name is not None:
        below["/name"] = encode(shape.name)
    disabled = shape.disable_parallel_tool_use
    return ToolChoice(
        where="/tool_choice",
        extras=extras_of(below),
        mode=_CHOICE_MODES[shape.type],
        names=(shape.name,) if shape.name and shape.type == "tool" else (),
        parallel=None if disabled is None else not disabled,
    )


def _read_thinking(shape: RequestShape, fields: dict[str, bytes], words: set[str]) -> Thinking | None:
    config = shape.output_config
    effort: Any = config.effort if config is not None else None
    if effort is not None and effort not in EFFORTS:
        fields["/output_config/effort"] = encode(effort)
        effort = None
    raw = shape.thinking
    if raw is ABSENT or bytes(raw) == b"null":
        return Thinking(effort=effort) if effort else None
    thinking, below = _read_at(_THINKING, raw, "/thinking")
    mode = _THINKING_MODES.get(thinking.type)
    if mode is None:
        fields["/thinking"] = bytes(raw)
        return Thinking(effort=effort) if effort else None
    if thinking.type == "between_tools":
        words.add("between_tools")
    visible = None if mode == "disabled" else _VISIBLE.get(thinking.display or "")
    if thinking.display is not None and visible is None:
        below["/display"] = encode(thinking.display)
    budget = thinking.budget_tokens
    if mode == "disabled" and budget is not None:
        below["/budget_tokens"] = encode(budget)
        budget = None
    fields.update({"/thinking" + pointer: value for pointer, value in below.items()})
    return Thinking(mode=mode, effort=effort, budget=budget, visible=visible)


def _read_output(shape: RequestShape, fields: dict[str, bytes], words: set[str]) -> OutputFormat | None:
    config = shape.output_config
    found = None if config is None else _read_format(config.format, "/output_config/format", fields)
    if found is not None:
        if shape.output_format is not ABSENT:
            fields["/output_format"] = bytes(shape.output_format)
        return found
    found = _read_format(shape.output_format, "/output_format", fields)
    if found is not None:
        words.add("output_format")
    return found


def _read_format(raw: Raw, where: str, fields: dict[str, bytes]) -> OutputFormat | None:
    if raw is ABSENT or bytes(raw) == b"null":
        return None
    shape, below = _read_at(_FORMAT, raw, where)
    if shape.type != "json_schema":
        fields[where] = bytes(raw)
        return None
    fields.update({where + pointer: value for pointer, value in below.items()})
    return OutputFormat(kind="json_schema", schema=None if shape.schema is ABSENT else bytes(shape.schema))


def render_request(request: Request, traits: Traits) -> Call:
    """Write a request whose values have been adapted to Messages."""
    body = encode(_write_request(request, traits))
    fields = own_extras(request, NAME)
    return Call(graft(body, fields) if fields else body, request.model, request.stream)


def _write_request(request: Request, traits: Traits) -> dict[str, Any]:
    words = request.spelling
    sampling = request.sampling
    leading = list(takewhile(_is_leading, request.messages))
    written = [Raw(request.written)] if request.written else []
    body: dict[str, Any] = {
        "model": None if "no model" in words else request.model,
        "max_tokens": sampling.max_tokens,
        "system": _write_system(leading) if leading else None,
        "tools": [_write_tool(tool) for tool in request.tools] if request.tools or "tools" in words else None,
        "tool_choice": _write_choice(request.tool_choice, tools=bool(request.tools)),
        "thinking": _write_thinking(request, traits),
        "output_config": _write_output_config(request),
        "output_format": _write_format(request.output) if "output_format" in words else None,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop_sequences": sampling.stop or ([] if "stop_sequences" in words else None),
        "metadata": _write_metadata(request),
        "stream": _write_stream(request),
        "messages": [*written, *(_write_message(message) for message in request.messages[len(leading) :])],
    }
    return {name: value for name, value in body.items() if value is not None}


def _is_leading(message: Message) -> bool:
    return message.role == "system" and "inline" not in message.spelling


def _write_system(messages: list[Message]) -> Any:
    """Top-level instructions: a string when that says it all, else blocks, which keep their cache marks."""
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


def _write_tool(tool: Tool | NativeTool) -> Any:
    if isinstance(tool, NativeTool):
        return Raw(tool.raw)
    shape = ToolShape(
        name=tool.name,
        type="custom" if "custom" in tool.spelling else None,
        description=tool.description or ("" if "description" in tool.spelling else None),
        input_schema=_write_schema(tool),
        strict=tool.strict,
        cache_control=cache_control(tool.cache),
    )
    fields = own_extras(tool, NAME)
    return Raw(graft(encode(shape), fields)) if fields else shape


def _write_schema(tool: Tool) -> Raw:
    if tool.parameters is not None:
        return Raw(tool.parameters)
    return ABSENT if "bare" in tool.spelling else _NO_PARAMETERS


def _write_choice(choice: ToolChoice | None, *, tools: bool) -> Any:
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


def _write_thinking(request: Request, traits: Traits) -> ThinkingShape | None:
    thinking = request.thinking
    if thinking is None or thinking.mode is None:
        return None
    if thinking.mode == "disabled":
        between = traits.thinks_between_tools or "between_tools" in request.spelling
        return ThinkingShape("between_tools" if between else "disabled")
    display = None if thinking.visible is None else _DISPLAY[thinking.visible]
    return ThinkingShape(thinking.mode, thinking.budget, display)


def _write_output_config(request: Request) -> dict[str, Any] | None:
    effort = request.thinking.effort if request.thinking else None
    form = None if "output_format" in request.spelling else _write_format(request.output)
    members = {"effort": effort, "format": form}
    written = {name: value for name, value in members.items() if value is not None}
    return written if written or "output_config" in request.spelling else None


def _write_format(output: OutputFormat | None) -> FormatShape | None:
    if output is None or output.kind != "json_schema":
        return None
    return FormatShape("json_schema", ABSENT if output.schema is None else Raw(output.schema))


def _write_metadata(request: Request) -> dict[str, str] | None:
    if request.user is not None:
        return {"user_id": request.user}
    return {} if "metadata" in request.spelling else None


def _write_stream(request: Request) -> bool | None:
    if request.stream:
        return None if "no stream" in request.spelling else True
    return False if "stream" in request.spelling else None
