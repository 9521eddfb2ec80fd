"""Parses the messages, tools and tool choice of a request; `fields` parses the rest.

Rules: a field that the core does not have stays in extras under its pointer, and so does a known field with an unknown
value. One wire message becomes one core message. `spelling` holds flags that record which of several equivalent wire
forms was used. Message: "developer" (the role), "list" or "null" (content is a list or null), "blank" (empty text in a
message with calls, which is not a part), "reasoning_content" or "reasoning" (that member is empty). Tool result:
"list", "null", "named" (it has a name) or "function" (the legacy role). Tool: "functions" (from the legacy array),
"untyped" (no type), "blank" (empty description), "format" (a custom tool with format `text`). Tool choice:
"allowed_tools", "any" (Mistral's value for required), "custom", "untyped" or "function_call" (the legacy member).
"""

from operator import attrgetter
from typing import Any, assert_never

from msgspec import structs

from dragoman.core.parts import AnyPart, Content, Data, Media, Opaque, Reasoning, Refusal, Text, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Request, Role, Tool, ToolChoice
from dragoman.dialects.chat import wire
from dragoman.dialects.chat.fields import (
    Spelling,
    build_extras,
    encode_with_extras,
    join_spelling,
    read_options,
    read_sampling,
    remove_field,
    split_spelling,
    take_extras,
)
from dragoman.dialects.chat.parts import read_call, read_legacy_call, read_part, write_part
from dragoman.dialects.chat.reasoning_details import read_own_items
from dragoman.dialects.chat.searches import SEARCH_POINTER, read_search
from dragoman.dialects.chat.thinking_forms import FORMS, read_thinking
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire.json import Malformed, decode_object, encode
from dragoman.wire.shape import get_raw_members, non_null_bytes
from dragoman.wire.unread import Unread

_MODES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
MODEL_IN_URL = "model in url"
_CONTENT_MESSAGES = (wire.UserMessage, wire.SystemMessage, wire.DeveloperMessage)
_CONTENT_ROLES: dict[type, tuple[Role, str]] = {
    wire.UserMessage: ("user", ""),
    wire.SystemMessage: ("system", ""),
    wire.DeveloperMessage: ("system", "developer"),
}
"""Messages that have only content: their core role and spelling flag."""
_get_rest = attrgetter(
    "name", "reasoning_content", "reasoning", "refusal", "function_call", "annotations", "reasoning_details", "prefix"
)
"""The members of an assistant message other than content and calls."""
_NO_REST = _get_rest(wire.AssistantMessage())
REASONING_FIELDS = ("reasoning_content", "reasoning")


def read_tools(raw: bytes, where: str) -> tuple[Tool | NativeTool, ...]:
    """Parse an array of tools that is located at the pointer `where`."""
    try:
        tools, unread = wire.TOOLS.read(raw)
    except Malformed as error:
        raise Malformed(error.message, where + error.where) from None
    return tuple([_read_tool(tool, index, where, unread) for index, tool in enumerate(tools or ())])


def _read_tool(tool: wire.ChatTool, index: int, parent: str, unread: Unread | None) -> Tool | NativeTool:
    """Parse one tool; a tool of an unknown type becomes a native tool."""
    where = f"{parent}/{index}"
    extras = take_extras(unread, f"/{index}")
    if tool.function is not None and tool.type in (None, "function"):
        return _read_function(tool.function, where, "" if tool.type else "untyped", extras)
    if tool.custom is not None and tool.type == "custom":
        return _read_custom(tool.custom, where, extras)
    return NativeTool(dialect=NAME, raw=encode_with_extras(tool, extras), where=where)


def read_legacy_functions(functions: list[wire.Function], unread: Unread | None) -> list[Tool]:
    """Parse the legacy array `functions`."""
    pointers = [f"/functions/{index}" for index in range(len(functions))]
    return [
        _read_function(function, where, "functions", take_extras(unread, where))
        for function, where in zip(functions, pointers, strict=True)
    ]


