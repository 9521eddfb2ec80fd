"""Every request gets an answer."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpu_limit import cpu_limit
from dragoman.simulator.apis.conversation import (
    Call,
    ModelRequest,
    RequestResult,
    RequestTool,
    RequestToolChoice,
    RequestTurn,
)
from dragoman.simulator.apis.usage import PromptCache
from dragoman.simulator.model import answer
from shelf import exchanges, needs_shelf


def split_names(text: str) -> list[str]:
    return text.split()


KEYWORDS = split_names(
    "type properties required items enum const anyOf oneOf allOf not $ref $defs pattern format minLength maxLength minimum "
    "maximum exclusiveMinimum multipleOf minItems maxItems uniqueItems contains additionalProperties patternProperties "
    "propertyNames minProperties dependentRequired dependentSchemas if then else default examples nullable prefixItems "
    "$anchor $id $dynamicRef description definitions dependencies a b location"
)
VALUES = split_names(
    "string object array integer STRING OBJECT number null # #/$defs/a #/properties/a a b date email ^[a-z]+$ ( [ \\d{3} "
    "a{1000000} { uri"
)
WORDS = split_names(
    "weather in Paris and Tokyo add 2 3, then ; 'x' \" ` https://a.org a@b.org /etc ? search 2025-01-01 <a-b> </a-b> not * "
    "count to 10 words times"
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(VALUES),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=20,
)
schemas = st.dictionaries(st.sampled_from(KEYWORDS), json_values, max_size=6)
texts = st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
tools = st.builds(
    RequestTool,
    name=texts,
    description=texts,
    schema=schemas,
    kind=st.sampled_from(["function", "custom", "search", "other"]),
)
made = st.builds(Call, id=texts, name=texts, arguments=schemas | texts)
results = st.builds(
    RequestResult,
    call_id=texts,
    name=texts,
    text=texts | json_values.map(lambda value: msgspec.json.encode(value).decode()),
    failed=st.booleans(),
)


def several(items: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=most).map(tuple)


turns = st.builds(
    RequestTurn,
    role=st.sampled_from(["system", "user", "assistant"]),
    text=texts,
    calls=several(made, 2),
    results=several(results, 2),
    media=several(st.sampled_from(["image/png", "audio/wav"]), 2),
)
choices = st.builds(
    RequestToolChoice,
    mode=st.sampled_from(["auto", "none", "required", "validated"]),
    names=several(texts, 2),
    parallel=st.booleans(),
)
asks = st.builds(
    ModelRequest,
    model=texts,
    turns=several(turns, 5),
    tools=several(tools, 4),
    choice=choices,
    max_tokens=st.none() | st.integers(-5, 200),
    stop=several(texts, 3),
    output_schema=st.none() | schemas,
    thinks=st.booleans(),
    seed=st.integers(),
)


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(asks, st.integers())
def test_every_ask_has_an_answer_that_obeys(asked, seed):
    memory = PromptCache(min_tokens=5)
    output = answer(asked, seed, memory)
    assert answer(asked, seed).text == output.text
    assert msgspec.json.decode(msgspec.json.encode(output))
    names = {tool.name for tool in asked.tools if tool.kind in {"function", "custom"}}
    if asked.choice.names:
        names &= set(asked.choice.names)
    assert {call.name for call in output.calls} <= names
    assert (output.end == "calls") == bool(output.calls)
    if asked.choice.mode == "none":
        assert not output.calls
    if asked.choice.mode == "required" and names and asked.max_tokens is None and not asked.stop:
        assert output.calls or output.sources
    if not asked.choice.parallel:
        assert len(output.calls) <= 1
    if asked.max_tokens is not None:
        assert output.usage.output <= max(0, asked.max_tokens)
    for stop in filter(None, asked.stop):
        assert stop not in output.text
    assert all(source.quote in output.text for source in output.sources)
    assert 0 <= output.usage.cached <= output.usage.input


def test_what_is_not_json_is_survived():
    deep: dict[str, Any] = {}
    for _ in range(3000):
        deep = {"properties": {"a": deep}, "required": ["a"]}
    half = "\ud800"
    for schema in (
        deep,
        {"type": "object", "properties": {half: {"const": half}}, "required": [half]},
        {"x": object()},
    ):
        asked = ModelRequest(
            model=half,
            turns=(RequestTurn(role="user", text=f"call it {half}"),),
            tools=(RequestTool(name="it", schema=schema),),
            choice=RequestToolChoice(mode="required"),
        )
        assert answer(asked, 0, PromptCache()).calls


@pytest.mark.parametrize(
    "number",
    [
        "1e999",
        "-1e999",
        "1" * 200,
        "9,999" + ",999" * 80 + ".5",
        "1" * 400,
        "1" * 5000,
        "0.1e-320",
        "²³",
        "٣",
        "1" + "0" * 300,
    ],
)
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"multipleOf": 5e-324},
        {"minimum": 1e299, "multipleOf": 1e-300},
        {"maximum": -1e299, "multipleOf": 3},
        {"minimum": 10**400},
        {"default": 10**400},
        {"enum": [10**400]},
    ],
)
def test_odd_numbers_are_survived(number, limits):
    for kind in ("integer", "number", "string"):
        schema = {"type": "object", "properties": {"x": {"type": kind, **limits}}, "required": ["x"]}
        tool = RequestTool(name="it", schema=schema)
        asked = ModelRequest(
            model="", turns=(RequestTurn(role="user", text=f"call it with x {number}"),), tools=(tool,)
        )
        assert answer(
            msgspec.structs.replace(asked, choice=RequestToolChoice(mode="required"), output_schema=schema)
        ).calls


@pytest.mark.parametrize("pattern", [r"\u{FFFFFFFFFFFFFFFF}", r"[\ud800-\udfff]", "(" * 500, r"[z-a]", r"(?P<", r"\p{"])
def test_odd_patterns_are_survived(pattern):
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}, "required": ["x"]}
    asked = ModelRequest(
        model="", turns=(), tools=(RequestTool(name="it", schema=schema),), choice=RequestToolChoice(mode="required")
    )
    assert answer(asked).calls


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {letter: {"$ref": "#"} for letter in "abcdefghij"},
            "required": list("abcdefghij"),
        },
        {"type": "object", "properties": {"b": {"type": "string", "minLength": 10**8}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {"type": "array", "minItems": 10**8}}, "required": ["a"]},
        {"type": "object", "minProperties": 10**8},
    ],
)
def test_schemas_without_measure_cost_little(schema):
    request = ModelRequest(
        model="", turns=(), tools=(RequestTool(name="it", schema=schema),), choice=RequestToolChoice(mode="required")
    )
    with cpu_limit():
        assert answer(request).calls


@needs_shelf
def test_real_prompts_with_real_tools_are_answered():
    count = 0
    for exchange in exchanges("chat"):
        body = exchange.get("request")
        if exchange.get("op") != "generate" or not isinstance(body, dict):
            continue
        functions = [tool.get("function") or {} for tool in body.get("tools") or () if isinstance(tool, dict)]
        result = [message.get("content") for message in body.get("messages") or () if message.get("role") == "user"]
        prompt = next((text for text in reversed(result) if isinstance(text, str)), "")
        offered = tuple(
            RequestTool(name=one["name"], description=one.get("description") or "", schema=one.get("parameters") or {})
            for one in functions
            if "name" in one
        )
        output = answer(ModelRequest(model="any", turns=(RequestTurn(role="user", text=prompt),), tools=offered))
        assert output.calls or output.text
        count += 1
    assert count > 500
