"""Requests, replies, streams and errors from one dialect to another, and byte for byte within one."""

import json

import pytest

from dragoman.core.losses import Loss
from dragoman.core.parts import Signature, Text
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.dialects.record import Call
from dragoman.interpreter.errors import translate_error
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import TranslatedResponse, translate_response
from dragoman.interpreter.signature_envelopes import UNSIGNED, seal_signature
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.translation import Translation
from dragoman.interpreter.undo import Undo
from interpreter.workbench import build_message, encode

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 50}
SEEDED = HELLO | {"seed": 7}


def test_a_request_is_translated_to_the_target_dialect_and_its_model():
    translation = translate_request(Call(encode(SEEDED), "m"), "chat", "messages", model="claude-opus-5")
    body = {"model": "claude-opus-5", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
    assert json.loads(translation.call.body) == body
    assert translation.call == Call(translation.call.body, "claude-opus-5")
    assert translation.losses == (Loss("/seed", "the model does not accept it", "dropped"),)
    assert translation.undo == Undo()
    assert translation.request.messages == (build_message("user", "hi"),)


def test_without_a_model_the_clients_model_name_is_kept():
    assert translate_request(Call(encode(HELLO)), "chat", "messages").call.model == "m"


def test_strict_refuses_a_request_with_losses_and_passes_one_without():
    with pytest.raises(Problem) as caught:
        translate_request(Call(encode(SEEDED)), "chat", "messages", strict=True)
    assert (caught.value.kind, caught.value.where) == ("unsupported", "/seed")
    assert translate_request(Call(encode(HELLO)), "chat", "messages", strict=True).losses == ()


def test_a_form_puts_the_request_into_its_envelope():
    call = translate_request(Call(encode(HELLO)), "chat", "gemini", model="gemini-3-pro", form="code_assist").call
    inner = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {"maxOutputTokens": 50}}
    assert json.loads(call.body) == {"model": "gemini-3-pro", "request": inner}


def test_a_form_of_the_same_dialect_changes_nothing_but_the_envelope():
    inner = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "cachedContent": "c"}
    translation = translate_request(Call(encode(inner), "g"), "gemini", "gemini", form="code_assist")
    assert json.loads(translation.call.body) == {"model": "g", "request": inner}
    assert (translation.losses, translation.undo) == ((), Undo())


@pytest.mark.parametrize("body", [b'{"model": "m",  "messages":[]}', b"not json at all"])
def test_a_request_in_its_own_dialect_is_the_same_bytes_unread(body):
    call = Call(body, "m", stream=True)
    assert translate_request(call, "chat", "chat", strict=True) == Translation(call=call)


def test_another_model_changes_only_the_model():
    call = Call(b'{"model": "m",  "messages":[ ]}', "m", stream=True)
    after = Call(b'{"model": "n",  "messages":[ ]}', "n", stream=True)
    assert translate_request(call, "chat", "chat", model="n") == Translation(call=after)
    assert translate_request(Call(b'{"contents": []}', "m"), "gemini", "gemini", model="n") == Translation(
        call=Call(b'{"contents": []}', "n")
    )


def test_another_model_in_what_is_not_json_is_a_problem():
    with pytest.raises(Problem) as caught:
        translate_request(Call(b'{"model"'), "chat", "chat", model="n")
    assert caught.value.kind == "invalid_request"


def test_another_vendors_signature_is_removed_even_in_the_same_dialect():
    letter = seal_signature(Signature("openai", UNSIGNED), "self", "anthropic").value
    thought = {"type": "thinking", "thinking": "hm", "signature": letter}
    blocks = [thought, {"type": "text", "text": "yes"}]
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "assistant", "content": blocks}]}
    translation = translate_request(Call(encode(body)), "messages", "messages", model="claude-opus-4-5")
    result = json.loads(translation.call.body)
    assert result == body | {"model": "claude-opus-4-5", "messages": [{"role": "assistant", "content": blocks[1:]}]}
    assert [(loss.where, loss.leaves) for loss in translation.losses] == [("/messages/0/content/0", len(thought))]
    with pytest.raises(Problem):
        translate_request(Call(encode(body)), "messages", "messages", strict=True)


