"""Requests, parsed and rendered.

Rules: the body is opened one level; each member that reaches the core is decoded by its own shape, and all others are
extras untouched. `Request.spelling` holds the words this dialect has several of ("user", "summary:concise",
"stream:false", "no input", "tools:[]").
"""

from collections.abc import Iterable
from typing import Any, cast

from msgspec import Raw
from msgspec.json import Decoder

from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import (
    EFFORTS,
    Message,
    OutputFormat,
    Reference,
    Request,
    Sampling,
    Thinking,
    leading_systems,
)
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call, ReadTools
from dragoman.dialects.responses.items import INSTRUCTIONS, plain_text, read_items, write_message
from dragoman.dialects.responses.parts import extras_of
from dragoman.dialects.responses.tools import read_choice, read_tools, write_choice, write_tools
from dragoman.dialects.responses.wire import (
    NAME,
    JsonFormat,
    ReasoningSettings,
    SchemaFormat,
    TextFormat,
    TextSettings,
    decode_known,
    optional,
)
from dragoman.wire import json, pointer
from dragoman.wire.shape import Shape, carried, present
from dragoman.wire.unread import Unknown

_STRING: Decoder[str] = Decoder(str)
_BOOLEAN: Decoder[bool] = Decoder(bool)
_INTEGER: Decoder[int] = Decoder(int)
_NUMBER: Decoder[int | float] = Decoder(int | float)
_PAIRS: Decoder[dict[str, str]] = Decoder(dict[str, str])
_REASONING: Shape[ReasoningSettings] = Shape(ReasoningSettings)
_TEXT: Shape[TextSettings] = Shape(TextSettings)

_KEPT = ("conversation", "prompt")
"""Members that name what OpenAI keeps: earlier turns, instructions written once."""
_STRING_INPUT = "string"
_NO_INPUT = "no input"
_SAID_FALSE = "stream:false"
_SUMMARIES = {"auto": "", "concise": "summary:concise", "detailed": "summary:detailed"}

