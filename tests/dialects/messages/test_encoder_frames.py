"""Events of every form, each encoded to its last byte."""

import json

import pytest

from dialects.outline import outline
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
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.parts import Citation, Data, Link, Media, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Usage
from dragoman.core.value import Extras
from dragoman.dialects.messages.encoder import MessagesEncoder


def own(**fields: bytes) -> Extras:
    return Extras("messages", {f"/{name}": raw for name, raw in fields.items()})


def encode(events: list[Event]) -> str:
    encoder = MessagesEncoder(None)
    return b"".join(encoder.feed(event) for event in events).decode()


def lines(events: list[Event]) -> str:
    """Every frame; its name is the type inside it."""
    shown = []
    for frame in encode(events).split("\n\n")[:-1]:
        name, data = frame.removeprefix("event: ").split("\ndata: ")
        assert json.loads(data)["type"] == name
        shown.append(data)
    return outline(shown)


def sign(index: int, value: str) -> PartSigned:
    return PartSigned(index, Signature("anthropic", value))


def test_blocks_that_grow_are_encoded_to_the_last_byte():
    assert (
        lines(
            [
                Started("r", "m", 5),
                PartStarted(0, Reasoning(signature=Signature("anthropic", "first"), extras=own(a=b"\n1"))),
                PartDelta(0, "a"),
                PartDelta(0, ""),
                PartDelta(0, "b", 1),
                PartDelta(0, "c", 1),
                sign(0, "s"),
                PartEnded(0),
                PartStarted(1, Reasoning()),
                PartDelta(1, "d", 1),
                PartEnded(1),
                PartStarted(2, Text(text="", extras=Extras("chat", {"/never": b"1"}))),
                PartDelta(2, 'q"'),
                PartCited(2, Citation("messages", b'{\n"a":1}')),
                PartCited(2, Citation("chat", b"{}", url="u")),
                PartCited(2, Citation("chat", b"{}")),
                PartNative(2, "messages", "/mood", b"[\n1]"),
                PartNative(2, "messages", "/text", b'"never"'),
                PartNative(2, "messages", "/a~1b", b"1"),
                PartNative(2, "chat", "/never", b"1"),
                sign(2, "never"),
                PartEnded(2),
                PartStarted(3, Refusal(text="")),
                PartDelta(3, "no"),
                PartCited(3, Citation("messages", b"{}")),
                PartEnded(3),
                PartStarted(4, ToolCall(id="c", name="f", arguments="", extras=own(caller=b"{\n}"))),
                PartDelta(4, '{"a"'),
                PartDelta(4, ":1}"),
                PartEnded(4),
                PartStarted(5, ToolCall(id="d", name="f", arguments="")),
                PartEnded(5),
                UsageSeen(Usage(input=9)),
                UsageSeen(Usage(input=1, output=2, extras=own(speed=b"\n3"))),
                Finished(Finish("tool_calls")),
            ]
        )
        == """\
'{"type":"message_start","message":{"id":"r","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}'
'{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":"","a":1}}'
'{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}'
'{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\\\\n\\\\nb"}}'
'{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"c"}}'
'{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}'
'{"type":"content_block_stop","index":0}'
'{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}'
'{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"d"}}'
'{"type":"content_block_stop","index":1}'
'{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}'
'{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"q\\\\""}}'
'{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"a":1}}}'
'{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"u","title":null,"cited_text":"","encrypted_index":"ZHJhZ29tYW4x"}}}'
'{"type":"content_block_delta","index":2,"delta":{"type":"mood_delta","mood":[1]}}'
'{"type":"content_block_stop","index":2}'
'{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}'
'{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"no"}}'
'{"type":"content_block_stop","index":3}'
'{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"c","name":"f","input":{},"caller":{}}}'
'{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\\\\"a\\\\""}}'
'{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":":1}"}}'
'{"type":"content_block_stop","index":4}'
'{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"d","name":"f","input":{}}}'
'{"type":"content_block_stop","index":5}'
'{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":1,"output_tokens":2,"speed":3}}'
'{"type":"message_stop"}'
"""
    )


def test_blocks_that_do_not_grow_are_encoded_at_once():
    assert (
        lines(
            [
                Started("", "m"),
                PartStarted(0, Opaque(dialect="messages", raw=b'{\n"type":"x"}')),
                PartDelta(0, "never"),
                PartNative(0, "messages", "/never", b"1"),
                PartEnded(0),
                PartStarted(1, Opaque(dialect="chat", raw=b"{}")),
                PartEnded(1),
                PartStarted(2, Data(json=b"1")),
                PartEnded(2),
                PartStarted(3, Media(kind="image", media_type="", source=Link("u"))),
                PartEnded(3),
                PartStarted(4, Reasoning(redacted=True, signature=Signature("anthropic", "d"), extras=own(a=b"\n1"))),
                PartDelta(4, "never"),
                PartEnded(4),
                PartStarted(5, Reasoning(redacted=True)),
                sign(5, "late"),
                PartEnded(5),
                PartStarted(6, Reasoning(redacted=True)),
                PartEnded(6),
                PartStarted(7, Text(text="")),
                PartEnded(7),
                PartEnded(7),
                PartCited(7, Citation("messages", b"{}")),
                Native("messages", "/container", b'{\n"id":"c"}'),
                Native("messages", "/context_management", b"[\n]"),
                Native("messages", "/input_transformations", b"[1]"),
                Native("chat", "/never", b"1"),
                Finished(Finish("stop", "", "END")),
            ]
        )
        == """\
'{"type":"message_start","message":{"id":"msg_0","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}}'
'{"type":"content_block_start","index":0,"content_block":{"type":"x"}}'
'{"type":"content_block_stop","index":0}'
'{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"1"}}'
'{"type":"content_block_stop","index":1}'
'{"type":"content_block_start","index":2,"content_block":{"type":"image","source":{"type":"url","url":"u"}}}'
'{"type":"content_block_stop","index":2}'
'{"type":"content_block_start","index":3,"content_block":{"type":"redacted_thinking","data":"d","a":1}}'
'{"type":"content_block_stop","index":3}'
'{"type":"content_block_start","index":4,"content_block":{"type":"redacted_thinking","data":"late"}}'
'{"type":"content_block_stop","index":4}'
'{"type":"content_block_start","index":5,"content_block":{"type":"text","text":""}}'
'{"type":"content_block_stop","index":5}'
'{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END","container":{"id":"c"}},"usage":{"input_tokens":0,"output_tokens":0},"context_management":[],"input_transformations":[1]}'
'{"type":"message_stop"}'
"""
    )


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (Failed(Problem("overloaded", "a\nb")), {"type": "overloaded_error", "message": "a\nb"}),
        (
            Finished(Finish("malformed_call")),
            {
                "type": "api_error",
                "message": "the model made a malformed tool call",
                "details": {"error_code": "malformed_function_call"},
            },
        ),
    ],
)
def test_an_end_that_is_an_error_is_one_frame(event: Event, error: object):
    started = encode([Started("r", "m")])
    result = encode([Started("r", "m"), event]).removeprefix(started)
    assert result.startswith("event: error\ndata: {")
    assert result.count("\n") == 3
    data = json.loads(result.removeprefix("event: error\ndata: "))
    assert data == {"type": "error", "error": error, "request_id": None}
