"""Rules about tools: the tool choice, server tools, and tool definitions."""

import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.messages.errors import build_custom_tool_message, describe_extra, format_pointer
from dragoman.simulator.apis.messages.read import list_references
from dragoman.simulator.apis.messages.request import MessagesRequest, define_rule, find_media, read_tool_type
from dragoman.simulator.apis.messages.rules_schemas import is_schema, is_valid
from dragoman.simulator.apis.messages.rules_settings import forces_call, when_thinking_type
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation, find, when_unset

_NOT_ON_VERTEX = ("web_fetch_", "code_execution_", "advisor_", "mcp_toolset")
_NAME = r"^[a-zA-Z0-9_-]{1,128}$"
_PROPERTY_NAME = r"^[a-zA-Z0-9_.-]{1,64}$"
_NAME_PATTERN = re.compile(_NAME)
_PROPERTY_NAME_PATTERN = re.compile(_PROPERTY_NAME)
_COMBINATORS = ("oneOf", "allOf", "anyOf")
_SECTION = "wire/anthropic_messages.md section"
_SCHEMA_INVALID = (
    "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn "
    "more about tool use at https://docs.claude.com/en/docs/tool-use."
)


def _is_on_vertex(request: MessagesRequest) -> bool:
    return request.vertex


def _check_vertex_sources(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    if not request.vertex:
        return
    for where, path, shown in find_media(request):
        if shown["source"]["type"] in {"url", "file"}:
            message = "URL and file sources are not supported on this platform"
            yield Violation(f"{path}.source: {message}", f"{where}/source")
    for block in request.blocks("container_upload"):
        yield Violation(f"{block.path}: `container_upload` is not supported on this platform", block.where)


def _check_mcp_names(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    names: set[str] = set()
    for where, name in find(request.document, "/mcp_servers/*/name"):
        if name in names:
            yield Violation("mcp_servers: MCP server names must be unique", where)
        names.add(name)
    for where, name in find(request.document, "/tools/*/mcp_server_name"):
        if name not in names:
            path = format_pointer(where).replace(".mcp_server_name", ".mcp_toolset.mcp_server_name")
            yield Violation(f"{path}: MCP server '{name}' is not defined in mcp_servers", where)


def _lacks_code_execution(request: MessagesRequest) -> bool:
    return not any(kind.startswith("code_execution_") for _, kind in find(request.document, "/tools/*/type"))


@define_rule("tool-names-unique", f"{_SECTION} 4; claude-code#10687", root="tools")
def _check_names_unique(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """No two tools have the same name."""
    names: set[str] = set()
    for where, name in find(request.document, "/tools/*/name"):
        if name in names and name:
            yield Violation("tools: Tool names must be unique.", where)
        names.add(name)


@define_rule("tool-schema-object", f"{_SECTION} 4; wire/gemini_schema.md section 4.3", root="tools")
def _check_schema_root(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The root of a tool's schema is an object."""
    for where, schema in find(request.document, "/tools/*/input_schema"):
        if schema.get("type") != "object":
            message = "Input should be 'object'" if "type" in schema else "Field required"
            yield Violation(build_custom_tool_message(message)(f"{where}/type", schema), f"{where}/type")


def _has_invalid_property_name(properties: Any) -> bool:
    return isinstance(properties, dict) and not all(map(_PROPERTY_NAME_PATTERN.fullmatch, properties))  # pyright: ignore[reportUnknownArgumentType]


@define_rule("tool-examples", "platform.claude.com define-tools, Providing tool use examples", root="tools")
def _check_examples(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The examples of a tool are valid by its schema."""
    for number, tool in enumerate(request.list("tools")):
        for place, example in enumerate((tool.get("input_examples") or ()) if read_tool_type(tool) == "custom" else ()):
            if not is_valid(example, tool["input_schema"]):
                where = f"/tools/{number}/input_examples/{place}"
                yield Violation(
                    build_custom_tool_message("Input example does not match the tool's input_schema")(where, example),
                    where,
                )


def _is_deferred(tool: Json) -> bool:
    return bool(tool.get("defer_loading"))


@define_rule("tool-deferred-cache", "platform.claude.com tool-search-tool, Prompt caching", root="tools")
def _check_deferred_tool_cache(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A deferred tool has no cache breakpoint."""
    for number, tool in enumerate(request.list("tools")):
        if _is_deferred(tool) and tool.get("cache_control") is not None:
            message = "cache_control cannot be set on a tool with defer_loading: true"
            yield Violation(
                f"tools.{number}.{read_tool_type(tool)}.cache_control: {message}", f"/tools/{number}/cache_control"
            )


@define_rule("tools-deferred", "platform.claude.com troubleshooting-tool-use; tool-search-tool", root="tools")
def _check_all_deferred(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """At least one tool is not deferred, and the tool search tool never is."""
    tools = request.list("tools")
    for number, tool in enumerate(tools):
        if read_tool_type(tool).startswith("tool_search_tool_") and _is_deferred(tool):
            message = f"tools.{number}.{read_tool_type(tool)}.defer_loading: The tool search tool must not be deferred"
            yield Violation(message, f"/tools/{number}/defer_loading")
    if tools and all(map(_is_deferred, tools)):
        message = "All tools have defer_loading: true. At least one tool must be immediately loaded."
        yield Violation(message, "/tools")


@define_rule("tool-reference", "platform.claude.com tool-search-tool, 400 error: missing tool definition")
def _check_tool_references(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """A tool that a search found is declared in `tools`."""
    for block in request.blocks("tool_result", "tool_search_tool_result"):
        for name in list_references(block):
            if name not in request.tool_names:
                yield Violation(f"Tool reference '{name}' not found in available tools", block.where)


@define_rule("computer-tool", f"{_SECTION} 4", root="tools")
def _check_computer_tool(request: MessagesRequest, _: CheckContext) -> Iterator[Violation]:
    """The newest models support the computer only as a toolset."""
    for where, kind in find(request.document, "/tools/*/type"):
        if kind.startswith("computer_20") and not request.model.takes_computer_tool:
            yield Violation(f"'{request.model.name}' does not support tool types: {kind}.", where)


RULES: tuple[Rule[MessagesRequest], ...] = (
    Rule(
        "messages.tool-choice-tools",
        "`tool_choice` requires tools.",
        "no source: not documented",
        PathCheck("/tool_choice", "tool_choice may only be specified while providing tools", when=when_unset("/tools")),
    ),
    Rule(
        "messages.tool-choice-forced",
        "The newest models do not support forced tool calls.",
        f"{_SECTION}s 0 and 5",
        PathCheck(
            "/tool_choice/type",
            'tool_choice: type "tool" and "any" are not supported for this model.',
            forces_call,
            lambda request: not request.model.can_be_forced,
        ),
    ),
    Rule(
        "messages.tool-choice-thinking",
        "With a thinking budget, tool calls cannot be forced.",
        f"{_SECTION} 5; mastra#7507",
        PathCheck(
            "/tool_choice/type",
            "Thinking may not be enabled when tool_choice forces tool use.",
            forces_call,
            when_thinking_type("enabled"),
        ),
    ),
    Rule(
        "messages.tool-choice-name",
        "The tool that `tool_choice` names is declared.",
        "no source: not documented",
        PathCheck(
            "/tool_choice/name",
            lambda _, name: f"Tool '{name}' not found in provided tools",
            when=lambda request: request.at("/tool_choice/name") not in request.tool_names,
        ),
    ),
    Rule(
        "messages.vertex-features",
        "Vertex has no URL sources, uploaded files, code execution, web fetch, advisor, MCP connector or fallbacks.",
        f"{_SECTION} 13",
        PathCheck(
            "/tools/*/type",
            lambda where, kind: (
                f"{format_pointer(where).removesuffix('.type')}: tool type '{kind}' is not supported on this platform"
            ),
            lambda kind: kind.startswith(_NOT_ON_VERTEX),
            _is_on_vertex,
        ),
        *(
            PathCheck(f"/{member}", describe_extra, when=_is_on_vertex)
            for member in ("mcp_servers", "fallbacks", "container")
        ),
        _check_vertex_sources,
    ),
    Rule(
        "messages.mcp-servers",
        "MCP servers have unique names and HTTPS URLs, and a toolset names one of them.",
        f"{_SECTION} 4; no source for the error text",
        PathCheck(
            "/mcp_servers/*/url",
            lambda where, _: f"{format_pointer(where)}: URL must use https",
            lambda url: not url.startswith("https://"),
        ),
        _check_mcp_names,
    ),
    Rule(
        "messages.container-skills",
        "Skills need the code execution tool.",
        "platform.claude.com skills-guide: skills need the code execution tool",
        PathCheck(
            "/container/skills",
            "container: skills can only be used when a code execution tool is enabled",
            bool,
            _lacks_code_execution,
        ),
    ),
    Rule(
        "messages.tool-name",
        "A tool's name has 1 to 128 letters, digits, _ and -.",
        f"{_SECTION} 4",
        PathCheck(
            "/tools/*/name",
            build_custom_tool_message(f"String should match pattern '{_NAME}'"),
            lambda name: not _NAME_PATTERN.fullmatch(name),
        ),
    ),
    _check_names_unique,
    _check_schema_root,
    Rule(
        "messages.tool-schema-root",
        "The root of a tool's schema has no oneOf, allOf or anyOf.",
        f"{_SECTION} 4; claude-code#40075",
        PathCheck(
            "/tools/*/input_schema",
            build_custom_tool_message("input_schema does not support oneOf, allOf, or anyOf at the top level"),
            lambda schema: any(word in schema for word in _COMBINATORS),
        ),
    ),
    Rule(
        "messages.tool-schema-keys",
        "A parameter's name has 1 to 64 letters, digits, _, . and -.",
        f"{_SECTION} 4; claude-code#79418, composio#3500",
        PathCheck(
            "/tools/*/input_schema/properties",
            build_custom_tool_message(f"Property keys should match pattern '{_PROPERTY_NAME}'"),
            _has_invalid_property_name,
        ),
    ),
    Rule(
        "messages.tool-schema-valid",
        "A tool's schema is a valid JSON Schema of draft 2020-12.",
        f"{_SECTION} 4: any JSON Schema 2020-12",
        PathCheck(
            "/tools/*/input_schema", build_custom_tool_message(_SCHEMA_INVALID), lambda schema: not is_schema(schema)
        ),
    ),
    _check_examples,
    _check_deferred_tool_cache,
    _check_all_deferred,
    _check_tool_references,
    Rule(
        "messages.web-domains",
        "A web tool has allowed or blocked domains, not both.",
        "platform.claude.com web-search-tool, Domain filtering",
        PathCheck(
            "/tools/*",
            lambda where, tool: (
                f"{format_pointer(where)}.{tool['type']}: Only one of allowed_domains and blocked_domains "
                "may be specified"
            ),
            lambda tool: bool(tool.get("allowed_domains") and tool.get("blocked_domains")),
        ),
    ),
    _check_computer_tool,
)
