"""How a reply ends and what it cost, row by row, both ways."""

import json
from typing import Any

import pytest

from dialects.outline import outline, short
from dragoman.core.parts import (
    Refusal,
    Text,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.response import find_outcome, read_usage, write_usage
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator


def reply(*output: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 5,
        "model": "m",
        "status": "completed",
        "output": list(output),
        **fields,
    }


def parse(document: Any) -> Response:
    return DIALECT.parse_response(json.dumps(document).encode())


def build(response: Response, request: Request | None = None) -> Any:
    return json.loads(DIALECT.build_response(response, request))


@pytest.mark.parametrize(
    ("fields", "finish", "again"),
    [
        ({"status": "completed"}, "Finish reason='stop' raw='completed'", ("completed", None)),
        ({"status": None}, "Finish reason='stop' raw='completed'", ("completed", None)),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "Finish reason='length' raw='max_output_tokens'",
            ("incomplete", {"reason": "max_output_tokens"}),
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter", "a/b": 1}},
            "Finish reason='filtered' raw='content_filter'",
            ("incomplete", {"reason": "content_filter", "a/b": 1}),
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_messages"}},
            "Finish reason='other' raw='max_messages'",
            ("incomplete", {"reason": "max_messages"}),
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "steered"}},
            "Finish reason='other' raw='steered'",
            ("incomplete", {"reason": "steered"}),
        ),
        ({"status": "incomplete"}, "Finish reason='other' raw='incomplete'", ("incomplete", None)),
        ({"status": "cancelled"}, "Finish reason='other' raw='cancelled'", ("cancelled", None)),
        ({"status": "in_progress"}, "Finish reason='other' raw='in_progress'", ("in_progress", None)),
        ({"status": "queued"}, "Finish reason='other' raw='queued'", ("queued", None)),
        ({"status": "odd"}, "Finish reason='stop' raw='completed'", ("odd", None)),
    ],
)
def test_every_end_is_read_and_written_again(fields: Any, finish: str, again: Any):
    text = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "t", "annotations": []}],
    }
    response = parse(reply(text, **fields))
    assert outline(response.finish) == f"{finish}\n"
    kept = response.extras is not None and "/status" in response.extras.fields
    assert kept is (fields["status"] == "odd")
    document = build(response)
    assert (document["status"], document["incomplete_details"], document["error"]) == (*again, None)


def test_calls_and_refusals_decide_the_end_of_a_complete_reply():
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    assert parse(reply(refusal)).finish == Finish("refused", "completed")
    assert parse(reply(refusal, call)).finish == Finish("tool_calls", "completed")
    assert parse(reply(call, status="queued")).finish == Finish("other", "queued")


@pytest.mark.parametrize(
    ("finish", "parts", "outcome"),
    [
        (Finish("stop"), (), "Outcome(status='completed')"),
        (Finish("tool_calls"), (), "Outcome(status='completed')"),
        (Finish("length"), (), "Outcome(status='incomplete', incomplete='max_output_tokens')"),
        (Finish("paused"), (), "Outcome(status='incomplete', incomplete='max_output_tokens')"),
        (Finish("filtered"), (Text(text="x"),), "Outcome(status='incomplete', incomplete='content_filter')"),
        (
            Finish("filtered"),
            (),
            "Outcome(status='failed', problem=Problem(kind='policy', message='the prompt was blocked', status=403, code='invalid_prompt'))",
        ),
        (Finish("refused"), (Text(text="x"),), "Outcome(status='incomplete', incomplete='content_filter')"),
        (Finish("refused"), (Refusal(text="x"),), "Outcome(status='completed')"),
        (
            Finish("malformed_call"),
            (),
            "Outcome(status='failed', problem=Problem(kind='malformed_reply', message='the model made a malformed tool call', status=502, code='malformed_function_call'))",
        ),
        (
            Finish("other", "x"),
            (),
            "Outcome(status='failed', problem=Problem(kind='internal', message='the model stopped for an unknown reason (x)', status=500))",
        ),
        (
            Finish("other"),
            (),
            "Outcome(status='failed', problem=Problem(kind='internal', message='the model stopped for an unknown reason', status=500))",
        ),
    ],
)
def test_every_finish_has_its_outcome(finish: Finish, parts: Any, outcome: str):
    assert short(find_outcome(finish, parts)) == outcome


def test_a_finish_reason_without_a_counterpart_fails_the_reply():
    document = build(Response(id="r", model="m", parts=(), finish=Finish("other", "x")))
    error = {"code": "server_error", "message": "the model stopped for an unknown reason (x)"}
    assert (document["status"], document["error"]) == ("failed", error)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, "Usage"),
        ({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, "Usage input=1 output=2"),
        ({"input_tokens": 1, "total_tokens": 3}, "Usage input=1 extras=responses{'/total_tokens': '3'}"),
        ({"output_tokens": 3, "total_tokens": 3}, "Usage output=3"),
        (
            {
                "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2, "x": 3},
                "output_tokens_details": {"reasoning_tokens": 4},
                "y": 5,
            },
            "Usage cached=1 cache_written=2 reasoning=4 extras=responses{'/input_tokens_details/x': '3', '/y': '5'}",
        ),
    ],
)
def test_usage_is_read_whole_and_written_again(given: Any, read: str):
    usage = read_usage(json.dumps(given).encode())
    assert outline(usage) == f"{read}\n"
    from dragoman.wire.json import encode

    again = json.loads(encode(write_usage(usage)))
    for name, value in given.items():
        assert again[name] == value if isinstance(value, int) else again[name].items() >= value.items()


WORDS = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi", "annotations": []}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": '{"a":1}'}
CUT = {**CALL, "arguments": '{"a"', "status": "incomplete"}


def translate_both_ways(document, client):
    """Return the finish, problem and losses of a reply that is sent as a stream, and as a whole."""
    event = {"type": "response.completed", "response": document}
    translator = StreamTranslator("responses", client)
    translator.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    whole = translate_response(json.dumps(document).encode(), "responses", client)
    return translator, whole


@pytest.mark.parametrize("client", ["chat", "messages", "gemini"])
@pytest.mark.parametrize(("item", "reason"), [(WORDS, "stop"), (CALL, "tool_calls")])
def test_an_unknown_status_of_complete_output_is_no_error(client, item, reason):
    translator, whole = translate_both_ways(reply(item, status="finished"), client)
    assert translator.problem is None
    assert translator.finish == Finish(reason, "completed")
    assert whole.response.finish == translator.finish
    assert [loss.where for loss in whole.losses if "status" in loss.where] == ["/status"]


@pytest.mark.parametrize("output", [(), (CUT,), (WORDS, CUT)], ids=["nothing", "cut", "text and cut"])
def test_an_unknown_status_of_incomplete_output_is_an_error(output):
    document = reply(*output, status="finished")
    with pytest.raises(Problem, match="finished"):
        translate_response(json.dumps(document).encode(), "responses", "chat")
    translator = StreamTranslator("responses", "chat")
    translator.feed(b"data: " + json.dumps({"type": "response.completed", "response": document}).encode() + b"\n\n")
    assert translator.problem is not None
    # The item was streamed before.
    translator = StreamTranslator("responses", "chat")
    events = [
        {"type": "response.output_item.done", "output_index": index, "item": one} for index, one in enumerate(output)
    ]
    for event in [*events, {"type": "response.completed", "response": document}]:
        translator.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    assert translator.problem is not None
