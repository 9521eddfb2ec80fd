import json

import pytest

from dragoman.core.problems import Problem
from dragoman.core.traits import Traits
from dragoman.dialects.gemini import DIALECT, code_assist
from dragoman.dialects.record import Call

ENVELOPE = {
    "model": "gemini-x",
    "project": "p",
    "user_prompt_id": "u",
    "request": {
        "contents": [{"role": "user", "parts": [{"text": "hi", "partMetadata": 1}]}],
        "session_id": "s",
        "generationConfig": {"temperature": 1, "responseModalities": ["TEXT"]},
        "tools": [{"functionDeclarations": [{"name": "f", "behavior": "B"}]}],
    },
}


def parse(body):
    return DIALECT.parse_request(Call(body=json.dumps(body).encode(), stream=True))


def test_an_enveloped_request_is_read_with_pointers_into_the_envelope():
    request = parse(ENVELOPE)
    assert (request.model, request.stream, "code_assist" in request.spelling) == ("gemini-x", True, True)
    assert request.messages[0].parts[0].where == "/request/contents/0/parts/0"
    assert request.tools[0].where == "/request/tools/0/functionDeclarations/0"
    assert set(request.extras.fields) == {
        "/project",
        "/user_prompt_id",
        "/request/session_id",
        "/request/generationConfig/responseModalities",
    }


def test_an_enveloped_request_survives_a_round_trip():
    call = DIALECT.render_request(parse(ENVELOPE), Traits(dialect="gemini"))
    assert json.loads(call.body) == ENVELOPE


def test_an_enveloped_reply_survives_a_round_trip():
    body = {
        "response": {
            "candidates": [
                {"content": {"parts": [{"text": "x"}], "role": "model"}, "finishReason": "STOP", "index": 0}
            ],
            "modelVersion": "m",
        },
        "traceId": "t",
        "remainingCredits": [1],
    }
    response = DIALECT.parse_response(json.dumps(body).encode())
    assert json.loads(DIALECT.build_response(response, parse(ENVELOPE))) == body


def test_the_envelope_is_left_behind_for_a_client_that_does_not_use_it():
    response = DIALECT.parse_response(b'{"response":{"candidates":[{"finishReason":"STOP"}]},"traceId":"t"}')
    assert json.loads(DIALECT.build_response(response, None)) == {"candidates": [{"finishReason": "STOP", "index": 0}]}


def test_wrapping_is_one_level():
    assert code_assist.wrap_response(b'{"a":1}') == b'{"response":{"a":1}}'
    assert code_assist.wrap_request(b'{"contents":[]}', "m") == b'{"model":"m","request":{"contents":[]}}'


def test_a_count_request_has_its_model_inside_and_is_wrapped_like_all_others():
    inner = b'{"model":"models/gemini-x","contents":[]}'
    wrapped = code_assist.wrap_count(b'{"request":' + inner + b"}")
    assert json.loads(wrapped) == {"model": "gemini-x", "request": {"contents": []}}


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"request":3}', b'{"request":{}}'])
def test_a_count_request_without_a_model_is_rejected(body):
    with pytest.raises(Problem) as raised:
        code_assist.wrap_count(body)
    assert raised.value.kind == "invalid_request"


def test_a_whole_request_in_a_count_request_is_what_is_counted():
    whole = b'{"model":"models/x","contents":[]}'
    assert code_assist.unwrap_count(b'{"generateContentRequest":' + whole + b"}") == whole
    for body in (b'{"contents":[]}', b'{"generateContentRequest":null}'):
        assert code_assist.unwrap_count(body) == body
    with pytest.raises(Problem) as raised:
        code_assist.unwrap_count(b'{"generateContentRequest":3}')
    assert raised.value.where == "/generateContentRequest"
