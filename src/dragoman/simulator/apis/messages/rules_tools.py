"""Rules about the declaration of tools."""

import re
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.messages.blocks import ToolResult
from dragoman.simulator.apis.messages.json_schema import is_schema, is_valid
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.tools import (
    Custom,
    Known,
    Screen,
    Tool,
    ToolSearch,
    Web,
    kind_of,
    name_of,
)
from dragoman.simulator.rule import Situation, Violation

_NAME = r"^[a-zA-Z0-9_-]{1,128}$"
_KEY = r"^[a-zA-Z0-9_.-]{1,64}$"
_NAMED = re.compile(_NAME)
_KEYED = re.compile(_KEY)
_COMBINATORS = ("oneOf", "allOf", "anyOf")
_SCHEMA_INVALID = (
    "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12). Learn "
    "more about tool use at https://docs.claude.com/en/docs/tool-use."
)


def _own(reading: Reading) -> Iterator[tuple[int, Custom]]:
    for number, tool in enumerate(reading.tools):
        if isinstance(tool, Custom):
            yield number, tool


@rule("tool-name", "wire/anthropic_messages.md section 4")
def tool_name(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A tool's name has letters, digits, _ and -, and at most 128 of them."""
    for number, tool in _own(reading):
        if not _NAMED.fullmatch(tool.name):
            words = f"tools.{number}.custom.name: String should match pattern '{_NAME}'"
            yield Violation(words, f"/tools/{number}/name")


@rule("tool-names-unique", "wire/anthropic_messages.md section 4; claude-code#10687")
def tool_names(reading: Reading, _: Situation) -> Iterator[Violation]:
    """No two tools have one name."""
    names: set[str] = set()
    for number, tool in enumerate(reading.tools):
        name = name_of(tool)
        if name and name in names:
            yield Violation("tools: Tool names must be unique.", f"/tools/{number}/name")
        names.add(name)


@rule("tool-schema-object", "wire/anthropic_messages.md section 4; wire/gemini_schema.md section 4.3")
def tool_schema_object(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The root of a tool's schema is an object."""
    for number, tool in _own(reading):
        where = f"/tools/{number}/input_schema/type"
        if "type" not in tool.input_schema:
            yield Violation(f"tools.{number}.custom.input_schema.type: Field required", where)
        elif tool.input_schema["type"] != "object":
            yield Violation(f"tools.{number}.custom.input_schema.type: Input should be 'object'", where)


@rule("tool-schema-root", "wire/anthropic_messages.md section 4; claude-code#40075")
def tool_schema_root(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The root of a tool's schema has no combinator."""
    for number, tool in _own(reading):
        if any(word in tool.input_schema for word in _COMBINATORS):
            words = "input_schema does not support oneOf, allOf, or anyOf at the top level"
            yield Violation(f"tools.{number}.custom.input_schema: {words}", f"/tools/{number}/input_schema")


@rule("tool-schema-keys", "wire/anthropic_messages.md section 4; claude-code#79418, composio#3500")
def tool_schema_keys(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A parameter's name has letters, digits, _, . and -, and at most 64 of them."""
    for number, tool in _own(reading):
        properties: Any = tool.input_schema.get("properties")
        names: list[str] = list(properties) if isinstance(properties, dict) else []  # pyright: ignore[reportUnknownArgumentType]
        if any(not _KEYED.fullmatch(name) for name in names):
            words = f"Property keys should match pattern '{_KEY}'"
            where = f"/tools/{number}/input_schema/properties"
            yield Violation(f"tools.{number}.custom.input_schema.properties: {words}", where)


@rule("tool-schema-valid", "wire/anthropic_messages.md section 4: any JSON Schema 2020-12")
def tool_schema_valid(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A tool's schema is a valid JSON Schema of draft 2020-12."""
    for number, tool in _own(reading):
        if not is_schema(tool.input_schema):
            yield Violation(f"tools.{number}.custom.input_schema: {_SCHEMA_INVALID}", f"/tools/{number}/input_schema")


@rule("tool-examples", "platform.claude.com define-tools, Providing tool use examples")
def tool_examples(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The examples of a tool are valid by its schema."""
    for number, tool in _own(reading):
        for place, example in enumerate(tool.input_examples or ()):
            if not is_valid(example, tool.input_schema):
                words = "Input example does not match the tool's input_schema"
                where = f"/tools/{number}/input_examples/{place}"
                yield Violation(f"tools.{number}.custom.input_examples.{place}: {words}", where)


@rule("tools-deferred", "platform.claude.com troubleshooting-tool-use; tool-search-tool")
def tools_deferred(reading: Reading, _: Situation) -> Iterator[Violation]:
    """At least one tool is there from the start, and the search for tools always is."""
    for number, tool in enumerate(reading.tools):
        if isinstance(tool, ToolSearch) and tool.defer_loading:
            words = f"tools.{number}.{kind_of(tool)}.defer_loading: The tool search tool must not be deferred"
            yield Violation(words, f"/tools/{number}/defer_loading")
    if reading.tools and all(_deferred(tool) for tool in reading.tools):
        words = "All tools have defer_loading: true. At least one tool must be immediately loaded."
        yield Violation(words, "/tools")


def _deferred(tool: Tool) -> bool:
    return isinstance(tool, Custom | Known) and bool(tool.defer_loading)


@rule("tool-deferred-cache", "platform.claude.com tool-search-tool, Prompt caching")
def tool_deferred_cache(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A deferred tool carries no breakpoint of the cache."""
    for number, tool in enumerate(reading.tools):
        if _deferred(tool) and tool.cache_control is not None:
            words = "cache_control cannot be set on a tool with defer_loading: true"
            yield Violation(f"tools.{number}.{kind_of(tool)}.cache_control: {words}", f"/tools/{number}/cache_control")


@rule("tool-reference", "platform.claude.com tool-search-tool, 400 error: missing tool definition")
def tool_reference(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A tool that a search found is declared."""
    names = {name_of(tool) for tool in reading.tools}
    for _turn, placed in reading.blocks():
        if not isinstance(placed.block, ToolResult) or not isinstance(placed.block.content, list):
            continue
        for part in placed.block.content:
            name = getattr(part, "tool_name", None)
            if name is not None and name not in names:
                yield Violation(f"Tool reference '{name}' not found in available tools", placed.where)


@rule("web-domains", "platform.claude.com web-search-tool, Domain filtering")
def web_domains(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A tool for the web allows domains or blocks them, not both."""
    for number, tool in enumerate(reading.tools):
        if isinstance(tool, Web) and tool.allowed_domains and tool.blocked_domains:
            words = "Only one of allowed_domains and blocked_domains may be specified"
            yield Violation(f"tools.{number}.{kind_of(tool)}: {words}", f"/tools/{number}")


@rule("computer-tool", "wire/anthropic_messages.md section 4")
def computer_tool(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The newest models take the computer as a toolset."""
    for number, tool in enumerate(reading.tools):
        if isinstance(tool, Screen) and not reading.model.takes_computer_tool:
            words = f"'{reading.model.name}' does not support tool types: {kind_of(tool)}."
            yield Violation(words, f"/tools/{number}/type")


RULES = (
    tool_name,
    tool_names,
    tool_schema_object,
    tool_schema_root,
    tool_schema_keys,
    tool_schema_valid,
    tool_examples,
    tool_deferred_cache,
    tools_deferred,
    tool_reference,
    web_domains,
    computer_tool,
)
