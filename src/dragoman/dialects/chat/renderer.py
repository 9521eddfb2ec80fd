"""A request, rendered: its messages, tools and fields in the vendor's words.

Rules: spelling words restore which of several forms the caller used. Content is written as text where that says it all,
else as a list; the result of a tool becomes a message of its own.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from dragoman.core.parts import AnyPart, Data, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Tool, ToolChoice, count_leading_systems
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.chat.fields import (
    FORMAT_KINDS,
    REQUEST_FIELDS,
    SAMPLING_FIELDS,
    Spelling,
    is_legacy,
    restore_extras,
    split_spelling,
)
from dragoman.dialects.chat.parts import write_call, write_part
from dragoman.dialects.chat.request import MODEL_IN_URL, REASONING_FIELDS
from dragoman.dialects.chat.wire import NAME
from dragoman.dialects.record import Call
from dragoman.wire.json import decode, encode
from dragoman.wire.splice import graft

Written = dict[str, Any] | Raw
_FORMAT_TYPES = {kind: name for name, kind in FORMAT_KINDS.items()}
_LIMITS = ("max_completion_tokens", "max_tokens")
_USERS = ("safety_identifier", "user")


def render_request(request: Request, traits: Traits) -> Call:
    """Write a request."""
    split = count_leading_systems(request.messages)
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
        role = "developer" if "developer" in split_spelling(message.spelling) else "system"
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
    """Write content as text where that says it all, else as a list."""
    said = split_spelling(spelling)
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
        return restore_extras({"role": "function", "name": result.name, "content": content}, result)
    value: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id, "content": content}
    if "named" in split_spelling(result.spelling):
        value["name"] = result.name
    return restore_extras(value, result)


def _write_assistant(message: Message) -> Written:
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
            case Reasoning():
                _write_reasoning(part, value)
            case Refusal(text=text):
                value["refusal"] = text
            case _:
                content.append(part)
    if calls:
        value["tool_calls"] = calls
    value["content"] = _write_text_content(content, value, message.spelling)
    for word in split_spelling(message.spelling):
        if word in REASONING_FIELDS:
            value.setdefault(word, "")
    if message.name:
        value["name"] = message.name
    return restore_extras(value, message)


def _write_text_content(content: list[AnyPart], value: dict[str, Any], spelling: str) -> str | list[Written] | None:
    said = split_spelling(spelling)
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
    given = split_spelling(part.spelling)
    used = REASONING_FIELDS if "both" in given else [word for word in given if word in REASONING_FIELDS]
    for word in used or REASONING_FIELDS[:1]:
        value[word] = f"{value[word]}\n\n{text}" if word in value else text


def write_tools(tools: Iterable[Tool | NativeTool], *, legacy: bool = False) -> list[dict[str, Any] | Raw]:
    """Write the tools of the array `tools`, or those of the legacy array `functions`; none of another vendor's own."""
    written = [_write_tool(tool) for tool in tools if _is_legacy(tool) is legacy]
    return [tool for tool in written if tool is not None]


def _write_tool(tool: Tool | NativeTool) -> dict[str, Any] | Raw | None:
    if isinstance(tool, NativeTool):
        return Raw(tool.raw) if tool.dialect == NAME else None
    about: dict[str, Any] = {"name": tool.name}
    said = split_spelling(tool.spelling)
    if tool.description or "blank" in said:
        about["description"] = tool.description
    if tool.form == "text":
        if tool.grammar is not None:
            flat = decode(tool.grammar)
            rules = {"syntax": flat.get("syntax"), "definition": flat.get("definition")}
            about["format"] = {"type": "grammar", "grammar": rules}
        elif "format" in said:
            about["format"] = {"type": "text"}
        return restore_extras({"type": "custom", "custom": about}, tool)
    if tool.parameters is not None:
        about["parameters"] = Raw(tool.parameters)
    if tool.strict is not None:
        about["strict"] = tool.strict
    if "functions" in said:
        return restore_extras(about, tool)
    value = {"function": about} if "untyped" in said else {"type": "function", "function": about}
    return restore_extras(value, tool)


def _is_legacy(tool: Tool | NativeTool) -> bool:
    """Tell whether a tool came in the legacy field."""
    return isinstance(tool, Tool) and "functions" in split_spelling(tool.spelling)


def write_choice(choice: ToolChoice, request: Request, body: dict[str, Any]) -> None:
    """Write how free the model is into `body`."""
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    if choice.mode is None:
        return
    said = split_spelling(choice.spelling)
    if choice.spelling == Spelling.FUNCTION_CALL:
        only = {"name": choice.names[0]} if choice.names else None
        body["function_call"] = restore_extras(only, choice) if only else choice.mode
        return
    if choice.mode == "none" or not (choice.names or choice.spelling == Spelling.ALLOWED_TOOLS):
        required = "any" in said and choice.mode == "required"
        body["tool_choice"] = "any" if required else choice.mode
        return
    free = {tool.name for tool in request.tools if isinstance(tool, Tool) and tool.form == "text"}
    if len(choice.names) == 1 and choice.mode == "required" and choice.spelling != Spelling.ALLOWED_TOOLS:
        name = choice.names[0]
        named = _write_named(name, "custom" if name in free or "custom" in said else "function")
        if "untyped" in said:
            del named["type"]
        body["tool_choice"] = restore_extras(named, choice)
        return
    tools = [_write_named(name, "custom" if name in free else "function") for name in choice.names]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    body["tool_choice"] = restore_extras(allowed, choice)


def _write_named(name: str, kind: str) -> dict[str, Any]:
    return {"type": kind, kind: {"name": name}}


def write_fields(request: Request, traits: Traits) -> dict[str, Any]:
    """Return the members of a body that are not its messages or tools."""
    words, sampling = request.spelling, request.sampling
    body = SAMPLING_FIELDS.write(sampling)
    if sampling.max_tokens is not None:
        body[next((word for word in _LIMITS if word in words), traits.max_tokens_word)] = sampling.max_tokens
    if sampling.stop or "stop []" in words:
        body["stop"] = sampling.stop[0] if "stop text" in words else sampling.stop
    if request.thinking is not None and request.thinking.effort is not None:
        body["reasoning_effort"] = request.thinking.effort
    if request.output is not None:
        body["response_format"] = _write_output(request.output, words)
    body |= REQUEST_FIELDS.write(request)
    if request.user is not None:
        body[_USERS["user" in words]] = request.user
    if request.metadata is not None:
        body["metadata"] = request.metadata
    if request.stream or "stream false" in words:
        body["stream"] = request.stream
    return body


def _write_output(output: OutputFormat, words: frozenset[str]) -> dict[str, Any]:
    if output.kind != "json_schema":
        return {"type": _FORMAT_TYPES[output.kind]}
    shape: dict[str, Any] = {"name": output.name or "answer"}
    if output.description or "output description" in words:
        shape["description"] = output.description
    if output.schema is not None:
        shape["schema"] = Raw(output.schema)
    if output.strict is not None:
        shape["strict"] = output.strict
    return {"type": "json_schema", "json_schema": shape}
