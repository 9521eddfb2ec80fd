"""Every call has an id for a reader who has no dialect: the same each time, and of each call its own."""

import json

import pytest

from dragoman.cli.job import TranslationJob, open_stream, perform
from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.interpreter.chunks import ChunkReader, read_chunks
from dragoman.interpreter.pairing import add_ids, find_call_id, identify_parts
from interpreter.workbench import build_message, encode


def gemini(*names, **more):
    parts = [{"functionCall": {"name": name, "args": {"a": 1}}} for name in names]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}], **more}


def render_frame(body):
    return b"data: " + encode(body) + b"\r\n\r\n"


def read_ids(body, size=0):
    raw = render_frame(body)
    step = size or len(raw)
    reader = ChunkReader("gemini")
    chunks = [output for at in range(0, len(raw), step) for output in reader.feed(raw[at : at + step])] + reader.close()
    return [chunk.call.id for chunk in chunks if chunk.call is not None and chunk.call.name]


def core_ids(operation, body):
    if operation == "stream":
        stream = open_stream("gemini", "core")
        view = json.loads(stream.feed(render_frame(body)) + stream.close())
    else:
        view = json.loads(
            perform(TranslationJob(operation=operation, source="gemini", target="core", body=encode(body))).body
        )
    return [part["id"] for part in view["parts"]]


@pytest.mark.parametrize("named", [{}, {"responseId": "r"}])
def test_a_stream_and_a_whole_reply_give_calls_the_same_ids_and_each_its_own(named):
    body = gemini("f", "f", "g", **named)
    ids = read_ids(body)
    assert len(set(ids)) == 3
    assert all(call_id.startswith("call_") for call_id in ids)
    assert read_ids(body, size=1) == ids
    assert core_ids("stream", body) == ids
    assert core_ids("response", body) == ids


def test_replies_differ_in_the_ids_of_their_calls():
    assert read_ids(gemini("f", responseId="r")) != read_ids(gemini("f", responseId="s"))
    other = gemini("f")
    other["candidates"][0]["content"]["parts"][0]["functionCall"]["args"] = {"a": 2}
    assert read_ids(gemini("f")) != read_ids(other)


def test_a_call_without_an_id_is_emitted_when_it_is_complete():
    def frame(delta, finish=None):
        return b"data: " + encode({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + b"\n\n"

    pieces = [{"name": "f", "arguments": '{"a":'}, {"arguments": "1}"}]
    stream = [frame({"tool_calls": [{"index": 0, "function": piece}]}) for piece in pieces]
    output = [chunk.call for chunk in read_chunks([*stream, frame({}, "tool_calls")], "chat") if chunk.call is not None]
    expected = find_call_id(ToolCall(id="", name="f", arguments='{"a":1}'), "", 1)
    assert [(call.index, call.id, call.name, call.arguments) for call in output] == [
        (0, expected, "f", ""),
        (0, "", "", '{"a":1}'),
    ]


def test_an_id_that_was_given_is_kept():
    own = ToolCall(id="own", name="f", arguments="{}")
    bare = ToolCall(id="", name="f", arguments="{}")
    parts = identify_parts((Text(text="x"), own, bare), "r")
    assert parts[:2] == (Text(text="x"), own)
    assert parts[2].id == find_call_id(bare, "r", 2) != find_call_id(bare, "r", 1)


def test_a_reply_that_fails_shows_its_calls_with_ids():
    body = gemini("f", responseId="r")
    del body["candidates"][0]["finishReason"]
    stream = open_stream("gemini", "core")
    view = json.loads(stream.feed(render_frame(body)) + stream.close())
    assert view["problem"]["kind"] == "malformed_reply"
    assert [part["id"] for part in view["parts"]] == core_ids("response", gemini("f", responseId="r"))


# Histories


def call(name, call_id=""):
    return ToolCall(id=call_id, name=name, arguments="{}")


def result(name="", call_id=""):
    return ToolResult(call_id=call_id, name=name)


def ids_of(messages):
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def test_a_result_gets_the_id_of_the_call_it_answers():
    def step():
        return build_message("assistant", call("f"), call("g")), build_message("user", result("g"), result("f"))

    f, g, answered_g, answered_f, *later = ids_of(add_ids((*step(), *step())))
    assert (answered_f, answered_g) == (f, g)
    assert len({f, g, *later}) == 4
    assert ids_of(add_ids(step())) == [f, g, g, f]


def test_a_history_with_ids_is_the_same_object_and_ids_that_were_given_stay():
    whole = (
        build_message("user", "hi"),
        build_message("assistant", "x", call("f", "a")),
        build_message("user", result("f", "a")),
    )
    assert add_ids(whole) is whole
    mixed = (
        build_message("assistant", call("f", "a"), call("f", "a"), call("g")),
        build_message("user", result("f", "a"), result("g")),
    )
    named = ids_of(add_ids(mixed))
    assert named[:2] == ["a", "a"]
    assert named[3:] == ["a", named[2]]


def test_a_result_without_a_call_stays_without_an_id():
    orphan = (build_message("user", result("f"), call("f")),)
    assert add_ids(orphan) == orphan


def test_a_request_is_shown_with_ids():
    contents = [
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
    ]
    done = perform(
        TranslationJob(operation="request", source="gemini", target="core", body=encode({"contents": contents}))
    )
    made, answered = (message["parts"][0] for message in json.loads(done.body)["messages"])
    assert made["id"] == answered["call_id"]
    assert made["id"].startswith("call_")
