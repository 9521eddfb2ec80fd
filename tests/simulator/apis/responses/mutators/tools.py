"""Mutators for the rules about tools: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.responses.changes import OBJECT, change, items_of, on_model, places, tools_of, with_tool
from simulator.broken_grammars import BROKEN
from simulator.mutation import Mutate


def _odden_name(body: Json, chance: Random) -> Iterator[Json]:
    tools = tools_of(body)
    named = [tool for tool in tools if tool.get("type") in {"function", "custom", "namespace"}]
    if named:
        chance.choice(named)["name"] = chance.choice(["with space", "dotted.name", "", "n" * 129, "naïve"])
        yield change(body, tools=tools)


def _deep(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    return schema


def _odden_schema(body: Json, _: Random) -> Iterator[Json]:
    text: Json = {"type": "string"}
    closed: Json = {"type": "object", "properties": {"a": text}, "required": ["a"], "additionalProperties": False}
    strictly: list[Json] = [
        {**closed, "additionalProperties": True},
        {**closed, "required": []},
        {**closed, "required": ["a", "b"]},
        {**closed, "properties": {"a": {"allOf": [text]}}},
        {**closed, "properties": {"a": {"description": "anything"}}},
        {**closed, "properties": {"a": {"type": "string", "format": "uri"}}},
        {**closed, "properties": {"a": {"type": "object", "properties": {}}}},
        {**closed, "anyOf": [closed]},
        {**closed, "properties": {"a": {"type": "string", "enum": [f"v{number}" for number in range(1001)]}}},
        {**closed, "properties": {"a": {**text, "enum": [str(number).zfill(60) for number in range(251)]}}},
        {**closed, "properties": {"a": {"$ref": "#/$defs/b", "description": "See there."}}, "$defs": {"b": text}},
        _deep(11),
    ]
    loosely: list[Json] = [
        {"type": "array", "items": text},
        {},
        {**closed, "properties": {"a": {"type": "array"}}},
        {**closed, "properties": {"a": {"type": {"x": 1}}}},
        {**closed, "required": None},
    ]
    for schema in strictly:
        yield with_tool(body, {"type": "function", "name": "odd_tool", "parameters": schema, "strict": True})
    for schema in loosely:
        yield with_tool(body, {"type": "function", "name": "odd_tool", "parameters": schema, "strict": False})


def _odden_grammar(body: Json, _: Random) -> Iterator[Json]:
    for syntax, definition in BROKEN:
        grammar: Json = {"type": "grammar", "syntax": syntax, "definition": definition}
        yield with_tool(body, {"type": "custom", "name": "odd_tool", "format": grammar})


def _defer_alone(body: Json, _: Random) -> Iterator[Json]:
    tools = [tool for tool in tools_of(body) if tool.get("type") != "tool_search"]
    function: Json = {"type": "function", "name": "later", "parameters": OBJECT, "strict": False, "defer_loading": True}
    yield change(body, tools=[*tools, function])
    yield change(
        body, tools=[*tools, {"type": "namespace", "name": "group", "description": "Later.", "tools": [function]}]
    )


def _hide_server(body: Json, _: Random) -> Iterator[Json]:
    yield with_tool(body, {"type": "mcp", "server_label": "lost"})
    both: Json = {"server_url": "https://mcp.example", "connector_id": "connector_gmail"}
    yield with_tool(body, {"type": "mcp", "server_label": "torn", **both})


def _make_async(body: Json, _: Random) -> Iterator[Json]:
    tool: Json = {"type": "function", "name": "slow_tool", "parameters": OBJECT, "strict": False, "async": True}
    yield on_model(with_tool(body, tool), "gpt-5.6")
    yield on_model(with_tool(body, {**tool, "allowed_callers": ["direct", "programmatic"]}), "gpt-6-sol")


def _choose_from_nothing(body: Json, _: Random) -> Iterator[Json]:
    added = list(places(items_of(body), "additional_tools", "tool_search_output"))
    if not body.get("tools") and not body.get("prompt") and not added:
        yield change(body, tool_choice="required")
        yield change(body, tool_choice="required", tools=[])


def _choose_missing(body: Json, _: Random) -> Iterator[Json]:
    if body.get("prompt"):
        return
    tool: Json = {"type": "function", "name": "known_tool", "parameters": OBJECT, "strict": False}
    base = with_tool(body, tool)
    missing: Json = {"type": "function", "name": "tool_nobody_has"}
    yield change(base, tool_choice=missing)
    yield change(base, tool_choice={"type": "custom", "name": "known_tool"})
    yield change(base, tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [missing]})
    yield change(base, tool_choice={"type": "mcp", "server_label": "nowhere"})


MUTATORS: dict[str, Mutate] = {
    "responses.tool-name": _odden_name,
    "responses.tool-schema": _odden_schema,
    "responses.grammar": _odden_grammar,
    "responses.deferred-tools": _defer_alone,
    "responses.mcp-server": _hide_server,
    "responses.async-tool": _make_async,
    "responses.choice-without-tools": _choose_from_nothing,
    "responses.choice-found": _choose_missing,
}
