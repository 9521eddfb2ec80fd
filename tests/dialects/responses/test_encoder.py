import pytest
from msgspec import structs

from dialects.responses.streams import encode, frames, sse
from dragoman.core.events import (
    Failed,
    Finished,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
)
from dragoman.core.parts import Citation, Inline, Media, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import replay
from dragoman.dialects.record import Call
from dragoman.dialects.responses import DIALECT
from dragoman.interpreter.stream import StreamTranslator

FOREIGN = Response(
    id="msg_01",
    model="claude",
    created=7,
    parts=(
        Reasoning(texts=("a", "b"), signature=Signature("anthropic", "sig")),
        Text(text="hé\nllo", citations=(Citation("messages", b"{}", url="https://x", title="t"),)),
        ToolCall(id="toolu_1", name="f", arguments='{"a":1}'),
        ToolCall(id="c2", name="g", arguments="raw", form="text"),
        Refusal(text="no"),
        Media(kind="image", media_type="image/png", source=Inline("AAAA")),
    ),
    finish=Finish("tool_calls", "tool_use"),
    usage=Usage(input=1, output=2),
)


def client(data):
    import httpx2
    import openai

    def answer(_):
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    return openai.OpenAI(
        api_key="x",
        base_url="http://test/v1",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(answer)),
    )


def test_the_official_accumulator_reads_what_is_encoded():
    with client(encode(replay(FOREIGN))).responses.stream(model="m", input="x") as stream:
        deltas = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert deltas == final.output_text == "hé\nllo"
    assert [item.type for item in final.output] == [
        "reasoning",
        "message",
        "function_call",
        "custom_tool_call",
        "message",
        "image_generation_call",
    ]
    assert final.output[2].arguments == '{"a":1}'
    assert final.output[3].input == "raw"
    assert final.output[0].encrypted_content == "sig"
    assert final.usage.total_tokens == 3


def test_every_encoded_event_is_of_its_official_type():
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    adapter = TypeAdapter(ResponseStreamEvent)
    request = DIALECT.parse_request(Call(b'{"model":"m","input":"x","tools":[{"type":"function","name":"f"}]}'))
    result = frames(encode(replay(FOREIGN), request))
    for name, data in result:
        assert name == data["type"]
        adapter.validate_python(data)
    assert [data["sequence_number"] for _, data in result] == list(range(len(result)))


def test_items_open_and_close_one_after_the_other():
    names = [name for name, _ in frames(encode(replay(structs.replace(FOREIGN, parts=FOREIGN.parts[:3]))))]
    assert [name.removeprefix("response.") for name in names] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]


def test_an_announced_item_is_in_progress_and_unsigned():
    added = [data["item"] for name, data in frames(encode(replay(FOREIGN))) if name == "response.output_item.added"]
    assert "encrypted_content" not in added[0]
    assert added[1]["content"] == []
    assert [item.get("status") for item in added[1:4]] == ["in_progress"] * 3


def test_a_failure_reaches_codex_and_the_official_client():
    import openai

    data = encode(
        [Started("r", "m"), PartStarted(0, Text(text="")), PartDelta(0, "half"), Failed(Problem("overloaded", "busy"))]
    )
    result = frames(data)
    assert [name for name, _ in result[-2:]] == ["response.failed", "error"]
    assert result[-2][1]["response"]["error"] == {"code": "server_is_overloaded", "message": "busy"}
    assert result[-1][1] == {
        "type": "error",
        "sequence_number": len(result) - 1,
        "code": "server_is_overloaded",
        "message": "busy",
        "param": None,
        "error": {"type": "server_error", "code": "server_is_overloaded", "message": "busy", "param": None},
    }
    with pytest.raises(openai.APIError, match="busy"):
        list(client(data).responses.create(model="m", input="x", stream=True))
    with pytest.raises(openai.APIError, match="busy"), client(data).responses.stream(model="m", input="x") as stream:
        stream.until_done()


def test_a_failure_before_the_start_still_starts():
    names = [name for name, _ in frames(encode([Failed(Problem("internal", "no"))]))]
    assert names == ["response.created", "response.in_progress", "response.failed", "error"]


@pytest.mark.parametrize(
    ("reason", "code"),
    [("malformed_call", "malformed_function_call"), ("filtered", "invalid_prompt"), ("other", "server_error")],
)
def test_a_finish_that_must_not_pass_for_success_fails(reason, code):
    result = frames(encode([Started("r", "m"), Finished(Finish(reason, "X"))]))
    assert [name for name, _ in result[-2:]] == ["response.failed", "error"]
    assert result[-1][1]["code"] == code


def chunk(delta, finish=None):
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_delta(arguments):
    return chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": arguments}}]})


def build_chat_stream(arguments, finish):
    return sse(call_delta(arguments), chunk({}, finish)) + b"data: [DONE]\n\n"


def build_messages_stream(arguments, finish):
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    block = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    return sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": arguments},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": finish}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )


@pytest.mark.parametrize(
    ("upstream", "build_stream", "cut", "whole"),
    [
        ("chat", build_chat_stream, "length", "tool_calls"),
        ("messages", build_messages_stream, "max_tokens", "tool_use"),
    ],
)
def test_the_arguments_of_a_call_are_done_only_if_it_was_not_cut_off(upstream, build_stream, cut, whole):
    def translate(data):
        translator = StreamTranslator(upstream, "responses")
        return frames(translator.feed(data) + translator.close())

    found = translate(build_stream('{"a": "b', cut))
    assert "response.function_call_arguments.done" not in [name for name, _ in found]
    (item,) = [event["item"] for name, event in found if name == "response.output_item.done"]
    assert (item["status"], item["arguments"]) == ("incomplete", '{"a": "b')
    assert found[-1][0] == "response.incomplete"
    found = translate(build_stream('{"a": "b"}', whole))
    assert "response.function_call_arguments.done" in [name for name, _ in found]


def test_the_input_of_a_free_form_call_is_done_only_if_it_was_not_cut_off():
    call = ToolCall(id="c", name="f", arguments="", form="text")
    events = [Started("r", "m"), PartStarted(0, call), PartDelta(0, "inp"), PartEnded(0, complete=False)]
    names = [name for name, _ in frames(encode([*events, Finished(Finish("length", ""))]))]
    assert "response.custom_tool_call_input.done" not in names
    assert "response.output_item.done" in names
