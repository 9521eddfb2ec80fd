"""Mutators for the rules about shape: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import (
    PIXEL,
    block_changed,
    change,
    custom_tools,
    places,
    tool_changed,
    user_blocks_added,
)
from simulator.mutation import Mutate


def _unknown(body: Json, chance: Random) -> Iterator[Json]:
    member = chance.choice(["frequency_penalty", "n", "seed", "response_format", "reasoning_effort", "maxTokens"])
    yield change(body, **{member: 1})
    yield from user_blocks_added(body, {"type": "text", "text": "Hm.", "annotations": []})
    for number in custom_tools(body)[:1]:
        yield tool_changed(body, number, parameters={"type": "object"})
    for place in list(places(body, "tool_use"))[:1]:
        yield block_changed(body, place, arguments="{}")
    if "anthropic_version" not in body:
        yield change(body, anthropic_version="vertex-2023-10-16")
    elif "max_tokens" in body:
        yield change(body, model="claude-opus-5-5")


def _change_type(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, messages="Hello.")
    yield change(body, system=7)
    if "max_tokens" in body:
        yield change(body, max_tokens="1024")
        yield change(body, stream="yes")
    yield from user_blocks_added(body, {"type": "text", "text": 7})
    for number in custom_tools(body)[:1]:
        yield tool_changed(body, number, input_schema=True)
    for place in list(places(body, "tool_use"))[:1]:
        yield block_changed(body, place, input='{"city": "Paris"}')


def _use_unlisted_value(body: Json, chance: Random) -> Iterator[Json]:
    kind = chance.choice(["input_text", "image_url", "function_call", "tool", "refusal"])
    yield from user_blocks_added(body, {"type": kind, "text": "Hm."})
    yield change(body, messages=[*body["messages"], {"role": chance.choice(["tool", "developer"]), "content": "Hm."}])
    yield change(body, tool_choice={"type": "required"})
    source = {"type": "base64", "media_type": "image/bmp", "data": PIXEL}
    yield from user_blocks_added(body, {"type": "image", "source": source})
    yield change(body, tools=[{"type": "function", "name": "get_weather"}])
    if "max_tokens" in body:
        yield change(body, service_tier="flex")
        yield change(body, output_config={"effort": "minimal"})


def _remove_required(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, messages=None)
    for member in ("model", "max_tokens", "anthropic_version"):
        if member in body:
            yield change(body, **{member: None})
    for number in custom_tools(body)[:1]:
        yield tool_changed(body, number, name=None)
        yield tool_changed(body, number, input_schema=None)
    for place in list(places(body, "tool_use"))[:1]:
        yield block_changed(body, place, input=None)
        yield block_changed(body, place, id=None)
    for place in list(places(body, "tool_result"))[:1]:
        yield block_changed(body, place, tool_use_id=None)
    for place in list(places(body, "thinking"))[:1]:
        yield block_changed(body, place, signature=None)


def _outside(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield change(body, temperature=1.5)
        yield change(body, top_p=-0.1)
        yield change(body, max_tokens=-1)
        yield change(body, thinking={"type": "enabled", "budget_tokens": 100})


def _do_nothing(_body: Json, _: Random) -> Iterator[Json]:
    """No change of a body breaks a rule that is not about its fields."""
    yield from ()


MUTATORS: dict[str, Mutate] = {
    "messages.unknown-field": _unknown,
    "messages.type": _change_type,
    "messages.enum": _use_unlisted_value,
    "messages.required": _remove_required,
    "messages.bounds": _outside,
    "messages.json": _do_nothing,
    "messages.authentication": _do_nothing,
    "messages.version-header": _do_nothing,
}
