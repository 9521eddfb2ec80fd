import json

import pytest
from msgspec import structs

import shelf
from dialects.messages import official, recordings
from dragoman.core.events import (
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.parts import Citation, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Usage
from dragoman.core.stream import collect, replay
from dragoman.core.value import Extras
from dragoman.dialects.messages import DIALECT
from dragoman.dialects.messages.encoder import MessagesEncoder
from event_grammar import check_events


def decode(stream):
    decoder = DIALECT.decoder()
    return list(check_events([*decoder.feed(stream), *decoder.close()]))


def encode(events):
    encoder = MessagesEncoder(None)
    return b"".join(encoder.feed(event) for event in events)


@shelf.needs_shelf
def test_every_recorded_reply_can_be_streamed_and_read_back():
    count = 0
    for name, body in recordings.replies():
        response = DIALECT.parse_response(body)
        again = collect(decode(encode(replay(response))))
        if response.finish == Finish("tool_calls", "end_turn"):
            again = structs.replace(again, finish=response.finish)
        assert again == response, name
        count += 1
    assert count > 450


def foreign_events():
    """A reply as another dialect has it: no ids, usage at the end, separate summaries."""
    return [
        Started("", "gemini-3"),
        PartStarted(0, Reasoning()),
        PartDelta(0, "one"),
        PartDelta(0, " and"),
        PartDelta(0, "two", 1),
        PartSigned(0, Signature("dragoman", "w")),
        PartEnded(0),
        PartStarted(1, Reasoning(redacted=True)),
        PartSigned(1, Signature("dragoman", "r")),
        PartEnded(1),
        PartStarted(2, Opaque(dialect="gemini", raw=b"{}")),
        PartEnded(2),
        PartStarted(3, Refusal(text="")),
        PartDelta(3, "no"),
        PartEnded(3),
        PartStarted(4, Text(text="")),
        PartDelta(4, "see\n"),
        PartCited(4, Citation("gemini", b"{}", url="https://x", title="X")),
        PartCited(4, Citation("gemini", b"{}")),
        PartEnded(4),
        PartStarted(5, ToolCall(id="call_1", name="n", arguments="")),
        PartDelta(5, '{"a":\n1}'),
        PartEnded(5),
        Native("gemini", "/responseId", b'"x"'),
        UsageSeen(Usage(input=10, output=5, cached=4, reasoning=2)),
        Finished(Finish("tool_calls", "STOP")),
    ]


def test_a_foreign_stream_is_written_as_the_official_types_want_it():
    written = encode(foreign_events())
    official.accepts_order(written)
    assert official.stream_faults(written) == set()
    message = official.accumulate(written)
    thinking, redacted, refusal, text, call = message.content
    assert (thinking.thinking, thinking.signature) == ("one and\n\ntwo", "w")
    assert redacted.data == "r"
    assert (refusal.text, text.text) == ("no", "see\n")
    assert [citation.url for citation in text.citations] == ["https://x"]
    assert (call.id, call.input) == ("call_1", {"a": 1})
    assert (message.id, message.stop_reason) == ("msg_0", "tool_use")
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (6, 4, 5)
    assert usage.output_tokens_details.thinking_tokens == 2


def test_a_signature_comes_just_before_its_block_stops():
    names = [
        (name, data.get("delta", {}).get("type"))
        for name, data in official.frames(encode([*foreign_events()[:7], Finished(Finish("stop"))]))
    ]
    assert names[-4:-2] == [("content_block_delta", "signature_delta"), ("content_block_stop", None)]


@pytest.mark.parametrize("finish", [Finish("malformed_call", "MALFORMED_FUNCTION_CALL"), Finish("other", "OTHER")])
def test_a_bad_end_is_an_error_frame_and_never_end_turn(finish):
    written = encode([Started("msg_1", "m"), Finished(finish)])
    assert b"end_turn" not in written
    assert b"message_stop" not in written
    assert official.get_stream_error(written).type == "api_error"


def test_a_failure_is_the_error_frame_the_sdk_raises():
    problem = Problem("overloaded", "Busy")
    written = encode([Started("msg_1", "m"), PartStarted(0, Text(text="")), Failed(problem)])
    error = official.get_stream_error(written)
    assert error.type == "overloaded_error"
    assert error.body["error"]["message"] == "Busy"
    last = decode(written)[-1]
    assert isinstance(last, Failed)
    assert (last.problem.kind, last.problem.message) == ("overloaded", "Busy")


def test_raw_values_with_line_breaks_stay_on_one_line():
    pretty = b'{\n "type": "web_search_tool_result",\n "tool_use_id": "s",\n "content": []\n}'
    events = [Started("msg_1", "m"), PartStarted(0, Opaque(dialect="messages", raw=pretty)), PartEnded(0)]
    native = Native("messages", "/container", b'{\n"id": "c"\n}')
    written = encode([*events, native, Finished(Finish("stop"))])
    response = collect(decode(written))
    assert json.loads(response.parts[0].raw) == json.loads(pretty)
    assert response.extras == Extras("messages", {"/container": b'{"id":"c"}'})
