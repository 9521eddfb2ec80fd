"""Renders a request as a generateContent body: its messages, tools and settings.

Rules: where Google accepts several forms, `spelling` restores the form that was sent. A schema goes to the member for
its language: `parameters` for the OpenAPI subset, `parametersJsonSchema` for JSON Schema. Tools from other dialects
share one Tool object, as Google requires.
"""

from collections.abc import Iterable
from itertools import takewhile
from operator import attrgetter
from typing import Any, cast

from msgspec import Raw

from dragoman.core.parts import (
    AnyPart,
    Text,
)
from dragoman.core.request import (
    Message,
    NativeTool,
    Request,
    Tool,
    ToolChoice,
)
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.gemini import code_assist, wire
from dragoman.dialects.gemini.fields import (
    CONFIG_FIELDS,
    NO_STOPS,
    NO_THINKING,
    PRESENT,
    REQUEST_FIELDS,
    SAMPLING_FIELDS,
    THINKING_PRESENT,
    write_output,
    write_thinking,
)
from dragoman.dialects.gemini.parts import Written, write_part
from dragoman.dialects.gemini.request import (
    CALLING_CONFIG,
    CONFIG,
    DESCRIBED,
    GROUP,
    NO_NAMES,
    NO_PARTS,
    NO_ROLE,
    NO_TOOLS,
    ONE_CONTENT,
    ONE_PART,
    ONE_TOOL,
    ROLE,
    STRING,
)
from dragoman.dialects.gemini.wire import (
    NAME,
    FunctionCallingConfig,
)
from dragoman.dialects.record import Call
from dragoman.wire import json
from dragoman.wire.splice import graft

_WIRE_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_get_details = attrgetter("spelling", "signature", "extras")
_NO_DETAILS = _get_details(Text(text=""))
"""The details of a plain text, as most texts are."""


def render_request(request: Request, traits: Traits) -> Call:  # noqa: ARG001 - already adapted to the model
    """Render a request, in Code Assist's envelope if it was received in one."""
    spelling, messages = request.spelling, request.messages
    system = tuple(takewhile(lambda message: message.role == "system", messages))
    contents = [_write_message(message) for message in messages[len(system) :]]
    if request.written:
        contents.insert(0, Raw(request.written))
    body: dict[str, Any] = {"contents": contents[0] if ONE_CONTENT in spelling and len(contents) == 1 else contents}
    if system:
        body["systemInstruction"] = written = _write_system(system)
        if code_assist.SPELLING in spelling and isinstance(written, dict):
            # All clients of Code Assist send the role, which the plain API ignores.
            cast("dict[str, Any]", written).setdefault("role", "user")
    if request.written_tools:
        body["tools"] = Raw(request.written_tools)
    elif request.tools or NO_TOOLS in spelling:
        tools = write_tools(request.tools)
        if tools or NO_TOOLS in spelling:
            body["tools"] = tools[0] if ONE_TOOL in spelling and len(tools) == 1 else tools
    if request.tool_choice is not None or CONFIG in spelling:
        _write_tool_config(request, body)
    config = write_config(request)
    if config is not None:
        body["generationConfig"] = config
    if request.metadata is not None:
        body |= REQUEST_FIELDS.write(request)
    encoded = json.encode(body)
    extras = own_extras(request, NAME) if request.extras is not None else None
    if extras or code_assist.SPELLING in spelling:
        encoded = code_assist.add_extras(encoded, request, extras)
    return Call(body=encoded, model=request.model, stream=request.stream)


def _write_tool_config(request: Request, body: dict[str, Any]) -> None:
    calling = write_choice(request.tool_choice) if request.tool_choice is not None else None
    if calling is None and CALLING_CONFIG in request.spelling:
        calling = wire.FunctionCallingConfig()
    if calling is not None or CONFIG in request.spelling:
        body["toolConfig"] = wire.ToolConfig(calling)


def _write_message(message: Message) -> Any:
    # The role always comes first: a turn must have the same bytes in every request, or prompt caches miss it.
    if not message.spelling and message.extras is None:
        return {"role": "model" if message.role == "assistant" else "user", "parts": _write_parts(message.parts)}
    spelling = message.spelling.split()
    content = _write_parts_as(message.parts, spelling)
    if NO_ROLE not in spelling:
        role = "model" if message.role == "assistant" or f"{ROLE}model" in spelling else "user"
        content = {"role": role, **content}
    return _restore_extras(content, message)


