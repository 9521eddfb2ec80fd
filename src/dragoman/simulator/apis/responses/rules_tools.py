"""Rules about tools and the tool choice."""

import re
from collections.abc import Iterator
from typing import cast

from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import describe_grammar_problem, describe_name_problem
from dragoman.simulator.apis.openai.schemas import find_schema_violations
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.words import describe_one_of, describe_unsupported_parameter
from dragoman.simulator.apis.rule import CheckContext, Json, Rule, Violation, find

_MAX_NAME_LENGTH = 128
_STEM = re.compile(r"(?:_preview)?(?:_\d{4}_\d{2}_\d{2})?$")
_MCP_LOCATIONS = ("server_url", "connector_id", "tunnel_id")


def find_tools(request: ResponsesRequest) -> list[tuple[str, Json]]:
    """Return every tool of a request with its pointer: those in `tools`, and those that input items add."""
    if "tools" not in request.computed:
        added = [
            (f"/input/{number}{where}", tool)
            for number, item in enumerate(request.items)
            if item["type"] in {"additional_tools", "tool_search_output"}
            for where, tool in find(item, "/tools/*")
        ]
        request.computed["tools"] = [*request.find("/tools/*"), *added]
    return request.computed["tools"]


def find_client_tools(request: ResponsesRequest) -> list[tuple[str, Json, str]]:
    """Return the tools that the client runs, with pointer and namespace."""
    if "clients_tools" not in request.computed:
        request.computed["clients_tools"] = list(_iterate_client_tools(request))
    return request.computed["clients_tools"]


def _iterate_client_tools(request: ResponsesRequest) -> Iterator[tuple[str, Json, str]]:
    for where, tool in find_tools(request):
        if tool["type"] in {"function", "custom"}:
            yield where, tool, ""
        elif tool["type"] == "namespace":
            yield from ((f"{where}{below}", inner, tool["name"]) for below, inner in find(tool, "/tools/*"))


def _check_names(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    groups = [(where, tool) for where, tool in find_tools(request) if tool["type"] == "namespace"]
    for where, tool in [*((where, tool) for where, tool, _group in find_client_tools(request)), *groups]:
        if fault := describe_name_problem(f"{where}/name", tool["name"], most=_MAX_NAME_LENGTH, length_first=True):
            yield Violation(fault, f"{where}/name")


def _check_schemas(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for where, tool, _group in find_client_tools(request):
        if tool.get("parameters") is not None:
            for complaint in find_schema_violations(tool["parameters"], strict=bool(tool.get("strict"))):
                yield Violation(complaint.describe(f"function '{tool['name']}'"), f"{where}/parameters")


def _check_grammars(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for pointer, tool, _group in find_client_tools(request):
        grammar: Json = tool.get("format") or {}
        where = f"{pointer}/format/definition"
        if "definition" in grammar and (fault := describe_grammar_problem(grammar["syntax"], grammar["definition"])):
            yield Violation(f"Invalid value for '{words.format_pointer(where)}': {fault}.", where)


def _check_deferred(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    if any(tool["type"] == "tool_search" for tool in request.list("tools")):
        return
    for where, tool, _group in find_client_tools(request):
        if tool.get("defer_loading") and where.startswith("/tools/"):
            message = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search."
            yield Violation(message, "/tools")


def _check_servers(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for where, tool in find_tools(request):
        if tool["type"] == "mcp" and (fault := describe_one_of(where, tool, _MCP_LOCATIONS)):
            yield Violation(fault, where)


def _check_async(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for pointer, tool, _group in find_client_tools(request):
        where = f"{pointer}/async"
        if tool.get("async") and request.family.generation < (6, 0):
            yield Violation(describe_unsupported_parameter(where), where)
        if tool.get("async") and "programmatic" in (tool.get("allowed_callers") or ()):
            yield Violation(f"Invalid '{words.format_pointer(where)}': async tools can only be called directly.", where)


def _check_choice_without_tools(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    if request.get("tool_choice") == "required" and not request.get("prompt") and not find_tools(request):
        yield Violation("Tool choice 'required' must be specified with 'tools' parameter.", "/tool_choice")


def _check_choice_declared(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or request.get("prompt"):
        return
    for name, entry in _iterate_chosen_tools(cast("Json", choice)):
        if not _is_declared(entry, request):
            yield Violation(f"Tool choice '{name}' not found in 'tools' parameter.", "/tool_choice")


def _iterate_chosen_tools(choice: Json) -> Iterator[tuple[str, Json]]:
    if choice["type"] != "allowed_tools":
        yield choice["type"], choice
        return
    for entry in choice["tools"]:
        yield str(entry.get("name") or entry.get("server_label") or entry.get("type")), entry


def _is_declared(entry: Json, request: ResponsesRequest) -> bool:
    kind = entry.get("type")
    tools = [tool for _, tool in find_tools(request)]
    match kind:
        case "function" | "custom":
            known = [(tool["type"], tool["name"]) for _, tool, _group in find_client_tools(request)]
            return (kind, entry.get("name")) in known
        case "mcp":
            label = entry.get("server_label")
            return any(tool["type"] == "mcp" and tool["server_label"] == label for tool in tools)
        case str():
            return any(_normalise_tool_type(tool["type"]) == _normalise_tool_type(kind) for tool in tools)
        case _:
            return False


def _normalise_tool_type(kind: str) -> str:
    return "computer" if kind.startswith("computer") else _STEM.sub("", kind)


RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule(
        "responses.tool-name",
        "Tool names are 1 to 128 letters, digits, underscores and dashes.",
        "wire/openai_responses.md section 3",
        _check_names,
    ),
    Rule(
        "responses.tool-schema",
        "Parameters are a schema of type object whose arrays have `items`, and if strict, within the strict subset.",
        "wire/gemini_schema.md section 6; recorded: openai_responses/mirascope-0057",
        _check_schemas,
    ),
    Rule(
        "responses.grammar",
        "A Lark grammar has a rule `start`; no grammar has lookaround or lazy quantifiers.",
        "wire/openai_chat.md section 3 (the same tools); error text: no source",
        _check_grammars,
    ),
    Rule(
        "responses.deferred-tools",
        "Deferred tools require a `tool_search` tool.",
        "public reports of the vendor's error text; wire/openai_responses.md section 3",
        _check_deferred,
    ),
    Rule(
        "responses.mcp-server",
        "An MCP server has exactly one of `server_url`, `connector_id` and `tunnel_id`.",
        "wire/openai_responses.md section 3",
        _check_servers,
    ),
    Rule(
        "responses.async-tool",
        "Asynchronous tools need gpt-6 or later, and direct callers only.",
        "wire/openai_responses.md section 3",
        _check_async,
    ),
    Rule(
        "responses.choice-without-tools",
        "`tool_choice: required` needs tools.",
        "public reports of the vendor's error text",
        _check_choice_without_tools,
    ),
    Rule(
        "responses.choice-found",
        "Tools that `tool_choice` names or allows are in `tools`.",
        "public reports of the vendor's error text; wire/openai_responses.md section 4",
        _check_choice_declared,
    ),
)
