"""Calls of one reply that share an id get distinct ids for the client, in a stream as in a whole reply."""

import json

import pytest

from dragoman.core.losses import Loss
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from interpreter.workbench import encode

SHARED = Loss(
    "/choices/0/message/tool_calls/1/id", "another call has the id 'a': this one gets a new id", "approximated"
)


def call(index, number, call_id="a"):
    function = {"name": "f", "arguments": f'{{"x":{number}}}'}
    return {"index": index, "id": call_id, "type": "function", "function": function}


def whole(client, *calls):
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    result = translate_response(encode({"id": "r", "model": "m", "choices": [choice]}), "chat", client)
    return json.loads(result.body), result.losses


def stream(client, *calls):
    translator = StreamTranslator("chat", client)
    deltas = [*({"tool_calls": [one]} for one in calls), {}]
    result = b""
    for number, delta in enumerate(deltas):
        finish = "tool_calls" if number == len(calls) else None
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        result += translator.feed(b"data: " + encode({"id": "r", "model": "m", "choices": [choice]}) + b"\n\n")
    result += translator.feed(b"data: [DONE]\n\n") + translator.close()
    return [json.loads(line[6:]) for line in result.splitlines() if line.startswith(b"data: {")], translator.losses


def ids_of(client, body):
    match client:
        case "messages":
            return [block["id"] for block in body["content"]]
        case "responses":
            return [item["call_id"] for item in body["output"]]
        case _:
            return [part["functionCall"]["id"] for part in body["candidates"][0]["content"]["parts"]]


def list_streamed_ids(client, frames):
    match client:
        case "messages":
            return [frame["content_block"]["id"] for frame in frames if frame["type"] == "content_block_start"]
        case "responses":
            return ids_of(client, frames[-1]["response"])
        case _:
            parts = [part for frame in frames for part in frame["candidates"][0]["content"]["parts"]]
            return [part["functionCall"]["id"] for part in parts if "functionCall" in part]


@pytest.mark.parametrize("client", ["messages", "responses", "gemini"])
def test_the_second_call_of_an_id_gets_its_own_in_a_stream_as_in_a_whole_reply(client):
    body, losses = whole(client, call(0, 1), call(1, 2))
    first, second = ids_of(client, body)
    assert (first, losses) == ("a", (SHARED,))
    assert second != "a"
    frames, losses = stream(client, call(0, 1), call(1, 2))
    assert (list_streamed_ids(client, frames), losses) == ([first, second], (SHARED,))


def test_each_of_many_calls_of_one_id_gets_its_own():
    body, losses = whole("messages", *(call(index, index) for index in range(4)))
    assert len(set(ids_of("messages", body))) == 4
    assert [loss.where for loss in losses] == [f"/choices/0/message/tool_calls/{index}/id" for index in (1, 2, 3)]


def test_ids_that_are_equal_only_for_the_client_are_made_distinct():
    body, losses = whole("messages", call(0, 1, "a.b"), call(1, 2, "a.b"), call(2, 3, "a_b"))
    ids = ids_of("messages", body)
    assert len(set(ids)) == 3
    assert ids[2] == "a_b"
    assert [loss.where for loss in losses] == ["/choices/0/message/tool_calls/1/id"]


def test_ids_that_differ_are_kept():
    body, losses = whole("messages", call(0, 1), call(1, 2, "b"))
    assert (ids_of("messages", body), losses) == (["a", "b"], ())