# Replies

REPLY = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "responseId": "r",
    "modelVersion": "g",
}
CALLING = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"functionCall": {"name": "f_1", "args": {}}}]},
            "finishReason": "STOP",
            "avgLogprobs": 1,
        }
    ],
    "responseId": "r",
    "modelVersion": "g",
}
NAMED = Context(undo=Undo({"f_1": ("", "f 1")}))


def test_a_reply_is_translated_to_the_clients_dialect_and_names():
    rendered = translate_response(encode(CALLING), "gemini", "chat", NAMED)
    message = json.loads(rendered.body)["choices"][0]["message"]
    assert [call["function"] for call in message["tool_calls"]] == [{"name": "f 1", "arguments": "{}"}]
    reason = "not known to the client's dialect"
    assert rendered.losses == (Loss("/candidates/0/avgLogprobs", reason, "dropped", "informational"),)


def test_a_reply_in_the_clients_dialect_is_the_same_bytes():
    assert translate_response(b"not json", "chat", "chat") == TranslatedResponse(b"not json")


def test_a_reply_in_the_clients_dialect_gets_its_names_back_and_keeps_the_rest():
    rendered = translate_response(encode(CALLING), "gemini", "gemini", NAMED)
    result = json.loads(rendered.body)
    assert result["candidates"][0]["content"]["parts"] == [{"functionCall": {"name": "f 1", "args": {}}}]
    assert result["candidates"][0]["avgLogprobs"] == 1
    assert rendered.losses == ()


WRAPPED = {"response": REPLY, "traceId": "t"}
SPOKE = Context(Request(model="", messages=(), spelling=frozenset({"code_assist"})))


def test_an_envelope_the_client_did_not_use_is_taken_off():
    result = json.loads(translate_response(encode(WRAPPED), "gemini", "gemini").body)
    assert result["candidates"][0]["content"] == REPLY["candidates"][0]["content"]
    assert translate_response(encode(WRAPPED), "gemini", "gemini", SPOKE) == TranslatedResponse(encode(WRAPPED))
    assert translate_response(encode(REPLY), "gemini", "gemini") == TranslatedResponse(encode(REPLY))


def test_an_envelope_the_client_wants_is_put_on():
    result = json.loads(translate_response(encode(REPLY), "gemini", "gemini", Context(form="code_assist")).body)
    assert result["response"]["candidates"][0]["content"] == REPLY["candidates"][0]["content"]


def test_a_context_has_its_salt_and_whether_replies_pass_through():
    request = Request(model="m", messages=(build_message("user", Text(text="hi")),))
    assert (Context().salt, Context(request).salt) == ("", "1")
    assert Context(request).passes
    assert not NAMED.passes
    assert not Context(form="code_assist").passes
    assert Context(request).client_request() is request
    assert Context().client_request() is None
    assert Context(request, form="x").client_request().spelling == {"x"}
    assert Context(form="x").client_request() == Request(model="", messages=(), spelling=frozenset({"x"}))


def test_ids_the_upstream_did_not_give_differ_from_turn_to_turn():
    ids = set()
    for count in range(2):
        request = Request(model="m", messages=(build_message("user", "hi"),) * count)
        body = translate_response(encode(CALLING), "gemini", "chat", Context(request)).body
        ids.add(json.loads(body)["choices"][0]["message"]["tool_calls"][0]["id"])
    assert len(ids) == 2


# Streams


def flow(source, target, raw, size=0, context=None):
    translator = StreamTranslator(source, target, *([context] if context else []))
    step = size or max(len(raw), 1)
    result = b"".join(translator.feed(raw[at : at + step]) for at in range(0, len(raw), step))
    return result + translator.close(), translator


