import json

import pytest

import shelf
from dialects.gemini import recordings
from dragoman.core.events import Failed, Finished, PartDelta, PartEnded, PartSigned, PartStarted, Started, UsageSeen
from dragoman.core.parts import Reasoning, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish
from dragoman.core.stream import collect
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.decoder import GeminiDecoder
from event_grammar import check_events

ENVELOPED = Request(model="m", messages=(), spelling=frozenset({"code_assist"}))


def decode(stream, size=0):
    decoder = GeminiDecoder()
    size = size or len(stream) or 1
    events = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
    events.extend(decoder.close())
    assert decoder.feed(b"data: {}\n\n") == decoder.close() == []
    return [*check_events(events)]


def frame(*parts, **candidate):
    content = {"parts": list(parts), "role": "model"}
    return b"data: " + json.dumps({"candidates": [{"content": content, **candidate}]}).encode() + b"\r\n\r\n"


def call(**members):
    return {"functionCall": members}


def failure(stream):
    event = decode(stream)[-1]
    assert isinstance(event, Failed)
    return event.problem


def encode(*events, request=None):
    encoder = DIALECT.encoder(request)
    return b"".join(encoder.feed(event) for event in events)


def send(stream):
    """Split a strictly written stream into its documents."""
    frames = stream.decode().split("\r\n\r\n")
    assert frames.pop() == ""
    assert all(text.startswith("data: ") and "\n" not in text for text in frames)
    return [json.loads(text.removeprefix("data: ")) for text in frames]


@shelf.needs_shelf
def test_every_recorded_stream_is_read_alike_at_any_chunk_size():
    count = 0
    for name, stream in recordings.streams():
        whole = collect(decode(stream))
        for size in (1, 7, 64) if len(stream) < 20_000 else (64,):
            assert collect(decode(stream, size)) == whole, (name, size)
        count += 1
    assert count > 240


@shelf.needs_shelf
def test_unfinished_recordings_fail():
    for name in recordings.UNFINISHED:
        assert failure(recordings.stream(name)).kind == "malformed_reply"


@shelf.needs_shelf
def test_a_bare_json_error_in_the_middle_of_sse_is_emitted_at_any_chunk_size():
    stream = recordings.stream("gemini/vertexai-sdk-test-data-0027")
    for size in (0, 1, 7, 64):
        events = decode(stream, size)
        assert "".join(event.text for event in events if isinstance(event, PartDelta)) == "First Second "
        assert (events[-1].problem.kind, events[-1].problem.status) == ("cancelled", 499)


@shelf.needs_shelf
@pytest.mark.parametrize("name", ["text", "one_tool", "two_tools", "thinking_tool"])
def test_the_same_sampled_reply_whole_and_streamed_has_the_same_parts(name):
    (stream,) = shelf.samples("gemini", f"{name}.stream.sse")
    (whole,) = [
        path for path in shelf.samples("gemini", f"{name}.response.json") if path.name == f"{name}.response.json"
    ]
    assert collect(decode(stream.read_bytes())).finish == DIALECT.parse_response(whole.read_bytes()).finish
    streamed = [type(part) for part in collect(decode(stream.read_bytes())).parts]
    assert streamed == [type(part) for part in DIALECT.parse_response(whole.read_bytes()).parts]


@shelf.needs_shelf
def test_recorded_partial_arguments_are_assembled():
    response = collect(decode(recordings.stream("gemini/vercel-ai-0005")))
    (made,) = [part for part in response.parts if isinstance(part, ToolCall)]
    assert made.name == "writeItems"
    assert json.loads(made.arguments)["operations"][0]["description"] == "Fresh red apple"
    assert response.finish == Finish("tool_calls", "STOP")


def test_text_is_emitted_as_it_arrives_and_the_finish_at_the_end():
    decoder = GeminiDecoder()
    assert decoder.feed(frame({"text": "Hel"})) == [Started("", ""), PartStarted(0, Text(text="")), PartDelta(0, "Hel")]
    assert decoder.feed(frame({"text": "lo"}, finishReason="STOP")) == [PartDelta(0, "lo")]
    assert decoder.close() == [PartEnded(0), Finished(Finish("stop", "STOP"))]


