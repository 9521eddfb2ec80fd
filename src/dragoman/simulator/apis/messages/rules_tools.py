"""Rules about the declaration of tools."""

import re
from collections.abc import Iterator
from random import Random
from typing import Any

from dragoman.simulator.apis.messages.blocks import ToolResult
from dragoman.simulator.apis.messages.json_schema import is_schema, is_valid
from dragoman.simulator.apis.messages.mutations import (
    a_tool,
    block_changed,
    changed,
    custom_tools,
    onto,
    places,
    schema_changed,
    tool_changed,
    with_tool,
)
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
from dragoman.simulator.rule import Json, Situation, Violation

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


def _misnamed(body: Json, chance: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        for name in (chance.choice(["get weather", "get.weather", "ns:get", "wetter_für"]), "", "a" * 129):
            yield changed(tool_changed(body, number, name=name), tool_choice=None)


@rule("tool-name", "wire/anthropic_messages.md section 4", _misnamed)
def tool_name(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A tool's name has letters, digits, _ and -, and at most 128 of them."""
    for number, tool in _own(reading):
        if not _NAMED.fullmatch(tool.name):
            words = f"tools.{number}.custom.name: String should match pattern '{_NAME}'"
            yield Violation(words, f"/tools/{number}/name")


def _twice(body: Json, _: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        tool = changed(body["tools"][number], cache_control=None, strict=None)
        yield with_tool(body, tool)


@rule("tool-names-unique", "wire/anthropic_messages.md section 4; claude-code#10687", _twice)
def tool_names(reading: Reading, _: Situation) -> Iterator[Violation]:
    """No two tools have one name."""
    names: set[str] = set()
    for number, tool in enumerate(reading.tools):
        name = name_of(tool)
        if name and name in names:
            yield Violation("tools: Tool names must be unique.", f"/tools/{number}/name")
        names.add(name)


def _rootless(body: Json, _: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        yield schema_changed(body, number, type=None)
        yield schema_changed(body, number, type="string")
        yield schema_changed(body, number, type=["object", "null"])


@rule("tool-schema-object", "wire/anthropic_messages.md section 4; wire/gemini_schema.md section 4.3", _rootless)
def tool_schema_object(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The root of a tool's schema is an object."""
    for number, tool in _own(reading):
        where = f"/tools/{number}/input_schema/type"
        if "type" not in tool.input_schema:
            yield Violation(f"tools.{number}.custom.input_schema.type: Field required", where)
        elif tool.input_schema["type"] != "object":
            yield Violation(f"tools.{number}.custom.input_schema.type: Input should be 'object'", where)


def _combined(body: Json, chance: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        branches = [{"required": ["a"]}, {"required": ["b"]}]
        yield tool_changed(schema_changed(body, number, **{chance.choice(_COMBINATORS): branches}), number, strict=None)


@rule("tool-schema-root", "wire/anthropic_messages.md section 4; claude-code#40075", _combined)
def tool_schema_root(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The root of a tool's schema has no combinator."""
    for number, tool in _own(reading):
        if any(word in tool.input_schema for word in _COMBINATORS):
            words = "input_schema does not support oneOf, allOf, or anyOf at the top level"
            yield Violation(f"tools.{number}.custom.input_schema: {words}", f"/tools/{number}/input_schema")


def _miskeyed(body: Json, chance: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        key = chance.choice(["$top", "filter[id]", "@odata.type", "größe", "k" * 65])
        old: Json = body["tools"][number]["input_schema"].get("properties") or {}
        properties = {**old, key: {"type": "string"}}
        yield tool_changed(schema_changed(body, number, properties=properties), number, strict=None)


@rule("tool-schema-keys", "wire/anthropic_messages.md section 4; claude-code#79418, composio#3500", _miskeyed)
def tool_schema_keys(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A parameter's name has letters, digits, _, . and -, and at most 64 of them."""
    for number, tool in _own(reading):
        properties: Any = tool.input_schema.get("properties")
        names: list[str] = list(properties) if isinstance(properties, dict) else []  # pyright: ignore[reportUnknownArgumentType]
        if any(not _KEYED.fullmatch(name) for name in names):
            words = f"Property keys should match pattern '{_KEY}'"
            where = f"/tools/{number}/input_schema/properties"
            yield Violation(f"tools.{number}.custom.input_schema.properties: {words}", where)


def _invalid_schema(body: Json, _: Random) -> Iterator[Json]:
    kinds: list[Json] = [{"type": "any"}, {"type": "string", "minLength": "1"}, {"type": "array", "items": [{}]}]
    for number in custom_tools(body)[:1]:
        for wrong in kinds:
            changes = schema_changed(body, number, properties={"city": wrong})
            yield tool_changed(changes, number, strict=None, input_examples=None)


@rule("tool-schema-valid", "wire/anthropic_messages.md section 4: any JSON Schema 2020-12", _invalid_schema)
def tool_schema_valid(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A tool's schema is a valid JSON Schema of draft 2020-12."""
    for number, tool in _own(reading):
        if not is_schema(tool.input_schema):
            yield Violation(f"tools.{number}.custom.input_schema: {_SCHEMA_INVALID}", f"/tools/{number}/input_schema")


def _bad_example(body: Json, _: Random) -> Iterator[Json]:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    for number in custom_tools(body)[:1]:
        yield tool_changed(body, number, input_schema=schema, input_examples=[{"town": "Paris"}], strict=None)


@rule("tool-examples", "platform.claude.com define-tools, Providing tool use examples", _bad_example)
def tool_examples(reading: Reading, _: Situation) -> Iterator[Violation]:
    """The examples of a tool are valid by its schema."""
    for number, tool in _own(reading):
        for place, example in enumerate(tool.input_examples or ()):
            if not is_valid(example, tool.input_schema):
                words = "Input example does not match the tool's input_schema"
                where = f"/tools/{number}/input_examples/{place}"
                yield Violation(f"tools.{number}.custom.input_examples.{place}: {words}", where)


def _all_deferred(body: Json, _: Random) -> Iterator[Json]:
    own = custom_tools(body)
    if own and len(own) == len(body["tools"]):
        copy = changed(body, tool_choice=None)
        copy["tools"] = [changed(tool, defer_loading=True, cache_control=None) for tool in copy["tools"]]
        yield copy


@rule("tools-deferred", "platform.claude.com troubleshooting-tool-use; tool-search-tool", _all_deferred)
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


def _cached_deferred(body: Json, _: Random) -> Iterator[Json]:
    if custom_tools(body) and "cache_control" not in str(body):
        yield with_tool(body, a_tool(defer_loading=True, cache_control={"type": "ephemeral"}))


@rule("tool-deferred-cache", "platform.claude.com tool-search-tool, Prompt caching", _cached_deferred)
def tool_deferred_cache(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A deferred tool carries no breakpoint of the cache."""
    for number, tool in enumerate(reading.tools):
        if _deferred(tool) and tool.cache_control is not None:
            words = "cache_control cannot be set on a tool with defer_loading: true"
            yield Violation(f"tools.{number}.{kind_of(tool)}.cache_control: {words}", f"/tools/{number}/cache_control")


def _unknown_reference(body: Json, _: Random) -> Iterator[Json]:
    content = [{"type": "tool_reference", "tool_name": "no_such_tool"}]
    for place in list(places(body, "tool_result"))[:1]:
        yield block_changed(body, place, content=content, is_error=None, cache_control=None)


@rule("tool-reference", "platform.claude.com tool-search-tool, 400 error: missing tool definition", _unknown_reference)
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


def _both_lists(body: Json, _: Random) -> Iterator[Json]:
    if "web_search" not in str(body):
        tool = {"type": "web_search_20250305", "name": "web_search"}
        yield with_tool(body, {**tool, "allowed_domains": ["a.example"], "blocked_domains": ["b.example"]})


@rule("web-domains", "platform.claude.com web-search-tool, Domain filtering", _both_lists)
def web_domains(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A tool for the web allows domains or blocks them, not both."""
    for number, tool in enumerate(reading.tools):
        if isinstance(tool, Web) and tool.allowed_domains and tool.blocked_domains:
            words = "Only one of allowed_domains and blocked_domains may be specified"
            yield Violation(f"tools.{number}.{kind_of(tool)}: {words}", f"/tools/{number}")


def _old_screen(body: Json, _: Random) -> Iterator[Json]:
    tool = {"type": "computer_20251124", "name": "computer", "display_height_px": 600, "display_width_px": 800}
    yield from onto(with_tool(body, tool), "claude-opus-5-5")
    for moved in onto(body, "claude-sonnet-5-5"):
        yield with_tool(moved, tool)


@rule("computer-tool", "wire/anthropic_messages.md section 4", _old_screen)
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
