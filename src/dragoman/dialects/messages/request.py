"""A Messages request: bytes to core and back.

The top-level `system` is the first message. Spellings of a message: "string" or "blocks" for its content, and "inline"
for a system message among the turns. Words in `Request.spelling` say which optional members were written empty, or were
absent because the URL had them, so that a request read here is written back as it was. Of a message thread (beta) the
server keeps the conversation, and a request has only what is new.
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
    OutputFormat,
    Reference,
    Request,
    Sampling,
    Thinking,
)
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.messages.parts import (
    extras_of,
    is_plain,
    read_part,
    write_parts,
)
from dragoman.dialects.messages.tools import read_choice, read_tools, write_choice, write_tools
from dragoman.dialects.messages.wire import (
    ABSENT,
    NAME,
    Block,
    FormatShape,
    RequestShape,
    ThinkingShape,
)
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire import json
from dragoman.wire.json import Malformed, encode, graft
from dragoman.wire.shape import Shape, carried
from dragoman.wire.unread import Unread

_UNSUPPORTED = "thread_unsupported_request"
"""At this word the SDKs' tool runners send the whole conversation, without a thread."""


def thread_references(thread: Raw) -> tuple[Reference, ...]:
    """Return what a request goes on from; one that begins a thread says everything itself."""
    if thread is ABSENT or json.first_byte(thread) != b"{":
        return ()
    members = json.decode_object(thread)
    if json.first_byte(members.get("previous_message_id", b"null")) == b'"':
        return (Reference("/thread/previous_message_id", _UNSUPPORTED),)
    continues = bytes(members.get("type", b"")) == b'"continue"'
    return (Reference("/thread/type", _UNSUPPORTED),) if continues else ()


T = TypeVar("T")

_REQUEST: Shape[RequestShape] = Shape(RequestShape)
_THINKING: Shape[ThinkingShape] = Shape(ThinkingShape)
_FORMAT: Shape[FormatShape] = Shape(FormatShape)

_THINKING_MODES: dict[str, Any] = {
    "adaptive": "adaptive",
    "enabled": "enabled",
    "disabled": "disabled",
    "between_tools": "disabled",
}
_VISIBLE = {"summarized": True, "omitted": False}
_DISPLAY = {True: "summarized", False: "omitted"}


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Read a request; what nobody reads stays in extras."""
    try:
        shape, unread = _REQUEST.read(call.body)
        return _read_request(call, shape, unread, first, read_tools)
    except Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    except UnicodeDecodeError:
        raise Problem("invalid_request", "the body is not UTF-8") from None


def _read_request(call: Call, shape: RequestShape, unread: Unread | None, first: int, read_tools: ReadTools) -> Request:
    fields = carried(shape) or {}
    tools = read_tools(bytes(shape.tools), "/tools") if shape.tools else ()
    words = _empty_words(shape, call)
    if shape.tools and not tools and bytes(shape.tools) != b"null":
        words.add("tools")
    messages = tuple(_read_messages(shape, unread, first))
    choice = read_choice(shape.tool_choice, fields)
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


def _read_thinking(shape: RequestShape, fields: dict[str, bytes], words: set[str]) -> Thinking | None:
    config = shape.output_config
    effort: Any = config.effort if config is not None else None
    if effort is not None and effort not in EFFORTS:
        fields["/output_config/effort"] = encode(effort)
        effort = None
    raw = shape.thinking
    if raw is ABSENT or bytes(raw) == b"null":
        return Thinking(effort=effort) if effort else None
    thinking, below = _THINKING.read_at(raw, "/thinking")
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
    shape, below = _FORMAT.read_at(raw, where)
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
        "tools": _write_tools(request),
        "tool_choice": write_choice(request.tool_choice, tools=bool(request.tools)),
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


def _write_tools(request: Request) -> Any:
    if request.written_tools:
        return Raw(request.written_tools)
    return write_tools(request.tools) if request.tools or "tools" in request.spelling else None


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
