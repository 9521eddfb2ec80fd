"""A generateContent request to and from the core.

Rules: one content is one message, in the order received; the system instruction is the first. What Google lets a caller
write in several ways (an object for a list, a text for a content, an empty object) is remembered as a spelling word and
restored; the legacy roles `function` and `tool`, and `MODE_UNSPECIFIED`, are read but never written.
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from msgspec import Raw, Struct

from dragoman.core.parts import AnyPart, Text, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Reference, Request, Role, Sampling
from dragoman.core.traits import Traits
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.gemini import code_assist, wire
from dragoman.dialects.gemini.fields import (
    CONFIG_FIELDS,
    PRESENT,
    REQUEST_FIELDS,
    read_output,
    read_sampling,
    read_thinking,
    write_config,
)
from dragoman.dialects.gemini.parts import read_part, write_parts
from dragoman.dialects.gemini.tools import read_choice, read_tools, write_choice, write_tools
from dragoman.dialects.gemini.wire import NAME, REQUEST, GeminiPart, GenerateContentRequest, Leftovers
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire import json
from dragoman.wire.shape import carried, present
from dragoman.wire.unread import Unread

NO_ROLE = "no_role"
ONE_PART = "one_part"
NO_PARTS = "no_parts"
STRING = "string_instruction"
"""Not plain "string": other dialects say that of their messages, and Gemini itself wants an object."""
ROLE = "role:"
ONE_CONTENT = "one_content"
ONE_TOOL = "tools_object"
NO_TOOLS = "tools"
CONFIG = "toolConfig"
CALLING_CONFIG = "functionCallingConfig"
_KEPT = ("cachedContent", "cached_content", "continuationToken", "continuation_token")
_NO_SAMPLING = Sampling()
_ROLES: dict[str | None, Role] = {
    "user": "user",
    "model": "assistant",
    None: "user",
    "": "user",
    "function": "user",
    "tool": "user",
}


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Read a request, in Code Assist's envelope or without it."""
    try:
        body, unread = REQUEST.read(call.body)
        inner = present(body.request)
        if inner is not None and body.contents is None:
            return _read_enveloped(body, inner, unread, call, read_tools)
        if inner is not None:
            unread = unread or Unread()
            unread.add("/request", inner)
        return _read_request(_Read(body, unread, call, first=first), read_tools)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None


class _Read(Struct, frozen=True):
    """A decoded request and its position in the document."""

    body: GenerateContentRequest
    unread: Unread | None
    call: Call
    first: int = 0
    """The number of the first message that the body holds."""
    prefix: str = ""
    """The pointer of the request in Code Assist's envelope; empty without one."""
    outer: dict[str, bytes] | None = None
    """The members of the envelope."""


def _read_enveloped(
    wrapper: GenerateContentRequest, inner: bytes, envelope: Unread | None, call: Call, read_tools: ReadTools
) -> Request:
    try:
        body, unread = REQUEST.read(inner)
    except json.Malformed as error:
        raise json.Malformed(error.message, code_assist.INNER + error.where) from None
    outer = {**(carried(wrapper) or {}), **(envelope.rest() if envelope else {})}
    model = _bare_model(outer.pop("/model", b'""'))
    enveloped = Call(body=b"", model=model or call.model, stream=call.stream)
    return _read_request(_Read(body, unread, enveloped, prefix=code_assist.INNER, outer=outer), read_tools)


