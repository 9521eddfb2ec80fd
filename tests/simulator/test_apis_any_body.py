"""Every body is accepted or rejected: no request raises an exception in the simulator."""

import copy
import json
import random
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.api import AcceptedRequest, ApiRejection
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from fuzz import mutations, seeds

SIGNER = TokenSigner()
MODELS = {
    "chat": ("gpt-5.4", "gpt-4.1"),
    "responses": ("gpt-5.4", "gpt-6-luna"),
    "messages": ("claude-opus-5-5", "claude-haiku-4-5"),
    "gemini": ("gemini-3.8-flash", "gemini-2.5-flash"),
}
MUTATED = 500
ODD: tuple[Any, ...] = (None, True, 0, -1.5, 10**30, "", "x", [], {}, [[]], [{}], {"a": 1}, {"type": []}, {"type": {}})
KEYWORDS = (
    *("type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf", "not", "$ref", "$defs"),
    *("definitions", "pattern", "format", "minLength", "minimum", "multipleOf", "minItems", "uniqueItems", "contains"),
    *("additionalProperties", "patternProperties", "propertyNames", "minProperties", "if", "then", "dependentRequired"),
    *("dependentSchemas", "default", "nullable", "prefixItems", "description", "title", "a", "b"),
)
WORDS = ("string", "object", "array", "integer", "STRING", "null", "#", "#/$defs/a", "a", "date", "uri", "[")

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=5),
    max_leaves=16,
)
schemas = st.builds(
    lambda kind, members: {**kind, **members},
    st.sampled_from(({}, {"type": "object"}, {"type": "object", "properties": {"a": {"type": "string"}}})),
    st.dictionaries(st.sampled_from(KEYWORDS), values, max_size=5),
)


def judge(api: str, body: bytes, chance: random.Random | None = None) -> None:
    """Assert that a body is accepted or rejected, and that its error can be rendered."""
    models = MODELS[api]
    situation = CheckContext(model=models[0])
    if chance is not None:
        situation = CheckContext(
            model=chance.choice(models), recorded=chance.random() < 0.3, counting=chance.random() < 0.1
        )
    found = APIS[api].accept(body, situation, SIGNER)
    assert isinstance(found, AcceptedRequest | Violation)
    if isinstance(found, Violation):
        rendered = APIS[api].render_error(
            ApiRejection(status=found.status, message=found.message, where=found.where, rule=found.rule)
        )
        assert 400 <= rendered.status < 500
        assert found.rule


def with_schema(api: str, schema: Any, *, strict: bool | None) -> list[dict[str, Any]]:
    """Return requests with a schema in every place where the API accepts one."""
    model = MODELS[api][0]
    named = {"name": "f", "parameters": schema, "strict": strict}
    match api:
        case "chat":
            asked = {"model": model, "messages": [{"role": "user", "content": "Hi."}]}
            answer = {"name": "a", "schema": schema, "strict": strict}
            return [
                {**asked, "tools": [{"type": "function", "function": named}]},
                {**asked, "response_format": {"type": "json_schema", "json_schema": answer}},
            ]
        case "responses":
            asked = {"model": model, "input": "Hi."}
            tool = {"type": "function", **named}
            answer = {"type": "json_schema", "name": "a", "schema": schema, "strict": strict}
            later = [
                {"type": "additional_tools", "role": "developer", "tools": [tool]},
                {"role": "user", "content": "Hi."},
            ]
            return [
                {**asked, "tools": [tool]},
                {**asked, "tools": [{"type": "namespace", "name": "n", "description": "All.", "tools": [tool]}]},
                {**asked, "input": later},
                {**asked, "text": {"format": answer}},
            ]
        case "messages":
            asked = {"model": model, "max_tokens": 99, "messages": [{"role": "user", "content": "Hi."}]}
            return [
                {**asked, "tools": [{"name": "f", "input_schema": schema, "strict": bool(strict)}]},
                {**asked, "output_config": {"format": {"type": "json_schema", "schema": schema}}},
            ]
        case _:
            asked = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
            declared = [
                {"name": "f", "description": "F.", name: schema} for name in ("parameters", "parametersJsonSchema")
            ]
            return [
                *({**asked, "tools": [{"functionDeclarations": [one]}]} for one in declared),
                {**asked, "generationConfig": {"responseMimeType": "application/json", "responseSchema": schema}},
            ]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the paths to everything within a value."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from paths(inner, (*path, name))


def replace(body: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Return a body with another value at a path."""
    changed = copy.deepcopy(body)
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = odd
    return changed


@pytest.mark.parametrize("api", APIS)
def test_everything_in_a_request_may_be_of_another_type(api):
    for body in seeds.requests(api).own:
        judge(api, json.dumps(body).encode())
        for number, path in enumerate(paths(body)):
            for odd in ODD[number % 4 :: 4]:
                judge(api, json.dumps(replace(body, path, odd)).encode())


@pytest.mark.parametrize("api", APIS)
def test_a_request_may_be_broken_in_any_way(api):
    chance = random.Random(7)  # noqa: S311  reproducible on purpose
    stumbled: dict[str, bytes] = {}
    for _ in range(MUTATED):
        body = mutations.document(seeds.requests(api), chance)
        try:
            judge(api, body, chance)
        except Exception:  # noqa: BLE001  report the first of each kind, not only the first of all
            stumbled.setdefault(traceback.format_exc(limit=-1), body[:500])
    assert not stumbled


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(schemas, st.sampled_from((True, False, None)))
def test_a_schema_may_be_anything(api, schema, strict):
    for body in with_schema(api, schema, strict=strict):
        judge(api, json.dumps(body).encode())


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("opening", [("[", "]"), ('{"a":', "}"), ('{"type":"object","properties":{"a":', "}}")])
def test_a_request_may_be_nested_as_deeply_as_can_be_read_or_deeper(api, opening):
    """A nesting depth that a parser just accepts may be too deep for code that walks the result recursively."""
    first, last = opening
    for depth in (*range(150, 1000, 30), 100_000):
        nested = (first * depth + "1" + last * depth).encode()
        for strict in (True, None):
            for body in with_schema(api, "nested", strict=strict):
                judge(api, json.dumps(body).encode().replace(b'"nested"', nested))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 5000, "1e308", "-0", "1e-999"])
def test_numbers_may_be_of_any_size(api, number):
    keywords = ("minimum", "maxLength", "multipleOf", "default", "enum", "minItems")
    for keyword in keywords:
        written = f"[{number}]" if keyword == "enum" else number
        schema = {"type": "object", "properties": {"a": {"type": "integer", keyword: "number"}}}
        for body in with_schema(api, schema, strict=None):
            judge(api, json.dumps(body).encode().replace(b'"number"', written.encode()))
