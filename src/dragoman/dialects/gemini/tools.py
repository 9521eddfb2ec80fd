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
from dragoman.dialects.gemini.wire import ABSENT, NAME, FunctionCallingConfig
from dragoman.wire import json
from dragoman.wire.shape import carried, present

GROUP = "tool:"
DESCRIBED = "described"
NO_NAMES = "no_names"
_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto"}
_WIRE_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


def read_tools(raw: bytes, where: str) -> tuple[Tool | NativeTool, ...]:
    """Read the Tool objects, or the only one, that stand at `where`."""
    try:
        tools, unread = wire.TOOLS.read(raw)
    except json.Malformed as error:
        raise json.Malformed(error.message, where + error.where) from None
    found: list[Tool | NativeTool] = []
    if isinstance(tools, wire.GeminiTool):
        _read_group(tools, where, f"{GROUP}0", unread.rest() if unread is not None else {}, found)
    for index, group in enumerate(tools if isinstance(tools, list) else ()):
        fields = (unread.take(f"/{index}") if unread is not None else None) or {}
        _read_group(group, f"{where}/{index}", f"{GROUP}{index}", fields, found)
    return tuple(found)


def _read_group(
    group: wire.GeminiTool, where: str, word: str, fields: dict[str, bytes], found: list[Tool | NativeTool]
) -> None:
    """Read one Tool object; `fields` are its unread members."""
    declarations = group.function_declarations
    for index, declaration in enumerate(declarations or ()):
        below = f"/functionDeclarations/{index}"
        own = {name: fields.pop(name) for name in list(fields) if name.startswith(f"{below}/")} if fields else None
        taken = {name[len(below) :]: raw for name, raw in own.items()} if own else None
        found.append(_read_tool(declaration, where + below, word, taken))
    fields = {**(carried(group) or {}), **fields}
    members = {name: raw for name, raw in fields.items() if raw != b"null"}
    if members or not declarations:
        empty = b"{}" if declarations is None else b'{"functionDeclarations":[]}'
        native = json.graft(b"{}" if declarations else empty, members)
        if native != b"{}" or not fields:
            found.append(NativeTool(dialect=NAME, raw=native, where=where, spelling=word))


def _read_tool(declaration: wire.FunctionDeclaration, where: str, word: str, fields: dict[str, bytes] | None) -> Tool:
    openapi = present(declaration.parameters)
    schema = present(declaration.parameters_json_schema)
    if declaration.parameters_json_schema is ABSENT:
        schema = present(declaration.snake_schema)
    elif declaration.snake_schema is not ABSENT:
        fields = {"/parameters_json_schema": bytes(declaration.snake_schema), **(fields or {})}
    if declaration.response_json_schema is not ABSENT or declaration.snake_response_schema is not ABSENT:
        fields = {**(carried(declaration) or {}), **(fields or {})}
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