def test_usage_is_emitted_when_first_seen_and_again_at_the_end():
    chunks = [
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],'
        b'"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":%d}}\n\n' % count
        for count in (1, 2, 3)
    ]
    body = [event.usage for event in decode(b"".join(chunks)) if isinstance(event, UsageSeen)]
    assert [(usage.input, usage.output) for usage in body] == [(5, 1), (5, 3)]


def test_usage_without_counts_does_not_hide_counts():
    stream = (
        b'data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5}}\n\n'
        b'data: {"usageMetadata":{"trafficType":"ON_DEMAND"}}\n\n'
    )
    assert collect(decode(stream)).usage.input == 5


def test_a_chunk_may_follow_the_finish_reason():
    stream = frame({"text": "a"}, finishReason="STOP") + b'data: {"usageMetadata":{"promptTokenCount":7}}\n\n'
    assert collect(decode(stream)).usage.input == 7


@pytest.mark.parametrize(
    "stream",
    [
        b'[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},\n{"candidates":[{"finishReason":"STOP"}]}]',
        b'{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\n{"candidates":[{"finishReason":"STOP"}]}\n',
        b'\r\n {"candidates":[{"content":{"parts":{"text":"a"}}}]}{"candidates":[{"finishReason":"STOP"}]}',
        b': comment\n\nevent: x\ndata:{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}',
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}\n\ndata: [DONE]\n\n',
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}\ndata: {"candidates":[{"finishReason":"STOP"}]}\n\n',
        b'data: [{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}]\n\n',
        b'data: {}\n\ndata: {"response":{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}}\n\n',
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finish_reason":"STOP"}],"model_version":"m"}\n\n',
    ],
)
def test_every_framing_is_read(stream):
    for size in (0, 1, 5):
        response = collect(decode(stream, size))
        assert (response.parts, response.finish) == ((Text(text="a"),), Finish("stop", "STOP"))


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"\n\n",
        b"data: {}\n\n",
        frame({"text": "a"}),
        frame({"text": "a"}) + b"data: [DONE]\n\n",
        frame({"text": "a"}, finishReason="STOP") + b'data: {"cand',
        b'[{"candidates":[{"finishReason":"STOP"}]}',
        b"<html>",
        b"data: nonsense\n\n",
        frame(call(name="f", willContinue=True)),
        frame(call(name="f", willContinue=True, partialArgs=[{"jsonPath": "$.a[999999999]", "numberValue": 1}])),
    ],
)
def test_a_stream_that_is_cut_or_broken_fails(stream):
    assert failure(stream).kind == "malformed_reply"


@pytest.mark.parametrize("form", [b"data: %b\n\n", b"data: [%b]\n\n", b"[%b]"])
def test_an_error_in_the_stream_keeps_its_class_and_message(form):
    problem = failure(form % b'{"error":{"code":429,"message":"Slow down.","status":"RESOURCE_EXHAUSTED"}}')
    assert (problem.kind, problem.status, problem.message) == ("rate_limit", 429, "Slow down.")


def test_other_candidates_are_kept_apart():
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": "a"}]}}, {"index": 1, "content": {"parts": [{"text": "x"}]}}]},
        {"candidates": [{"index": 1, "content": {"parts": [{"text": "y"}]}, "finishReason": "STOP", "later": 1}]},
        {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}]},
    ]
    response = collect(decode(json.dumps(chunks).encode()))
    assert response.parts == (Text(text="ab"),)
    assert {name: json.loads(raw) for name, raw in response.extras.fields.items()} == {
        "/candidates/1": {
            "content": {"parts": [{"text": "x"}, {"text": "y"}], "role": "model"},
            "index": 1,
            "finishReason": "STOP",
            "later": 1,
        }
    }


