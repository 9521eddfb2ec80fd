"""Rules about tools and the choice among them."""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from dragoman.simulator.apis.openai.checks import grammar_fault
from dragoman.simulator.apis.openai.schemas import complaints
from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.apis.responses.shape_items import AdditionalTools, ToolSearchOutput
from dragoman.simulator.apis.responses.shape_tools import (
    ChosenAllowed,
    ChosenCustom,
    ChosenFunction,
    ChosenMcp,
    CustomTool,
    FunctionTool,
    Grammar,
    McpTool,
    NamespaceTool,
    Tool,
    ToolChoice,
    ToolSearchTool,
)
from dragoman.simulator.apis.responses.words import not_a_name, path_of, too_long
from dragoman.simulator.rule import Json, Rule, Situation, Violation

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_NAME_LIMIT = 128
_STEM = re.compile(r"(?:_preview)?(?:_\d{4}_\d{2}_\d{2})?$")


class Placed(Struct, frozen=True):
    """A tool of the client, where it is declared, and the namespace it is in."""

    where: str
    tool: FunctionTool | CustomTool
    namespace: str = ""


def declared(request: Request) -> Iterator[tuple[str, Tool]]:
    """Yield every tool of a request with its place: the declared, and those added or found on the way."""
    for number, tool in enumerate(request.body.tools or ()):
        yield f"/tools/{number}", tool
    for at, item in enumerate(request.items):
        if isinstance(item, AdditionalTools | ToolSearchOutput):
            for number, tool in enumerate(item.tools):
                yield f"/input/{at}/tools/{number}", tool


def clients_tools(request: Request) -> Iterator[Placed]:
    """Yield the tools the client runs, also those in namespaces."""
    for where, tool in declared(request):
        match tool:
            case FunctionTool() | CustomTool():
                yield Placed(where, tool)
            case NamespaceTool():
                for number, inner in enumerate(tool.tools):
                    yield Placed(f"{where}/tools/{number}", inner, tool.name)
            case _:
                pass


def kind_of(tool: Tool | ToolChoice) -> str:
    """Return the word in `type`; a choice that is a word is that word."""
    return tool if isinstance(tool, str) else str(tool.__struct_config__.tag)


def _odd_name(request: Request, _: Situation) -> Iterator[Violation]:
    named = [(f"{placed.where}/name", placed.tool.name) for placed in clients_tools(request)]
    named += [(f"{where}/name", tool.name) for where, tool in declared(request) if isinstance(tool, NamespaceTool)]
    for where, name in named:
        if len(name) > _NAME_LIMIT:
            yield Violation(too_long(path_of(where), _NAME_LIMIT, len(name)), where)
        if _NAME.fullmatch(name) is None:
            yield Violation(not_a_name(path_of(where)), where)


def _odd_schema(request: Request, _: Situation) -> Iterator[Violation]:
    for placed in clients_tools(request):
        tool = placed.tool
        if not isinstance(tool, FunctionTool) or tool.parameters is None:
            continue
        for complaint in complaints(tool.parameters, strict=bool(tool.strict)):
            yield Violation(complaint.about(f"function '{tool.name}'"), f"{placed.where}/parameters")


def _odd_grammar(request: Request, _: Situation) -> Iterator[Violation]:
    for placed in clients_tools(request):
        if not isinstance(placed.tool, CustomTool) or not isinstance(placed.tool.format, Grammar):
            continue
        grammar, where = placed.tool.format, f"{placed.where}/format/definition"
        if fault := grammar_fault(grammar.syntax, grammar.definition):
            yield Violation(f"Invalid value for '{path_of(where)}': {fault}.", where)


def _lone_deferred(request: Request, _: Situation) -> Iterator[Violation]:
    given = request.body.tools or []
    if any(isinstance(tool, ToolSearchTool) for tool in given):
        return
    for placed in clients_tools(request):
        if placed.tool.defer_loading and placed.where.startswith("/tools/"):
            message = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search."
            yield Violation(message, "/tools")


def _unreachable_server(request: Request, _: Situation) -> Iterator[Violation]:
    for where, tool in declared(request):
        if not isinstance(tool, McpTool):
            continue
        given = [name for name in (tool.server_url, tool.connector_id, tool.tunnel_id) if name]
        if len(given) != 1:
            which = "Missing mutually" if not given else "Mutually"
            how = "providing exactly" if not given else "only providing"
            yield Violation(
                f"{which} exclusive parameters: '{path_of(where)}'. Ensure you are {how} one of: 'server_url', "
                "'connector_id', or 'tunnel_id'.",
                where,
            )


