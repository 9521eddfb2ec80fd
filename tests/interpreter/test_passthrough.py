"""Signatures that are removed from a request in its own dialect: every other byte stays."""

import json

import pytest

from dragoman.core.parts import Signature
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.passthrough import remove_rejected_signatures
from dragoman.interpreter.signature_envelopes import seal_signature
from dragoman.interpreter.translate import translate_request

GOOGLE = seal_signature(Signature("google", "Cp"), "self", "anthropic").value
FOREIGN = f'{{"type":"thinking","thinking":"hm","signature":"{GOOGLE}"}}'


def wrap(*content, thinking=""):
    return (
        '{ "model":"claude-opus-4-5", "max_tokens":5000,THINKING "messages" : [{"role":"user","content":"caf\\u00e9"},'
        f'{{"role":"assistant" ,"content":[{", ".join(content)}]}} ,{{"role":"user","content":[RESULT]}}]}}'
    ).replace("THINKING", thinking)


CALL = '{"type":"tool_use","id":"t1","name":"f","input":{"a" : 1.50}}'
RESULT = '{"type":"tool_result","tool_use_id":"t1","content":"y"}'


def forward(body):
    return translate_request(Call(body.encode(), "claude-opus-4-5"), "messages", "messages")


def test_thinking_of_another_vendor_is_cut_out_of_the_bytes():
    body = wrap(FOREIGN, CALL).replace("RESULT", RESULT)
    result = forward(body)
    assert result.call.body.decode() == body.replace(f"{FOREIGN}, ", "")
    assert [loss.where for loss in result.losses] == ["/messages/1/content/0"]


def test_a_message_of_which_nothing_is_left_is_cut_out_whole():
    body = wrap(FOREIGN).replace("RESULT", '{"type":"text","text":"x"}')
    message = f',{{"role":"assistant" ,"content":[{FOREIGN}]}}'
    assert forward(body).call.body.decode() == body.replace(message, "")


def test_manual_thinking_is_off_if_the_tool_loop_lost_its_thinking_blocks():
    thinking = ' "thinking":{ "type":"enabled","budget_tokens":1024},'
    body = wrap(FOREIGN, CALL, thinking=thinking).replace("RESULT", RESULT)
    expected = body.replace(f"{FOREIGN}, ", "").replace(thinking, ' "thinking":{ "type":"disabled"},')
    result = forward(body)
    assert result.call.body.decode() == expected
    assert "/thinking/type" in [loss.where for loss in result.losses]


def test_a_foreign_signature_of_a_call_is_cut_out_and_googles_placeholder_takes_its_place():
    sealed = seal_signature(Signature("anthropic", "Eq"), "self", "google").value
    body = (
        '{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f"} ,'
        f'"thoughtSignature":"{sealed}"}}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"f"}}}}]}}]}}'
    )
    result = translate_request(Call(body.encode(), "gemini-3-flash"), "gemini", "gemini")
    assert result.call.body.decode() == body.replace(sealed, "skip_thought_signature_validator")


def remove(dialect, model, body):
    return remove_rejected_signatures(Call(json.dumps(body).encode(), model), dialect_named(dialect), model)


@pytest.mark.parametrize("dialect", ["chat", "messages", "gemini", "responses"])
def test_a_history_without_signatures_is_not_sent_again(dialect):
    history = {"chat": "messages", "messages": "messages", "gemini": "contents", "responses": "input"}[dialect]
    turn = {"role": "user", "parts": [{"text": "x"}]} if dialect == "gemini" else {"role": "user", "content": "x"}
    assert remove(dialect, "m", {"model": "m", "max_tokens": 5, history: [turn]}) is None


def test_text_of_compatible_servers_and_unsigned_thoughts_of_gemini_stay():
    answer = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    assert remove("chat", "m", {"model": "m", "messages": [{"role": "user", "content": "x"}, answer]}) is None
    parts = [{"text": "hm", "thought": True}, {"text": "a", "thoughtSignature": "c2ln"}]
    removed = remove("gemini", "gemini-3-flash", {"contents": [{"role": "model", "parts": parts}]})
    assert removed is not None
    assert json.loads(removed[0].body)["contents"][0]["parts"] == [parts[0], {"text": "a"}]
    assert [(loss.where, loss.grade) for loss in removed[1]] == [
        ("/contents/0/parts/1/thoughtSignature", "informational")
    ]
