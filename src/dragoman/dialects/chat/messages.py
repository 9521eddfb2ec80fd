"""Messages of a request: one on the wire is one in the core, and back.

Rules: a message's words: "developer" for the role, "list" for content given as a list, "null" for
content given as nothing, "blank" for empty text beside calls (it says nothing, so it is no part), and
"reasoning_content" or "reasoning" where that field was empty. A tool's answer has "list", "null", "named" (it said its
name) or "function" (the legacy role).
"""

from operator import attrgetter
from typing import Any

from msgspec import Raw

from dragoman.core.parts import AnyPart, Content, Data, Media, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Role
from dragoman.core.value import own_extras
from dragoman.dialects.chat import wire, words
from dragoman.dialects.chat.parts import (
    extras_at,
    is_legacy,
    read_call,
    read_legacy_call,
    read_part,
    with_extras,
    write_call,
    write_part,
)
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.chat.words import spelled, words_of
from dragoman.wire.json import decode_object, encode
from dragoman.wire.pointer import Numbered
from dragoman.wire.unread import Unread

Written = dict[str, Any] | Raw
_MESSAGES = Numbered("/messages/")
_CONTENTS = Numbered("/messages/", "/content")
_PLAIN = (wire.UserMessage, wire.SystemMessage)
_PLAIN_ROLES: dict[type, Role] = {wire.UserMessage: "user", wire.SystemMessage: "system"}
_get_rest = attrgetter(
    "name",
    "reasoning_content",
    "reasoning",
    "refusal",
    "function_call",
    "annotations",
    "reasoning_details",
    "prefix",
)
"""What a message of the model has beside text and calls."""
_NO_REST = _get_rest(wire.AssistantMessage())
REASONING_WORDS = ("reasoning_content", "reasoning")


def read_messages(messages: list[wire.Message], unread: Unread | None, known: int = 0) -> tuple[Message, ...]:
    """Read all messages of a request, the first of which is number `known`."""
    if unread is not None and unread.has("messages"):
        unread.renumber("messages", known)
        return tuple([read_message(message, f"/messages/{i}", unread) for i, message in enumerate(messages, known)])
    count = len(messages)
    read: list[Message] = []
    keep = read.append
    for message, where, place in zip(messages, _MESSAGES.some(known, count), _CONTENTS.some(known, count), strict=True):
        # The forms that most histories are made of come first, without a detour.
        if isinstance(message, _PLAIN) and isinstance(message.content, str) and message.name is None:
            parts = (Text(text=message.content, where=place),)
            keep(Message(role=_PLAIN_ROLES[message.__class__], parts=parts, where=where))
        elif isinstance(message, wire.AssistantMessage):
            keep(_read_bare_assistant(message, where, place) or _read_assistant(message, where, None))
        elif isinstance(message, wire.ToolMessage):
            keep(Message(role="user", parts=(_read_result(message, where, None),), where=where))
        else:
            keep(read_message(message, where, None))
    return tuple(read)


def _read_bare_assistant(message: wire.AssistantMessage, where: str, place: str) -> Message | None:
    """Read a message that is one text or calls, and None of any other."""
    if _get_rest(message) != _NO_REST:
        return None
    calls, content = message.tool_calls, message.content
    if content is None and calls:
        parts = tuple([read_call(call, f"{where}/tool_calls/{i}", None) for i, call in enumerate(calls)])
        return Message(role="assistant", parts=parts, where=where, spelling=words.NULL)
    if calls is None and content and isinstance(content, str):
        return Message(role="assistant", parts=(Text(text=content, where=place),), where=where)
    return None