def chat(delta, finish=None):
    body = {"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + encode(body) + b"\n\n"


DONE = b"data: [DONE]\n\n"
TEXT = chat({"content": "hi"}) + chat({}, "stop") + DONE
SIZES = [0, 1, 7]


def data(raw):
    return [json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: {")]


@pytest.mark.parametrize("size", SIZES)
def test_a_stream_in_the_clients_dialect_is_the_same_bytes(size):
    raw = b": comment\n\n" + TEXT.replace(b"\n\n", b"\r\n\r\n")
    assert flow("chat", "chat", raw, size)[0] == raw


@pytest.mark.parametrize("size", SIZES)
def test_nothing_after_the_end_is_passed_on(size):
    assert flow("chat", "chat", TEXT + b"data: {\n\n" + b"more", size)[0] == TEXT


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tail", [b"data: {broken\n\ndata: more\n\n", b"data: {bro", b""])
def test_a_stream_that_breaks_or_is_cut_ends_in_an_error_on_a_line_of_its_own(size, tail):
    started = chat({"content": "hi"})
    result, _ = flow("chat", "chat", started + tail, size)
    assert result.startswith(started)
    (error,) = data(result[len(started) :])
    assert error["error"]["code"] == "malformed_reply"
    assert result.count(b"\n\n") == 2


def test_an_upstream_error_in_the_same_dialect_is_passed_on_unchanged():
    raw = b'data: {"error":{"message":"slow","type":"rate_limit_error","code":"x"}}\n\n'
    assert flow("chat", "chat", raw)[0] == raw


def test_frames_are_passed_on_as_soon_as_they_are_whole():
    translator = StreamTranslator("chat", "chat")
    first = chat({"content": "hi"})
    assert translator.feed(first[:-3]) == b""
    assert translator.feed(first[-3:] + b"data") == first


@pytest.mark.parametrize("size", SIZES)
def test_a_stream_that_is_one_array_is_passed_on_as_it_comes(size):
    raw = b"[" + encode(REPLY) + b",\n" + encode(REPLY) + b"]"
    assert flow("gemini", "gemini", raw, size)[0] == raw
    translator = StreamTranslator("gemini", "gemini")
    assert translator.feed(raw[:40]) == raw[:40]


@pytest.mark.parametrize("size", SIZES)
def test_a_streams_envelope_that_the_client_did_not_use_is_taken_off(size):
    raw = b"data: " + encode(WRAPPED) + b"\n\n"
    frames = data(flow("gemini", "gemini", raw, size)[0])
    assert all("response" not in frame and "candidates" in frame for frame in frames)
    assert flow("gemini", "gemini", raw, size, SPOKE)[0] == raw


def test_a_streams_envelope_that_the_client_wants_is_put_on():
    raw = b"data: " + encode(REPLY) + b"\n\n"
    frames = data(flow("gemini", "gemini", raw, 0, Context(form="code_assist"))[0])
    assert [frame.keys() for frame in frames] == [{"response"}] * len(frames)


def test_an_empty_stream_in_the_clients_dialect_is_an_error():
    assert data(flow("chat", "chat", b"")[0])[0]["error"]["code"] == "malformed_reply"


@pytest.mark.parametrize("size", SIZES)
def test_a_stream_is_translated_to_the_clients_dialect(size):
    result, translator = flow(
        "chat", "messages", chat({"content": "he"}) + chat({"content": "y"}) + chat({}, "stop") + DONE, size
    )
    kinds = [frame["type"] for frame in data(result)]
    assert kinds == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert translator.losses == ()


def test_interleaved_calls_reach_a_client_that_holds_one_open_at_a_time_one_after_the_other():
    def piece(index, arguments, **head):
        return {
            "tool_calls": [
                {"index": index, "function": {"arguments": arguments, **head}, **({"id": f"c{index}"} if head else {})}
            ]
        }

    deltas = [piece(0, "", name="f"), piece(1, "", name="g"), piece(1, '{"b":'), piece(0, '{"a":1}'), piece(1, "2}")]
    result, _ = flow("chat", "messages", b"".join(map(chat, deltas)) + chat({}, "tool_calls") + DONE)
    open_block, arguments = None, {}
    for frame in data(result):
        if frame["type"] == "content_block_start":
            assert open_block is None
            open_block = frame["content_block"]["name"]
        elif frame["type"] == "content_block_delta":
            arguments[open_block] = arguments.get(open_block, "") + frame["delta"]["partial_json"]
        elif frame["type"] == "content_block_stop":
            open_block = None
    assert arguments == {"f": '{"a":1}', "g": '{"b":2}'}


def test_a_part_left_out_closes_up_the_indexes_of_those_behind_it():
    image = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    reply = {
        **REPLY,
        "candidates": [{"content": {"role": "model", "parts": [image, {"text": "hi"}]}, "finishReason": "STOP"}],
    }
    result, translator = flow("gemini", "messages", b"data: " + encode(reply) + b"\n\n")
    assert {frame["index"] for frame in data(result) if "index" in frame} == {0}
    lost = [(loss.where, loss.kind, loss.leaves) for loss in translator.losses]
    assert lost == [("/candidates/0/content/parts/0", "dropped", 2)]


def test_a_streams_names_are_given_back():
    result, _ = flow("gemini", "chat", b"data: " + encode(CALLING) + b"\n\n", 0, NAMED)
    names = [
        call["function"].get("name")
        for frame in data(result)
        for call in frame["choices"][0]["delta"].get("tool_calls", [])
    ]
    assert "f 1" in names


CUT = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":'}}


def test_a_call_cut_off_is_shown_in_a_stream_and_left_out_of_a_whole_reply_for_claudes_clients():
    result, _ = flow("chat", "messages", chat({"tool_calls": [CUT]}) + chat({}, "length") + DONE)
    assert any(frame.get("content_block", {}).get("name") == "f" for frame in data(result))
    message = {"role": "assistant", "content": None, "tool_calls": [CUT]}
    choice = {"index": 0, "message": message, "finish_reason": "length"}
    rendered = translate_response(encode({"id": "r", "model": "m", "choices": [choice]}), "chat", "messages")
    assert json.loads(rendered.body)["content"] == []
    assert {loss.kind for loss in rendered.losses} == {"dropped"}


# Errors

SLOW = encode({"error": {"message": "slow", "type": "rate_limit_error", "code": "x"}})


def test_an_error_is_translated_to_the_clients_dialect_without_the_vendors_code():
    reply = translate_error(429, {"retry-after": "3"}, SLOW, "chat", "messages")
    assert (reply.status, reply.headers["retry-after"]) == (429, "3")
    assert json.loads(reply.body)["error"] == {"type": "rate_limit_error", "message": "slow"}


def test_an_error_in_the_clients_dialect_keeps_the_vendors_code():
    assert json.loads(translate_error(429, {}, SLOW, "chat", "chat").body)["error"]["code"] == "x"


def test_an_upstream_that_breaks_is_a_bad_gateway_to_another_vendors_client():
    assert translate_error(500, {}, b"<html>", "chat", "messages").status == 502
    assert translate_error(500, {}, b"<html>", "chat", "chat").status == 500


@pytest.mark.parametrize(
    "work",
    [
        lambda: translate_request(Call(b"{}"), "latin", "chat"),
        lambda: translate_response(b"{}", "chat", "latin"),
        lambda: StreamTranslator("latin", "chat"),
        lambda: translate_error(500, {}, b"", "latin", "chat"),
    ],
)
def test_an_unknown_dialect_is_a_problem(work):
    with pytest.raises(Problem):
        work()
