"""Mutators for the rules about tools: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import (
    a_tool,
    block_changed,
    change,
    custom_tools,
    onto,
    places,
    schema_changed,
    tool_changed,
    with_tool,
)
from simulator.mutation import Mutate

_COMBINATORS = ("oneOf", "allOf", "anyOf")


def _change_name(body: Json, chance: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        for name in (chance.choice(["get weather", "get.weather", "ns:get", "wetter_für"]), "", "a" * 129):
            yield change(tool_changed(body, number, name=name), tool_choice=None)


def _twice(body: Json, _: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        tool = change(body["tools"][number], cache_control=None, strict=None)
        yield with_tool(body, tool)


def _rootless(body: Json, _: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        yield schema_changed(body, number, type=None)
        yield schema_changed(body, number, type="string")
        yield schema_changed(body, number, type=["object", "null"])


def _combine(body: Json, chance: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        branches = [{"required": ["a"]}, {"required": ["b"]}]
        yield tool_changed(schema_changed(body, number, **{chance.choice(_COMBINATORS): branches}), number, strict=None)


def _change_key(body: Json, chance: Random) -> Iterator[Json]:
    for number in custom_tools(body)[:1]:
        key = chance.choice(["$top", "filter[id]", "@odata.type", "größe", "k" * 65])
        old: Json = body["tools"][number]["input_schema"].get("properties") or {}
        properties = {**old, key: {"type": "string"}}
        yield tool_changed(schema_changed(body, number, properties=properties), number, strict=None)


def _invalid_schema(body: Json, _: Random) -> Iterator[Json]:
    kinds: list[Json] = [{"type": "any"}, {"type": "string", "minLength": "1"}, {"type": "array", "items": [{}]}]
    for number in custom_tools(body)[:1]:
        for wrong in kinds:
            changes = schema_changed(body, number, properties={"city": wrong})
            yield tool_changed(changes, number, strict=None, input_examples=None)


def _bad_example(body: Json, _: Random) -> Iterator[Json]:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    for number in custom_tools(body)[:1]:
        yield tool_changed(body, number, input_schema=schema, input_examples=[{"town": "Paris"}], strict=None)


def _all_deferred(body: Json, _: Random) -> Iterator[Json]:
    own = custom_tools(body)
    if own and len(own) == len(body["tools"]):
        copy = change(body, tool_choice=None)
        copy["tools"] = [change(tool, defer_loading=True, cache_control=None) for tool in copy["tools"]]
        yield copy


def _cache_deferred(body: Json, _: Random) -> Iterator[Json]:
    if custom_tools(body) and "cache_control" not in str(body):
        yield with_tool(body, a_tool(defer_loading=True, cache_control={"type": "ephemeral"}))


def _unknown_reference(body: Json, _: Random) -> Iterator[Json]:
    content = [{"type": "tool_reference", "tool_name": "no_such_tool"}]
    for place in list(places(body, "tool_result"))[:1]:
        yield block_changed(body, place, content=content, is_error=None, cache_control=None)


def _both_lists(body: Json, _: Random) -> Iterator[Json]:
    if "web_search" not in str(body):
        tool = {"type": "web_search_20250305", "name": "web_search"}
        yield with_tool(body, {**tool, "allowed_domains": ["a.example"], "blocked_domains": ["b.example"]})


def _old_screen(body: Json, _: Random) -> Iterator[Json]:
    tool = {"type": "computer_20251124", "name": "computer", "display_height_px": 600, "display_width_px": 800}
    yield from onto(with_tool(body, tool), "claude-opus-5-5")
    for moved in onto(body, "claude-sonnet-5-5"):
        yield with_tool(moved, tool)


MUTATORS: dict[str, Mutate] = {
    "messages.tool-name": _change_name,
    "messages.tool-names-unique": _twice,
    "messages.tool-schema-object": _rootless,
    "messages.tool-schema-root": _combine,
    "messages.tool-schema-keys": _change_key,
    "messages.tool-schema-valid": _invalid_schema,
    "messages.tool-examples": _bad_example,
    "messages.tools-deferred": _all_deferred,
    "messages.tool-deferred-cache": _cache_deferred,
    "messages.tool-reference": _unknown_reference,
    "messages.web-domains": _both_lists,
    "messages.computer-tool": _old_screen,
}