def _read_request(read: _Read, read_tools: ReadTools) -> Request:
    body, unread, call, prefix, outer = read.body, read.unread, read.call, read.prefix, read.outer
    if body.contents is None:
        raise Problem("invalid_request", "contents is missing", where=f"{prefix}/contents")
    if unread is not None:
        unread.renumber("contents", read.first)
    leftovers = Leftovers(unread or Unread(), prefix)
    below = leftovers if unread else None
    leftovers.carry(body, "")
    words: set[str] = set() if outer is None else {code_assist.WORD}
    messages = tuple(_read_messages(body, prefix, below, words, read.first))
    raw_tools = present(body.tools)
    tools = read_tools(raw_tools, f"{prefix}/tools") if raw_tools is not None else ()
    if raw_tools is not None and (word := _tools_word(raw_tools)):
        words.add(word)
    choice = None
    if body.tool_config is not None:
        words.add(CONFIG)
        leftovers.carry(body.tool_config, "/toolConfig")
        calling = body.tool_config.function_calling_config
        if calling is not None:
            words.add(CALLING_CONFIG)
            choice = read_choice(calling, f"{prefix}/toolConfig/functionCallingConfig")
    config = body.generation_config
    sampling, thinking, output, simple = _NO_SAMPLING, None, None, REQUEST_FIELDS.read(body)
    if config is not None:
        where = f"{prefix}/generationConfig"
        words.add(PRESENT)
        leftovers.carry(config, "/generationConfig")
        sampling = read_sampling(config, where, words)
        if config.thinking_config is not None:
            thinking = read_thinking(config.thinking_config, f"{where}/thinkingConfig", words, leftovers)
        output = read_output(config, where, leftovers)
        simple |= CONFIG_FIELDS.read(config, where)
    rest = {**outer, **leftovers.rest()} if outer else leftovers.rest()
    return Request(
        **simple,
        model=call.model or _bare_model(rest.get("/model", b'""')),
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=sampling,
        thinking=thinking,
        output=output,
        stream=call.stream,
        references=_references(rest, prefix) if rest else (),
        extras=Extras(NAME, rest) if rest else None,
        spelling=frozenset(words),
    )


def _references(rest: dict[str, bytes], prefix: str) -> tuple[Reference, ...]:
    """Find what a request stands on or goes on from that only Google keeps."""
    places = (f"{prefix}/{name}" for name in _KEPT)
    return tuple(Reference(place) for place in places if rest.get(place, b'""') not in (b'""', b"null"))


def _bare_model(raw: bytes) -> str:
    model = json.decode(raw)
    return model.removeprefix("models/") if isinstance(model, str) else ""


def _read_messages(
    body: GenerateContentRequest, prefix: str, leftovers: Leftovers | None, words: set[str], known: int
) -> Iterator[Message]:
    if body.system_instruction is not None:
        yield _read_system(body.system_instruction, f"{prefix}/systemInstruction", leftovers)
    match body.contents:
        case list() as contents:
            for index, content in enumerate(contents, known):
                yield _read_message(content, f"{prefix}/contents/{index}", leftovers)
        case wire.Content() as content:
            words.add(ONE_CONTENT)
            yield _read_message(content, f"{prefix}/contents", leftovers)
        case None:
            pass


def _read_system(instruction: wire.Content | str, where: str, leftovers: Leftovers | None) -> Message:
    if isinstance(instruction, str):
        return Message(role="system", parts=(Text(text=instruction, where=where),), where=where, spelling=STRING)
    parts, spelling = _read_parts(instruction, where, leftovers)
    if instruction.role is not None:
        spelling = f"{ROLE}{instruction.role} {spelling}".rstrip()
    fields = leftovers.take(where) if leftovers is not None else None
    extras = Extras(NAME, fields) if fields else None
    return Message(role="system", parts=parts, where=where, spelling=spelling, extras=extras)


def _read_message(content: wire.Content, where: str, leftovers: Leftovers | None) -> Message:
    role = _ROLES.get(content.role)
    if role is None:
        raise Problem("invalid_request", f"not a valid role: {content.role!r}", where=f"{where}/role")
    parts, spelling = _read_parts(content, where, leftovers)
    if not content.role:
        spelling = f"{NO_ROLE} {spelling}".rstrip()
    if role == "assistant" and parts and all(isinstance(part, ToolResult) for part in parts):
        # Some Code Assist clients give results in the model's name.
        role, spelling = "user", f"{ROLE}{content.role} {spelling}".rstrip()
    fields = leftovers.take(where) if leftovers is not None else None
    extras = Extras(NAME, fields) if fields else None
    return Message(role=role, parts=parts, where=where, spelling=spelling, extras=extras)


def _read_parts(content: wire.Content, where: str, leftovers: Leftovers | None) -> tuple[tuple[AnyPart, ...], str]:
    parts = content.parts
    if parts is None:
        return (), NO_PARTS
    if isinstance(parts, GeminiPart):
        where = f"{where}/parts"
        return (read_part(parts, where, leftovers.take(where) if leftovers is not None else None),), ONE_PART
    read: list[AnyPart] = []
    for index, part in enumerate(parts):
        pointer = f"{where}/parts/{index}"
        read.append(read_part(part, pointer, leftovers.take(pointer) if leftovers is not None else None))
    return tuple(read), ""