def test_a_streamed_call_is_emitted_whole_and_may_interleave_with_thoughts():
    stream = (
        frame({**call(name="f", id="i", willContinue=True), "thoughtSignature": "s"})
        + frame(call(partialArgs=[{"jsonPath": "$.a", "stringValue": "x", "willContinue": True}], willContinue=True))
        + frame({"text": "hm", "thought": True})
        + frame(call(partialArgs=[{"jsonPath": "$.a", "stringValue": "y"}]), finishReason="STOP")
    )
    response = collect(decode(stream))
    signature = Signature("google", "s")
    assert response.parts == (
        ToolCall(id="i", name="f", arguments='{"a":"xy"}', signature=signature),
        Reasoning(texts=("hm",)),
    )
    assert response.finish.reason == "tool_calls"


def test_a_call_cut_off_by_the_token_limit_is_not_complete():
    piece = {"jsonPath": "$.a", "stringValue": "x", "willContinue": True}
    stream = frame(call(name="f", willContinue=True, partialArgs=[piece]), finishReason="MAX_TOKENS")
    response = collect(decode(stream))
    assert (response.parts[0].complete, response.finish.reason) == (False, "length")


def test_a_new_name_ends_the_call_before_it():
    stream = frame(call(name="f", willContinue=True), call(name="g", args={"b": 1}), finishReason="STOP")
    assert [part.arguments for part in collect(decode(stream)).parts] == ["{}", '{"b": 1}']


def test_the_encoder_repeats_model_and_id_on_every_chunk():
    stream = encode(
        Started("r", "m"), PartStarted(0, Text(text="")), PartDelta(0, "a\nb"), PartEnded(0), Finished(Finish("stop"))
    )
    assert send(stream) == [
        {
            "candidates": [{"content": {"parts": [{"text": "a\nb"}], "role": "model"}, "index": 0}],
            "modelVersion": "m",
            "responseId": "r",
        },
        {
            "candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": "STOP", "index": 0}],
            "modelVersion": "m",
            "responseId": "r",
        },
    ]


def test_the_encoder_writes_a_call_when_it_is_whole_with_its_signature():
    started = PartStarted(0, ToolCall(id="i", name="f", arguments=""))
    encoder = DIALECT.encoder(None)
    encoder.feed(Started("", ""))
    assert encoder.feed(started) == encoder.feed(PartDelta(0, '{"a":\n')) == encoder.feed(PartDelta(0, "1.0}")) == b""
    assert encoder.feed(PartSigned(0, Signature("google", "s"))) == b""
    (chunk,) = send(encoder.feed(PartEnded(0)))
    assert chunk["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"id": "i", "name": "f", "args": {"a": 1.0}}, "thoughtSignature": "s"}
    ]


def test_the_encoder_leaves_out_a_call_that_was_cut():
    started = PartStarted(0, ToolCall(id="i", name="f", arguments=""))
    stream = encode(
        Started("", ""), started, PartDelta(0, '{"a":'), PartEnded(0, complete=False), Finished(Finish("length"))
    )
    assert send(stream) == [{"candidates": [{"finishReason": "MAX_TOKENS", "index": 0}]}]


def test_the_encoder_keeps_separate_summaries_apart():
    stream = encode(PartStarted(0, Reasoning()), PartDelta(0, "a", 0), PartDelta(0, "b", 1), PartDelta(0, "c", 1))
    texts = [chunk["candidates"][0]["content"]["parts"][0] for chunk in send(stream)]
    assert texts == [{"text": text, "thought": True} for text in ("a", "\n\nb", "c")]


def test_the_encoder_wraps_for_code_assist_but_not_its_errors():
    stream = encode(
        PartStarted(0, Text(text="")), PartDelta(0, "a"), PartEnded(0), Finished(Finish("stop")), request=ENVELOPED
    )
    assert all(list(chunk) == ["response"] for chunk in send(stream))
    (error,) = send(encode(Failed(Problem("internal", "x")), request=ENVELOPED))
    assert error == {"error": {"code": 500, "message": "x", "status": "INTERNAL"}}
