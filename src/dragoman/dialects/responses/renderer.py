"""Renders a core request as a Responses request.

Rules: spelling flags restore what the caller left out or wrote in another form. Responses treats a missing `strict` of
a tool as "strict if possible", so it is always written for tools from other dialects.
"""

from collections.abc import Iterable, Sequence
from typing import Any, assert_never, cast

from msgspec import Raw

from dragoman.core.parts import Text
from dragoman.core.request import (
    Message,
    NativeTool,
    OutputFormat,
    Request,
    Tool,
    ToolChoice,
    count_leading_systems,
)
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.record import Call
from dragoman.dialects.responses.client_tools import is_client_tool
from dragoman.dialects.responses.fields import (
    REQUEST_FIELDS,
    SAMPLING_FIELDS,
    TEXT_FIELDS,
)
from dragoman.dialects.responses.items import INSTRUCTIONS, find_plain_text, write_message
from dragoman.dialects.responses.request import (
    EMPTY_DESCRIPTION,
    GROUP,
    GROUP_FIELDS,
    NO_INPUT,
    NO_PARAMETERS,
    NO_STRICT,
    STREAM_FALSE,
    STRING_INPUT,
    TEXT_FORMAT,
)
from dragoman.dialects.responses.wire import (
    NAME,
)
from dragoman.wire import json
from dragoman.wire.splice import graft

_NO_ARGUMENTS = Raw(b'{"type":"object","properties":{}}')


def render_request(request: Request, traits: Traits) -> Call:
    """Render a request; it does not depend on the traits of the model."""
    del traits
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    messages = request.messages
    instructions = (
        None if _is_single_message(request) or _lacks_json_word(request) else find_leading_instructions(messages)
    )
    if instructions is not None:
        body["instructions"] = instructions
        messages = messages[1:]
    if messages or NO_INPUT not in request.spelling:
        body["input"] = _write_input(messages, request.written)
    body.update(write_settings(request))
    if request.stream:
        body["stream"] = True
    elif STREAM_FALSE in request.spelling:
        body["stream"] = False
    encoded = json.encode(body)
    extras = own_extras(request, NAME)
    return Call(graft(encoded, extras) if extras else encoded, request.model, request.stream)


def _is_single_message(request: Request) -> bool:
    """Return whether a request of another dialect is one message.

    As `instructions` it would leave `input` empty, which OpenAI rejects with 400.
    """
    return len(request.messages) == 1 and request.messages[0].spelling != INSTRUCTIONS and not request.written


def _lacks_json_word(request: Request) -> bool:
    """Return whether JSON output is requested, but only the instructions of another dialect mention "json".

    OpenAI rejects JSON output unless the word is in `input`.
    """
    if request.output is None or request.output.kind != "json":
        return False
    first, *rest = request.messages or (None,)
    if first is None or first.role != "system" or first.spelling == INSTRUCTIONS:
        return False
    texts = [part.text for message in rest for part in message.parts if isinstance(part, Text)]
    return not any("json" in text.lower() for text in (*texts, *_find_texts(request.written)))


def _find_texts(written: bytes) -> Iterable[str]:
    """Return the texts of messages among rendered items; names of calls and files do not count."""
    if b"json" not in written.lower():
        return ()
    items: list[dict[str, Any]] = json.decode(b"[%s]" % written)
    contents = [item.get("content") for item in items if item.get("type", "message") == "message"]
    pieces = [piece for content in contents if isinstance(content, list) for piece in cast("list[Any]", content)]
    return [*(text for text in contents if isinstance(text, str)), *(piece.get("text", "") for piece in pieces)]


def find_leading_instructions(messages: tuple[Message, ...]) -> str | None:
    """Return the text of a first system message that was, or can be sent as, `instructions`; else None."""
    if not messages or messages[0].role != "system" or messages[0].spelling.startswith("item"):
        return None
    texts = [find_plain_text(part) for part in messages[0].parts]
    plain = [text for text in texts if text is not None]
    return "\n\n".join(plain) if texts and len(plain) == len(texts) else None


def _write_input(messages: tuple[Message, ...], written: bytes) -> Any:
    if len(messages) == 1 and messages[0].spelling == STRING_INPUT and messages[0].where == "/input":
        text = find_plain_text(messages[0].parts[0]) if len(messages[0].parts) == 1 else None
        if text is not None:
            return text
    split = count_leading_systems(messages)
    items = [item for message in messages[:split] for item in write_message(message)]
    if written:
        items.append(Raw(written))
    items.extend([item for message in messages[split:] for item in write_message(message)])
    return items


def write_settings(request: Request, *, explicit: bool = False) -> dict[str, Any]:
    """Render all members other than the conversation; with `explicit` also defaults, as a reply echoes them."""
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


