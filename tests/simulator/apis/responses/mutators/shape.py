"""Mutators for the rules about shape: each yields bodies that break its rule."""

from collections.abc import Iterator
from math import inf, nan
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.responses.changes import OBJECT, USER, alter, change, items_of, places, with_items, with_tool
from simulator.mutation import Mutate


def _unknown(body: Json, chance: Random) -> Iterator[Json]:
    name = chance.choice(["seed", "n", "stop", "max_tokens", "messages", "functions", "logit_bias"])
    yield change(body, **{name: 1})
    for number in range(len(items_of(body))):
        yield alter(body, number, bogus=1)
    yield with_tool(body, {"type": "function", "name": "odd_tool", "parameters": OBJECT, "cache_control": None})
    yield change(body, reasoning={"budget_tokens": 1024})


def _change_type(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, max_output_tokens="many")
    yield change(body, tools={})
    yield change(body, temperature="hot")
    yield change(body, model=None)
    yield change(body, instructions=["Be brief."])
    for number in places(items_of(body), "function_call"):
        yield alter(body, number, arguments={})


def _not_listed(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, truncation="middle")
    yield change(body, tool_choice="any")
    yield change(body, include=["everything"])
    yield change(body, reasoning={"effort": "maximal"})
    yield with_tool(body, {"type": "function_declaration", "name": "odd_tool"})
    yield with_items(body, [*items_of(body), {"type": "tool_result", "call_id": "call_1", "output": "?"}])
    yield with_items(body, [*items_of(body), {"role": "tool", "content": "?"}])
    yield with_items(body, [*items_of(body), {"role": "user", "content": [{"type": "text", "text": "?"}]}])
    yield with_items(body, [*items_of(body), {"role": "assistant", "content": [{"type": "input_text", "text": "?"}]}])


def _remove_required(body: Json, _: Random) -> Iterator[Json]:
    yield with_tool(body, {"type": "function", "function": {"name": "nested", "parameters": OBJECT}})
    yield with_tool(body, {"type": "custom", "name": "odd_tool", "format": {"type": "grammar", "syntax": "lark"}})
    yield with_tool(body, {"type": "namespace", "name": "odd_group", "tools": []})
    yield with_tool(body, {"name": "odd_tool"})
    yield with_items(body, [*items_of(body), {"role": "user"}])
    yield with_items(body, [*items_of(body), {"type": "reasoning", "id": "rs_mutation"}])
    required = {"function_call": ("call_id", "name", "arguments"), "function_call_output": ("call_id", "output")}
    items = items_of(body)
    for number in places(items, *required):
        for member in required[str(items[number]["type"])]:
            kept = {name: value for name, value in items[number].items() if name != member}
            yield with_items(body, [*items[:number], kept, *items[number + 1 :]])


def _remove_bounds(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, max_output_tokens=15)
    yield change(body, temperature=2.5)
    yield change(body, top_p=-0.1)
    yield change(body, top_logprobs=21)
    yield change(body, max_tool_calls=0)
    yield change(body, metadata={f"key{number}": "value" for number in range(17)})
    yield change(body, metadata={"key": "v" * 513})
    yield change(body, prompt_cache_key="k" * 65)
    yield change(body, safety_identifier="s" * 129)
    call: Json = {"type": "function_call", "name": "odd_tool", "arguments": "{}"}
    for call_id in ("", "c" * 65):
        yield with_items(body, [USER, {**call, "call_id": call_id}])


def _unreadable(body: Json, _: Random) -> Iterator[Json]:
    """Set a number that Python can write but JSON does not have."""
    yield change(body, temperature=nan)
    yield change(body, metadata={"limit": inf})


MUTATORS: dict[str, Mutate] = {
    "responses.json": _unreadable,
    "responses.unknown-field": _unknown,
    "responses.type": _change_type,
    "responses.enum": _not_listed,
    "responses.required": _remove_required,
    "responses.bounds": _remove_bounds,
}
