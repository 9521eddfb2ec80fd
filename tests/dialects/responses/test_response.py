import functools
import json

import pytest
from msgspec import structs

from dragoman.core.parts import Citation, Inline, Media, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.dialects.record import Call
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.response import build_response, parse_response
from shelf import exchanges, needs_shelf, samples

MADE_IDS = {"openai_responses/ruby-llm-0055": "its call has item_id in place of the id every item must have"}
COUNTS = ("input", "output", "cached", "cache_written", "reasoning")


@functools.cache
def load_recordings():
    bodies = {
        row["id"]: json.dumps(row["response"], ensure_ascii=False).encode()
        for row in exchanges("responses")
        if row["status"] == 200 and row["op"] == "generate" and "response" in row
    }
    compact = ("compact.response.json", "input_tokens.response.json")
    return bodies | {
        path.name: path.read_bytes() for path in samples("responses", ".response.json") if path.name not in compact
    }


def count(usage):
    """The official type demands every count: one not reported is written as 0."""
    return usage and structs.replace(usage, **{name: getattr(usage, name) or 0 for name in COUNTS})


def reply(**members):
    return json.dumps(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 7,
            "model": "m",
            "status": "completed",
            "output": [],
            **members,
        }
    ).encode()


def build(response, request=None):
    return json.loads(build_response(response, request))


@needs_shelf
def test_every_recorded_reply_survives_a_round_trip():
    assert len(load_recordings()) > 460
    for name, body in load_recordings().items():
        first = parse_response(body)
        again = parse_response(build_response(first, None))
        if name not in MADE_IDS:
            assert again.parts == first.parts, name
        assert (again.id, again.model, again.finish) == (first.id, first.model, first.finish), name
        assert count(again.usage) == count(first.usage), name
        kept = first.extras.fields if first.extras else {}
        assert kept.items() <= again.extras.fields.items(), name


@needs_shelf
def test_what_is_built_is_as_valid_as_what_was_recorded():
    from openai.types.responses import Response as Official
    from pydantic import ValidationError

    valid = 0
    for name, body in load_recordings().items():
        try:
            Official.model_validate_json(body)
        except ValidationError:
            continue
        Official.model_validate_json(build_response(parse_response(body), None))
        valid += 1
        assert name
    assert valid > 90


@needs_shelf
def test_item_grouping_is_restored():
    for name, body in load_recordings().items():
        items = json.loads(body)["output"]
        again = build(parse_response(body))["output"]
        assert [item["type"] for item in again] == [item["type"] for item in items], name
        assert [len(item.get("content") or ()) for item in again if item["type"] == "message"] == [
            len(item.get("content") or ()) for item in items if item["type"] == "message"
        ], name


def test_a_message_of_several_parts_stays_one_item():
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "incomplete",
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "a", "annotations": [], "logprobs": [{"token": "a"}]},
            {"type": "hologram", "rays": 7},
            {"type": "refusal", "refusal": "no"},
        ],
    }
    other = {
        **message,
        "id": "msg_2",
        "content": [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}],
    }
    response = parse_response(reply(output=[message, other]))
    assert [type(part) for part in response.parts] == [Text, Opaque, Refusal, Text]
    assert build(response)["output"] == [message, other]


@pytest.mark.parametrize(
    ("members", "finish"),
    [
        ({}, Finish("stop", "completed")),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            Finish("length", "max_output_tokens"),
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            Finish("filtered", "content_filter"),
        ),
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, Finish("other", "steered")),
        ({"status": "incomplete", "incomplete_details": None}, Finish("other", "incomplete")),
        ({"status": "cancelled"}, Finish("other", "cancelled")),
        ({"status": "queued"}, Finish("other", "queued")),
        ({"status": "pondering"}, Finish("stop", "completed")),
    ],
)
def test_the_finish_reason_is_derived_and_survives_a_round_trip(members, finish):
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    response = parse_response(reply(output=[message], **members))
    assert response.finish == finish
    again = build(response)
    assert again["status"] == members.get("status", "completed")
    assert again["incomplete_details"] == members.get("incomplete_details")


def test_a_call_is_the_finish_unless_the_reply_was_cut():
    call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "", "status": "completed"}
    assert parse_response(reply(output=[call])).finish.reason == "tool_calls"
    assert parse_response(reply(output=[call])).parts[0].arguments == "{}"
    cut = {**call, "arguments": '{"a": "b', "status": "incomplete"}
    response = parse_response(
        reply(output=[cut], status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    )
    assert response.finish.reason == "length"
    assert response.parts[0].complete is False
    assert build(response)["output"] == [cut]


def test_a_refusal_is_the_finish():
    message = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    assert parse_response(reply(output=[message])).finish.reason == "refused"


def test_a_failed_reply_raises_its_error():
    error = {"code": "rate_limit_exceeded", "message": "Please try again in 1.5s."}
    with pytest.raises(Problem) as caught:
        parse_response(reply(status="failed", error=error))
    assert (caught.value.kind, caught.value.code, caught.value.retry_after) == (
        "rate_limit",
        "rate_limit_exceeded",
        1.5,
    )


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"output": 5}', b'{"output": [5]}', b'{"id": 5, "output": []}', b"\xff"]
)
def test_a_broken_reply_is_malformed(body):
    with pytest.raises(Problem) as caught:
        parse_response(body)
    assert caught.value.kind == "malformed_reply"


