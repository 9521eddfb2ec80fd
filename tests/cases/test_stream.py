"""Streams: every piece arrives, in blocks that match it, and nothing comes after the end."""

import json

import pytest

from cases.documents import (
    call_item,
    call_item_events,
    chat_call_deltas,
    chat_chunk,
    chat_delta,
    chat_reply,
    chat_request,
    chat_stream,
    gemini_chunk,
    gemini_reply,
    list_seen_blocks,
    list_seen_calls,
    message_item,
    message_item_events,
    messages_reply,
    of_type,
    responses_request,
    responses_stream,
    tool_use,
)
from cases.through import DONE, answer, encode, flow, flow_bytes, stream, translate_to
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.stream import StreamTranslator

CALL = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}


def call_tool(*pieces):
    return chat_stream(*chat_call_deltas(*pieces), finish_reason="tool_calls")


def test_t096_arguments_in_the_first_chunk_of_a_call_arrive():
    result = flow("chat", "messages", call_tool(CALL)).body
    start, delta = of_type(result, "content_block_start", "content_block_delta")
    assert start["content_block"] == tool_use("a", "f")
    assert delta["delta"] == {"type": "input_json_delta", "partial_json": '{"x":1}'}


def test_t097_text_with_an_empty_list_of_calls_is_text():
    result = flow(
        "chat", "messages", chat_stream({"content": "He", "tool_calls": []}, {"content": "y", "tool_calls": []})
    )
    assert list_seen_blocks(result.body) == [{"type": "text", "text": "Hey"}]
    assert {frame["delta"]["type"] for frame in of_type(result.body, "content_block_delta")} == {"text_delta"}


def test_t099_the_first_text_is_not_swallowed():
    result = flow("chat", "messages", chat_stream({"role": "assistant", "content": "Hi"}, {"content": " there"}))
    assert list_seen_blocks(result.body) == [{"type": "text", "text": "Hi there"}]


def test_t100_there_is_one_message_start_and_deltas_match_their_blocks():
    result = flow("chat", "messages", chat_stream({"reasoning_content": "t"}, {"content": "a"})).body
    assert len(of_type(result, "message_start")) == 1
    kinds = {"thinking": "thinking_delta", "text": "text_delta"}
    starts = {frame["index"]: kinds[frame["content_block"]["type"]] for frame in of_type(result, "content_block_start")}
    deltas = [(frame["index"], frame["delta"]["type"]) for frame in of_type(result, "content_block_delta")]
    assert [kind for kind in deltas if kind[1] != "signature_delta"] == list(starts.items())
    assert [one["type"] for one in list_seen_blocks(result)] == ["thinking", "text"]


def test_t102_a_repeated_id_continues_the_same_block():
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "f"}},
        {"index": 0, "id": "a", "function": {"arguments": "{"}},
        {"index": 0, "id": "a", "function": {"arguments": "}"}},
    ]
    result = flow("chat", "messages", call_tool(*pieces)).body
    assert len(of_type(result, "content_block_start")) == 1
    assert [(one["id"], one["name"], one["input"]) for one in list_seen_blocks(result)] == [("a", "f", "{}")]


def test_t103_a_call_starts_when_its_name_is_known_and_empty_names_later_mean_nothing():
    pieces = [
        {"index": 0, "id": "c0", "function": {"arguments": ""}},
        {"index": 0, "function": {"name": "read", "arguments": '{"p":1}'}},
        {"index": 0, "function": {"name": None, "arguments": ""}},
        {"index": 0, "function": {"name": "", "arguments": ""}},
    ]
    result = flow("chat", "messages", call_tool(*pieces)).body
    assert [(one["id"], one["name"], one["input"]) for one in list_seen_blocks(result)] == [("c0", "read", '{"p":1}')]


@pytest.mark.parametrize("client", ["messages", "responses", "gemini", "chat"])
def test_t103_a_call_without_any_name_fails_visibly(client):
    result = flow("chat", client, call_tool({"index": 0, "id": "c0", "function": {"arguments": '{"p":1}'}}))
    assert b'"error"' in result.raw or b"response.failed" in result.raw
    assert b'"tool_use"' not in result.raw


def test_t105_what_is_absent_in_a_continuation_stays_absent():
    first = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": piece}} for piece in ("{", "}")]
    result = flow("chat", "chat", call_tool(first, *rest)).body
    pieces = [piece for frame in result for piece in chat_delta(frame).get("tool_calls") or ()]
    assert pieces[0] == first
    assert [piece for piece in pieces[1:] if piece["function"]["arguments"]] == rest
    assert not [piece for piece in pieces[1:] if piece.keys() & {"id", "type"} or "name" in piece["function"]]


@pytest.mark.parametrize("client", ["messages", "chat", "responses", "gemini"])
def test_t106_a_call_without_a_type_is_a_function_call(client):
    piece = {"index": 0, "id": "a", "function": {"name": "t", "arguments": ""}}
    result = flow("chat", client, call_tool(piece, {"index": 0, "function": {"arguments": "{}"}}))
    assert b'"error"' not in result.raw.replace(b'"error":null', b"").replace(b'"error": null', b"")
    assert b'"t"' in result.raw
    match client:
        case "chat":
            assert chat_delta(result.body[0])["tool_calls"] == [piece], "the same dialect means the same bytes"
        case "messages":
            assert [one["type"] for one in list_seen_blocks(result.body)] == ["tool_use"]
        case "responses":
            (done,) = of_type(result.body, "response.output_item.done")
            assert (done["item"]["type"], done["item"]["name"]) == ("function_call", "t")
        case _:
            parts = [
                part for frame in result.body for part in frame["candidates"][0].get("content", {}).get("parts", [])
            ]
            assert [part["functionCall"]["name"] for part in parts if "functionCall" in part] == ["t"]


