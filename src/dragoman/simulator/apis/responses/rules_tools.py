"""Rules about tools and the choice among them."""

import re
from collections.abc import Iterator
from typing import cast

from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import grammar_fault, name_fault
from dragoman.simulator.apis.openai.schemas import complaints
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.words import one_of, unsupported
from dragoman.simulator.rule import Json, Rule, Situation, Violation, find

_MOST_CHARACTERS = 128
_STEM = re.compile(r"(?:_preview)?(?:_\d{4}_\d{2}_\d{2})?$")
_SERVERS = ("server_url", "connector_id", "tunnel_id")


def declared_tools(request: ResponsesRequest) -> list[tuple[str, Json]]:
    """Return every tool of a request with its pointer: the declared, and those added or found on the way."""
    if "tools" not in request.computed:
        added = [
            (f"/input/{number}{where}", tool)
            for number, item in enumerate(request.items)
            if item["type"] in {"additional_tools", "tool_search_output"}
            for where, tool in find(item, "/tools/*")
        ]
        request.computed["tools"] = [*request.find("/tools/*"), *added]
    return request.computed["tools"]


def clients_tools(request: ResponsesRequest) -> list[tuple[str, Json, str]]:
    """Return the tools the client runs, with pointer and namespace."""
    if "clients_tools" not in request.computed:
        request.computed["clients_tools"] = list(_clients_tools(request))
    return request.computed["clients_tools"]


def _clients_tools(request: ResponsesRequest) -> Iterator[tuple[str, Json, str]]:
    for where, tool in declared_tools(request):
        if tool["type"] in {"function", "custom"}:
            yield where, tool, ""
        elif tool["type"] == "namespace":
            yield from ((f"{where}{below}", inner, tool["name"]) for below, inner in find(tool, "/tools/*"))


def _names(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    groups = [(where, tool) for where, tool in declared_tools(request) if tool["type"] == "namespace"]
    for where, tool in [*((where, tool) for where, tool, _group in clients_tools(request)), *groups]:
        if fault := name_fault(f"{where}/name", tool["name"], most=_MOST_CHARACTERS, length_first=True):
            yield Violation(fault, f"{where}/name")


def _schemas(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    for where, tool, _group in clients_tools(request):
        if tool.get("parameters") is not None:
            for complaint in complaints(tool["parameters"], strict=bool(tool.get("strict"))):
                yield Violation(complaint.about(f"function '{tool['name']}'"), f"{where}/parameters")


def _grammars(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    for pointer, tool, _group in clients_tools(request):
        grammar: Json = tool.get("format") or {}
        where = f"{pointer}/format/definition"
        if "definition" in grammar and (fault := grammar_fault(grammar["syntax"], grammar["definition"])):
            yield Violation(f"Invalid value for '{words.named(where)}': {fault}.", where)


def _deferred(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    if any(tool["type"] == "tool_search" for tool in request.list("tools")):
        return
    for where, tool, _group in clients_tools(request):
        if tool.get("defer_loading") and where.startswith("/tools/"):
            message = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search."
            yield Violation(message, "/tools")


def _servers(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    for where, tool in declared_tools(request):
        if tool["type"] == "mcp" and (fault := one_of(where, tool, _SERVERS)):
            yield Violation(fault, where)


def _async(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    for pointer, tool, _group in clients_tools(request):
        where = f"{pointer}/async"
        if tool.get("async") and request.family.generation < (6, 0):
            yield Violation(unsupported(where), where)
        if tool.get("async") and "programmatic" in (tool.get("allowed_callers") or ()):
            yield Violation(f"Invalid '{words.named(where)}': async tools can only be called directly.", where)


def _choice_without_tools(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    if request.get("tool_choice") == "required" and not request.get("prompt") and not declared_tools(request):
        yield Violation("Tool choice 'required' must be specified with 'tools' parameter.", "/tool_choice")


def _choice_known(request: ResponsesRequest, _: Situation) -> Iterator[Violation]:
    choice = request.get("tool_choice")
    if not isinstance(choice, dict) or request.get("prompt"):
        return
    for name, entry in _chosen(cast("Json", choice)):
        if not _is_declared(entry, request):
            yield Violation(f"Tool choice '{name}' not found in 'tools' parameter.", "/tool_choice")


def _chosen(choice: Json) -> Iterator[tuple[str, Json]]:
    if choice["type"] != "allowed_tools":
        yield choice["type"], choice
        return
    for entry in choice["tools"]:
        yield str(entry.get("name") or entry.get("server_label") or entry.get("type")), entry


def _is_declared(entry: Json, request: ResponsesRequest) -> bool:
    kind = entry.get("type")
    tools = [tool for _, tool in declared_tools(request)]
    match kind:
        case "function" | "custom":
            known = [(tool["type"], tool["name"]) for _, tool, _group in clients_tools(request)]
            return (kind, entry.get("name")) in known
        case "mcp":
            label = entry.get("server_label")
            return any(tool["type"] == "mcp" and tool["server_label"] == label for tool in tools)
        case str():
            return any(_stem(tool["type"]) == _stem(kind) for tool in tools)
        case _:
            return False


def _stem(kind: str) -> str:
    return "computer" if kind.startswith("computer") else _STEM.sub("", kind)


RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule(
        "responses.tool-name",
        "Names of tools are 1 to 128 letters, digits, underscores and dashes.",
        "wire/openai_responses.md section 3",
        _names,
    ),
    Rule(
        "responses.tool-schema",
        "Parameters are an object's schema whose arrays have items, and if strict within the strict subset.",
        "wire/gemini_schema.md section 6; recorded: openai_responses/mirascope-0057",
        _schemas,
    ),
    Rule(
        "responses.grammar",
        "A Lark grammar has a rule `start`; no grammar has look-around or lazy quantifiers.",
        "wire/openai_chat.md section 3 (the same tools); the words: no source",
        _grammars,
    ),
    Rule(
        "responses.deferred-tools",
        "Deferred tools come with a tool search.",
        "public reports of the vendor's words; wire/openai_responses.md section 3",
        _deferred,
    ),
    Rule(
        "responses.mcp-server",
        "An MCP server is reached in exactly one way.",
        "wire/openai_responses.md section 3",
        _servers,
    ),
    Rule(
        "responses.async-tool",
        "Tools that answer later need gpt-6 or later, and direct callers.",
        "wire/openai_responses.md section 3",
        _async,
    ),
    Rule(
        "responses.choice-without-tools",
        "Who must call a tool has one.",
        "public reports of the vendor's words",
        _choice_without_tools,
    ),
    Rule(
        "responses.choice-found",
        "Chosen and allowed tools are among the tools.",
        "public reports of the vendor's words; wire/openai_responses.md section 4",
        _choice_known,
    ),
)