def _write_system(messages: tuple[Message, ...]) -> Any:
    first = messages[0]
    parts = first.parts if len(messages) == 1 else tuple([part for message in messages for part in message.parts])
    if not first.spelling and first.extras is None:
        return {"parts": _write_parts(parts)}
    spelling = first.spelling.split()
    if STRING in spelling and len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    content = _write_parts_as(parts, spelling)
    for flag in spelling:
        if flag.startswith(ROLE):
            content["role"] = flag[len(ROLE) :]
    return _restore_extras(content, first)


def _write_parts(parts: Iterable[AnyPart]) -> list[Written]:
    """Render parts, without those that Gemini cannot express."""
    written: list[Written] = []
    for part in parts:
        if isinstance(part, Text) and part.text and _get_details(part) == _NO_DETAILS:
            written.append({"text": part.text})
        elif (other := write_part(part)) is not None:
            written.append(other)
    return written


def _write_parts_as(parts: tuple[AnyPart, ...], spelling: Iterable[str]) -> dict[str, Any]:
    written = _write_parts(parts)
    if not written and NO_PARTS in spelling:
        return {}
    return {"parts": written[0] if ONE_PART in spelling and len(written) == 1 else written}


def _restore_extras(content: dict[str, Any], message: Message) -> Any:
    fields = own_extras(message, NAME)
    return Raw(graft(json.encode(content), fields)) if fields else content


def write_tools(tools: Iterable[Tool | NativeTool]) -> list[Any]:
    """Render tools as a list of Tool objects."""
    groups: dict[str, dict[str, Any]] = {}
    natives: dict[str, list[bytes]] = {}
    for tool in tools:
        group = tool.spelling.partition(" ")[0]
        if isinstance(tool, Tool):
            key = group if group.startswith(GROUP) else GROUP
            groups.setdefault(key, {}).setdefault("functionDeclarations", []).append(_write_tool(tool))
        elif tool.dialect == NAME:
            key = group if group.startswith(GROUP) else f"{GROUP}native:{len(natives)}"
            groups.setdefault(key, {})
            natives.setdefault(key, []).append(tool.raw)
    return [_write_group(group, natives.get(key, [])) for key, group in groups.items()]


def _write_group(group: dict[str, Any], natives: list[bytes]) -> Any:
    if not natives:
        return group
    members = {name: bytes(raw) for native in natives for name, raw in json.decode_object(native).items()}
    return Raw(json.with_members(json.encode(group), members))


def _write_tool(tool: Tool) -> dict[str, Any] | Raw:
    """Render one function declaration."""
    written: dict[str, Any] = {"name": tool.name}
    if tool.description or DESCRIBED in tool.spelling.split():
        written["description"] = tool.description
    if tool.parameters is not None:
        written["parameters" if tool.openapi else "parametersJsonSchema"] = Raw(tool.parameters)
    if tool.extras is None:
        return written
    fields = own_extras(tool, NAME)
    return Raw(graft(json.encode(written), fields)) if fields else written


def write_choice(choice: ToolChoice) -> FunctionCallingConfig | None:
    """Return functionCallingConfig; None if Gemini can express nothing of the choice."""
    spelling = choice.spelling.split() if choice.spelling else ()
    mode = None
    if choice.mode is not None:
        # Google rejects AUTO with allowed names (400); VALIDATED accepts them and still allows an answer without calls.
        restricted = choice.mode == "auto" and (choice.validated or choice.names)
        mode = "VALIDATED" if restricted else _WIRE_MODES[choice.mode]
        if spelling:
            mode = next((flag for flag in spelling if flag.upper() == mode), mode)
    names = [*choice.names] if choice.names or NO_NAMES in spelling else None
    return FunctionCallingConfig(mode, names) if mode is not None or names is not None else None


def write_config(request: Request) -> dict[str, Any] | None:
    """Return generationConfig; None if the request sets none of it."""
    sampling, spelling = request.sampling, request.spelling
    config = SAMPLING_FIELDS.write(sampling)
    if sampling.stop or NO_STOPS in spelling:
        config["stopSequences"] = sampling.stop
    if request.candidates is not None:
        config |= CONFIG_FIELDS.write(request)
    if request.output is not None:
        config |= write_output(request.output)
    if request.thinking is not None or THINKING_PRESENT in spelling:
        thinking = write_thinking(request.thinking or NO_THINKING, spelling)
        if thinking or THINKING_PRESENT in spelling:
            config["thinkingConfig"] = thinking
    return config if config or PRESENT in spelling else None
