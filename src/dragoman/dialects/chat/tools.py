"""Tools and the choice among them.

Rules: a tool's `spelling` holds words: "functions" for the legacy field, "untyped" for a tool without a type, "blank"
for an empty description, "format" for a custom tool that says its text is free. A choice's is "allowed_tools", "any"
(Mistral's word for required), "custom", "untyped" or "function_call" (the legacy field).
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, Request, Tool, ToolChoice
from dragoman.dialects.chat import wire
from dragoman.dialects.chat.fields import Spelling, extras_at, spell, whole_again, with_extras, words_of
from dragoman.dialects.chat.wire import NAME
from dragoman.wire.json import Malformed, decode, encode
from dragoman.wire.shape import present
from dragoman.wire.unread import Unread

_MODES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


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
    extras = extras_at(unread, f"/{index}")
    if tool.function is not None and tool.type in (None, "function"):
        return _read_function(tool.function, where, "" if tool.type else "untyped", extras)
    if tool.custom is not None and tool.type == "custom":
        return _read_custom(tool.custom, where, extras)
    return NativeTool(dialect=NAME, raw=whole_again(tool, extras), where=where)


def read_legacy_functions(functions: list[wire.Function], unread: Unread | None) -> list[Tool]:
    """Read the functions of the legacy field."""
    places = [f"/functions/{index}" for index in range(len(functions))]
    return [
        _read_function(function, where, "functions", extras_at(unread, where))
        for function, where in zip(functions, places, strict=True)
    ]


def _read_function(function: wire.Function, where: str, spelling: str, extras: Any) -> Tool:
    if function.name is None:
        place = where if spelling == "functions" else f"{where}/function"
        raise Problem("invalid_request", "a function has no name", where=f"{place}/name")
    return Tool(
        name=function.name,
        description=function.description or "",
        parameters=present(function.parameters),
        strict=function.strict,
        where=where,
        spelling=spell(spelling, "blank" if function.description == "" else ""),
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
        spelling=spell("blank" if custom.description == "" else "", "format" if free else ""),
        extras=extras,
    )


def write_tools(tools: Iterable[Tool | NativeTool], *, legacy: bool = False) -> list[dict[str, Any] | Raw]:
    """Write the tools of the array `tools`, or those of the legacy array `functions`; none of another vendor's own."""
    written = [_write_tool(tool) for tool in tools if _is_legacy(tool) is legacy]
    return [tool for tool in written if tool is not None]


def _write_tool(tool: Tool | NativeTool) -> dict[str, Any] | Raw | None:
    if isinstance(tool, NativeTool):
        return Raw(tool.raw) if tool.dialect == NAME else None
    about: dict[str, Any] = {"name": tool.name}
    said = words_of(tool.spelling)
    if tool.description or "blank" in said:
        about["description"] = tool.description
    if tool.form == "text":
        if tool.grammar is not None:
            flat = decode(tool.grammar)
            rules = {"syntax": flat.get("syntax"), "definition": flat.get("definition")}
            about["format"] = {"type": "grammar", "grammar": rules}
        elif "format" in said:
            about["format"] = {"type": "text"}
        return with_extras({"type": "custom", "custom": about}, tool)
    if tool.parameters is not None:
        about["parameters"] = Raw(tool.parameters)
    if tool.strict is not None:
        about["strict"] = tool.strict
    if "functions" in said:
        return with_extras(about, tool)
    value = {"function": about} if "untyped" in said else {"type": "function", "function": about}
    return with_extras(value, tool)


def read_choice(request: wire.ChatRequest, unread: Unread | None, extras: dict[str, bytes]) -> ToolChoice | None:
    """Read how free the model is; a choice nobody knows goes to `extras` whole."""
    parallel = request.parallel_tool_calls
    found = _read_tool_choice(request.tool_choice, parallel, unread)
    if request.tool_choice is not None and found is None:
        extras["/tool_choice"] = _whole_choice(request.tool_choice, "/tool_choice", unread)
    if request.function_call is None:
        return found or (ToolChoice(parallel=parallel) if parallel is not None else None)
    legacy = _read_function_call(request.function_call, parallel, unread)
    if request.tool_choice is None and legacy is not None:
        return legacy
    extras["/function_call"] = _whole_choice(request.function_call, "/function_call", unread)
    return found or (ToolChoice(parallel=parallel) if parallel is not None else None)


def _whole_choice(choice: str | wire.ChatChoice | wire.FunctionChoice, where: str, unread: Unread | None) -> bytes:
    return encode(choice) if isinstance(choice, str) else whole_again(choice, extras_at(unread, where))


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
        spelling=spell(spelling),
        extras=extras_at(unread, where),
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
        extras=extras_at(unread, where),
    )


def write_choice(choice: ToolChoice, request: Request, body: dict[str, Any]) -> None:
    """Write how free the model is into `body`."""
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    if choice.mode is None:
        return
    said = words_of(choice.spelling)
    if choice.spelling == Spelling.FUNCTION_CALL:
        only = {"name": choice.names[0]} if choice.names else None
        body["function_call"] = with_extras(only, choice) if only else choice.mode
        return
    if choice.mode == "none" or not (choice.names or choice.spelling == Spelling.ALLOWED_TOOLS):
        required = "any" in said and choice.mode == "required"
        body["tool_choice"] = "any" if required else choice.mode
        return
    free = {tool.name for tool in request.tools if isinstance(tool, Tool) and tool.form == "text"}
    if len(choice.names) == 1 and choice.mode == "required" and choice.spelling != Spelling.ALLOWED_TOOLS:
        name = choice.names[0]
        named = _named(name, "custom" if name in free or "custom" in said else "function")
        if "untyped" in said:
            del named["type"]
        body["tool_choice"] = with_extras(named, choice)
        return
    tools = [_named(name, "custom" if name in free else "function") for name in choice.names]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    body["tool_choice"] = with_extras(allowed, choice)


def _named(name: str, kind: str) -> dict[str, Any]:
    return {"type": kind, kind: {"name": name}}


def _is_legacy(tool: Tool | NativeTool) -> bool:
    """Tell whether a tool came in the legacy field."""
    return isinstance(tool, Tool) and "functions" in words_of(tool.spelling)
