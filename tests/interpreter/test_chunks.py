"""A stream in any dialect as plain chunks."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Usage
from dragoman.interpreter.chunks import CallDelta, Chunk, ChunkReader, read_chunks


def frame(delta, finish=None, **more):
    body = {"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def call(index, arguments, **head):
    function = {"arguments": arguments, **({"name": head["name"]} if "name" in head else {})}
    return {"tool_calls": [{"index": index, "function": function, **({"id": head["id"]} if "id" in head else {})}]}


USAGE = b'data: {"id":"r","model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n'
DONE = b"data: [DONE]\n\n"


def test_text_reasoning_and_calls_come_as_they_grow_and_the_end_comes_last():
    stream = [
        frame({"role": "assistant", "reasoning_content": "hm"}),
        frame({"content": "He"}) + frame({"content": "llo"}),
        frame(call(0, "", id="a", name="f")),
        frame(call(0, '{"x":')),
        frame(call(0, "1}")),
        frame(call(1, "", id="b", name="g")),
        frame(call(1, "{}")),
        frame({}, "tool_calls"),
        USAGE,
        DONE,
    ]
    assert list(read_chunks(stream, "chat")) == [
        Chunk(reasoning="hm"),
        Chunk(text="He"),
        Chunk(text="llo"),
        Chunk(call=CallDelta(0, "a", "f")),
        Chunk(call=CallDelta(0, arguments='{"x":')),
        Chunk(call=CallDelta(0, arguments="1}")),
        Chunk(call=CallDelta(1, "b", "g")),
        Chunk(call=CallDelta(1, arguments="{}")),
        Chunk(finish=Finish("tool_calls", "tool_calls"), usage=Usage(input=3, output=4)),
    ]


def test_chunks_come_as_soon_as_their_bytes_do():
    reader = ChunkReader("chat")
    assert reader.feed(frame({"content": "He"})) == [Chunk(text="He")]
    assert reader.feed(frame({}, "stop")) == []
    assert reader.close() == [Chunk(finish=Finish("stop", "stop"))]


def test_a_refusal_is_neither_text_nor_reasoning():
    stream = [frame({"refusal": "no"}), frame({}, "stop"), DONE]
    assert list(read_chunks(stream, "chat")) == [Chunk(finish=Finish("refused", "stop"))]


def test_a_stream_that_fails_raises_its_problem():
    chunks = read_chunks([frame({"content": "He"})], "chat")
    assert next(chunks) == Chunk(text="He")
    with pytest.raises(Problem) as caught:
        next(chunks)
    assert caught.value.kind == "malformed_reply"


def test_a_piece_of_a_call_is_silent_about_what_it_does_not_add():
    assert CallDelta(2) == CallDelta(2, "", "", "")
    assert Chunk() == Chunk(text="", reasoning="", call=None, finish=None, usage=None)


def test_an_unknown_dialect_is_a_problem():
    with pytest.raises(Problem):
        ChunkReader("latin")


def test_what_an_event_does_not_add_is_empty():
    assert (CallDelta(1).id, CallDelta(1).name, CallDelta(1).arguments) == ("", "", "")
    chunk = Chunk()
    assert (chunk.text, chunk.reasoning, chunk.call, chunk.finish, chunk.usage) == ("", "", None, None, None)
