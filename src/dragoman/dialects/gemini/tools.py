"""Declarations and toolConfig to and from the core.

Rules: every function declaration is one tool; what else stands in a Tool object (googleSearch, codeExecution, …) is one
native tool. The object a tool stood in is remembered, so that home keeps the grouping; tools from elsewhere share one
object, as Google asks. A schema is written to the field it is written in: `parameters` for the OpenAPI subset,
`parametersJsonSchema` for JSON Schema.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from dragoman.core.request import NativeTool, Tool, ToolChoice
from dragoman.core.value import Extras, own_extras
from dragoman.dialects.gemini import wire
from dragoman.dialects.gemini.wire import ABSENT, NAME, FunctionCallingConfig, Leftovers, given
from dragoman.wire import json
from dragoman.wire.memory import Memory
from dragoman.wire.shape import carried

GROUP = "tool:"
DESCRIBED = "described"
NO_NAMES = "no_names"
_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto"}
_WIRE_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


def read_tools(tools: Iterable[tuple[str, wire.Tool]], leftovers: Leftovers | None) -> tuple[Tool | NativeTool, ...]:
    """Return the tools; each Tool object comes with its pointer."""
    found: list[Tool | NativeTool] = []
    for position, (where, group) in enumerate(tools):
        word = f"{GROUP}{position}"
        for index, declaration in enumerate(group.function_declarations or ()):
            pointer = f"{where}/functionDeclarations/{index}"
            fields = leftovers.take(pointer) if leftovers is not None else None
            found.append(_read_tool(declaration, pointer, word, fields))
        fields = _join(carried(group), leftovers.take(where) if leftovers is not None else None)
        members = {name: raw for name, raw in (fields or {}).items() if raw != b"null"}
        if members or not group.function_declarations:
            empty = b"{}" if group.function_declarations is None else b'{"functionDeclarations":[]}'
            raw = json.graft(b"{}" if group.function_declarations else empty, members)
            if raw != b"{}" or not fields:
                found.append(NativeTool(dialect=NAME, raw=raw, where=where, spelling=word))
    return tuple(found)


def _join(kept: dict[str, bytes] | None, fields: dict[str, bytes] | None) -> dict[str, bytes] | None:
    return {**kept, **fields} if kept and fields else kept or fields


def _read_tool(declaration: wire.FunctionDeclaration, where: str, word: str, fields: dict[str, bytes] | None) -> Tool:
    openapi = given(declaration.parameters)
    schema = given(declaration.parameters_json_schema)
    if declaration.parameters_json_schema is ABSENT:
        schema = given(declaration.snake_schema)
    elif declaration.snake_schema is not ABSENT:
        fields = {"/parameters_json_schema": bytes(declaration.snake_schema), **(fields or {})}
    if declaration.response_json_schema is not ABSENT or declaration.snake_response_schema is not ABSENT:
        fields = _join(carried(declaration), fields)
    if openapi is not None and schema is not None:
        fields = {**(fields or {}), "/parameters": openapi}
    return Tool(
        name=declaration.name,
        description=declaration.description or "",
        parameters=openapi if schema is None else schema,
        openapi=schema is None and openapi is not None,
        where=where,
        spelling=f"{word} {DESCRIBED}" if declaration.description == "" else word,
        extras=Extras(NAME, fields) if fields else None,
    )


def read_choice(config: FunctionCallingConfig, where: str) -> ToolChoice:
    """Return how free the model is; a mode nobody knows says nothing but is remembered."""
    mode = config.mode
    known = mode.upper() if mode is not None else ""
    words = [mode] if mode is not None and (mode != known or known not in _MODES) else []
    if config.allowed_function_names == []:
        words.append(NO_NAMES)
    return ToolChoice(
        mode=_MODES.get(known),  # pyright: ignore[reportArgumentType]
        names=tuple(config.allowed_function_names or ()),
        validated=known == "VALIDATED",
        where=where,
        spelling=" ".join(words),
    )


def write_tools(tools: tuple[Tool | NativeTool, ...]) -> list[Any]:
    """Return the list of Tool objects; the same tools, sent again, are written once."""
    if not tools:
        return []
    return _WRITTEN_TOGETHER.get(tools) or _WRITTEN_TOGETHER.keep(_write_together(tools), tools)


def _write_together(tools: tuple[Tool | NativeTool, ...]) -> list[Any]:
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


_WRITTEN: Memory[Raw] = Memory()
_WRITTEN_TOGETHER: Memory[list[Any]] = Memory(64)


def _write_tool(tool: Tool) -> Raw:
    """Write one declaration; the same tool is written once."""
    return _WRITTEN.get(tool) or _WRITTEN.keep(_write_declaration(tool), tool)


def _write_declaration(tool: Tool) -> Raw:
    written: dict[str, Any] = {"name": tool.name}
    if tool.description or DESCRIBED in tool.spelling.split():
        written["description"] = tool.description
    if tool.parameters is not None:
        written["parameters" if tool.openapi else "parametersJsonSchema"] = Raw(tool.parameters)
    fields = own_extras(tool, NAME)
    encoded = json.encode(written)
    return Raw(json.graft(encoded, fields) if fields else encoded)


def write_choice(choice: ToolChoice) -> dict[str, Any] | None:
    """Return functionCallingConfig, None when the choice says nothing Gemini has a word for."""
    words = choice.spelling.split()
    written: dict[str, Any] = {}
    if choice.mode is not None:
        mode = _WIRE_MODES[choice.mode]
        # AUTO with allowed names is a 400; VALIDATED is the optional mode that takes them.
        if choice.mode == "auto" and (choice.validated or choice.names):
            mode = "VALIDATED"
        written["mode"] = next((word for word in words if word.upper() == mode), mode)
    if choice.names or NO_NAMES in words:
        written["allowedFunctionNames"] = choice.names
    return written or None