def read_message(message: wire.Message, where: str, unread: Unread | None) -> Message:
    """Read one message."""
    match message:
        case wire.UserMessage():
            return _read_plain(message, "user", "", where, unread)
        case wire.SystemMessage():
            return _read_plain(message, "system", "", where, unread)
        case wire.DeveloperMessage():
            return _read_plain(message, "system", "developer", where, unread)
        case wire.AssistantMessage():
            return _read_assistant(message, where, unread)
        case wire.ToolMessage() | wire.FunctionMessage():
            return Message(role="user", parts=(_read_result(message, where, unread),), where=where)
        case wire.UnknownMessage(raw=raw):
            if "role" not in decode_object(raw):
                raise Problem("invalid_request", "a message has no role", where=f"{where}/role")
            part = Opaque(dialect=NAME, raw=bytes(raw), where=where, spelling=words.MESSAGE)
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


def _read_plain(
    message: wire.UserMessage | wire.SystemMessage | wire.DeveloperMessage,
    role: Role,
    word: str,
    where: str,
    unread: Unread | None,
) -> Message:
    parts = read_content(message.content, where, unread)
    form = _form(message.content)
    return Message(
        role=role,
        parts=parts,
        name=message.name or "",
        where=where,
        spelling=spelled(word, form) if word or form else "",
        extras=extras_at(unread, where),
    )


def _read_assistant(message: wire.AssistantMessage, where: str, unread: Unread | None) -> Message:
    said = [_form(message.content)]
    parts = _read_reasoning(message, where, said)
    if message.content == "" and (message.tool_calls or message.function_call):
        said.append("blank")
    else:
        parts.extend(read_content(message.content, where, unread))
    if message.refusal is not None:
        parts.append(Refusal(text=message.refusal, where=f"{where}/refusal"))
    for index, call in enumerate(message.tool_calls or ()):
        parts.append(read_call(call, f"{where}/tool_calls/{index}", unread))
    if message.function_call is not None:
        parts.append(read_legacy_call(message.function_call, f"{where}/function_call", unread))
    return Message(
        role="assistant",
        parts=tuple(parts),
        name=message.name or "",
        where=where,
        spelling=spelled(*said),
        extras=extras_at(unread, where, message),
    )


def _read_reasoning(message: wire.AssistantMessage, where: str, empty: list[str]) -> list[AnyPart]:
    parts: list[AnyPart] = []
    for word, text in ((REASONING_WORDS[0], message.reasoning_content), (REASONING_WORDS[1], message.reasoning)):
        if text:
            parts.append(Reasoning(texts=(text,), where=f"{where}/{word}", spelling=spelled(word)))
        elif text == "":
            empty.append(word)
    if len(parts) > 1 and message.reasoning_content == message.reasoning:
        return [
            Reasoning(texts=(message.reasoning or "",), where=f"{where}/reasoning_content", spelling=spelled("both"))
        ]
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
        call_id, spelling = "", words.FUNCTION
    elif message.tool_call_id is None:
        raise Problem("invalid_request", "a tool message names no call", where=f"{where}/tool_call_id")
    else:
        call_id = message.tool_call_id
        spelling = spelled(_form(message.content), "" if message.name is None else "named")
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


def write_message(message: Message) -> list[Written]:
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
            case Opaque(dialect=dialect, spelling=words.MESSAGE, raw=raw) if dialect == NAME:
                written.append(Raw(raw))
            case _:
                rest.append(part)
    if rest or not written:
        written.append(_write_plain("user", message, tuple(rest)))
    return written


def _write_plain(role: str, message: Message, parts: tuple[AnyPart, ...]) -> Written:
    value: dict[str, Any] = {"role": role, "content": write_content(parts, message.spelling)}
    if message.name:
        value["name"] = message.name
    return with_extras(value, message)


def write_content(parts: tuple[AnyPart, ...], spelling: str) -> str | list[Written] | None:
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
    content = write_content(result.content, result.spelling)
    if result.spelling == words.FUNCTION and not result.call_id:
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
            case Opaque(dialect=dialect, spelling=words.CALL, raw=raw) if dialect == NAME:
                calls.append(Raw(raw))
            case Reasoning(spelling=words.THINKING) | Refusal(spelling=words.PART):
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
        return write_content(tuple(content), spelling)
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
