"""Tokens are counted once, each dialect in its own way."""

import pytest

from cases.documents import (
    block,
    chat_chunk,
    chat_reply,
    chat_request,
    message_end,
    message_start,
    messages_request,
    messages_stream,
    of_type,
)
from cases.through import DONE, answer, flow, translate_to

OPENAI = {
    "prompt_tokens": 200,
    "completion_tokens": 9,
    "total_tokens": 209,
    "prompt_tokens_details": {"cached_tokens": 150},
}


def test_t138_cached_tokens_are_not_counted_twice_in_a_whole_reply():
    usage = answer("chat", "messages", chat_reply({"content": "a"}, usage=OPENAI)).body["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (50, 150, 9)


def test_t138_cached_tokens_known_only_at_the_end_are_in_message_delta():
    frames = [
        chat_chunk({"content": "a"}),
        chat_chunk({}, "stop"),
        {**chat_chunk({}), "choices": [], "usage": OPENAI},
        DONE,
    ]
    (end,) = of_type(flow("chat", "messages", frames).body, "message_delta")
    usage = end["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (50, 150, 9)


TEXT = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"})
ASKED_FOR_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def _usage_of(frames):
    return [frame["usage"] for frame in frames if isinstance(frame, dict) and frame.get("usage")]


def test_t139_cache_tokens_reported_twice_are_counted_once():
    asked = translate_to("chat", "messages", chat_request(**ASKED_FOR_USAGE), model="claude-opus-4-8")
    frames = [
        message_start(input_tokens=3, cache_read_input_tokens=4425),
        *TEXT,
        *message_end("end_turn", cache_read_input_tokens=4425, output_tokens=20),
    ]
    (usage,) = _usage_of(flow("messages", "chat", frames, asked).body)
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (4428, 20)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 4425


def test_t141_what_was_counted_before_a_cut_is_kept_and_nothing_is_invented():
    frames = [message_start(input_tokens=3, cache_read_input_tokens=9000, output_tokens=1), *TEXT]
    (failed,) = of_type(flow("messages", "responses", frames).body, "response.failed")
    usage = failed["response"]["usage"]
    assert (usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]) == (9003, 9000)
    assert (usage["output_tokens"], usage["total_tokens"]) == (1, 9004)


def test_t142_usage_is_requested_and_waited_for():
    asked = translate_to("messages", "chat", messages_request(stream=True), model="local-model")
    assert asked.body["stream_options"] == {"include_usage": True}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    frames = [
        chat_chunk({"content": "a"}),
        chat_chunk({}, "stop"),
        {**chat_chunk({}), "choices": [], "usage": usage},
        DONE,
    ]
    (end,) = of_type(flow("chat", "messages", frames, asked).body, "message_delta")
    assert (end["usage"]["input_tokens"], end["usage"]["output_tokens"]) == (1, 2)
    assert end["delta"]["stop_reason"] == "end_turn"


@pytest.mark.parametrize("expected", [True, False])
def test_t142_a_chat_client_sees_usage_only_if_it_requested_it(expected):
    options = ASKED_FOR_USAGE if expected else {"stream": True}
    asked = translate_to("chat", "messages", chat_request(**options), model="claude-opus-4-8")
    result = flow("messages", "chat", messages_stream(TEXT), asked).body
    assert len(_usage_of(result)) == expected
    assert len([frame for frame in result if isinstance(frame, dict) and frame["choices"] == []]) == expected
