"""Faults in streams reach each official client as it can notice them: raised, never a quiet end."""

import json
import re

import pytest

from conformance.recordings import DIALECTS
from dragoman.interpreter.stream import StreamTranslator
from oracles import read_live, read_stream, read_stream_error
from shelf import needs_shelf, samples

PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS]
FOREIGN = [(source, target) for source, target in PAIRS if source != target]
TERMINAL = {
    "chat": b'"finish_reason":"',
    "responses": b"event: response.completed",
    "messages": b"event: message_stop",
    "gemini": b'"finishReason":',
}
"""What a stream of each dialect must have shown before it may end."""
BLANK = (b"\n\n", b"\r\n\r\n")
IN_BAND = {
    "chat": b'data: {"error":{"message":"Overloaded","type":"server_error","param":null,"code":"server_is_overloaded"}}\n\n',
    "responses": b'event: error\ndata: {"type":"error","sequence_number":3,"error":{"type":"server_error","code":"server_is_overloaded","message":"Overloaded"}}\n\n',
    "messages": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    "gemini": b'data: {"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}\n\n',
}
RAISES = {
    "chat": ("APIError", None, {"server_error"}),
    "responses": ("APIError", None, {"server_error"}),
    "messages": ("APIStatusError", 200, {"overloaded_error"}),
    "gemini": ("ServerError", 503, {"UNAVAILABLE"}),
}
"""Class, status and type of an overload error inside a stream; Anthropic's exception has the status of the stream."""


def sample(dialect: str, name: str) -> bytes:
    (path,) = [path for path in samples(dialect, f"{name}.stream.sse") if path.name == f"{name}.stream.sse"]
    return path.read_bytes()


def frames(sse: bytes) -> list[bytes]:
    """Google's frames end in CRLF, the others' in LF."""
    return [frame + b"\n\n" for frame in re.split(rb"(?:\r?\n){2}", sse) if frame.strip()]


def translate_stream(source: str, target: str, sse: bytes) -> bytes:
    translator = StreamTranslator(source, target)
    return translator.feed(sse) + translator.close()


def compact(sse: bytes) -> bytes:
    return sse.replace(b'": ', b'":')


@needs_shelf
@pytest.mark.parametrize("helper", [False, True])
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_an_upstream_error_in_the_middle_is_raised_with_its_class_and_message(source, target, helper):
    begun = b"".join(frames(sample(source, "text"))[:2])
    raised = read_stream_error(target, translate_stream(source, target, begun + IN_BAND[source]), helper=helper)
    name, status, types = RAISES[target]
    assert raised is not None
    assert (raised.name, raised.status) == (name, status)
    assert raised.type in types
    assert "Overloaded" in raised.message


@needs_shelf
@pytest.mark.parametrize("name", ["text", "one_tool", "two_tools"])
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_stream_cut_before_its_end_is_never_a_quiet_success(source, target, name):
    whole = frames(sample(source, name))
    ended = False
    for count in range(len(whole) + 1):
        ended = ended or (count > 0 and TERMINAL[source] in compact(whole[count - 1]))
        raised = read_stream_error(target, translate_stream(source, target, b"".join(whole[:count])))
        assert (raised is None) == ended, f"after {count} of {len(whole)} frames: {raised}"


@needs_shelf
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_frame_that_is_not_json_is_an_error_not_a_gap(source, target):
    whole = frames(sample(source, "text"))
    name = whole[1].partition(b"data:")[0]
    broken = b"".join([*whole[:2], name + b'data: {"broken":\n\n', *whole[2:]])
    assert read_stream_error(target, translate_stream(source, target, broken)) is not None


@needs_shelf
@pytest.mark.parametrize(("source", "target"), FOREIGN)
def test_blank_lines_between_frames_keep_a_client_waiting_and_change_nothing(source, target):
    for name in ("text", "one_tool", "two_tools"):
        translated = translate_stream(source, target, sample(source, name))
        beaten = b"\n" + b"\n".join(frames(translated)) + b"\n"
        assert read_live(target, beaten) == read_live(target, translated)
        assert read_stream(target, beaten) == read_stream(target, translated)