def test_usage_keeps_what_it_does_not_read():
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {
            "cached_tokens": 4,
            "cache_write_tokens": 2,
            "cache_write_tokens_details": {"ttl_30m_tokens": 2},
        },
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 99,
        "cost_in_usd_ticks": 7,
    }
    response = parse_response(reply(usage=usage))
    read = response.usage
    assert [getattr(read, name) for name in COUNTS] == [10, 5, 4, 2, 3]
    assert build(response)["usage"] == usage


FOREIGN = Response(
    id="msg_01",
    model="claude",
    created=7,
    parts=(
        Reasoning(texts=("a", "b"), signature=Signature("anthropic", "sig")),
        Text(
            text="héllo",
            citations=(Citation("messages", b"{}", url="https://x", title="t"), Citation("messages", b"{}")),
        ),
        Refusal(text="no"),
        ToolCall(id="toolu_1", name="f", arguments='{"a":1}', namespace="n"),
        ToolCall(id="c2", name="g", arguments="raw", form="text"),
        Text(text="after"),
        Media(kind="image", media_type="image/png", source=Inline("AAAA")),
        ToolCall(id="c3", name="f", arguments='{"a":', complete=False),
    ),
    finish=Finish("tool_calls", "tool_use"),
    usage=Usage(input=1, output=2),
)


def test_a_foreign_reply_becomes_valid_items():
    from openai.types.responses import Response as Official

    official = Official.model_validate_json(build_response(FOREIGN, None))
    assert [item.type for item in official.output] == [
        "reasoning",
        "message",
        "message",
        "function_call",
        "custom_tool_call",
        "message",
        "image_generation_call",
        "function_call",
    ]
    ids = [item.id for item in official.output]
    assert len(set(ids)) == len(ids)
    assert [item.id for item in Official.model_validate_json(build_response(FOREIGN, None)).output] == ids
    assert official.output[0].encrypted_content == "sig"
    assert [piece.text for piece in official.output[0].summary] == ["a", "b"]
    assert [note.url for note in official.output[1].content[0].annotations] == ["https://x"]
    assert official.output[3].namespace == "n"
    assert official.output[-1].status == "incomplete"
    assert official.status == "completed"
    assert official.usage.total_tokens == 3


@pytest.mark.parametrize(
    ("finish", "parts", "status", "word"),
    [
        ("stop", (), "completed", None),
        ("length", (), "incomplete", "max_output_tokens"),
        ("filtered", (Text(text="x"),), "incomplete", "content_filter"),
        ("refused", (Refusal(text="x"),), "completed", None),
        ("refused", (Text(text="x"),), "incomplete", "content_filter"),
        ("filtered", (), "failed", "invalid_prompt"),
        ("malformed_call", (), "failed", "malformed_function_call"),
        ("other", (Text(text="x"),), "failed", "server_error"),
    ],
)
def test_a_foreign_finish_reason_is_rendered_as_the_nearest_status(finish, parts, status, word):
    body = build(Response(id="x", model="m", parts=parts, finish=Finish(finish, "FOREIGN_WORD")))
    assert body["status"] == status
    result = body["error"]["code"] if status == "failed" else (body["incomplete_details"] or {}).get("reason")
    assert result == word


def test_the_clients_own_request_is_echoed():
    from openai.types.responses import Response as Official

    request = DIALECT.parse_request(
        Call(
            json.dumps(
                {
                    "model": "m",
                    "input": "x",
                    "instructions": "be kind",
                    "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
                    "tool_choice": {"type": "function", "name": "f"},
                    "parallel_tool_calls": False,
                    "temperature": 0.5,
                    "metadata": {"a": "b"},
                    "reasoning": {"effort": "low", "context": "all_turns"},
                    "text": {"verbosity": "low"},
                    "store": False,
                    "include": ["reasoning.encrypted_content"],
                    "previous_response_id": "resp_0",
                }
            ).encode()
        )
    )
    body = build(FOREIGN, request)
    Official.model_validate(body)
    assert body["instructions"] == "be kind"
    assert body["tools"][0]["strict"] is False
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert (body["parallel_tool_calls"], body["temperature"], body["store"]) == (False, 0.5, False)
    assert body["reasoning"] == {"effort": "low", "context": "all_turns"}
    assert body["previous_response_id"] == "resp_0"
    assert "include" not in body
