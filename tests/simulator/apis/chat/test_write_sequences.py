"""Streams have the chunks of the samples, in the same order and with the same fields."""

import json
from typing import Any

import pytest

from dragoman.simulator.apis.conversation import Answer
from shelf import needs_shelf, samples
from simulator.apis.chat.answers import TOOLS, USED, call, chunks

SAME = {
    "text": ({}, Answer(text="Hello there!", usage=USED)),
    "one_tool": (TOOLS, Answer(calls=(call(1),), end="calls", usage=USED)),
    "two_tools": (TOOLS, Answer(calls=(call(1), call(2)), end="calls", usage=USED)),
}


def outline(result: list[dict[str, Any]]) -> list[Any]:
    """Return the fields of chunks and of their deltas; consecutive texts are merged."""
    found: list[Any] = []
    for chunk in result:
        members = set(chunk) - {"system_fingerprint", "obfuscation"}
        shape: Any = (sorted(members), [_choice(choice) for choice in chunk["choices"]])
        if not found or found[-1] != shape:
            found.append(shape)
    return found


def _choice(choice: dict[str, Any]) -> Any:
    delta = choice["delta"]
    calls = [(call["index"], sorted(call), sorted(call["function"])) for call in delta.get("tool_calls", ())]
    return (sorted(choice), choice["index"], sorted(delta), delta.get("role"), calls, choice["finish_reason"])


@needs_shelf
@pytest.mark.parametrize("name", SAME)
def test_a_stream_has_the_chunks_of_its_sample(name):
    (path,) = (path for path in samples("chat", ".stream.sse") if path.name == f"{name}.stream.sse")
    lines = path.read_text(encoding="utf-8").split("\n")
    expected = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert outline(chunks(*SAME[name])) == outline(expected)
