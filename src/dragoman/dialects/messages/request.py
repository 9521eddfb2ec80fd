"""A Messages request: bytes to core and back.

The top-level `system` is the first message. Spellings of a message: "string" or "blocks" for its content, and "inline"
for a system message among the turns. Words in `Request.spelling` say which optional members were written empty, or were
absent because the URL had them, so that a request read here is written back as it was.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from msgspec import Raw

from dragoman.core.parts import AnyPart, Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.messages.fields import (
    METADATA_FIELDS,
    read_output,
    read_sampling,
    read_thinking,
    thread_references,
    write_fields,
)
from dragoman.dialects.messages.parts import extras_of, is_plain, read_part, write_parts
from dragoman.dialects.messages.tools import read_choice, read_tools, write_choice, write_tools
from dragoman.dialects.messages.wire import NAME, Block, RequestShape
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire.json import Malformed, encode, graft
from dragoman.wire.shape import Shape, carried
from dragoman.wire.unread import Unread

_REQUEST: Shape[RequestShape] = Shape(RequestShape)


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
    thinking = read_thinking(shape, fields, words)
    output = read_output(shape, fields, words)
    if unread is not None:
        fields.update(unread.rest())
    return Request(
        **(METADATA_FIELDS.read(shape.metadata) if shape.metadata is not None else {}),
        model=call.model if shape.model is None else shape.model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=read_sampling(shape),
        thinking=thinking,
        output=output,
        stream=call.stream if shape.stream is None else shape.stream,
        references=thread_references(shape.thread),
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


def render_request(request: Request, traits: Traits) -> Call:
    """Write a request whose values have been adapted to Messages."""
    body = encode(_write_request(request, traits))
    fields = own_extras(request, NAME)
    return Call(graft(body, fields) if fields else body, request.model, request.stream)


def _write_request(request: Request, traits: Traits) -> dict[str, Any]:
    leading = list(takewhile(_is_leading, request.messages))
    body: dict[str, Any] = {"model": request.model} if "no model" not in request.spelling else {}
    if leading and (system := _write_system(leading)) is not None:
        body["system"] = system
    if (tools := _write_tools(request)) is not None:
        body["tools"] = tools
    if (choice := write_choice(request.tool_choice, tools=bool(request.tools))) is not None:
        body["tool_choice"] = choice
    body |= write_fields(request, traits)
    written = [Raw(request.written)] if request.written else []
    body["messages"] = [*written, *(_write_message(message) for message in request.messages[len(leading) :])]
    return body


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
