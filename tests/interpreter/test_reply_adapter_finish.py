"""A finish reason that the client's dialect does not have becomes an error with the vendor's own reason."""

import json

import pytest

from dragoman import Problem, StreamTranslator
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response

EXPLANATION = 'Malformed function call: print(default_api.f(a="b'
REASONS = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "OTHER"]


def build_reply(reason, **members):
    candidate = {"content": {"role": "model", "parts": []}, "finishReason": reason, **members}
    return json.dumps({"candidates": [candidate], "responseId": "r", "modelVersion": "g"}).encode()


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
def test_the_finish_message_of_a_malformed_call_is_in_the_error(client, reason):
    body = build_reply(reason, finishMessage=EXPLANATION)
    with pytest.raises(Problem, match="default_api") as caught:
        translate_response(body, "gemini", client, Context())
    assert caught.value.message.endswith(f"({reason}): {EXPLANATION}")
    translator = StreamTranslator("gemini", client)
    sent = translator.feed(b"data: " + body + b"\n\n") + translator.close()
    assert translator.problem is not None
    assert translator.problem.message == caught.value.message
    assert json.dumps(EXPLANATION)[1:-1].encode() in sent


def test_an_error_without_a_finish_message_names_the_reason():
    with pytest.raises(Problem, match=r"malformed tool call \(MALFORMED_FUNCTION_CALL\)$"):
        translate_response(build_reply("MALFORMED_FUNCTION_CALL", finishMessage=""), "gemini", "chat", Context())
