"""A request, rendered: its messages, their parts, tools and settings as Google writes them.

Rules: spelling words restore what Google lets a caller write in several ways. A schema is written to the field it is
written in: `parameters` for the OpenAPI subset, `parametersJsonSchema` for JSON Schema. Tools from elsewhere share one
object, as Google asks. A tool result that did not come from Gemini is written under `output`, or under `error` when it
failed.
"""

import base64
from collections.abc import Iterable
from itertools import takewhile
from operator import attrgetter
from typing import Any

from msgspec import Raw

from dragoman.core.parts import (
    AnyPart,
    Content,
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.request import (
    Message,
    NativeTool,
    OutputFormat,
    Request,
    Thinking,
    Tool,
    ToolChoice,
)
from dragoman.core.traits import Traits
from dragoman.core.value import own_extras
from dragoman.dialects.gemini import code_assist, wire
from dragoman.dialects.gemini.fields import (
    CONFIG_FIELDS,
    JSON,
    LEVEL,
    NO_STOPS,
    NO_THINKING,
    PLAIN,
    PRESENT,
    REQUEST_FIELDS,
    SAMPLING_FIELDS,
    THINKING_FIELDS,
    THINKING_PRESENT,
    UNSPECIFIED,
)
from dragoman.dialects.gemini.parts import DISPLAY_NAME, NO_RESPONSE, NO_TEXT, NOT_A_THOUGHT, RESPONSE
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
    Blob,
    FileData,
    FunctionCallingConfig,
)
from dragoman.dialects.record import Call
from dragoman.wire import json