def _tools_word(raw: bytes) -> str:
    """Return how tools were written, where it was not as a list of some."""
    if raw.startswith(b"{"):
        return ONE_TOOL
    return NO_TOOLS if not raw[1:-1].strip() else ""


def render_request(request: Request, traits: Traits) -> Call:  # noqa: ARG001 - what a model accepts was settled before
    """Write a request, in Code Assist's envelope if it came in one."""
    words, messages = request.spelling, request.messages
    system = tuple(takewhile(_is_system, messages))
    contents = [_write_message(message) for message in messages[len(system) :]]
    if request.written:
        contents.insert(0, Raw(request.written))
    body: dict[str, Any] = {"contents": contents[0] if ONE_CONTENT in words and len(contents) == 1 else contents}
    if system:
        body["systemInstruction"] = _write_system(system)
    if request.written_tools:
        body["tools"] = Raw(request.written_tools)
    elif request.tools or NO_TOOLS in words:
        tools = write_tools(request.tools)
        if tools or NO_TOOLS in words:
            body["tools"] = tools[0] if ONE_TOOL in words and len(tools) == 1 else tools
    if request.tool_choice is not None or CONFIG in words:
        _write_tool_config(request, body)
    config = write_config(request)
    if config is not None:
        body["generationConfig"] = config
    if request.metadata is not None:
        body |= REQUEST_FIELDS.write(request)
    encoded = json.encode(body)
    extras = own_extras(request, NAME) if request.extras is not None else None
    if extras or code_assist.WORD in words:
        encoded = _wrap(encoded, request, extras)
    return Call(body=encoded, model=request.model, stream=request.stream)


def _is_system(message: Message) -> bool:
    return message.role == "system"


def _wrap(encoded: bytes, request: Request, extras: dict[str, bytes] | None) -> bytes:
    """Put extras back, and the request into Code Assist's envelope if it came in one."""
    # Pointers are those of the document that was read: only a request that came in the envelope has them outside.
    outside = all(message.where.startswith(code_assist.INNER + "/") for message in request.messages)
    if extras and not outside:
        encoded = json.graft(encoded, extras)
    if code_assist.WORD in request.spelling:
        encoded = code_assist.wrap_request(encoded, request.model)
    return json.graft(encoded, extras) if extras and outside else encoded


def _write_tool_config(request: Request, body: dict[str, Any]) -> None:
    calling = write_choice(request.tool_choice) if request.tool_choice is not None else None
    if calling is None and CALLING_CONFIG in request.spelling:
        calling = wire.FunctionCallingConfig()
    if calling is not None or CONFIG in request.spelling:
        body["toolConfig"] = wire.ToolConfig(calling)


def _write_message(message: Message) -> Any:
    # The role first, in every request: a turn is the same bytes then, or no prompt cache knows it again.
    if not message.spelling and message.extras is None:
        return {"role": "model" if message.role == "assistant" else "user", "parts": write_parts(message.parts)}
    words = message.spelling.split()
    content = _spelled_parts(message.parts, words)
    if NO_ROLE not in words:
        role = "model" if message.role == "assistant" or f"{ROLE}model" in words else "user"
        content = {"role": role, **content}
    return _with_extras(content, message)


def _write_system(messages: tuple[Message, ...]) -> Any:
    first = messages[0]
    parts = first.parts if len(messages) == 1 else tuple([part for message in messages for part in message.parts])
    if not first.spelling and first.extras is None:
        return {"parts": write_parts(parts)}
    words = first.spelling.split()
    if STRING in words and len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    content = _spelled_parts(parts, words)
    for word in words:
        if word.startswith(ROLE):
            content["role"] = word[len(ROLE) :]
    return _with_extras(content, first)


def _spelled_parts(parts: tuple[AnyPart, ...], words: Iterable[str]) -> dict[str, Any]:
    written = write_parts(parts)
    if not written and NO_PARTS in words:
        return {}
    return {"parts": written[0] if ONE_PART in words and len(written) == 1 else written}


def _with_extras(content: dict[str, Any], message: Message) -> Any:
    fields = own_extras(message, NAME)
    return Raw(json.graft(json.encode(content), fields)) if fields else content
