"""A request, parsed: its messages, its tools and the choice among them; `fields` reads the rest.

Rules: every field the core has no word for stays in extras by its pointer, also a known field with a value nobody
knows. `Request.spelling` holds the words that were used where the dialect has several. One message on the wire is one
in the core. A message's words: "developer" for the role, "list" for content given as a list, "null" for content given
as nothing, "blank" for empty text beside calls (it is no part), and "reasoning_content" or "reasoning" where that field
was empty. A tool's result has "list", "null", "named" (it says its name) or "function" (the legacy role). A tool has
"functions" for the legacy field, "untyped" for a tool without a type, "blank" for an empty description, "format" for a
custom tool that says its text is free. A choice is "allowed_tools", "any" (Mistral's word for required), "custom",
"untyped" or "function_call" (the legacy field).
"""

from operator import attrgetter
from typing import Any

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
    take_extras,
)
from dragoman.dialects.chat.parts import read_call, read_legacy_call, read_part, write_part
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import Call, ReadTools
from dragoman.wire.json import Malformed, decode_object, encode
from dragoman.wire.shape import carried, non_null_bytes
from dragoman.wire.unread import Unread

_MODES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
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
REASONING_FIELDS = ("reasoning_content", "reasoning")


def read_tools(raw: bytes, where: str) -> tuple[Tool | NativeTool, ...]:
    """Parse the array of tools whose pointer is `where`."""
    try:
        tools, unread = wire.TOOLS.read(raw)
    except Malformed as error:
        raise Malformed(error.message, where + error.where) from None
    return tuple([_read_tool(tool, index, where, unread) for index, tool in enumerate(tools or ())])


def _read_tool(tool: wire.ChatTool, index: int, above: str, unread: Unread | None) -> Tool | NativeTool:
    """Read one tool; a kind nobody knows is the vendor's own."""
    where = f"{above}/{index}"
    extras = take_extras(unread, f"/{index}")
    if tool.function is not None and tool.type in (None, "function"):
        return _read_function(tool.function, where, "" if tool.type else "untyped", extras)
    if tool.custom is not None and tool.type == "custom":
        return _read_custom(tool.custom, where, extras)
    return NativeTool(dialect=NAME, raw=encode_with_extras(tool, extras), where=where)


def read_legacy_functions(functions: list[wire.Function], unread: Unread | None) -> list[Tool]:
    """Read the functions of the legacy field."""
    places = [f"/functions/{index}" for index in range(len(functions))]
    return [
        _read_function(function, where, "functions", take_extras(unread, where))
        for function, where in zip(functions, places, strict=True)
    ]


def _read_function(function: wire.Function, where: str, word: str, extras: Any) -> Tool:
    if function.name is None:
        place = where if word == "functions" else f"{where}/function"
        raise Problem("invalid_request", "a function has no name", where=f"{place}/name")
    blank = "blank" if function.description == "" else ""
    return Tool(
        name=function.name,
        description=function.description or "",
        parameters=non_null_bytes(function.parameters),
        strict=function.strict,
        where=where,
        spelling=join_spelling(word, blank) if word or blank else "",
        extras=extras,
    )


def _read_custom(custom: wire.Custom, where: str, extras: Any) -> Tool:
    grammar = None
    free = custom.format is not None and custom.format.grammar is None
    if custom.format is not None and custom.format.grammar is not None:
        rules = custom.format.grammar
        grammar = encode({"type": "grammar", "syntax": rules.syntax, "definition": rules.definition})
    return Tool(
        name=custom.name,
        description=custom.description or "",
        form="text",
        grammar=grammar,
        where=where,
        spelling=join_spelling("blank" if custom.description == "" else "", "format" if free else ""),
        extras=extras,
    )


def read_choice(request: wire.ChatRequest, unread: Unread | None, extras: dict[str, bytes]) -> ToolChoice | None:
    """Read how free the model is; a choice nobody knows goes to `extras` whole."""
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
            names = [tool.function or tool.custom for tool in allowed.tools]
            mode = allowed.mode
            told = tuple(name.name for name in names if name is not None)
            if len(told) != len(names):
                return None
            spelling = "allowed_tools"
        case wire.ChatChoice(type="function" | None as kind, function=wire.NamedFunction(name=name)):
            mode, told, spelling = "required", (name,), "" if kind else "untyped"
        case wire.ChatChoice(type="custom", custom=wire.NamedFunction(name=name)):
            mode, told, spelling = "required", (name,), "custom"
        case _:
            return None
    return ToolChoice(
        mode=mode,
        names=told,
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
        spelled = ToolChoice(mode=mode, parallel=parallel, where=where, spelling=Spelling.FUNCTION_CALL)
        return spelled if mode else None
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
    """Read a request."""
    try:
        body, unread = wire.REQUEST.read(call.body)
        fields, raw_tools = carried(body), non_null_bytes(body.tools)
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
    if fields is not None:
        extras = {**fields, **extras}
    return Request(
        **options,
        model=body.model or call.model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        sampling=sampling,
        stream=body.stream or call.stream,
        extras=build_extras(extras) if extras else None,
        spelling=frozenset(words),
    )


def _read_messages(messages: list[wire.Message], unread: Unread | None, first: int) -> tuple[Message, ...]:
    """Read all messages of a request, the first of which is number `known`."""
    below = unread if unread is not None and unread.has("messages") else None
    if below is not None:
        below.renumber("messages", first)
    return tuple([_read_message(message, f"/messages/{index}", below) for index, message in enumerate(messages, first)])


def _read_message(message: wire.Message, where: str, unread: Unread | None) -> Message:
    if isinstance(message, _CONTENT_MESSAGES):
        content = message.content
        role, word = _CONTENT_ROLES[message.__class__]
        if isinstance(content, str):
            parts: tuple[AnyPart, ...] = (Text(text=content, where=where + "/content"),)
        else:
            parts, word = read_content(content, where, unread), f"{word} {_find_content_form(content)}".strip()
        spelling = join_spelling(word) if word else ""
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


def _find_content_form(content: str | list[wire.Part] | None) -> str:
    if isinstance(content, str):
        return ""
    return "null" if content is None else "list"


def _read_assistant(message: wire.AssistantMessage, where: str, unread: Unread | None) -> Message:
    content, calls = message.content, message.tool_calls or ()
    words = [_find_content_form(content)]
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
        spelling=join_spelling(*words),
        extras=take_extras(unread, where, message) if has_more else None,
    )


def _read_reasoning(message: wire.AssistantMessage, where: str, empty: list[str]) -> list[AnyPart]:
    parts: list[AnyPart] = []
    for word, text in ((REASONING_FIELDS[0], message.reasoning_content), (REASONING_FIELDS[1], message.reasoning)):
        if text:
            parts.append(Reasoning(texts=(text,), where=f"{where}/{word}", spelling=join_spelling(word)))
        elif text == "":
            empty.append(word)
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
        raise Problem("invalid_request", "a tool message names no call", where=f"{where}/tool_call_id")
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
    """Keep a part that no tool can answer with as it is, since nobody else could say it there either."""
    if isinstance(part, Text | Data | Media | Opaque):
        return part
    written = write_part(part)
    return Opaque(dialect=NAME, raw=encode(written), where=part.where)
