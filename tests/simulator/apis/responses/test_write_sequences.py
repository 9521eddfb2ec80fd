"""Streams have the events of the samples, in the same order and with the same fields."""

import json
from typing import Any

import pytest

from dragoman.simulator.apis.conversation import Answer
from shelf import needs_shelf, samples
from simulator.apis.responses.answers import USED, call, events
from simulator.apis.responses.bodies import PATCH, WEATHER

THOUGHT = "**Planning**\n\nLook up Paris."
SAME = {
    "text": ({}, Answer(text="Hello there!", usage=USED)),
    "one_tool": ({"tools": [WEATHER]}, Answer(calls=(call(1),), end="calls", usage=USED)),
    "two_tools": (
        {"tools": [WEATHER]},
        Answer(text="Checking both.", calls=(call(1), call(2)), end="calls", usage=USED),
    ),
    "thinking_tool": (
        {"tools": [WEATHER], "reasoning": {"summary": "auto"}, "store": False},
        Answer(thought=THOUGHT, calls=(call(1),), end="calls", usage=USED),
    ),
    "custom_tool": ({"tools": [PATCH]}, Answer(calls=(call(1, "apply_patch", "2+3"),), end="calls", usage=USED)),
    "incomplete": ({}, Answer(text="Once upon a", end="length", usage=USED)),
    "refusal": ({}, Answer(refusal="I cannot help with that.", usage=USED)),
}


def outline(result: list[dict[str, Any]]) -> list[Any]:
    """Return the events without their texts; consecutive deltas are merged."""
    found: list[Any] = []
    for event in result:
        inner = {**event.get("item", {}), **event.get("part", {})}
        # Encrypted content may be sent early, though truncated.
        inner.pop("encrypted_content", None)
        shape = (event["type"], sorted(event), sorted(inner), event.get("output_index"))
        if not found or found[-1] != shape:
            found.append(shape)
    return found


@needs_shelf
@pytest.mark.parametrize("name", SAME)
def test_a_stream_has_the_events_of_its_sample(name):
    (path,) = (path for path in samples("responses", ".stream.sse") if path.name == f"{name}.stream.sse")
    lines = path.read_text(encoding="utf-8").split("\n")
    expected = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert outline(events(*SAME[name])) == outline(expected)
