"""No tool is rejected that a vendor accepted: tools of all recorded requests with an answer, and all real schemas."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.tool_choice import find_choice_faults
from dragoman.interpreter.tool_errors import find_all_faults
from dragoman.interpreter.tools import are_valid, find_schema_faults
from shelf import CORPUS_FILES, ROOT, exchanges, needs_shelf

OWN_KINDS = ("openrouter:advisor", "openrouter:web_search")
"""Types of tools that one compatible server accepts in Chat; no other vendor has them, so they cannot be translated."""


def answer(name: str) -> list[tuple[str, Call]]:
    return [
        (exchange["id"], Call(json.dumps(exchange["request"]).encode(), exchange["model"] or "any"))
        for exchange in exchanges(name)
        if exchange["status"] == 200 and '"tools"' in json.dumps(exchange["request"])
    ]


@needs_shelf
@pytest.mark.parametrize("name", CORPUS_FILES)
def test_nothing_is_wrong_with_the_tools_of_a_request_that_was_answered(name):
    dialect = dialect_named("gemini" if name == "code_assist" else name)
    refused = {}
    assert answer(name)
    for exchange, call in answer(name):
        request = dialect.parse_request(call)
        found = [*find_all_faults(call, dialect), *find_choice_faults(request)]
        found = [fault for fault in found if not any(kind in fault[1] for kind in OWN_KINDS)]
        if found or not (are_valid(request.tools) or b"openrouter:" in call.body):
            refused[exchange] = found
    assert not refused


@needs_shelf
def test_nothing_is_wrong_with_a_schema_of_a_real_tool():
    lines = [
        line for path in (ROOT / "corpus" / "schemas").glob("*.jsonl") for line in path.read_text().split("\n") if line
    ]
    schemas = [json.dumps(json.loads(line)["parameters"]).encode() for line in lines]
    assert len(schemas) > 2000
    assert not {schema: found for schema in schemas if (found := find_schema_faults(schema))}