def _read_function(function: wire.Function, where: str, flag: str, extras: Any) -> Tool:
    if function.name is None:
        parent = where if flag == "functions" else f"{where}/function"
        raise Problem("invalid_request", "a function needs a name", where=f"{parent}/name")
    blank = "blank" if function.description == "" else ""
    return Tool(
        name=function.name,
        description=function.description or "",
        parameters=non_null_bytes(function.parameters),
        strict=function.strict,
        where=where,
        spelling=join_spelling(flag, blank) if flag or blank else "",
        extras=extras,
    )


def _read_custom(custom: wire.Custom, where: str, extras: Any) -> Tool:
    grammar = None
    is_free_text = custom.format is not None and custom.format.grammar is None
    if custom.format is not None and custom.format.grammar is not None:
        rules = custom.format.grammar
        grammar = encode({"type": "grammar", "syntax": rules.syntax, "definition": rules.definition})
    return Tool(
        name=custom.name,
        description=custom.description or "",
        form="text",
        grammar=grammar,
        where=where,
        spelling=join_spelling("blank" if custom.description == "" else "", "format" if is_free_text else ""),
        extras=extras,
    )


def read_choice(request: wire.ChatRequest, unread: Unread | None, extras: dict[str, bytes]) -> ToolChoice | None:
    """Parse `tool_choice`, `function_call` and `parallel_tool_calls`; an unknown choice goes to `extras`."""
    parallel = request.parallel_tool_calls
    found = _read_tool_choice(request.tool_choice, parallel, unread)
    if request.tool_choice is not None and found is None:
        extras["/tool_choice"] = _encode_choice(request.tool_choice, "/tool_choice", unread)
    if request.function_call is None:
        return found or (ToolChoice(parallel=parallel) if parallel is not None else None)
    legacy = _read_function_call(request.function_call, parallel, unread)
    if request.tool_choice is None and legacy is not None:
        return legacy
    extras["/function_call"] = _encode_choice(request.function_call, "/function_call", unread)
    return found or (ToolChoice(parallel=parallel) if parallel is not None else None)


def _encode_choice(choice: str | wire.ChatChoice | wire.FunctionChoice, where: str, unread: Unread | None) -> bytes:
    return encode(choice) if isinstance(choice, str) else encode_with_extras(choice, take_extras(unread, where))


def _read_tool_choice(
    choice: str | wire.ChatChoice | None, parallel: bool | None, unread: Unread | None
) -> ToolChoice | None:
    where = "/tool_choice"
    match choice:
        case str():
            mode: Any = _MODES.get(choice)
            spelling = Spelling.ANY if choice == "any" else ""
            return ToolChoice(mode=mode, parallel=parallel, where=where, spelling=spelling) if mode else None
        case wire.ChatChoice(
            type="allowed_tools", allowed_tools=wire.ChatAllowedTools(mode="auto" | "required") as allowed
        ):
            tools = [tool.function or tool.custom for tool in allowed.tools]
            mode = allowed.mode
            names = tuple(tool.name for tool in tools if tool is not None)
            if len(names) != len(tools):
                return None
            spelling = "allowed_tools"
        case wire.ChatChoice(type="function" | None as kind, function=wire.NamedFunction(name=name)):
            mode, names, spelling = "required", (name,), "" if kind else "untyped"
        case wire.ChatChoice(type="custom", custom=wire.NamedFunction(name=name)):
            mode, names, spelling = "required", (name,), "custom"
        case _:
            return None
    return ToolChoice(
        mode=mode,
        names=names,
        listed=spelling == "allowed_tools",
        parallel=parallel,
        where=where,
        spelling=join_spelling(spelling),
        extras=take_extras(unread, where),
    )


def _read_function_call(
    choice: str | wire.FunctionChoice, parallel: bool | None, unread: Unread | None
) -> ToolChoice | None:
    where = "/function_call"
    if isinstance(choice, str):
        mode: Any = choice if choice in ("auto", "none") else None
        found = ToolChoice(mode=mode, parallel=parallel, where=where, spelling=Spelling.FUNCTION_CALL)
        return found if mode else None
    if choice.name is None:
        return None
    return ToolChoice(
        mode="required",
        names=(choice.name,),
        parallel=parallel,
        where=where,
        spelling=Spelling.FUNCTION_CALL,
        extras=take_extras(unread, where),
    )