@needs_shelf
@pytest.mark.parametrize(("source", "target"), FOREIGN)
def test_heartbeats_and_odd_framing_of_the_upstream_never_reach_the_client(source, target):
    whole = frames(sample(source, "one_tool"))
    plain = translate_stream(source, target, b"".join(whole))
    assert translate_stream(source, target, b": ping\n\n" + b"\n: ping\n\n".join(whole)) == plain
    assert translate_stream(source, target, b"".join(whole).replace(b"\n", b"\r\n")) == plain
    assert translate_stream(source, target, b"".join(whole).replace(b"data: ", b"data:")) == plain


@needs_shelf
@pytest.mark.parametrize("target", DIALECTS)
def test_every_stream_ends_with_a_blank_line_whether_it_went_well_or_not(target):
    for source in DIALECTS:
        whole = frames(sample(source, "one_tool"))
        assert translate_stream(source, target, b"".join(whole)).endswith(BLANK)
        assert translate_stream(source, target, b"".join(whole[:-2])).endswith(BLANK)


def last_data(sse: bytes) -> dict:
    return json.loads(sse.rpartition(b"data: ")[2])


def test_a_failed_chat_stream_ends_with_an_error_object_and_no_done():
    translated = translate_stream("messages", "chat", IN_BAND["messages"])
    assert list(last_data(translated)) == ["error"]
    assert set(last_data(translated)["error"]) >= {"message", "type", "param", "code"}
    assert b"[DONE]" not in translated


def test_a_failed_responses_stream_has_the_failed_response_and_the_flat_and_nested_error():
    translated = translate_stream("messages", "responses", IN_BAND["messages"])
    *_, failed, error = frames(translated)
    assert failed.startswith(b"event: response.failed\n")
    response = last_data(failed)["response"]
    assert response["status"] == "failed"
    assert response["error"]["code"] == "server_is_overloaded"
    assert error.startswith(b"event: error\n")
    event = last_data(error)
    assert event["type"] == "error"
    assert event["sequence_number"] == last_data(failed)["sequence_number"] + 1
    assert {name: event[name] for name in ("code", "message", "param")} == {
        name: event["error"][name] for name in ("code", "message", "param")
    }


def test_a_failed_messages_stream_names_its_event_or_clients_would_drop_it():
    translated = translate_stream("gemini", "messages", IN_BAND["gemini"])
    assert frames(translated)[-1].startswith(b"event: error\ndata: ")
    assert last_data(translated)["type"] == "error"
    assert last_data(translated)["error"]["type"] == "overloaded_error"


def test_a_failed_gemini_stream_has_the_error_first_and_its_code_as_a_number():
    translated = translate_stream("messages", "gemini", IN_BAND["messages"])
    assert frames(translated)[-1].startswith(b'data: {"error":')
    error = last_data(translated)["error"]
    assert (error["code"], error["status"]) == (503, "UNAVAILABLE")


def chat_call(*pieces: str, finish: str) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}
    deltas = [first, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    choices = [{"index": 0, "delta": {"tool_calls": [delta]}, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    return b"".join(b"data: %s\n\n" % json.dumps({**head, "choices": [choice]}).encode() for choice in choices)


@pytest.mark.parametrize("pieces", [('{"path": "/tmp', '/a"'), ("7",), ("[", "{}", "]")])
def test_a_call_that_is_not_an_object_is_never_run_by_a_client_that_parses_it(pieces):
    raised = read_stream_error(
        "messages", translate_stream("chat", "messages", chat_call(*pieces, finish="tool_calls"))
    )
    assert raised is not None
    assert "malformed tool call" in raised.message
    reading = read_stream("gemini", translate_stream("chat", "gemini", chat_call(*pieces, finish="tool_calls")))
    assert (reading.calls, reading.finish) == ((), "malformed_call")


def test_a_call_cut_by_length_is_shown_as_cut_where_a_stream_can():
    cut = chat_call('{"path": "/tmp', finish="length")
    reading = read_stream("messages", translate_stream("chat", "messages", cut))
    assert ([call.arguments for call in reading.calls], reading.finish) == (['{"path": "/tmp'], "length")
    assert read_stream("gemini", translate_stream("chat", "gemini", cut)).calls == ()


def test_a_signed_call_does_not_trip_the_helper_that_wants_a_function_in_every_chunk():
    part = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2lnbmVk"}
    reply = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    translated = translate_stream("gemini", "chat", b"data: %s\n\n" % json.dumps(reply).encode())
    assert b"c2lnbmVk" in translated
    (call,) = read_live("chat", translated).calls
    assert (call.name, json.loads(call.arguments)) == ("f", {"a": 1})
