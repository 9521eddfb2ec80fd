"""A whole request, parsed and rendered: its messages, and around them what `fields` and `tools` read.

Rules: every field the core has no word for stays in extras by its pointer, also a known field with a value nobody
knows. `Request.spelling` holds the words that were used where the dialect has several. One message on the wire is one
in the core. A message's words: "developer" for the role, "list" for content given as a list, "null" for content given
as nothing, "blank" for empty text beside calls (it is no part), and "reasoning_content" or "reasoning" where that field
was empty. A tool's result has "list", "null", "named" (it says its name) or "function" (the legacy role).
"""

from operator import attrgetter
from typing import Any

from msgspec import Raw

from dragoman.core.parts import AnyPart, Content, Data, Media, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Role, leading_systems
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.chat import wire
from dragoman.dialects.chat.fields import (
    Spelling,
    extras_at,
    is_legacy,
    known_extras,
    read_options,
    read_sampling,
    spell,
    with_extras,
    words_of,
    write_fields,
)
from dragoman.dialects.chat.parts import read_call, read_legacy_call, read_part, write_call, write_part
from dragoman.dialects.chat.tools import read_choice, read_legacy_functions, read_tools, write_choice, write_tools
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire.json import Malformed, decode_object, encode, graft
from dragoman.wire.shape import carried, present
from dragoman.wire.unread import Unread