POINTERS = {
    "model": ("/model",),
    "sampling.temperature": ("/temperature",),
    "sampling.top_p": ("/top_p",),
    "sampling.max_tokens": ("/max_output_tokens",),
    "thinking.effort": ("/reasoning/effort",),
    "thinking.visible": ("/reasoning/summary",),
    "output": ("/text/format",),
    "output.name": ("/text/format/name",),
    "output.description": ("/text/format/description",),
    "output.strict": ("/text/format/strict",),
    "output.schema": ("/text/format/schema",),
    "verbosity": ("/text/verbosity",),
    "messages": ("/input",),
    "tools": ("/tools",),
    "tool_choice": ("/tool_choice",),
    "tool_choice.parallel": ("/parallel_tool_calls",),
    "continues": ("/previous_response_id",),
    "user": ("/safety_identifier", "/user"),
    "metadata": ("/metadata",),
    "stream": ("/stream",),
    "tool.strict": ("/strict",),
    "tool.parameters": ("/parameters",),
    "part.cache": ("/prompt_cache_breakpoint",),
    "part.signature": ("/encrypted_content",),
    "part.citations": ("/annotations",),
    "tool_choice.names": ("/tool_choice/tools",),
    "call.id": ("/call_id",),
    "call.arguments": ("/arguments",),
    "result.call_id": ("/call_id",),
    "result.name": ("/name",),
    "media.name": ("/filename",),
}


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Read a request."""
    try:
        return _parse(json.decode_object(call.body), call, first, read_tools)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None


def _parse(members: dict[str, Raw], call: Call, first: int, read_tools: ReadTools) -> Request:
    words: set[str] = set()
    extras: dict[str, bytes] = {}
    messages = _read_messages(members, words, first)
    stream = optional(members, "stream", _BOOLEAN)
    if stream is False:
        words.add(_SAID_FALSE)
    thinking = _read_thinking(members, words, extras)
    output, verbosity = _read_text(members, extras)
    tools = members.pop("tools", None)
    choice = read_choice(members.pop("tool_choice", None), optional(members, "parallel_tool_calls", _BOOLEAN))
    if tools is not None and bytes(tools).strip() == b"[]":
        words.add("tools:[]")
    model = optional(members, "model", _STRING) or call.model
    sampling = Sampling(
        temperature=optional(members, "temperature", _NUMBER),
        top_p=optional(members, "top_p", _NUMBER),
        max_tokens=optional(members, "max_output_tokens", _INTEGER),
    )
    continues = optional(members, "previous_response_id", _STRING)
    user = _read_user(members, words)
    metadata = _read_metadata(members)
    extras.update({f"/{pointer.escape(name)}": bytes(raw) for name, raw in members.items() if present(raw) is not None})
    references = tuple(Reference(where) for name in _KEPT if (where := _reference(name, extras)) is not None)
    return Request(
        model=model,
        messages=messages,
        tools=() if present(tools) is None else read_tools(bytes(tools), "/tools"),
        tool_choice=choice,
        sampling=sampling,
        thinking=thinking,
        output=output,
        verbosity=verbosity,
        stream=bool(stream) or call.stream,
        continues=continues,
        references=references,
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


def _read_messages(members: dict[str, Raw], words: set[str], known: int) -> tuple[Message, ...]:
    messages: list[Message] = []
    instructions = members.get("instructions")
    if instructions is not None and json.first_byte(instructions) == b'"':
        del members["instructions"]
        text = Text(where="/instructions", text=json.decode(instructions))
        messages.append(Message(where="/instructions", spelling=INSTRUCTIONS, role="system", parts=(text,)))
    raw = members.pop("input", None)
    if present(raw) is None:
        words.add(_NO_INPUT)
        return tuple(messages)
    match json.first_byte(raw):
        case b'"':
            text = Text(where="/input", text=json.decode(raw))
            messages.append(Message(where="/input", spelling=_STRING_INPUT, role="user", parts=(text,)))
        case b"[":
            messages.extend(read_items(raw, known))
        case _:
            raise json.Malformed("input must be a string or a list of items", "/input")
    return tuple(messages)


def _read_thinking(members: dict[str, Raw], words: set[str], extras: dict[str, bytes]) -> Thinking | None:
    raw = members.get("reasoning")
    if present(raw) is None:
        return None
    try:
        settings, unread = _REASONING.read(raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, "/reasoning" + error.where) from None
    effort = settings.effort if settings.effort in EFFORTS else None
    visible = settings.summary in _SUMMARIES or None
    if effort is None and visible is None:
        return None
    del members["reasoning"]
    if effort is None and settings.effort is not None:
        extras["/reasoning/effort"] = json.encode(settings.effort)
    if visible is None and settings.summary is not None:
        extras["/reasoning/summary"] = json.encode(settings.summary)
    elif settings.summary:
        words.add(_SUMMARIES[settings.summary])
        words.discard("")
    fields = {**(carried(settings) or {}), **(unread.rest() if unread else {})}
    extras.update({"/reasoning" + field: raw for field, raw in fields.items()})
    return Thinking(effort=effort, visible=visible)


def _read_text(members: dict[str, Raw], extras: dict[str, bytes]) -> tuple[OutputFormat | None, str | None]:
    raw = members.get("text")
    if present(raw) is None:
        return None, None
    try:
        settings, unread = _TEXT.read(raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, "/text" + error.where) from None
    output = _read_format(settings)
    if output is None and settings.verbosity is None:
        return None, None
    del members["text"]
    if isinstance(settings.format, Unknown):
        extras["/text/format"] = bytes(settings.format.raw)
    if unread:
        extras.update({"/text" + field: raw for field, raw in unread.rest().items()})
    return output, settings.verbosity


def _read_format(settings: TextSettings) -> OutputFormat | None:
    match settings.format:
        case TextFormat():
            return OutputFormat(kind="text")
        case JsonFormat():
            return OutputFormat(kind="json")
        case SchemaFormat(name=name, schema=schema, strict=strict, description=description):
            return OutputFormat(
                kind="json_schema",
                schema=present(schema),
                name=name or "",
                description=description or "",
                strict=strict,
            )
        case _:
            return None


def _read_user(members: dict[str, Raw], words: set[str]) -> str | None:
    """`safety_identifier` replaced `user`; a caller who sends both means the new one."""
    identifier = optional(members, "safety_identifier", _STRING)
    if identifier is not None:
        return identifier
    user = optional(members, "user", _STRING)
    if user is not None:
        words.add("user")
    return user


def _read_metadata(members: dict[str, Raw]) -> dict[str, str] | None:
    raw = members.get("metadata")
    pairs = None if raw is None else decode_known(_PAIRS, raw)
    if pairs is not None:
        del members["metadata"]
    return pairs


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
    if request.extras is not None and request.extras.dialect == NAME:
        encoded = json.graft(encoded, request.extras.fields)
    return Call(encoded, request.model, request.stream)


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
    body.update(
        {
            name: value
            for name, value in (
                ("parallel_tool_calls", request.tool_choice.parallel if request.tool_choice else None),
                ("max_output_tokens", request.sampling.max_tokens),
                ("temperature", request.sampling.temperature),
                ("top_p", request.sampling.top_p),
                ("reasoning", _write_thinking(request)),
                ("text", _write_text(request)),
                ("metadata", request.metadata),
                ("user" if "user" in request.spelling else "safety_identifier", request.user),
                ("previous_response_id", request.continues),
            )
            if value is not None
        }
    )
    return body


def _write_thinking(request: Request) -> dict[str, Any] | None:
    if request.thinking is None:
        return None
    wire: dict[str, Any] = {}
    if request.thinking.effort is not None:
        wire["effort"] = request.thinking.effort
    if request.thinking.visible:
        said = [word for word in request.spelling if word.startswith("summary:")]
        wire["summary"] = said[0].removeprefix("summary:") if said else "auto"
    return wire or None


def _write_text(request: Request) -> dict[str, Any] | None:
    wire: dict[str, Any] = {}
    if request.output is not None:
        wire["format"] = _write_format(request.output)
    if request.verbosity is not None:
        wire["verbosity"] = request.verbosity
    return wire or None


def _write_format(output: OutputFormat) -> dict[str, Any]:
    if output.kind != "json_schema":
        return {"type": "text" if output.kind == "text" else "json_object"}
    wire: dict[str, Any] = {"type": "json_schema", "name": output.name or "output"}
    if output.description:
        wire["description"] = output.description
    wire["schema"] = Raw(output.schema or b"{}")
    if output.strict is not None:
        wire["strict"] = output.strict
    return wire