def test_t111_text_and_a_call_of_one_response_both_arrive():
    frames = responses_stream(
        *message_item_events(0, "Let me ", "look."),
        *call_item_events(1, "a", "f", "{}"),
        output=[message_item(0, "Let me look."), call_item("a", "f", "{}")],
    )
    result = flow("responses", "chat", frames).body
    assert "".join(chat_delta(frame).get("content") or "" for frame in result) == "Let me look."
    assert list_seen_calls(result) == [{"index": 0, "id": "a", "name": "f", "arguments": "{}"}]


def test_t112_an_unknown_model_is_streamed_for_real():
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
    asked = translate_to("responses", "chat", responses_request(tools=tools, stream=True), model="gpt-oss-20b")
    assert asked.body["stream"] is True

    translator = StreamTranslator("chat", "responses", asked.context)
    early = translator.feed(stream("chat", chat_call_deltas_frames(CALL)))
    assert b"response.output_item.added" in early
    assert b"response.function_call_arguments.delta" in early
    late = translator.feed(stream("chat", [chat_chunk({}, "tool_calls"), DONE])) + translator.close()
    assert b"response.function_call_arguments.done" in late
    assert b"response.completed" in late


def chat_call_deltas_frames(*pieces):
    return [chat_chunk(delta) for delta in chat_call_deltas(*pieces)]


@pytest.mark.parametrize("client", ["chat", "messages", "responses", "gemini"])
def test_t115_nothing_comes_after_done(client):
    frames = chat_stream({"content": "hi"})
    translator = StreamTranslator("chat", client, Context())
    events = translator.feed(stream("chat", frames))
    assert b"hi" in events
    assert translator.feed(b'data: {"choices":[],"cost":"0"}\n\n') == b""
    assert translator.close() == b""
    if client == "chat":
        assert events.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("size", [0, 1, 7])
def test_t118_two_values_in_one_buffer_are_two_chunks(size):
    raw = encode(gemini_chunk({"text": "a"})) + encode(gemini_chunk({"text": "b"}, finish="STOP"))
    result = flow_bytes("gemini", "chat", raw, size=size).body
    assert "".join(chat_delta(frame).get("content") or "" for frame in result) == "ab"
    assert result[-1] == DONE


def test_t118_many_small_pieces_of_a_long_value_are_read_once():
    text = "x" * 200_000
    raw = b"[" + encode(gemini_chunk({"text": text}, finish="STOP")) + b"]"
    result = flow_bytes("gemini", "chat", raw, size=64).body
    assert "".join(chat_delta(frame).get("content") or "" for frame in result) == text


def test_t120_partial_arguments_end_where_will_continue_is_absent():
    chunks = [
        gemini_chunk({"functionCall": {"name": "f", "willContinue": True}}),
        gemini_chunk({"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}}),
        gemini_chunk(finish="STOP"),
    ]
    (call,) = list_seen_calls(flow("gemini", "chat", chunks).body)
    assert (call["name"], json.loads(call["arguments"])) == ("f", {"a": "x"})


def test_t121_a_call_without_args_has_empty_arguments_and_keeps_its_signature():
    part = {"functionCall": {"name": "noargs"}, "thoughtSignature": "Uw=="}
    (call,) = list_seen_calls(flow("gemini", "chat", [gemini_chunk(part, finish="STOP")]).body)
    assert (call["name"], call["arguments"]) == ("noargs", "{}")
    assert call["extra_content"] == {"google": {"thought_signature": "Uw=="}}
    whole = answer("gemini", "chat", gemini_reply(part)).body["choices"][0]["message"]["tool_calls"][0]
    assert whole["function"]["arguments"] == "{}"


def test_t123_a_whole_reply_with_text_and_tool_use_is_a_completed_response_with_both():
    reply = messages_reply({"type": "text", "text": "a"}, tool_use("t", "f"), stop_reason="tool_use")
    body = answer("messages", "responses", reply).body
    assert body["status"] == "completed"
    message, call = body["output"]
    assert [part["text"] for part in message["content"]] == ["a"]
    assert (call["type"], call["call_id"], call["name"], call["arguments"]) == ("function_call", "t", "f", "{}")


LEAK = "To call a tool write <tool_call>{..."


@pytest.mark.parametrize("client", ["messages", "responses", "gemini"])
def test_t154_text_that_mentions_a_tool_call_stays_text(client):
    asked = translate_to(client, "chat", _question(client), model="local-model")
    result = answer("chat", client, chat_reply({"content": LEAK}), asked)
    assert json.dumps(result.body).count(LEAK) >= 1
    assert "function_call" not in json.dumps(result.body["output"] if client == "responses" else result.body)
    streamed_ = flow("chat", client, chat_stream({"content": LEAK[:20]}, {"content": LEAK[20:]}), asked)
    assert b"tool_use" not in streamed_.raw
    assert b"functionCall" not in streamed_.raw


def _question(client):
    match client:
        case "messages":
            return {**chat_request(), "max_tokens": 10}
        case "responses":
            return responses_request()
        case _:
            return {"contents": [{"role": "user", "parts": [{"text": "q"}]}]}
