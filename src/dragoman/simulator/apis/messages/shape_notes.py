"""The rules that a body's shape holds, as they are listed, and what breaks them."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.api import RuleNote
from dragoman.simulator.apis.messages.mutations import (
    PIXEL,
    block_changed,
    changed,
    custom_tools,
    places,
    tool_changed,
    user_blocks_added,
)
from dragoman.simulator.rule import Json, Mutate

_TYPES = "wire/anthropic_messages.md sections 2 to 6 (the vendor's typed parameters)"


def _unknown(body: Json, chance: Random) -> Iterator[Json]:
    member = chance.choice(["frequency_penalty", "n", "seed", "response_format", "reasoning_effort", "maxTokens"])
    yield changed(body, **{member: 1})
    yield from user_blocks_added(body, {"type": "text", "text": "Hm.", "annotations": []})
    for number in custom_tools(body)[:1]:
        yield tool_changed(body, number, parameters={"type": "object"})
    for place in list(places(body, "tool_use"))[:1]:
        yield block_changed(body, place, arguments="{}")
    if "anthropic_version" not in body:
        yield changed(body, anthropic_version="vertex-2023-10-16")
    elif "max_tokens" in body:
        yield changed(body, model="claude-opus-5-5")


def _mistyped(body: Json, _: Random) -> Iterator[Json]:
    yield changed(body, messages="Hello.")
    yield changed(body, system=7)
    if "max_tokens" in body:
        yield changed(body, max_tokens="1024")
        yield changed(body, stream="yes")
    yield from user_blocks_added(body, {"type": "text", "text": 7})
    for number in custom_tools(body)[:1]:
        yield tool_changed(body, number, input_schema=True)
    for place in list(places(body, "tool_use"))[:1]:
        yield block_changed(body, place, input='{"city": "Paris"}')


def _unlisted(body: Json, chance: Random) -> Iterator[Json]:
    kind = chance.choice(["input_text", "image_url", "function_call", "tool", "refusal"])
    yield from user_blocks_added(body, {"type": kind, "text": "Hm."})
    yield changed(body, messages=[*body["messages"], {"role": chance.choice(["tool", "developer"]), "content": "Hm."}])
    yield changed(body, tool_choice={"type": "required"})
    source = {"type": "base64", "media_type": "image/bmp", "data": PIXEL}
    yield from user_blocks_added(body, {"type": "image", "source": source})
    yield changed(body, tools=[{"type": "function", "name": "get_weather"}])
    if "max_tokens" in body:
        yield changed(body, service_tier="flex")
        yield changed(body, output_config={"effort": "minimal"})


def _missing(body: Json, _: Random) -> Iterator[Json]:
    yield changed(body, messages=None)
    for member in ("model", "max_tokens", "anthropic_version"):
        if member in body:
            yield changed(body, **{member: None})
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
        yield changed(body, temperature=1.5)
        yield changed(body, top_p=-0.1)
        yield changed(body, max_tokens=-1)
        yield changed(body, thinking={"type": "enabled", "budget_tokens": 100})


def _nothing(_body: Json, _: Random) -> Iterator[Json]:
    """No change of a body breaks what is not about its members."""
    yield from ()


def _note(fault: str, says: str, source: str, mutate: Mutate) -> RuleNote:
    return RuleNote(f"messages.{fault}", says, source, mutate)


NOTES = (
    _note("unknown-field", "There are no members that nobody knows.", "wire/anthropic_messages.md section 0", _unknown),
    _note("type", "Members are of their type.", "recorded: anthropic/rig-0108", _mistyped),
    _note("enum", "Words are from their list.", _TYPES, _unlisted),
    _note("required", "What is required is there.", "recorded: anthropic/braintrust-sdk-ruby-0001", _missing),
    _note("bounds", "Numbers are within their bounds.", _TYPES, _outside),
    _note("json", "A body is JSON.", "no source: not documented", _nothing),
    _note("authentication", "A request has a key or a token.", "wire/anthropic_messages.md section 1", _nothing),
    _note(
        "version-header", "A direct request names a version there is.", "platform.claude.com api/versioning", _nothing
    ),
)