def _early_async(request: Request, _: Situation) -> Iterator[Violation]:
    for placed in clients_tools(request):
        if not placed.tool.is_async:
            continue
        where = f"{placed.where}/async"
        if request.model.generation < (6, 0):
            yield Violation(f"Unsupported parameter: '{path_of(where)}' is not supported with this model.", where)
        if "programmatic" in (placed.tool.allowed_callers or ()):
            yield Violation(f"Invalid '{path_of(where)}': async tools can only be called directly.", where)


def _choice_of_nothing(request: Request, _: Situation) -> Iterator[Violation]:
    if request.body.tool_choice == "required" and not request.body.prompt and next(declared(request), None) is None:
        yield Violation("Tool choice 'required' must be specified with 'tools' parameter.", "/tool_choice")


def _choice_of_missing(request: Request, _: Situation) -> Iterator[Violation]:
    choice = request.body.tool_choice
    if choice is None or isinstance(choice, str) or request.body.prompt:
        return
    for name, entry in _chosen(choice):
        if not _is_declared(entry, request):
            yield Violation(f"Tool choice '{name}' not found in 'tools' parameter.", "/tool_choice")


def _chosen(choice: ToolChoice) -> Iterator[tuple[str, Json]]:
    match choice:
        case ChosenAllowed():
            for entry in choice.tools:
                yield str(entry.get("name") or entry.get("server_label") or entry.get("type")), entry
        case ChosenFunction() | ChosenCustom():
            yield kind_of(choice), {"type": kind_of(choice), "name": choice.name}
        case ChosenMcp():
            yield "mcp", {"type": "mcp", "server_label": choice.server_label}
        case _:
            yield kind_of(choice), {"type": kind_of(choice)}


def _is_declared(entry: Json, request: Request) -> bool:
    kind: Any = entry.get("type")
    match kind:
        case "function" | "custom":
            named = [one.tool for one in clients_tools(request) if one.tool.name == entry.get("name")]
            return any(kind_of(tool) == kind for tool in named)
        case "mcp":
            label = entry.get("server_label")
            return any(isinstance(tool, McpTool) and tool.server_label == label for _, tool in declared(request))
        case str():
            return any(_stem(kind_of(tool)) == _stem(kind) for _, tool in declared(request))
        case _:
            return False


def _stem(kind: str) -> str:
    return "computer" if kind.startswith("computer") else _STEM.sub("", kind)


RULES: tuple[Rule[Request], ...] = (
    Rule(
        "responses.tool-name",
        "Names of tools are 1 to 128 letters, digits, underscores and dashes.",
        "wire/openai_responses.md section 3",
        _odd_name,
    ),
    Rule(
        "responses.tool-schema",
        "Parameters are an object's schema whose arrays have items, and if strict within the strict subset.",
        "wire/gemini_schema.md section 6; recorded: openai_responses/mirascope-0057",
        _odd_schema,
    ),
    Rule(
        "responses.grammar",
        "A Lark grammar has a rule `start`; no grammar has look-around or lazy quantifiers.",
        "wire/openai_chat.md section 3 (the same tools); the words: no source",
        _odd_grammar,
    ),
    Rule(
        "responses.deferred-tools",
        "Deferred tools come with a tool search.",
        "public reports of the vendor's words; wire/openai_responses.md section 3",
        _lone_deferred,
    ),
    Rule(
        "responses.mcp-server",
        "An MCP server is reached in exactly one way.",
        "wire/openai_responses.md section 3",
        _unreachable_server,
    ),
    Rule(
        "responses.async-tool",
        "Tools that answer later need gpt-6 or later, and direct callers.",
        "wire/openai_responses.md section 3",
        _early_async,
    ),
    Rule(
        "responses.choice-without-tools",
        "Who must call a tool has one.",
        "public reports of the vendor's words",
        _choice_of_nothing,
    ),
    Rule(
        "responses.choice-found",
        "Chosen and allowed tools are among the tools.",
        "public reports of the vendor's words; wire/openai_responses.md section 4",
        _choice_of_missing,
    ),
)
