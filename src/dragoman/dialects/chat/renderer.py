"""Renders a core request as a Chat Completions request.

Rules: spelling flags restore which of several equivalent forms the caller used. Content is a string if it is only text,
else a list; each tool result becomes a separate message.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from dragoman.core.parts import AnyPart, Data, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.request import (
    Message,
    NativeTool,
    OutputFormat,
    Request,
    Thinking,
    Tool,
    ToolChoice,
    count_leading_systems,
)
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.chat.fields import (
    FORMAT_KINDS,
    REASONING_FLAGS,
    REQUEST_FIELDS,
    SAMPLING_FIELDS,
    Spelling,
    is_legacy,
    restore_extras,
    split_spelling,
)
from dragoman.dialects.chat.parts import write_call, write_part
from dragoman.dialects.chat.reasoning_details import is_in_details, write_details
from dragoman.dialects.chat.request import MODEL_IN_URL, REASONING_FIELDS
from dragoman.dialects.chat.searches import is_search, write_search
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import Call
from dragoman.wire.json import decode, encode
from dragoman.wire.splice import graft

Written = dict[str, Any] | Raw
_FORMAT_TYPES = {kind: name for name, kind in FORMAT_KINDS.items()}
THINKING_PART = "thinking"
"""The value of `reasoning_member` for reasoning that is an item of the content list."""
_LIMIT_MEMBERS = ("max_completion_tokens", "max_tokens")
_USER_MEMBERS = ("safety_identifier", "user")


def render_request(request: Request, traits: Traits) -> Call:
    """Render a request."""
    split = count_leading_systems(request.messages)
    messages = [item for message in request.messages[:split] for item in _write_message(message, traits)]
    if request.written:
        messages.append(Raw(request.written))
    messages += [item for message in request.messages[split:] for item in _write_message(message, traits)]
    body: dict[str, Any] = {"messages": messages}
    if request.model and MODEL_IN_URL not in request.spelling:
        body["model"] = request.model
    _write_tools(request, traits, body)
    if request.tool_choice is not None:
        write_choice(request.tool_choice, request, body)
    body |= write_fields(request, traits)
    fields = own_extras(request, NAME)
    encoded = graft(encode(body), fields) if fields else encode(body)
    return Call(encoded, request.model, request.stream)


def _write_tools(request: Request, traits: Traits, body: dict[str, Any]) -> None:
    if request.written_tools and not traits.web_search:
        body["tools"] = Raw(request.written_tools)
        return
    if not request.tools and not request.spelling:
        return
    for member, legacy in (("tools", False), ("functions", True)):
        written = write_tools(request.tools, legacy=legacy)
        if written or f"{member} []" in request.spelling:
            body[member] = written
    write_search(request.tools, body)


def _write_message(message: Message, traits: Traits) -> list[Written]:
    """Render one core message as one or more wire messages; each tool result is a separate message."""
    if message.role == "assistant":
        return [_write_assistant(message, traits)]
    if message.role == "system":
        is_developer = traits.developer_role and "developer" in split_spelling(message.spelling)
        role = "developer" if is_developer else "system"
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
    return restore_extras(value, message)


def _write_content(parts: tuple[AnyPart, ...], spelling: str) -> str | list[Written] | None:
    """Render content as a string if it is only text, else as a list."""
    flags = split_spelling(spelling)
    if "list" not in flags:
        if not parts:
            return None if "null" in flags else ""
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
        return restore_extras({"role": "function", "name": result.name, "content": content}, result)
    value: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id, "content": content}
    if "named" in split_spelling(result.spelling):
        value["name"] = result.name
    return restore_extras(value, result)


def _write_assistant(message: Message, traits: Traits) -> Written:
    content: list[AnyPart] = []
    value: dict[str, Any] = {"role": "assistant", "content": None}
    calls: list[Written] = []
    for part in message.parts:
        match part:
            case ToolCall():
                if is_legacy(part):
                    call = {"name": part.name, "arguments": part.arguments}
                    value["function_call"] = restore_extras(call, part)
                else:
                    calls.append(write_call(part))
            case Opaque(dialect=dialect, spelling=Spelling.CALL, raw=raw) if dialect == NAME:
                calls.append(Raw(raw))
            case Reasoning(spelling=Spelling.THINKING) | Refusal(spelling=Spelling.PART):
                content.append(part)
            case Reasoning(spelling="", signature=None, redacted=False) if traits.reasoning_member == THINKING_PART:
                content.append(part)
            case Reasoning():
                _write_reasoning(part, value, traits.reasoning_member)
            case Refusal(text=text):
                value["refusal"] = text
            case _:
                content.append(part)
    if calls:
        value["tool_calls"] = calls
    value["content"] = _write_text_content(content, value, message.spelling)
    for flag in split_spelling(message.spelling):
        if flag in REASONING_FIELDS:
            value.setdefault(flag, "")
    is_required = traits.reasoning_required == "turns" or (traits.reasoning_required == "calls" and calls)
    if is_required and not any(member in value for member in REASONING_FLAGS.values()):
        value[traits.reasoning_member] = ""
    if message.name:
        value["name"] = message.name
    return restore_extras(value, message)


def _write_text_content(content: list[AnyPart], value: dict[str, Any], spelling: str) -> str | list[Written] | None:
    flags = split_spelling(spelling)
    if content or "list" in flags:
        return _write_content(tuple(content), spelling)
    if "blank" in flags:
        return ""
    has_more = "tool_calls" in value or "function_call" in value or "refusal" in value
    # Strict servers reject null content in a message without calls or a refusal.
    return None if has_more or "null" in flags else ""


def _write_reasoning(part: Reasoning, value: dict[str, Any], default_member: str) -> None:
    if is_in_details(part):
        details = value.setdefault("reasoning_details", [])
        details += write_details((part,), len(details))
        if part.spelling == Spelling.DETAILS:
            return
    if part.redacted or not part.texts:
        return
    text = "\n\n".join(part.texts)
    flags = split_spelling(part.spelling)
    members = (
        REASONING_FIELDS if "both" in flags else [REASONING_FLAGS[flag] for flag in flags if flag in REASONING_FLAGS]
    )
    for member in members or (default_member,):
        value[member] = f"{value[member]}\n\n{text}" if member in value else text


def write_tools(tools: Iterable[Tool | NativeTool], *, legacy: bool = False) -> list[dict[str, Any] | Raw]:
    """Render the items of `tools`, or of the legacy array `functions`; skip native tools of other dialects."""
    written = [_write_tool(tool) for tool in tools if _is_legacy(tool) is legacy]
    return [tool for tool in written if tool is not None]


def _write_tool(tool: Tool | NativeTool) -> dict[str, Any] | Raw | None:
    if isinstance(tool, NativeTool):
        return Raw(tool.raw) if tool.dialect == NAME and not is_search(tool) else None
    definition: dict[str, Any] = {"name": tool.name}
    flags = split_spelling(tool.spelling)
    if tool.description or "blank" in flags:
        definition["description"] = tool.description
    if tool.form == "text":
        if tool.grammar is not None:
            flat = decode(tool.grammar)
            rules = {"syntax": flat.get("syntax"), "definition": flat.get("definition")}
            definition["format"] = {"type": "grammar", "grammar": rules}
        elif "format" in flags:
            definition["format"] = {"type": "text"}
        return restore_extras({"type": "custom", "custom": definition}, tool)
    if tool.parameters is not None:
        definition["parameters"] = Raw(tool.parameters)
    if tool.strict is not None:
        definition["strict"] = tool.strict
    if "functions" in flags:
        return restore_extras(definition, tool)
    value = {"function": definition} if "untyped" in flags else {"type": "function", "function": definition}
    return restore_extras(value, tool)


def _is_legacy(tool: Tool | NativeTool) -> bool:
    """Return whether a tool came from the legacy array `functions`."""
    return isinstance(tool, Tool) and "functions" in split_spelling(tool.spelling)


def write_choice(choice: ToolChoice, request: Request, body: dict[str, Any]) -> None:
    """Add `tool_choice` (or the legacy `function_call`) and `parallel_tool_calls` to `body`."""
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    if choice.mode is None:
        return
    flags = split_spelling(choice.spelling)
    if choice.spelling == Spelling.FUNCTION_CALL:
        only = {"name": choice.names[0]} if choice.names else None
        body["function_call"] = restore_extras(only, choice) if only else choice.mode
        return
    if choice.mode == "none" or not (choice.names or choice.spelling == Spelling.ALLOWED_TOOLS):
        required = "any" in flags and choice.mode == "required"
        body["tool_choice"] = "any" if required else choice.mode
        return
    custom = {tool.name for tool in request.tools if isinstance(tool, Tool) and tool.form == "text"}
    if len(choice.names) == 1 and choice.mode == "required" and choice.spelling != Spelling.ALLOWED_TOOLS:
        name = choice.names[0]
        named = _write_named(name, "custom" if name in custom or "custom" in flags else "function")
        if "untyped" in flags:
            del named["type"]
        body["tool_choice"] = restore_extras(named, choice)
        return
    tools = [_write_named(name, "custom" if name in custom else "function") for name in choice.names]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    body["tool_choice"] = restore_extras(allowed, choice)


def _write_named(name: str, kind: str) -> dict[str, Any]:
    return {"type": kind, kind: {"name": name}}


def write_fields(request: Request, traits: Traits) -> dict[str, Any]:
    """Return the members of the request body other than messages, tools and tool choice."""
    flags, sampling = request.spelling, request.sampling
    body = SAMPLING_FIELDS.write(sampling)
    if sampling.max_tokens is not None:
        member = next((member for member in _LIMIT_MEMBERS if member in flags), traits.max_tokens_member)
        body[member] = sampling.max_tokens
    if sampling.stop or "stop []" in flags:
        body["stop"] = sampling.stop[0] if "stop text" in flags else sampling.stop
    if request.thinking is not None:
        _write_thinking(request.thinking, traits, body)
    if request.output is not None:
        body["response_format"] = _write_output(request.output, flags)
    body |= REQUEST_FIELDS.write(request)
    if request.user is not None:
        body[_USER_MEMBERS["user" in flags]] = request.user
    if request.metadata is not None:
        body["metadata"] = request.metadata
    if request.stream or "stream false" in flags:
        body["stream"] = request.stream
    return body


def _write_thinking(thinking: Thinking, traits: Traits, body: dict[str, Any]) -> None:
    """Add the members for the effort and the budget, and those that turn thinking on or off."""
    if (written := own_extras(thinking, NAME)) is not None:
        body.update({pointer.removeprefix("/"): Raw(raw) for pointer, raw in written.items()})
        return
    values = ((traits.effort_member, thinking.effort), (traits.budget_member, thinking.budget))
    given = [(member, value) for member, value in values if member and value is not None]
    if thinking.mode is not None:
        body.update(traits.thinking_off if thinking.mode == "disabled" else traits.thinking_on)
    for member, value in given:
        outer, _, inner = member.partition("/")
        body[outer] = {inner: value} if inner else value


def _write_output(output: OutputFormat, flags: frozenset[str]) -> dict[str, Any]:
    if output.kind != "json_schema":
        return {"type": _FORMAT_TYPES[output.kind]}
    json_schema: dict[str, Any] = {"name": output.name or "answer"}
    if output.description or "output description" in flags:
        json_schema["description"] = output.description
    if output.schema is not None:
        json_schema["schema"] = Raw(output.schema)
    if output.strict is not None:
        json_schema["strict"] = output.strict
    return {"type": "json_schema", "json_schema": json_schema}
