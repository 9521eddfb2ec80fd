"""Calls are taken out of replies in every form and cut, and all else of these passes as it came."""

import json

import pytest

from dragoman.intercept.replies import CallCapture, TurnRequest, build_reply, choose_reply_form, to_tool_call

LOOK = b'{"functionCall" : {"name":"look","args":{"n": 1.50},"id":"i1"}, "thoughtSignature": "c2ln"}'
OWN = b'{"functionCall":{"name":"own","args":{}}}'
EVENTS, ITEMS, WHOLE = TurnRequest(stream=True, events=True), TurnRequest(stream=True), TurnRequest()


def chunk(*parts, finish=b"", wrapped=False):
    end = b', "finishReason":"STOP"' if finish else b""
    body = b'{"candidates" :[{"content":{"role":"model","parts":[' + b", ".join(parts) + b"]}" + end + b'}],"x" : 1.0}'
    return b'{"response": ' + body + b',"traceId":"t"}' if wrapped else body


def fed(turn, kind, raw, size=10_000, names=("look",)):
    capture = CallCapture(frozenset(names), "wait")
    form = choose_reply_form(turn, kind, capture)
    events = b"".join(form.feed(raw[at : at + size]) for at in range(0, len(raw), size)) + form.close()
    return capture, events


def frame(chunks):
    return b"".join(b"data: " + one + b"\r\n\r\n" for one in chunks)


WORDS, LAST = b'{"text": "Well"}', b'{"text":""}'


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "in the envelope"])
def test_the_first_call_becomes_text_the_others_are_removed_and_the_rest_is_unchanged(size, wrapped):
    chunks = [
        chunk(WORDS, wrapped=wrapped),
        chunk(LOOK, LOOK, wrapped=wrapped),
        chunk(LOOK, wrapped=wrapped),
        chunk(LOOK, finish=b"STOP", wrapped=wrapped),
    ]
    expected = [
        chunk(WORDS, wrapped=wrapped),
        chunk(b'{"text":"wait"}', wrapped=wrapped),
        chunk(LAST, finish=b"STOP", wrapped=wrapped),
    ]
    capture, result = fed(EVENTS, "text/event-stream", frame(chunks), size)
    assert result == frame(expected)
    assert [call.part for call in capture.calls] == [LOOK] * 4
    capture, result = fed(ITEMS, "application/json", b"[" + b",\n".join(chunks) + b"]", size)
    assert result == b"[" + b",\n".join(expected) + b"]"
    assert not capture.has_client_calls


def test_a_whole_reply_keeps_all_but_its_calls():
    capture, result = fed(WHOLE, "application/json", chunk(WORDS, LOOK, OWN, finish=b"STOP"), 5)
    assert result == chunk(WORDS, b'{"text":"wait"}', OWN, finish=b"STOP").replace(b"], [", b"],[").replace(
        b", {", b",{"
    )
    assert capture.has_client_calls
    assert [call.id for call in capture.calls] == ["i1"]


@pytest.mark.parametrize("form", [EVENTS, ITEMS, WHOLE], ids=["events", "items", "whole"])
def test_a_reply_without_our_calls_passes_byte_by_byte(form):
    chunks = [chunk(WORDS), chunk(OWN, finish=b"STOP")]
    raw = {"sse": frame(chunks), "": b"[" + b",\r\n".join(chunks) + b"]"}["sse" if form.events else ""]
    raw = raw if form.stream else chunks[1]
    _, events = fed(form, "text/event-stream" if form.events else "application/json", raw, 3)
    assert events == raw


@pytest.mark.parametrize(
    "raw", [b"data: {functionCall\r\n\r\n", b": functionCall\n\n", b"event: x\ndata: 1\n\n", b"data: functionCall", b""]
)
def test_odd_events_pass_as_they_came(raw):
    assert fed(EVENTS, "text/event-stream", raw, 4)[1] == raw


@pytest.mark.parametrize("raw", [b"{functionCall", b"not json", b'{"candidates": 3, "functionCall": 1}', b""])
def test_an_odd_whole_reply_passes_as_it_came(raw):
    assert fed(WHOLE, "application/json", raw, 4)[1] == raw


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" [ ] \n",
        b'[{"a":1},\r\n{"b":2}\r\n]\r\n',
        b'[{"a":1},\n{"b":',
        b'[{"a":1}',
        b'[{"a":1}} {"b":2},{"c":3}]',
        b'{"error":{"code":500}}',
        b"<html>[no]</html>",
    ],
)
def test_an_array_that_is_odd_or_cut_passes_as_it_came(raw, size):
    assert fed(ITEMS, "application/json", raw, size)[1] == raw


@pytest.mark.parametrize("size", [1, 10_000])
def test_an_array_of_which_the_first_items_go_is_still_one(size):
    chunks = [chunk(LOOK), chunk(LOOK), chunk(WORDS)]
    _, result = fed(ITEMS, "application/json", b"[ " + b",".join(chunks) + b"\n]", size, names=("look",))
    assert result == b"[ " + b",".join([chunk(b'{"text":"wait"}'), chunk(WORDS)]) + b"\n]"


def test_an_id_is_made_where_there_is_none_or_one_that_is_taken():
    none, odd = LOOK.replace(b',"id":"i1"', b""), LOOK.replace(b"i1", b"a b/c")
    capture = CallCapture(frozenset({"look"}), "wait", frozenset({"i1"}))
    capture.feed(chunk(LOOK, none, odd), is_whole=True)
    ids = [call.id for call in capture.calls]
    assert len(set(ids)) == 3
    assert all(one.startswith("call_") for one in ids)
    assert [call.given for call in capture.calls] == ["i1", "", "a b/c"]
    assert [call.part for call in capture.calls] == [LOOK, none, odd]


def test_a_call_keeps_the_bytes_of_its_arguments():
    capture, _ = fed(WHOLE, "application/json", chunk(LOOK))
    call = to_tool_call(capture.calls[0])
    assert (call.id, call.name, call.arguments) == ("i1", "look", '{"n": 1.50}')


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(("stream", "events"), [(False, False), (True, True), (True, False)])
def test_a_turn_that_is_made_here_is_a_valid_one_in_every_form(wrapped, stream, events):
    headers, body = build_reply("hm", TurnRequest(wrapped=wrapped, stream=stream, events=events), "models/m")
    text = body.removeprefix(b"data: ") if events else body
    read = json.loads(text)
    read = read[0] if stream and not events else read
    reply = read["response"] if wrapped else read
    assert reply["candidates"][0]["content"] == {"role": "model", "parts": [{"text": "hm"}]}
    assert (reply["candidates"][0]["finishReason"], reply["modelVersion"]) == ("STOP", "m")
    assert ("event-stream" in headers["content-type"]) is events