def write_tools(tools: Sequence[Tool | NativeTool], *, explicit: bool = False) -> list[Any]:
    """Render tools; `explicit` also writes fields that the caller left out, as a reply echoes every field."""
    written: list[Any] = []
    group: list[Tool] = []
    for tool in tools:
        continues_group = (
            bool(group)
            and isinstance(tool, Tool)
            and tool.namespace == group[0].namespace
            and GROUP not in tool.spelling.split(",")
        )
        if group and not continues_group:
            written.append(_write_group(group, explicit=explicit))
            group = []
        match tool:
            case NativeTool(dialect=dialect, raw=raw):
                if dialect == NAME:
                    written.append(Raw(raw))
            case Tool(namespace=namespace) if namespace:
                group.append(tool)
            case Tool():
                written.append(_write_tool(tool, explicit=explicit))
            case _:
                assert_never(tool)
    if group:
        written.append(_write_group(group, explicit=explicit))
    return written


def _write_group(tools: list[Tool], *, explicit: bool) -> Any:
    wire: dict[str, Any] = {"type": "namespace", "name": tools[0].namespace}
    fields = own_extras(tools[0], NAME) or {}
    kept = {name[len(GROUP_FIELDS) :]: raw for name, raw in fields.items() if name.startswith(GROUP_FIELDS)}
    if tools[0].namespace_description:
        wire["description"] = tools[0].namespace_description
    elif explicit or GROUP not in tools[0].spelling.split(","):
        wire["description"] = ""
    wire["tools"] = [_write_tool(tool, explicit=explicit) for tool in tools]
    return Raw(graft(json.encode(wire), kept)) if kept else wire


def _write_tool(tool: Tool, *, explicit: bool) -> Any:
    flags = tool.spelling.split(",") if tool.spelling else []
    wire: dict[str, Any] = {"type": "function" if tool.form == "json" else "custom", "name": tool.name}
    if tool.description or EMPTY_DESCRIPTION in flags:
        wire["description"] = tool.description
    if tool.form == "text":
        if tool.grammar is not None:
            wire["format"] = Raw(tool.grammar)
        elif TEXT_FORMAT in flags:
            wire["format"] = {"type": "text"}
    else:
        if tool.parameters is not None:
            wire["parameters"] = Raw(tool.parameters)
        elif explicit or NO_PARAMETERS not in flags:
            wire["parameters"] = _NO_ARGUMENTS
        if tool.strict is not None or explicit or NO_STRICT not in flags:
            wire["strict"] = bool(tool.strict)
    fields = own_extras(tool, NAME)
    if not fields:
        return wire
    own = {name: raw for name, raw in fields.items() if not name.startswith(GROUP_FIELDS)}
    return Raw(graft(json.encode(wire), own))


def write_choice(choice: ToolChoice, tools: Sequence[Tool | NativeTool]) -> Any:
    """Render `tool_choice`; None if the choice has no mode."""
    fields = own_extras(choice, NAME) or {}
    if "" in fields:
        return Raw(fields[""])
    if choice.mode is None:
        return None
    custom = {tool.name for tool in tools if isinstance(tool, Tool) and tool.form == "text"}
    named = [{"type": "custom" if name in custom else "function", "name": name} for name in choice.names]
    is_allowed_list = choice.spelling == "allowed_tools"
    if not named and not is_allowed_list:
        return choice.mode
    if len(named) == 1 and choice.mode == "required" and not is_allowed_list:
        wire: dict[str, Any] = {"type": choice.spelling} if is_client_tool(choice.spelling) else named[0]
    elif choice.mode == "none":
        return "none"
    else:
        wire = {"type": "allowed_tools", "mode": choice.mode, "tools": named}
    return Raw(graft(json.encode(wire), fields)) if fields else wire


def write_fields(request: Request) -> dict[str, Any]:
    """Return the members of the request body other than messages, tools and `tool_choice`."""
    body: dict[str, Any] = {}
    if request.tool_choice is not None and request.tool_choice.parallel is not None:
        body["parallel_tool_calls"] = request.tool_choice.parallel
    body |= SAMPLING_FIELDS.write(request.sampling)
    thinking = _write_thinking(request)
    if thinking:
        body["reasoning"] = thinking
    text = TEXT_FIELDS.write(request)
    if request.output is not None:
        text = {"format": _write_format(request.output), **text}
    if text:
        body["text"] = text
    if request.metadata is not None:
        body["metadata"] = request.metadata
    if request.user is not None:
        body["user" if "user" in request.spelling else "safety_identifier"] = request.user
    return body | REQUEST_FIELDS.write(request)


def _write_thinking(request: Request) -> dict[str, Any]:
    wire: dict[str, Any] = {}
    if request.thinking is None:
        return wire
    if request.thinking.effort is not None:
        wire["effort"] = request.thinking.effort
    if request.thinking.visible:
        flags = [flag for flag in request.spelling if flag.startswith("summary:")]
        wire["summary"] = flags[0].removeprefix("summary:") if flags else "auto"
    return wire


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
