"""The first and the last frames of a stream, encoded."""

import json
from typing import Any

import pytest

from dialects.responses.streams import encode, frames
from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    Started,
    UsageSeen,
)
from dragoman.core.parts import Citation, Signature
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Usage
from dragoman.core.value import Extras

STARTED = Started("r", "m", 5)


def own(**fields: str) -> Extras:
    return Extras("responses", {f"/{name.replace('__', '/')}": raw.encode() for name, raw in fields.items()})


def test_the_terminal_object_is_the_whole_reply():
    fields = [("/service_tier", b'"x"'), ("/incomplete_details/a", b"\n1"), ("/text", b'{"a":1}')]
    stream = encode(
        [
            STARTED,
            *(Native("responses", field, raw) for field, raw in fields),
            UsageSeen(Usage(input=9)),
            UsageSeen(Usage(input=1, output=2, extras=own(x="\n3"))),
            Finished(Finish("length")),
        ]
    )
    name, last = frames(stream)[-1]
    assert (name, last) == (
        "response.incomplete",
        {
            "type": "response.incomplete",
            "sequence_number": 2,
            "response": {
                "id": "r",
                "object": "response",
                "created_at": 5,
                "status": "incomplete",
                "error": None,
                "incomplete_details": {"reason": "max_output_tokens", "a": 1},
                "instructions": None,
                "model": "m",
                "output": [],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                "temperature": None,
                "top_p": None,
                "metadata": None,
                "service_tier": "x",
                "text": {"a": 1},
                "usage": {
                    "input_tokens": 1,
                    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                    "output_tokens": 2,
                    "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": 3,
                    "x": 3,
                },
            },
        },
    )


@pytest.mark.parametrize(
    ("status", "name"),
    [("completed", "response.completed"), ("queued", "response.incomplete"), ("odd", "response.completed")],
)
def test_a_status_of_this_dialect_survives_a_round_trip(status: str, name: str):
    given: list[Event] = [Native("responses", "/status", b'"odd"')] if status == "odd" else []
    finish = Finish("stop" if status == "completed" else "other", status)
    result, last = frames(encode([STARTED, *given, Finished(finish)]))[-1]
    assert (result, last["response"]["status"]) == (name, status)


def test_a_reply_without_an_id_gets_one_made_of_its_model():
    begun = [json.loads(json.dumps(last))["response"]["id"] for _, last in frames(encode([Started("", "m")]))]
    assert begun == ["resp_62c66a7a5dd70c3146618063c344e5310000"] * 2


def test_a_failure_before_the_start_begins_the_reply():
    request: Any = Request(model="asked", messages=())
    names = [
        (name, last.get("response", {}).get("model"))
        for name, last in frames(encode([Failed(Problem("internal", "m"))], request))
    ]
    assert names == [
        ("response.created", "asked"),
        ("response.in_progress", "asked"),
        ("response.failed", "asked"),
        ("error", None),
    ]
    assert frames(encode([Failed(Problem("internal", "m"))]))[0][1]["response"]["model"] == ""


def test_events_without_an_open_part_are_ignored():
    begun = encode([STARTED])
    late: list[Event] = [
        PartDelta(0, "x"),
        PartSigned(0, Signature("openai", "s")),
        PartCited(0, Citation("responses", b"{}")),
        PartNative(0, "responses", "/x", b"1"),
        PartEnded(0),
    ]
    assert encode([STARTED, *late]) == begun
