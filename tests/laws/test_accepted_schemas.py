"""The simulator of each target accepts every recorded schema, and the odd ones that clients send, in a tool."""

import functools
import json
from typing import Any

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from shelf import ROOT, needs_shelf

SIGNER = TokenSigner()
TARGETS = [
    ("messages", "claude-opus-5"),
    ("gemini", "gemini-3.8-flash"),
    ("gemini", "gemini-1.5-pro"),
    ("responses", "gpt-5.2"),
    ("chat", "gpt-4.1"),
]
ODD: dict[str, Any] = {
    "a tuple": {"type": "array", "items": [{"type": "string"}]},
    "a tuple that is closed": {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
    "a bound with a flag": {"type": "number", "minimum": 1, "exclusiveMinimum": True},
    "a dependency": {"type": "object", "properties": {"b": {}, "c": {}}, "dependencies": {"b": ["c"]}},
    "an id": {"id": "urn:x", "type": "string"},
    "an anchor written as an id": {"$id": "#there", "type": "string"},
    "any type": {"type": "any"},
    "a type nobody knows": {"type": "file"},
    "a type in capitals": {"type": "STRING"},
    "a flag that it is required": {"type": "string", "required": True},
    "no properties": {"type": "object", "properties": None},
    "no schema": "string",
    "a count as text": {"type": "string", "minLength": "1"},
    "an impossible count": {"type": "string", "minLength": -1},
    "an empty union": {"anyOf": []},
    "a format of numbers": {"type": "integer", "format": "int64"},
    "values of the items": {"type": "array", "items": {"type": "string"}, "enum": ["a"]},
    "a name with a space": {"$ref": "#/definitions/b%20c"},
}


@functools.cache
def load_recordings() -> tuple[tuple[str, Any], ...]:
    found: list[tuple[str, Any]] = []
    for path in sorted((ROOT / "corpus" / "schemas").glob("*.jsonl")):
        rows = map(json.loads, path.read_text(encoding="utf-8").strip().split("\n"))
        found += [(f"{path.stem}: {row['name']}", row["parameters"]) for row in rows]
    return tuple(found)


def refusal(parameters: Any, target: str, model: str, *, strict: bool) -> str | None:
    """Return why the target rejects a tool; None if it accepts it."""
    if target == "chat":
        tool = {"name": "f", "description": "d", "input_schema": parameters, "strict": strict}
        source, more = "messages", {"max_tokens": 9}
    else:
        tool = {"type": "function", "function": {"name": "f", "parameters": parameters, "strict": strict}}
        source, more = "chat", {}
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": [tool], **more}
    result = translate_request(Call(json.dumps(body).encode(), "m"), source, target, model=model).call
    verdict = APIS[target].accept(result.body, CheckContext(model=model, recorded=True), SIGNER)
    return f"{verdict.rule}: {verdict.message}" if isinstance(verdict, Violation) else None


@needs_shelf
@pytest.mark.parametrize("strict", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("target", "model"), TARGETS)
def test_every_recorded_schema_is_taken_as_the_schema_of_a_tool(target, model, strict):
    refused = {
        name: why
        for name, schema in load_recordings()
        if (why := refusal(schema, target, model, strict=strict)) is not None
    }
    assert len(load_recordings()) > 2700
    assert refused == {}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("target", "model"), TARGETS)
@pytest.mark.parametrize("name", ODD)
def test_an_odd_schema_is_taken_as_the_schema_of_an_argument(name, target, model, strict):
    root = {"type": "object", "definitions": {"b c": {"type": "string"}}, "properties": {"a": ODD[name]}}
    assert refusal(root, target, model, strict=strict) is None