def parse_request(call: Call, *, first: int = 0, read_tools: ReadTools = read_tools) -> Request:
    """Parse a request; `first` is the index of its first message, for pointers."""
    try:
        body, unread = wire.REQUEST.read(call.body)
        fields, raw_tools = get_raw_members(body), non_null_bytes(body.tools)
        tools = read_tools(raw_tools, "/tools") if raw_tools is not None else ()
    except Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    spelling: set[str] = set()
    extras: dict[str, bytes] = {}
    messages = _read_messages(body.messages, unread, first)
    if body.model is None:
        spelling.add(MODEL_IN_URL)
    if raw_tools is not None and not tools:
        spelling.add("tools []")
    if body.functions is not None:
        tools = (*tools, *read_legacy_functions(body.functions, unread))
        if not body.functions:
            spelling.add("functions []")
    choice = read_choice(body, unread, extras)
    sampling = read_sampling(body, spelling, extras)
    options = read_options(body, unread, spelling, extras)
    if body.stream is False:
        spelling.add("stream false")
    if unread is not None:
        extras = {**unread.rest(), **extras}
    if fields is not None:
        if not FORMS.isdisjoint(fields):
            options["thinking"], fields = read_thinking(options.get("thinking"), fields)
        extras = {**fields, **extras}
    if SEARCH_POINTER in extras and (search := read_search(extras)) is not None:
        tools = (*tools, search)
    return Request(
        **options,
        model=body.model or call.model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=sampling,
        stream=body.stream or call.stream,
        extras=build_extras(extras) if extras else None,
        spelling=frozenset(spelling),
    )


def _read_messages(messages: list[wire.Message], unread: Unread | None, first: int) -> tuple[Message, ...]:
    """Parse the messages of a request; `first` is the index of the first one."""
    unread_messages = unread if unread is not None and unread.has("messages") else None
    if unread_messages is not None:
        unread_messages.renumber("messages", first)
    return tuple(
        [_read_message(message, f"/messages/{index}", unread_messages) for index, message in enumerate(messages, first)]
    )


def _read_message(message: wire.Message, where: str, unread: Unread | None) -> Message:
    if isinstance(message, _CONTENT_MESSAGES):
        content = message.content
        role, flag = _CONTENT_ROLES[message.__class__]
        if isinstance(content, str):
            parts: tuple[AnyPart, ...] = (Text(text=content, where=where + "/content"),)
        else:
            parts, flag = read_content(content, where, unread), f"{flag} {_find_content_form(content)}".strip()
        spelling = join_spelling(flag) if flag else ""
        if unread is None and message.name is None:
            return Message(role=role, parts=parts, where=where, spelling=spelling)
        extras = take_extras(unread, where)
        return Message(role=role, parts=parts, name=message.name or "", where=where, spelling=spelling, extras=extras)
    match message:
        case wire.AssistantMessage():
            return _read_assistant(message, where, unread)
        case wire.ToolMessage() | wire.FunctionMessage():
            return Message(role="user", parts=(_read_result(message, where, unread),), where=where)
        case wire.UnknownMessage(raw=raw):
            if "role" not in decode_object(raw):
                raise Problem("invalid_request", "a message needs a role", where=f"{where}/role")
            part = Opaque(dialect=NAME, raw=bytes(raw), where=where, spelling=Spelling.MESSAGE)
            return Message(role="user", parts=(part,), where=where)
        case _:
            assert_never(message)


def read_content(content: str | list[wire.Part] | None, where: str, unread: Unread | None) -> tuple[AnyPart, ...]:
    """Parse content that is a string, a list or absent."""
    if isinstance(content, str):
        return (Text(text=content, where=f"{where}/content"),)
    if content is None:
        return ()
    return tuple([read_part(part, f"{where}/content/{index}", unread) for index, part in enumerate(content)])


