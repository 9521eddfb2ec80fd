"""Ids for what came without one: in the client's style, the same every time, no two alike in a conversation."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import encode

STYLES = {"chat": "chatcmpl-", "responses": "resp_", "messages": "msg_"}
CALL_STYLES = {"chat": "call_", "responses": "call_", "messages": "toolu_"}


def reply(*parts, **more):
    """An answer of Gemini without `responseId`, and its calls without ids, as of its older models."""
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}],
        "modelVersion": "gemini-2.5-pro",
        **more,
    }


def build_call(**arguments):
    return {"functionCall": {"name": "look", "args": arguments}}


def whole(client, body, context=None):
    return json.loads(translate_response(encode(body), "gemini", client, context or Context()).body)


def stream_events(client, body, *, size=0, source="gemini"):
    raw = body if isinstance(body, bytes) else b"data: " + encode(body) + b"\r\n\r\n"
    translator = StreamTranslator(source, client)
    step = size or len(raw)
    events = b"".join(translator.feed(raw[start : start + step]) for start in range(0, len(raw), step))
    return events + translator.close()


def first_id(client, stream):
    frame = json.loads(stream.split(b"data: ", 1)[1].split(b"\n", 1)[0])
    return {"chat": frame, "responses": frame.get("response"), "messages": frame.get("message")}[client]["id"]


def call_ids(client, body):
    match client:
        case "chat":
            return [call["id"] for call in body["choices"][0]["message"].get("tool_calls", ())]
        case "responses":
            return [item["call_id"] for item in body["output"] if item["type"] == "function_call"]
        case "messages":
            return [block["id"] for block in body["content"] if block["type"] == "tool_use"]


@pytest.mark.parametrize("client", STYLES)
def test_a_reply_without_an_id_gets_one_in_the_clients_style(client):
    result = whole(client, reply({"text": "Hello."}))["id"]
    assert result.startswith(STYLES[client])
    assert len(result) == len(STYLES[client]) + 24
    assert first_id(client, stream_events(client, reply({"text": "Hello."}))).startswith(STYLES[client])


@pytest.mark.parametrize("client", STYLES)
def test_an_id_the_upstream_gave_is_kept(client):
    body = reply({"text": "Hello."}, responseId="r1")
    assert whole(client, body)["id"] == "r1"
    assert first_id(client, stream_events(client, body)) == "r1"


@pytest.mark.parametrize("client", STYLES)
def test_two_replies_without_ids_differ_in_theirs_and_one_has_the_same_twice(client):
    one, other = reply(build_call(page=1)), reply(build_call(page=2))
    assert whole(client, one)["id"] != whole(client, other)["id"]
    assert whole(client, one)["id"] == whole(client, one)["id"]
    assert first_id(client, stream_events(client, one)) != first_id(client, stream_events(client, other))
    assert stream_events(client, one) == stream_events(client, one)


@pytest.mark.parametrize("client", STYLES)
def test_calls_of_replies_without_ids_get_distinct_ids_without_the_request(client):
    one, other = reply(build_call(page=1), build_call(page=2)), reply(build_call(page=2), build_call(page=1))
    ids = [*call_ids(client, whole(client, one)), *call_ids(client, whole(client, other))]
    assert len(set(ids)) == 4
    assert all(call_id.startswith(CALL_STYLES[client]) for call_id in ids)


@pytest.mark.parametrize("client", STYLES)
def test_a_stream_and_a_whole_reply_of_one_id_mint_the_same_call_ids(client):
    body = reply(build_call(page=1), build_call(page=2), responseId="r1")
    stream = stream_events(client, body)
    assert all(call_id.encode() in stream for call_id in call_ids(client, whole(client, body)))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_generated_ids_do_not_depend_on_where_the_bytes_are_cut(size):
    body = reply({"text": "Let me look."}, build_call(page=1))
    assert stream_events("messages", body, size=size) == stream_events("messages", body)


def test_the_same_answer_to_a_longer_conversation_gets_another_id():
    asked = [{"role": "user", "content": "go"}]
    later = [*asked, {"role": "assistant", "content": "gone"}, {"role": "user", "content": "go"}]
    collected = []
    for messages in (asked, later):
        call = Call(encode({"model": "m", "messages": messages}))
        request = translate_request(call, "chat", "gemini", model="gemini-2.5-pro").request
        collected.append(whole("chat", reply(build_call()), Context(request)))
    assert collected[0]["id"] != collected[1]["id"]
    assert call_ids("chat", collected[0]) != call_ids("chat", collected[1])


def test_an_empty_stream_without_an_id_still_starts_and_ends():
    stream = stream_events("messages", {"candidates": [{"finishReason": "STOP"}]})
    assert [line for line in stream.decode().split("\n") if line.startswith("event:")] == [
        "event: message_start",
        "event: message_delta",
        "event: message_stop",
    ]


def test_a_broken_stream_without_an_id_is_reported_as_broken():
    body = b'data: {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}\r\n\r\n'
    assert b"event: error" in stream_events("messages", body)
    assert b"event: error" in stream_events(
        "messages", b'data: {"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}\n\n'
    )


def test_a_compatible_server_without_ids_streams_on():
    frames = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
        {"choices": [{"index": 0, "delta": {"content": "lo"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    raw = b"".join(b"data: " + encode(frame) + b"\n\n" for frame in frames) + b"data: [DONE]\n\n"
    stream = stream_events("messages", raw, source="chat")
    assert first_id("messages", stream).startswith("msg_")
    assert stream.index(b"message_start") < stream.index(b'"Hel"') < stream.index(b'"lo"') < stream.index(b"end_turn")
