"""Members of whole Chat replies that only some compatible servers send: reasoning, and counts of cached tokens."""

import json
from typing import Any

import pytest

from dragoman.core.parts import Reasoning, Text
from dragoman.core.response import Response
from dragoman.dialects.chat.response import build_response, parse_response
from dragoman.interpreter.response import translate_response


def reply(message: dict[str, Any], **fields: Any) -> Response:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return parse_response(json.dumps({"id": "chatcmpl-1", "choices": [choice], **fields}).encode())


@pytest.mark.parametrize("member", ["reasoning_text", "thinking"])
def test_reasoning_of_other_servers_is_a_part_and_is_written_as_it_came(member):
    response = reply({member: "r", "content": "x", "reasoning_opaque": "o"})
    assert response.parts == (Reasoning(texts=("r",)), Text(text="x"))
    assert response.extras is not None
    assert response.extras.fields == {"/choices/0/message/reasoning_opaque": b'"o"'}
    message = json.loads(build_response(response, None))["choices"][0]["message"]
    assert (message[member], message["reasoning_opaque"]) == ("r", "o")


@pytest.mark.parametrize("value", [{"on": 1}, 5, ["a"]])
def test_thinking_that_is_no_text_is_kept_as_a_field(value):
    response = reply({"content": "x", "thinking": value})
    assert response.parts == (Text(text="x"),)
    assert response.extras is not None
    assert {name: json.loads(raw) for name, raw in response.extras.fields.items()} == {
        "/choices/0/message/thinking": value
    }


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"cached_tokens": 4}, 4),
        ({"num_cached_tokens": 4}, 4),
        ({"num_cached_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}, 3),
        ({"num_cached_tokens": 4, "prompt_tokens_details": {"cached_tokens": None}}, 4),
        ({"num_cached_tokens": 0, "prompt_tokens_details": None}, 0),
        ({"cached_tokens": "4"}, None),
        ({"cached_tokens": True}, None),
        ({"cached_tokens": -1}, None),
    ],
)
def test_cached_tokens_are_read_where_together_and_mistral_count_them(counts, expected):
    usage = reply({"content": "x"}, usage={"prompt_tokens": 9, "completion_tokens": 1, **counts}).usage
    assert usage is not None
    assert usage.cached == expected


@pytest.mark.parametrize("member", ["cached_tokens", "num_cached_tokens"])
def test_a_count_of_cached_tokens_that_is_sent_is_no_loss(member):
    message = {"role": "assistant", "content": "x"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10, member: 4}
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    translated = translate_response(json.dumps(body).encode(), "chat", "messages")
    assert json.loads(translated.body)["usage"]["cache_read_input_tokens"] == 4
    assert translated.losses == ()