def _find_content_form(content: str | list[wire.Part] | None) -> str:
    if isinstance(content, str):
        return ""
    return "null" if content is None else "list"


def _read_assistant(message: wire.AssistantMessage, where: str, unread: Unread | None) -> Message:
    content, calls = message.content, message.tool_calls or ()
    has_more = unread is not None or _get_rest(message) != _NO_REST
    if content and isinstance(content, str) and not calls and not has_more:
        # Most turns of a long history are only a text.
        return Message(role="assistant", parts=(Text(text=content, where=where + "/content"),), where=where)
    flags = [_find_content_form(content)]
    parts = _read_reasoning(message, where, flags) if has_more else []
    if content == "" and (calls or message.function_call):
        flags.append("blank")
    else:
        parts += read_content(content, where, unread)
    if message.refusal is not None:
        parts.append(Refusal(text=message.refusal, where=f"{where}/refusal"))
    parts += [read_call(call, f"{where}/tool_calls/{index}", unread) for index, call in enumerate(calls)]
    if message.function_call is not None:
        parts.append(read_legacy_call(message.function_call, f"{where}/function_call", unread))
    extras = take_extras(unread, where, message) if has_more else None
    details, place = message.reasoning_details, f"{where}/reasoning_details"
    if details and (signed := read_own_items(bytes(details), place)):
        parts = _sign_reasoning(parts, signed)
        extras = remove_field(extras, "/reasoning_details")
    return Message(
        role="assistant",
        parts=tuple(parts),
        name=message.name or "",
        where=where,
        spelling=join_spelling(*flags),
        extras=extras,
    )


def _sign_reasoning(parts: list[AnyPart], signed: list[Reasoning]) -> list[AnyPart]:
    """Put the signed reasoning first, in place of the text in another member that only repeats it."""
    text = "\n\n".join(text for part in signed for text in part.texts)
    for at, part in enumerate(parts):
        if isinstance(part, Reasoning) and part.texts == (text,):
            spelling = join_spelling("reasoning_details", *split_spelling(part.spelling))
            return [*(structs.replace(one, spelling=spelling) for one in signed), *parts[:at], *parts[at + 1 :]]
    return [*signed, *parts]


def _read_reasoning(message: wire.AssistantMessage, where: str, flags: list[str]) -> list[AnyPart]:
    """Parse the reasoning of a message; add a flag for each member that is an empty string."""
    parts: list[AnyPart] = []
    for member, text in ((REASONING_FIELDS[0], message.reasoning_content), (REASONING_FIELDS[1], message.reasoning)):
        if text:
            parts.append(Reasoning(texts=(text,), where=f"{where}/{member}", spelling=join_spelling(member)))
        elif text == "":
            flags.append(member)
    if len(parts) > 1 and message.reasoning_content == message.reasoning:
        return [
            Reasoning(
                texts=(message.reasoning or "",), where=f"{where}/reasoning_content", spelling=join_spelling("both")
            )
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
        content = tuple([_to_content(part) for part in parts])
    if isinstance(message, wire.FunctionMessage):
        call_id, spelling = "", Spelling.FUNCTION
    elif message.tool_call_id is None:
        raise Problem("invalid_request", "a tool message needs a tool_call_id", where=f"{where}/tool_call_id")
    else:
        call_id = message.tool_call_id
        spelling = join_spelling(_find_content_form(message.content), "" if message.name is None else "named")
    return ToolResult(
        call_id=call_id,
        name=message.name or "",
        content=content,
        where=where,
        spelling=spelling,
        extras=take_extras(unread, where),
    )


def _to_content(part: AnyPart) -> Content:
    """Return a part of a tool result; one that the core does not allow there becomes opaque."""
    if isinstance(part, Text | Data | Media | Opaque):
        return part
    written = write_part(part)
    return Opaque(dialect=NAME, raw=encode(written), where=part.where)
