"""Requests, parsed and rendered.

Rules: each member that reaches the core is decoded by its own shape, and all others are extras untouched.
`Request.spelling` holds the words this dialect has several of ("stream:false", "no input", "tools:[]"), and those of
`fields`.
"""

from collections.abc import Iterable
from typing import Any, cast

from msgspec import Raw

from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Reference, Request, leading_systems
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.record import Call, ReadTools
from dragoman.dialects.responses.fields import (
    REQUEST_FIELDS,
    read_metadata,
    read_sampling,
    read_text,
    read_thinking,
    read_user,
    write_fields,
)
from dragoman.dialects.responses.items import INSTRUCTIONS, plain_text, read_items, write_message
from dragoman.dialects.responses.parts import extras_of
from dragoman.dialects.responses.tools import read_choice, read_tools, write_choice, write_tools
from dragoman.dialects.responses.wire import NAME, ResponsesRequest
from dragoman.wire import json
from dragoman.wire.shape import Shape, carried, present
from dragoman.wire.unread import Unread

_REQUEST: Shape[ResponsesRequest] = Shape(ResponsesRequest)
_KEPT = ("conversation", "prompt")
"""Members that name what OpenAI keeps: earlier turns, instructions written once."""
_STRING_INPUT = "string"
_NO_INPUT = "no input"
_SAID_FALSE = "stream:false"


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Read a request."""
    try:
        body, unread = _REQUEST.read(call.body)
        return _read_request(body, unread, call, first, read_tools)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None


def _read_request(
    body: ResponsesRequest, unread: Unread | None, call: Call, first: int, read_tools: ReadTools
) -> Request:
    words: set[str] = set()
    extras: dict[str, bytes] = {}
    messages = _read_messages(body, words, first)
    if body.stream is False:
        words.add(_SAID_FALSE)
    thinking = read_thinking(body.reasoning, words, extras)
    output, verbosity = read_text(body.text, extras)
    tools = present(body.tools)
    choice = read_choice(body.tool_choice, body.parallel_tool_calls)
    if tools is not None and tools.strip() == b"[]":
        words.add("tools:[]")
    user = read_user(body, words, extras)
    metadata = read_metadata(body.metadata, extras)
    instructions = present(body.instructions)
    if instructions is not None and not instructions.startswith(b'"'):
        extras["/instructions"] = instructions
    fields = {**(carried(body) or {}), **(unread.rest() if unread is not None else {})}
    extras.update({pointer: raw for pointer, raw in fields.items() if raw != b"null"})
    return Request(
        **REQUEST_FIELDS.read(body),
        model=body.model or call.model,
        messages=messages,
        tools=read_tools(tools, "/tools") if tools is not None else (),
        tool_choice=choice,
        sampling=read_sampling(body),
        thinking=thinking,
        output=output,
        verbosity=verbosity,
        stream=bool(body.stream) or call.stream,
        references=tuple(Reference(where) for name in _KEPT if (where := _reference(name, extras)) is not None),
        user=user,
        metadata=metadata,
        extras=extras_of(extras),
        spelling=frozenset(words),
    )


def _reference(name: str, extras: dict[str, bytes]) -> str | None:
    """Return where a member says by its id what it means, if it does."""
    raw = extras.get(f"/{name}", b"null")
    if json.first_byte(raw) == b'"':
        return f"/{name}"
    named = json.decode_object(raw).get("id", b"null") if json.first_byte(raw) == b"{" else b"null"
    return f"/{name}/id" if json.first_byte(named) == b'"' else None


def _read_messages(body: ResponsesRequest, words: set[str], known: int) -> tuple[Message, ...]:
    messages: list[Message] = []
    instructions = present(body.instructions)
    if instructions is not None and instructions.startswith(b'"'):
        text = Text(where="/instructions", text=json.decode(instructions))
        messages.append(Message(where="/instructions", spelling=INSTRUCTIONS, role="system", parts=(text,)))
    if present(body.input) is None:
        words.add(_NO_INPUT)
        return tuple(messages)
    match json.first_byte(body.input):
        case b'"':
            text = Text(where="/input", text=json.decode(body.input))
            messages.append(Message(where="/input", spelling=_STRING_INPUT, role="user", parts=(text,)))
        case b"[":
            messages.extend(read_items(body.input, known))
        case _:
            raise json.Malformed("input must be a string or a list of items", "/input")
    return tuple(messages)


def render_request(request: Request, traits: Traits) -> Call:
    """Write a request. Nothing in this dialect depends on the model family."""
    del traits
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    messages = request.messages
    instructions = None if _is_alone(request) or _needs_the_word(request) else leading_instructions(messages)
    if instructions is not None:
        body["instructions"] = instructions
        messages = messages[1:]
    if messages or _NO_INPUT not in request.spelling:
        body["input"] = _write_input(messages, request.written)
    body.update(write_settings(request))
    if request.stream:
        body["stream"] = True
    elif _SAID_FALSE in request.spelling:
        body["stream"] = False
    encoded = json.encode(body)
    extras = own_extras(request, NAME)
    return Call(json.graft(encoded, extras) if extras else encoded, request.model, request.stream)


def _is_alone(request: Request) -> bool:
    """Tell whether a foreign request is one message: as `instructions` it would leave `input` empty, a 400."""
    return len(request.messages) == 1 and request.messages[0].spelling != INSTRUCTIONS and not request.written


def _needs_the_word(request: Request) -> bool:
    """Tell whether only foreign instructions say "json": OpenAI gives JSON only to who asks for it in the input."""
    if request.output is None or request.output.kind != "json":
        return False
    first, *rest = request.messages or (None,)
    if first is None or first.role != "system" or first.spelling == INSTRUCTIONS:
        return False
    texts = [part.text for message in rest for part in message.parts if isinstance(part, Text)]
    return not any("json" in text.lower() for text in (*texts, *_texts_of(request.written)))


def _texts_of(written: bytes) -> Iterable[str]:
    """Return what messages say among items that were written before: the name of a call or a file says nothing."""
    if b"json" not in written.lower():
        return ()
    items: list[dict[str, Any]] = json.decode(b"[%s]" % written)
    contents = [item.get("content") for item in items if item.get("type", "message") == "message"]
    pieces = [piece for content in contents if isinstance(content, list) for piece in cast("list[Any]", content)]
    return [*(text for text in contents if isinstance(text, str)), *(piece.get("text", "") for piece in pieces)]


def leading_instructions(messages: tuple[Message, ...]) -> str | None:
    """Return the text of a first system message that is, or may become, `instructions`."""
    if not messages or messages[0].role != "system" or messages[0].spelling.startswith("item"):
        return None
    texts = [plain_text(part) for part in messages[0].parts]
    plain = [text for text in texts if text is not None]
    return "\n\n".join(plain) if texts and len(plain) == len(texts) else None


def _write_input(messages: tuple[Message, ...], written: bytes) -> Any:
    if len(messages) == 1 and messages[0].spelling == _STRING_INPUT and messages[0].where == "/input":
        text = plain_text(messages[0].parts[0]) if len(messages[0].parts) == 1 else None
        if text is not None:
            return text
    split = leading_systems(messages)
    items = [item for message in messages[:split] for item in write_message(message)]
    if written:
        items.append(Raw(written))
    items.extend([item for message in messages[split:] for item in write_message(message)])
    return items


def write_settings(request: Request, *, explicit: bool = False) -> dict[str, Any]:
    """Write everything but the conversation, as a reply echoes it when `explicit`."""
    body: dict[str, Any] = {}
    if request.written_tools:
        body["tools"] = Raw(request.written_tools)
    elif request.tools or "tools:[]" in request.spelling:
        body["tools"] = write_tools(request.tools, explicit=explicit)
    if request.tool_choice is not None:
        choice = write_choice(request.tool_choice, request.tools)
        if choice is not None:
            body["tool_choice"] = choice
    return body | write_fields(request)
