"""A history of others in Responses: in forms that need no ids of OpenAI's making, but with those it gave itself."""

import json
from base64 import b64decode, b64encode

import pytest

from dragoman.core.parts import Signature
from dragoman.dialects.record import Call
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signature_envelopes import open_envelope, seal_signature
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import encode, loss_pointers
from oracles import check_request

ASK = {"role": "user", "content": "q"}


def translate(source, body):
    translation = translate_request(Call(encode(body)), source, "responses", model="gpt-5.6")
    assert check_request("responses", translation.call.body) == []
    return json.loads(translation.call.body)["input"], loss_pointers(translation.losses)


def test_each_text_of_a_turn_is_an_item_of_its_own():
    texts = [{"type": "text", "text": text} for text in ("a", "b")]
    items, losses = translate("chat", {"model": "m", "messages": [ASK, {"role": "assistant", "content": texts}, ASK]})
    written = [{"type": "message", "role": "assistant", "content": text} for text in ("a", "b")]
    assert (items[1:3], losses) == (written, [])


@pytest.mark.parametrize(
    ("message", "where"),
    [
        ({"role": "assistant", "content": None, "refusal": "no"}, "/messages/1/refusal"),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, "/messages/1/content/0"),
    ],
)
def test_a_refusal_becomes_text(message, where):
    items, losses = translate("chat", {"model": "m", "messages": [ASK, message, ASK]})
    assert items[1] == {"type": "message", "role": "assistant", "content": "no"}
    assert losses == [("approximated", where)]


def test_sound_is_left_out_and_reported():
    sound = {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}
    items, losses = translate("chat", {"model": "m", "messages": [{"role": "user", "content": [sound]}]})
    assert items[0]["content"] == "[audio left out: the target takes no audio]"
    assert {kind for kind, _ in losses} == {"dropped"}


REPLY = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-5.6",
    "output": [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "A"}],
            "encrypted_content": "gAAA",
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"},
    ],
}


def history_of(client):
    """The next request of a client of another dialect that GPT answered with a thought and a call."""
    reply = json.loads(translate_response(encode(REPLY), "responses", client, Context()).body)
    if client == "messages":
        result = {"type": "tool_result", "tool_use_id": "call_1", "content": "r"}
        turns = [ASK, {"role": "assistant", "content": reply["content"]}, {"role": "user", "content": [result]}]
        return {"model": "m", "max_tokens": 99, "messages": turns}
    result = {"functionResponse": {"id": "call_1", "name": "f", "response": {"output": "r"}}}
    sent, answered = ({"role": "user", "parts": [part]} for part in ({"text": "q"}, result))
    return {"contents": [sent, reply["candidates"][0]["content"], answered]}


@pytest.mark.parametrize("client", ["messages", "gemini"])
def test_a_thought_comes_back_under_the_id_it_was_encrypted_with(client):
    items, _ = translate(client, history_of(client))
    assert items[1] == REPLY["output"][0]
    assert items[2] == {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("signature", "after"),
    [
        (Signature("openai", "g", "rs_1"), Signature("openai", "g", "rs_1")),
        (Signature("openai", "g.h:i"), Signature("openai", "g.h:i")),
        (Signature("openai", "g", "a.b"), Signature("openai", "g")),
    ],
)
def test_an_envelope_keeps_the_item_of_a_signature_if_it_can(signature, after):
    assert open_envelope(seal_signature(signature, "self", "anthropic")) == (after, "self")


def test_an_envelope_from_before_items_were_kept_is_read():
    inside = b"dragoman1.openai.self.cffd7f67c322.g"
    assert open_envelope(Signature("anthropic", b64encode(inside).decode())) == (Signature("openai", "g"), "self")


def test_an_envelope_whose_item_was_changed_is_damaged():
    value = seal_signature(Signature("openai", "g", "rs_1"), "self", "anthropic").value
    assert open_envelope(Signature("anthropic", b64encode(b64decode(value).replace(b"rs_1", b"rs_2")).decode())) is None


@pytest.mark.parametrize(
    ("model", "taken"),
    [
        ("gpt-audio", True),
        ("gpt-4o-audio-preview", True),
        ("some-model", True),
        ("gpt-4.1", False),
        ("gpt-6-luna", False),
    ],
)
def test_audio_is_sent_to_models_that_support_it(model, taken):
    sound = {"data": "QUE=", "format": "mp3"}
    body = {"model": "m", "messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": sound}]}]}
    translation = translate_request(Call(json.dumps(body).encode()), "chat", "responses", model=model)
    (message,) = json.loads(translation.call.body)["input"]
    if taken:
        assert message["content"] == [{"type": "input_audio", "input_audio": sound}]
        assert translation.losses == ()
    else:
        assert message["content"] == "[audio left out: the target takes no audio]"
        assert {loss.kind for loss in translation.losses} == {"dropped"}
