"""Parses a Messages request: its messages, tools and tool choice. `fields` reads the other members.

The top-level `system` becomes the first message. Values of `spelling`, with which a request is rendered as it was sent:
for a message "string" or "blocks" for the form of its content, and "inline" for a system message among the turns; for a
tool "custom" if it had this type, "description" if that was empty, "bare" if it had no schema; for the request the
names of optional members that were sent empty, and "no model" or "no stream" if only the URL had them.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Raw, structs
from msgspec.json import Decoder

from dragoman.core.parts import AnyPart, Opaque, Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Request, Tool, ToolChoice
from dragoman.dialects.messages.client_tools import is_client_tool, list_calls
from dragoman.dialects.messages.fields import (
    METADATA_FIELDS,
    find_thread_references,
    read_output,
    read_sampling,
    read_thinking,
)
from dragoman.dialects.messages.parts import build_extras, is_plain, read_cache_mark, read_part
from dragoman.dialects.messages.wire import ABSENT, NAME, Block, ChoiceShape, RequestShape, TextBlock, ToolShape
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire.json import Malformed, decode_with, encode
from dragoman.wire.shape import Shape, get_raw_members
from dragoman.wire.unread import Unread

_TOOLS: Decoder[list[Raw] | None] = Decoder(list[Raw] | None)
_TOOL: Shape[ToolShape] = Shape(ToolShape)
_CHOICE: Shape[ChoiceShape] = Shape(ChoiceShape)
_CHOICE_MODES: dict[str, Any] = {"auto": "auto", "any": "required", "tool": "required", "none": "none"}
_REQUEST: Shape[RequestShape] = Shape(RequestShape)
_BILLING_BLOCK = re.compile(r"x-anthropic-billing-header: cc_version=[^;\s]+;(?: [a-z_]+=[^;\s]*;)*")
"""Claude Code's attribution of a request: its version, its entry point, and fields that may differ every time."""


def read_tools(raw: bytes, where: str) -> tuple[Tool | NativeTool, ...]:
    """Parse the array of tools whose pointer is `where`."""
    try:
        tools = decode_with(_TOOLS, raw)
    except Malformed as error:
        raise Malformed(error.message, where + error.where) from None
    return tuple([_read_tool(tool, f"{where}/{index}") for index, tool in enumerate(tools or ())])


def _read_tool(raw: Raw, where: str) -> Tool | NativeTool:
    shape, fields = _TOOL.read_at(raw, where)
    if shape.type not in (None, "custom"):
        native = NativeTool(where=where, dialect=NAME, raw=bytes(raw))
        return structs.replace(native, calls=list_calls(native)) if is_client_tool(shape.type) else native
    if not shape.name:
        raise Malformed("the tool has no name", where + "/name")
    fields.update(get_raw_members(shape) or {})
    spelling = "custom" if shape.type else ""
    if shape.description == "":
        spelling += " description"
    if shape.input_schema is ABSENT:
        spelling += " bare"
    return Tool(
        where=where,
        spelling=spelling,
        extras=build_extras(fields),
        name=shape.name,
        description=shape.description or "",
        parameters=None if shape.input_schema is ABSENT else bytes(shape.input_schema),
        strict=shape.strict,
        cache=read_cache_mark(shape.cache_control),
    )


def read_choice(raw: Raw, fields: dict[str, bytes]) -> ToolChoice | None:
    """Read `tool_choice`; one of an unknown type is kept whole in `fields`."""
    if raw is ABSENT or bytes(raw) == b"null":
        return None
    shape, below = _CHOICE.read_at(raw, "/tool_choice")
    if shape.type not in _CHOICE_MODES:
        fields["/tool_choice"] = bytes(raw)
        return None
    if shape.type == "tool" and not shape.name:
        raise Malformed("tool_choice of type 'tool' requires a name", "/tool_choice/name")
    if shape.type != "tool" and shape.name is not None:
        below["/name"] = encode(shape.name)
    disabled = shape.disable_parallel_tool_use
    return ToolChoice(
        where="/tool_choice",
        extras=build_extras(below),
        mode=_CHOICE_MODES[shape.type],
        names=(shape.name,) if shape.name and shape.type == "tool" else (),
        parallel=None if disabled is None else not disabled,
    )


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Parse a request; unread members are kept as extras."""
    try:
        shape, unread = _REQUEST.read(call.body)
        return _read_request(call, shape, unread, first, read_tools)
    except Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    except UnicodeDecodeError:
        raise Problem("invalid_request", "the request body is not valid UTF-8") from None


def _read_request(call: Call, shape: RequestShape, unread: Unread | None, first: int, read_tools: ReadTools) -> Request:
    fields = get_raw_members(shape) or {}
    tools = read_tools(bytes(shape.tools), "/tools") if shape.tools else ()
    spelling = _list_spelling(shape, call)
    if shape.tools and not tools and bytes(shape.tools) != b"null":
        spelling.add("tools")
    messages = tuple(_read_messages(shape, unread, first))
    choice = read_choice(shape.tool_choice, fields)
    thinking = read_thinking(shape, fields, spelling)
    output = read_output(shape, fields, spelling)
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
        references=find_thread_references(shape.thread),
        extras=build_extras(fields),
        spelling=frozenset(spelling),
    )


def _list_spelling(shape: RequestShape, call: Call) -> set[str]:
    spelling: set[str] = set()
    if shape.model is None:
        spelling.add("no model")
    if shape.stream is False:
        spelling.add("stream")
    elif shape.stream is None and call.stream:
        spelling.add("no stream")
    if shape.stop_sequences == []:
        spelling.add("stop_sequences")
    if shape.metadata is not None:
        spelling.add("metadata")
    if shape.output_config is not None:
        spelling.add("output_config")
    return spelling


def _read_messages(shape: RequestShape, unread: Unread | None, first: int) -> Iterator[Message]:
    if unread is not None:
        unread.renumber("messages", first)
    if shape.system is not None:
        spelling, parts = _read_content(shape.system, "/system", unread)
        yield Message(where="/system", spelling=spelling, role="system", parts=_read_billing_block(spelling, parts))
    for index, message in enumerate(shape.messages, first):
        where = f"/messages/{index}"
        spelling, parts = _read_content(message.content, where + "/content", unread)
        if message.role == "system":
            spelling += " inline"
        extras = None if unread is None else build_extras(unread.take(where))
        yield Message(where=where, spelling=spelling, extras=extras, role=message.role, parts=parts)


def _read_billing_block(spelling: str, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """Return the parts of `system` with Claude Code's billing block as opaque: it is no text for a model.

    It is the first block and has the documented form, and nothing but text; anything else is the caller's own text.
    """
    first = parts[0] if parts and spelling == "blocks" else None
    if not isinstance(first, Text) or not is_plain(first) or not _BILLING_BLOCK.fullmatch(first.text):
        return parts
    raw = encode(TextBlock(first.text))
    return (Opaque(where=first.where, dialect=NAME, raw=raw, is_accounting=True), *parts[1:])


def _read_content(content: str | list[Block], where: str, unread: Unread | None) -> tuple[str, tuple[AnyPart, ...]]:
    if isinstance(content, str):
        return "string", (Text(where=where, text=content),)
    return "blocks", tuple([read_part(block, f"{where}/{index}", unread) for index, block in enumerate(content)])
