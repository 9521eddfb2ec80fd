"""A call that was seen is a reason to stop, and calls are counted by the client's own numbers."""

import pytest

from cases.documents import (
    block,
    call_item,
    call_item_events,
    chat_chunk,
    chat_stream,
    finish_reasons,
    gemini_chunk,
    gemini_reply,
    list_seen_blocks,
    list_seen_calls,
    messages_stream,
    responses_stream,
    tool_use,
)
from cases.through import DONE, answer, flow

WEATHER = {"functionCall": {"name": "w", "args": {}}}


def test_t087_a_call_followed_by_stop_in_a_later_chunk_finishes_as_tool_calls():
    result = flow("gemini", "chat", [gemini_chunk(WEATHER), gemini_chunk({"text": ""}, finish="STOP")])
    *earlier, last = finish_reasons(result.body)
    assert last == "tool_calls"
    assert set(earlier) == {None}
    assert len(list_seen_calls(result.body)) == 1


def test_t087_a_whole_reply_with_a_call_and_stop_finishes_as_tool_calls():
    result = answer("gemini", "chat", gemini_reply(WEATHER, {"text": ""}))
    assert result.body["choices"][0]["finish_reason"] == "tool_calls"


def test_t087_without_a_call_stop_stays_stop():
    result = flow("gemini", "chat", [gemini_chunk({"text": "hi"}), gemini_chunk({"text": ""}, finish="STOP")])
    assert finish_reasons(result.body)[-1] == "stop"


def _reads(*pages):
    return [{"functionCall": {"name": "read", "args": {"p": page}}} for page in pages]


def test_t090_calls_in_separate_chunks_have_their_own_index_and_id():
    result = flow("gemini", "chat", [*map(gemini_chunk, _reads(1, 2, 3)), gemini_chunk(finish="STOP")])
    calls = list_seen_calls(result.body)
    assert [(call["index"], call["arguments"].replace(" ", "")) for call in calls] == [
        (0, '{"p":1}'),
        (1, '{"p":2}'),
        (2, '{"p":3}'),
    ]
    assert len({call["id"] for call in calls}) == 3


def test_t091_tool_indexes_count_tools_not_blocks():
    result = flow(
        "messages",
        "chat",
        messages_stream(
            block(
                0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "t"}
            ),
            block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"}),
            block(2, tool_use("x", "f"), {"type": "input_json_delta", "partial_json": '{"a":1}'}),
            block(3, tool_use("y", "g"), {"type": "input_json_delta", "partial_json": '{"b":2}'}),
            stop_reason="tool_use",
        ),
    )
    assert list_seen_calls(result.body) == [
        {"index": 0, "id": "x", "name": "f", "arguments": '{"a":1}'},
        {"index": 1, "id": "y", "name": "g", "arguments": '{"b":2}'},
    ]


ODD_INDEXES = [
    {"index": 1, "id": "a", "function": {"name": "f", "arguments": ""}},
    {"index": 1, "function": {"arguments": "{}"}},
    {"id": "b", "function": {"name": "g", "arguments": ""}},
    {"function": {"arguments": '{"x":1}'}},
]


def test_t093_odd_indexes_neither_merge_nor_lose_calls():
    frames = chat_stream(*({"tool_calls": [piece]} for piece in ODD_INDEXES), finish_reason="tool_calls")
    result = flow("chat", "messages", frames).body
    assert [(one["id"], one["name"], one["input"] or "{}") for one in list_seen_blocks(result)] == [
        ("a", "f", "{}"),
        ("b", "g", '{"x":1}'),
    ]


def test_t093_a_reused_index_with_a_new_id_is_a_new_call():
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"p":1}'}},
        {"index": 0, "id": "b", "function": {"name": "f", "arguments": '{"p":2}'}},
    ]
    frames = chat_stream(*({"tool_calls": [piece]} for piece in pieces), finish_reason="tool_calls")
    assert [one["input"] for one in list_seen_blocks(flow("chat", "messages", frames).body)] == ['{"p":1}', '{"p":2}']


@pytest.mark.parametrize("pages", [("a", "b"), ("a", "a")])
def test_t094_parallel_calls_of_one_tool_stay_apart(pages):
    result = flow("gemini", "chat", [gemini_chunk(*_reads(*pages), finish="STOP")])
    calls = list_seen_calls(result.body)
    assert [call["name"] for call in calls] == ["read", "read"]
    assert len({call["id"] for call in calls}) == 2
    whole = answer("gemini", "chat", gemini_reply(*_reads(*pages))).body["choices"][0]["message"]["tool_calls"]
    assert len({call["id"] for call in whole}) == 2


def two_calls():
    return responses_stream(
        *call_item_events(0, "a", "f", "{", "}"),
        *call_item_events(1, "b", "g", "{}"),
        output=[call_item("a", "f", "{}"), call_item("b", "g", "{}")],
    )


def test_t108_the_finish_reason_comes_after_the_last_call():
    result = flow("responses", "chat", two_calls())
    reasons = finish_reasons(result.body)
    assert reasons[-1] == "tool_calls"
    assert set(reasons[:-1]) == {None}
    assert [call["id"] for call in list_seen_calls(result.body)] == ["a", "b"]


def test_t109_parallel_calls_of_responses_have_their_own_indexes_and_finish_as_tool_calls():
    result = flow("responses", "chat", two_calls())
    assert [(call["index"], call["name"], call["arguments"]) for call in list_seen_calls(result.body)] == [
        (0, "f", "{}"),
        (1, "g", "{}"),
    ]
    assert finish_reasons(result.body)[-1] == "tool_calls"


def test_t114_text_with_done_and_no_finish_reason_is_a_stop():
    result = flow("chat", "messages", [chat_chunk({"content": "hello"}), DONE])
    assert [one["text"] for one in list_seen_blocks(result.body)] == ["hello"]
    ends = [frame["delta"]["stop_reason"] for frame in result.body if frame["type"] == "message_delta"]
    assert ends == ["end_turn"]
    assert result.body[-1]["type"] == "message_stop"


@pytest.mark.parametrize("client", ["messages", "responses", "gemini", "chat"])
def test_t114_text_cut_without_done_is_an_error(client):
    result = flow("chat", client, [chat_chunk({"content": "hello"})])
    assert b"hello" in result.raw
    assert b'"error"' in result.raw or b"response.failed" in result.raw
    assert b"message_stop" not in result.raw
    assert b"response.completed" not in result.raw
    assert b'"finishReason"' not in result.raw


@pytest.mark.parametrize("client", ["messages", "responses", "gemini", "chat"])
@pytest.mark.parametrize("end", [[DONE], []])
def test_t114_an_open_call_is_never_completed(client, end):
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":'}}
    result = flow("chat", client, [chat_chunk({"tool_calls": [piece]}), *end])
    assert b'"error"' in result.raw or b"response.failed" in result.raw
    assert b'"tool_use","stop_sequence"' not in result.raw
    assert b"message_stop" not in result.raw
    assert b"response.completed" not in result.raw
    assert b"functionCall" not in result.raw
    assert "tool_calls" not in finish_reasons(result.body)