Written = dict[str, Any] | Raw
MODEL_IN_URL = "model in url"
_CONTENT_MESSAGES = (wire.UserMessage, wire.SystemMessage, wire.DeveloperMessage)
_CONTENT_ROLES: dict[type, tuple[Role, str]] = {
    wire.UserMessage: ("user", ""),
    wire.SystemMessage: ("system", ""),
    wire.DeveloperMessage: ("system", "developer"),
}
"""Messages that are only content: their role, and the word for it."""
_get_rest = attrgetter(
    "name", "reasoning_content", "reasoning", "refusal", "function_call", "annotations", "reasoning_details", "prefix"
)
"""What a message of the model has beside text and calls."""
_NO_REST = _get_rest(wire.AssistantMessage())
REASONING_WORDS = ("reasoning_content", "reasoning")


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Read a request."""
    try:
        body, unread = wire.REQUEST.read(call.body)
        raw_tools = present(body.tools)
        tools = read_tools(raw_tools, "/tools") if raw_tools is not None else ()
    except Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    words: set[str] = set()
    extras: dict[str, bytes] = {}
    messages = _read_messages(body.messages, unread, first)
    if body.model is None:
        words.add(MODEL_IN_URL)
    if raw_tools is not None and not tools:
        words.add("tools []")
    if body.functions is not None:
        tools = (*tools, *read_legacy_functions(body.functions, unread))
        if not body.functions:
            words.add("functions []")
    choice = read_choice(body, unread, extras)
    sampling = read_sampling(body, words, extras)
    options = read_options(body, unread, words, extras)
    if body.stream is False:
        words.add("stream false")
    if unread is not None:
        extras = {**unread.rest(), **extras}
    if (fields := carried(body)) is not None:
        extras = {**fields, **extras}
    return Request(
        **options,
        model=body.model or call.model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=sampling,
        stream=body.stream or call.stream,
        extras=known_extras(extras) if extras else None,
        spelling=frozenset(words),
    )


def _read_messages(messages: list[wire.Message], unread: Unread | None, known: int) -> tuple[Message, ...]:
    """Read all messages of a request, the first of which is number `known`."""
    below = unread if unread is not None and unread.has("messages") else None
    if below is not None:
        below.renumber("messages", known)
    return tuple([_read_message(message, f"/messages/{index}", below) for index, message in enumerate(messages, known)])


def _read_message(message: wire.Message, where: str, unread: Unread | None) -> Message:
    if isinstance(message, _CONTENT_MESSAGES):
        content = message.content
        role, word = _CONTENT_ROLES[message.__class__]
        if isinstance(content, str):
            parts: tuple[AnyPart, ...] = (Text(text=content, where=where + "/content"),)
        else:
            parts, word = read_content(content, where, unread), f"{word} {_form(content)}".strip()
        spelling = spell(word) if word else ""
        if unread is None and message.name is None:
            return Message(role=role, parts=parts, where=where, spelling=spelling)
        extras = extras_at(unread, where)
        return Message(role=role, parts=parts, name=message.name or "", where=where, spelling=spelling, extras=extras)
    match message:
        case wire.AssistantMessage():
            return _read_assistant(message, where, unread)
        case wire.ToolMessage() | wire.FunctionMessage():
            return Message(role="user", parts=(_read_result(message, where, unread),), where=where)
        case wire.UnknownMessage(raw=raw):
            if "role" not in decode_object(raw):
                raise Problem("invalid_request", "a message has no role", where=f"{where}/role")
            part = Opaque(dialect=NAME, raw=bytes(raw), where=where, spelling=Spelling.MESSAGE)
            return Message(role="user", parts=(part,), where=where)


def read_content(content: str | list[wire.Part] | None, where: str, unread: Unread | None) -> tuple[AnyPart, ...]:
    """Read content given as text, as a list, or not at all."""
    if isinstance(content, str):
        return (Text(text=content, where=f"{where}/content"),)
    if content is None:
        return ()
    return tuple([read_part(part, f"{where}/content/{index}", unread) for index, part in enumerate(content)])


def _form(content: str | list[wire.Part] | None) -> str:
    if isinstance(content, str):
        return ""
    return "null" if content is None else "list"


def _read_assistant(message: wire.AssistantMessage, where: str, unread: Unread | None) -> Message:
    content, calls = message.content, message.tool_calls or ()
    words = [_form(content)]
    has_more = unread is not None or _get_rest(message) != _NO_REST
    parts = _read_reasoning(message, where, words) if has_more else []
    if content == "" and (calls or message.function_call):
        words.append("blank")
    else:
        parts += read_content(content, where, unread)
    if message.refusal is not None:
        parts.append(Refusal(text=message.refusal, where=f"{where}/refusal"))
    parts += [read_call(call, f"{where}/tool_calls/{index}", unread) for index, call in enumerate(calls)]
    if message.function_call is not None:
        parts.append(read_legacy_call(message.function_call, f"{where}/function_call", unread))
    return Message(
        role="assistant",
        parts=tuple(parts),
        name=message.name or "",
        where=where,
        spelling=spell(*words),
        extras=extras_at(unread, where, message) if has_more else None,
    )


def _read_reasoning(message: wire.AssistantMessage, where: str, empty: list[str]) -> list[AnyPart]:
    parts: list[AnyPart] = []
    for word, text in ((REASONING_WORDS[0], message.reasoning_content), (REASONING_WORDS[1], message.reasoning)):
        if text:
            parts.append(Reasoning(texts=(text,), where=f"{where}/{word}", spelling=spell(word)))
        elif text == "":
            empty.append(word)
    if len(parts) > 1 and message.reasoning_content == message.reasoning:
        return [Reasoning(texts=(message.reasoning or "",), where=f"{where}/reasoning_content", spelling=spell("both"))]
    return parts


def _read_result(message: wire.ToolMessage | wire.FunctionMessage, where: str, unread: Unread | None) -> ToolResult:
    content: tuple[Content, ...] = ()
    if isinstance(message.content, str) and message.content:
        content = (Text(text=message.content, where=f"{where}/content"),)
        if unread is None and isinstance(message, wire.ToolMessage) and message.name is None and message.tool_call_id:
            return ToolResult(call_id=message.tool_call_id, content=content, where=where)
    elif message.content:
        parts = read_content(message.content, where, unread)
        content = tuple([_as_content(part) for part in parts])
    if isinstance(message, wire.FunctionMessage):
        call_id, spelling = "", Spelling.FUNCTION
    elif message.tool_call_id is None:
        raise Problem("invalid_request", "a tool message names no call", where=f"{where}/tool_call_id")
    else:
        call_id = message.tool_call_id
        spelling = spell(_form(message.content), "" if message.name is None else "named")
    return ToolResult(
        call_id=call_id,
        name=message.name or "",
        content=content,
        where=where,
        spelling=spelling,
        extras=extras_at(unread, where),
    )


def _as_content(part: AnyPart) -> Content:
    """Keep a part that no tool can answer with as it is, since nobody else could say it there either."""
    if isinstance(part, Text | Data | Media | Opaque):
        return part
    written = write_part(part)
    return Opaque(dialect=NAME, raw=encode(written), where=part.where)


def render_request(request: Request, traits: Traits) -> Call:
    """Write a request."""
    split = leading_systems(request.messages)
    messages = [item for message in request.messages[:split] for item in _write_message(message)]
    if request.written:
        messages.append(Raw(request.written))
    messages += [item for message in request.messages[split:] for item in _write_message(message)]
    body: dict[str, Any] = {"messages": messages}
    if request.model and MODEL_IN_URL not in request.spelling:
        body["model"] = request.model
    _write_tools(request, body)
    if request.tool_choice is not None:
        write_choice(request.tool_choice, request, body)
    body |= write_fields(request, traits)
    fields = own_extras(request, NAME)
    encoded = graft(encode(body), fields) if fields else encode(body)
    return Call(encoded, request.model, request.stream)


def _write_tools(request: Request, body: dict[str, Any]) -> None:
    if request.written_tools:
        body["tools"] = Raw(request.written_tools)
        return
    if not request.tools and not request.spelling:
        return
    for word, legacy in (("tools", False), ("functions", True)):
        written = write_tools(request.tools, legacy=legacy)
        if written or f"{word} []" in request.spelling:
            body[word] = written


def _write_message(message: Message) -> list[Written]:
    """Write one message: results of tools become messages of their own."""
    if message.role == "assistant":
        return [_write_assistant(message)]
    if message.role == "system":
        role = "developer" if "developer" in words_of(message.spelling) else "system"
        return [_write_plain(role, message, message.parts)]
    written: list[Written] = []
    rest: list[AnyPart] = []
    for part in message.parts:
        match part:
            case ToolResult():
                written.append(_write_result(part))
            case Opaque(dialect=dialect, spelling=Spelling.MESSAGE, raw=raw) if dialect == NAME:
                written.append(Raw(raw))
            case _:
                rest.append(part)
    if rest or not written:
        written.append(_write_plain("user", message, tuple(rest)))
    return written


def _write_plain(role: str, message: Message, parts: tuple[AnyPart, ...]) -> Written:
    value: dict[str, Any] = {"role": role, "content": _write_content(parts, message.spelling)}
    if message.name:
        value["name"] = message.name
    return with_extras(value, message)


def _write_content(parts: tuple[AnyPart, ...], spelling: str) -> str | list[Written] | None:
    """Write content as text where that says it all, else as a list."""
    said = words_of(spelling)
    if "list" not in said:
        if not parts:
            return None if "null" in said else ""
        if len(parts) == 1:
            only = parts[0]
            if isinstance(only, Text) and only.cache is None and own_extras(only, NAME) is None:
                return only.text
            if isinstance(only, Data):
                return only.json.decode()
    written = (write_part(part) for part in parts)
    return [value for value in written if value is not None]


def _write_result(result: ToolResult) -> Written:
    content = _write_content(result.content, result.spelling)
    if result.spelling == Spelling.FUNCTION and not result.call_id:
        return with_extras({"role": "function", "name": result.name, "content": content}, result)
    value: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id, "content": content}
    if "named" in words_of(result.spelling):
        value["name"] = result.name
    return with_extras(value, result)


def _write_assistant(message: Message) -> Written:
    content: list[AnyPart] = []
    value: dict[str, Any] = {"role": "assistant", "content": None}
    calls: list[Written] = []
    for part in message.parts:
        match part:
            case ToolCall():
                if is_legacy(part):
                    call = {"name": part.name, "arguments": part.arguments}
                    value["function_call"] = with_extras(call, part)
                else:
                    calls.append(write_call(part))
            case Opaque(dialect=dialect, spelling=Spelling.CALL, raw=raw) if dialect == NAME:
                calls.append(Raw(raw))
            case Reasoning(spelling=Spelling.THINKING) | Refusal(spelling=Spelling.PART):
                content.append(part)
            case Reasoning():
                _write_reasoning(part, value)
            case Refusal(text=text):
                value["refusal"] = text
            case _:
                content.append(part)
    if calls:
        value["tool_calls"] = calls
    value["content"] = _write_said(content, value, message.spelling)
    for word in words_of(message.spelling):
        if word in REASONING_WORDS:
            value.setdefault(word, "")
    if message.name:
        value["name"] = message.name
    return with_extras(value, message)


def _write_said(content: list[AnyPart], value: dict[str, Any], spelling: str) -> str | list[Written] | None:
    said = words_of(spelling)
    if content or "list" in said:
        return _write_content(tuple(content), spelling)
    if "blank" in said:
        return ""
    says_more = "tool_calls" in value or "function_call" in value or "refusal" in value
    # Without calls or a refusal, null is refused by strict servers.
    return None if says_more or "null" in said else ""


def _write_reasoning(part: Reasoning, value: dict[str, Any]) -> None:
    if part.redacted or not part.texts:
        return
    text = "\n\n".join(part.texts)
    given = words_of(part.spelling)
    used = REASONING_WORDS if "both" in given else [word for word in given if word in REASONING_WORDS]
    for word in used or REASONING_WORDS[:1]:
        value[word] = f"{value[word]}\n\n{text}" if word in value else text