_WIRE_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_LEVELS: dict[str, str] = {
    "none": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
_REFERENCE = b'"$ref"'
"""Gemini resolves {"$ref": displayName} inside a response, so data that happens to hold one goes as text."""
Written = Raw | dict[str, Any]
_get_more = attrgetter("spelling", "signature", "extras")
_NO_MORE = _get_more(Text(text=""))
"""Most texts are their words and nothing else."""


def render_request(request: Request, traits: Traits) -> Call:  # noqa: ARG001 - what a model accepts was settled before
    """Write a request, in Code Assist's envelope if it came in one."""
    words, messages = request.spelling, request.messages
    system = tuple(takewhile(_is_system, messages))
    contents = [_write_message(message) for message in messages[len(system) :]]
    if request.written:
        contents.insert(0, Raw(request.written))
    body: dict[str, Any] = {"contents": contents[0] if ONE_CONTENT in words and len(contents) == 1 else contents}
    if system:
        body["systemInstruction"] = _write_system(system)
    if request.written_tools:
        body["tools"] = Raw(request.written_tools)
    elif request.tools or NO_TOOLS in words:
        tools = write_tools(request.tools)
        if tools or NO_TOOLS in words:
            body["tools"] = tools[0] if ONE_TOOL in words and len(tools) == 1 else tools
    if request.tool_choice is not None or CONFIG in words:
        _write_tool_config(request, body)
    config = write_config(request)
    if config is not None:
        body["generationConfig"] = config
    if request.metadata is not None:
        body |= REQUEST_FIELDS.write(request)
    encoded = json.encode(body)
    extras = own_extras(request, NAME) if request.extras is not None else None
    if extras or code_assist.WORD in words:
        encoded = _wrap(encoded, request, extras)
    return Call(body=encoded, model=request.model, stream=request.stream)


def _is_system(message: Message) -> bool:
    return message.role == "system"


def _wrap(encoded: bytes, request: Request, extras: dict[str, bytes] | None) -> bytes:
    """Put extras back, and the request into Code Assist's envelope if it came in one."""
    # Pointers are those of the document that was read: only a request that came in the envelope has them outside.
    outside = all(message.where.startswith(code_assist.INNER + "/") for message in request.messages)
    if extras and not outside:
        encoded = json.graft(encoded, extras)
    if code_assist.WORD in request.spelling:
        encoded = code_assist.wrap_request(encoded, request.model)
    return json.graft(encoded, extras) if extras and outside else encoded


def _write_tool_config(request: Request, body: dict[str, Any]) -> None:
    calling = write_choice(request.tool_choice) if request.tool_choice is not None else None
    if calling is None and CALLING_CONFIG in request.spelling:
        calling = wire.FunctionCallingConfig()
    if calling is not None or CONFIG in request.spelling:
        body["toolConfig"] = wire.ToolConfig(calling)


def _write_message(message: Message) -> Any:
    # The role first, in every request: a turn is the same bytes then, or no prompt cache knows it again.
    if not message.spelling and message.extras is None:
        return {"role": "model" if message.role == "assistant" else "user", "parts": write_parts(message.parts)}
    words = message.spelling.split()
    content = _spelled_parts(message.parts, words)
    if NO_ROLE not in words:
        role = "model" if message.role == "assistant" or f"{ROLE}model" in words else "user"
        content = {"role": role, **content}
    return _with_extras(content, message)


def _write_system(messages: tuple[Message, ...]) -> Any:
    first = messages[0]
    parts = first.parts if len(messages) == 1 else tuple([part for message in messages for part in message.parts])
    if not first.spelling and first.extras is None:
        return {"parts": write_parts(parts)}
    words = first.spelling.split()
    if STRING in words and len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    content = _spelled_parts(parts, words)
    for word in words:
        if word.startswith(ROLE):
            content["role"] = word[len(ROLE) :]
    return _with_extras(content, first)


def _spelled_parts(parts: tuple[AnyPart, ...], words: Iterable[str]) -> dict[str, Any]:
    written = write_parts(parts)
    if not written and NO_PARTS in words:
        return {}
    return {"parts": written[0] if ONE_PART in words and len(written) == 1 else written}


def _with_extras(content: dict[str, Any], message: Message) -> Any:
    fields = own_extras(message, NAME)
    return Raw(json.graft(json.encode(content), fields)) if fields else content


def write_tools(tools: Iterable[Tool | NativeTool]) -> list[Any]:
    """Write tools as the list of Tool objects."""
    groups: dict[str, dict[str, Any]] = {}
    natives: dict[str, list[bytes]] = {}
    for tool in tools:
        word = tool.spelling.partition(" ")[0]
        if isinstance(tool, Tool):
            key = word if word.startswith(GROUP) else GROUP
            groups.setdefault(key, {}).setdefault("functionDeclarations", []).append(_write_tool(tool))
        elif tool.dialect == NAME:
            key = word if word.startswith(GROUP) else f"{GROUP}native:{len(natives)}"
            groups.setdefault(key, {})
            natives.setdefault(key, []).append(tool.raw)
    return [_write_group(group, natives.get(key, [])) for key, group in groups.items()]


def _write_group(group: dict[str, Any], natives: list[bytes]) -> Any:
    if not natives:
        return group
    members = {name: bytes(raw) for native in natives for name, raw in json.decode_object(native).items()}
    return Raw(json.with_members(json.encode(group), members))


def _write_tool(tool: Tool) -> dict[str, Any] | Raw:
    """Write one declaration."""
    written: dict[str, Any] = {"name": tool.name}
    if tool.description or DESCRIBED in tool.spelling.split():
        written["description"] = tool.description
    if tool.parameters is not None:
        written["parameters" if tool.openapi else "parametersJsonSchema"] = Raw(tool.parameters)
    if tool.extras is None:
        return written
    fields = own_extras(tool, NAME)
    return Raw(json.graft(json.encode(written), fields)) if fields else written


def write_choice(choice: ToolChoice) -> FunctionCallingConfig | None:
    """Return functionCallingConfig, None when the choice says nothing Gemini has a word for."""
    words = choice.spelling.split() if choice.spelling else ()
    mode = None
    if choice.mode is not None:
        # AUTO with allowed names is a 400; VALIDATED is the optional mode that takes them.
        restricted = choice.mode == "auto" and (choice.validated or choice.names)
        mode = "VALIDATED" if restricted else _WIRE_MODES[choice.mode]
        if words:
            mode = next((word for word in words if word.upper() == mode), mode)
    names = [*choice.names] if choice.names or NO_NAMES in words else None
    return FunctionCallingConfig(mode, names) if mode is not None or names is not None else None


def write_config(request: Request) -> dict[str, Any] | None:
    """Return generationConfig, None when there is nothing to say."""
    sampling, words = request.sampling, request.spelling
    config = SAMPLING_FIELDS.write(sampling)
    if sampling.stop or NO_STOPS in words:
        config["stopSequences"] = sampling.stop
    if request.candidates is not None:
        config |= CONFIG_FIELDS.write(request)
    if request.output is not None:
        config |= _write_output(request.output)
    if request.thinking is not None or THINKING_PRESENT in words:
        thinking = _write_thinking(request.thinking or NO_THINKING, words)
        if thinking or THINKING_PRESENT in words:
            config["thinkingConfig"] = thinking
    return config if config or PRESENT in words else None


def _write_output(output: OutputFormat) -> dict[str, Any]:
    if output.kind != "json_schema" or output.schema is None:
        return {"responseMimeType": PLAIN if output.kind == "text" else JSON}
    schema = "responseSchema" if output.openapi else "responseJsonSchema"
    return {"responseMimeType": JSON, schema: Raw(output.schema)}


def _write_thinking(thinking: Thinking, words: frozenset[str]) -> dict[str, Any]:
    written = THINKING_FIELDS.write(thinking)
    spelled = next((word[len(LEVEL) :] for word in words if word.startswith(LEVEL)), "")
    if thinking.effort is not None:
        written["thinkingLevel"] = spelled if spelled.lower() == thinking.effort else _LEVELS[thinking.effort]
    elif spelled == UNSPECIFIED:
        written["thinkingLevel"] = spelled
    return written


def write_parts(parts: Iterable[AnyPart]) -> list[Written]:
    """Return what stands for parts on the wire, without those that cannot be said."""
    written = [*map(write_part, parts)]
    return [one for one in written if one is not None] if None in written else written  # pyright: ignore[reportReturnType]


def write_part(part: AnyPart) -> Written | None:
    """Return what stands for `part` on the wire, or None for what cannot be said."""
    if isinstance(part, Text) and _get_more(part) == _NO_MORE and part.text:
        return {"text": part.text}
    written = _write_content(part)
    if written is None:
        return Raw(part.raw) if isinstance(part, Opaque) and part.dialect == NAME else None
    if part.spelling and NOT_A_THOUGHT in part.spelling and "thought" not in written:
        written["thought"] = False
    if part.signature is not None:
        written["thoughtSignature"] = part.signature.value
    if part.extras is None:
        return written
    fields = own_extras(part, NAME)
    return Raw(json.graft(json.encode(written), fields)) if fields else written


def _write_content(part: AnyPart) -> dict[str, Any] | None:
    # What makes up a long history is tested first.
    if isinstance(part, Text):
        return {} if not part.text and part.signature and part.spelling == NO_TEXT else {"text": part.text}
    if isinstance(part, ToolResult):
        return {"functionResponse": _write_result(part)}
    if isinstance(part, ToolCall):
        call: dict[str, Any] = {"id": part.id, "name": part.name} if part.id else {"name": part.name}
        if part.arguments:
            call["args"] = Raw(part.arguments.encode())
        return {"functionCall": call}
    match part:
        case Reasoning(texts=texts):
            return {"text": "\n\n".join(texts), "thought": True} if texts or part.signature else None
        case Media():
            return _write_media(part)
        case Refusal(text=text):
            return {"text": text}
        case Data(json=raw):
            return {"text": raw.decode()}
        case Opaque():
            return None


def _write_media(media: Media) -> dict[str, Any]:
    # Only Vertex takes displayName on plain parts, so the name of a foreign file is not sent.
    name = media.name if DISPLAY_NAME in media.spelling.split() else ""
    match media.source:
        case Inline(data):
            return {"inlineData": Blob(mime_type=media.media_type, data=data, display_name=name)}
        case Plain(text):
            data = base64.b64encode(text.encode()).decode()
            return {"inlineData": Blob(mime_type=media.media_type or "text/plain", data=data, display_name=name)}
        case Link(uri) | Stored(_, uri):
            return {"fileData": FileData(mime_type=media.media_type, file_uri=uri, display_name=name)}


def _write_result(result: ToolResult) -> dict[str, Any]:
    written: dict[str, Any] = {"id": result.call_id} if result.call_id else {}
    written["name"] = result.name
    content, words = result.content, result.spelling
    if words and words.startswith(RESPONSE) and content and isinstance(content[0], Data):
        written["response"] = Raw(content[0].json)
        content = content[1:]
    elif not words or not words.startswith(NO_RESPONSE):
        written["response"] = {"error" if result.failed else "output": _answer(content)}
    parts = [part for item in content if type(item) is not Text and (part := _write_result_part(item)) is not None]
    if parts:
        written["parts"] = parts
    return written


def _answer(content: tuple[Content, ...]) -> Any:
    if len(content) == 1 and isinstance(content[0], Text):
        return _structured(content[0].text)
    said = [item for item in content if isinstance(item, Text | Data)]
    if len(said) == 1:
        only = said[0]
        if isinstance(only, Text):
            return _structured(only.text)
        if _REFERENCE not in only.json:
            return Raw(only.json)
    return "\n".join(item.text if isinstance(item, Text) else item.json.decode() for item in said)


def _structured(text: str) -> Raw | str:
    """Return the object that a text is, or the text: other dialects have no other way to hand over an object."""
    if not text.lstrip().startswith("{"):
        return text
    raw = text.encode("utf-8", "surrogatepass")
    return Raw(raw) if _REFERENCE not in raw and json.is_object(raw) else text


def _write_result_part(item: Content) -> dict[str, Any] | Raw | None:
    match item:
        case Opaque(dialect=dialect, raw=raw):
            return Raw(raw) if dialect == NAME else None
        case Media():
            part = _write_media(item)
            fields = own_extras(item, NAME)
            return Raw(json.graft(json.encode(part), fields)) if fields else part
        case _:
            return None
