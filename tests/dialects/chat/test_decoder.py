"""Streams of OpenAI Chat Completions, decoded: the official SDK's accumulator and recorded traffic are the judges."""

import json
from typing import Any

import pytest

from dialects.chat.chunks import DONE, STOP, calls, chunk, decode, failure, frame, read
from dragoman.core.events import Failed, Finished, PartDelta, PartEnded, PartStarted, Started, UsageSeen
from dragoman.core.parts import Opaque, Reasoning, Refusal, Text, ToolCall
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import collect
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.decoder import ChatDecoder
from shelf import needs_shelf

FAILS = {
    "openai_chat/pydantic-ai-0036": "the server reports an error in the stream",
    "openai_chat/pydantic-ai-0039": "the server reports an error in the stream",
    "error.stream.sse": "the server reports an error in the stream",
}


@needs_shelf
@pytest.mark.parametrize("longest", [4_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_every_recorded_stream_is_whole_at_any_byte_boundary(streams: list[Any], longest: int):
    assert len(streams) > 370
    for name, stream in streams:
        if name in FAILS:
            assert isinstance(decode(stream)[-1], Failed), name
            continue
        response = collect(decode(stream))
        for size in (1, 7, 64) if len(stream) < longest else (64,):
            assert collect(decode(stream, size)) == response, name


@needs_shelf
def test_every_recorded_stream_matches_the_official_sdk(streams: list[Any], ask: Any):
    for name, stream in streams:
        if name not in FAILS:
            response = collect(decode(stream))
            text, named, counts, word = yield_from(ask(stream, stream=True))
            assert text_and_calls(response) == (text, named), name
            assert response.finish.raw == word, name
            assert counts == count(response.usage), name


def count(usage: Usage | None) -> Any:
    """What the vendor counted; xAI's completion leaves reasoning out, ours never does."""
    if usage is None:
        return None
    fields = usage.extras.fields if usage.extras is not None else {}
    return (usage.input, json.loads(fields.get("/completion_tokens", json.dumps(usage.output))))


def yield_from(pieces: Any) -> Any:
    """Join what the official client yields for the first answer; calls by index, or by id where a server gives none."""
    text, word, counts = "", "", None
    named: dict[Any, list[str]] = {}
    for piece in pieces:
        if piece.usage is not None:
            counts = (piece.usage.prompt_tokens, piece.usage.completion_tokens)
        for choice in piece.choices:
            if choice.index == 0:
                word = choice.finish_reason or word
                text += text_of_content(choice.delta.content)
                for one in choice.delta.tool_calls or []:
                    known = named.setdefault(one.id if one.index is None else one.index, ["", ""])
                    known[0] = known[0] or one.function.name or ""
                    known[1] += one.function.arguments or ""
    return text, [(name, arguments or "{}") for name, arguments in named.values()], counts, word


def text_of_content(content: Any) -> str:
    if isinstance(content, list):
        return "".join(item.get("text", "") for item in content)
    return content or ""


@needs_shelf
def test_the_official_accumulator_agrees_on_openais_own_streams(streams: list[Any], ask: Any):
    from openai.lib.streaming.chat._completions import ChatCompletionStreamState

    samples = [(name, stream) for name, stream in streams if name.endswith(".sse") and name not in FAILS]
    assert samples
    for name, stream in samples:
        state = ChatCompletionStreamState()
        for piece in ask(stream, stream=True):
            state.handle_chunk(piece)
        message = state.current_completion_snapshot.choices[0].message
        named = [(one.function.name, one.function.arguments) for one in message.tool_calls or []]
        assert text_and_calls(collect(decode(stream))) == (message.content or "", named), name


def text_and_calls(response: Response) -> Any:
    named = [
        (p.name, p.arguments) for p in response.parts if isinstance(p, ToolCall) and p.spelling != "chat function_call"
    ]
    text = "".join(p.text for p in response.parts if isinstance(p, Text))
    return (text, named)


@needs_shelf
@pytest.mark.parametrize("name", ["text", "one_tool", "two_tools"])
def test_a_stream_folds_into_the_whole_reply(name: str):
    import shelf

    folder = shelf.samples("chat", f"{name}.stream.sse")[0].parent
    whole = DIALECT.parse_response((folder / f"{name}.response.json").read_bytes())
    streamed = collect(decode((folder / f"{name}.stream.sse").read_bytes()))
    assert streamed.parts == whole.parts
    assert streamed.finish == whole.finish
    assert streamed.model == whole.model


def test_text_is_emitted_as_it_arrives():
    events = decode(
        chunk({"role": "assistant", "content": ""}) + chunk({"content": "He"}) + chunk({"content": "y"}) + STOP
    )
    assert events == [
        Started("chatcmpl-1", "m", 5),
        PartStarted(0, Text(text="")),
        PartDelta(0, "He"),
        PartDelta(0, "y"),
        PartEnded(0),
        Finished(Finish("stop", "stop")),
    ]


def test_usage_after_the_finish_is_waited_for():
    usage = frame(
        {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
    )
    events = decode(chunk({"content": "x"}) + chunk(finish="stop") + usage + DONE)
    assert isinstance(events[-2], UsageSeen)
    assert (events[-2].usage.input, events[-2].usage.output) == (1, 2)


def test_a_finish_reason_is_enough_without_done():
    assert read(chunk({"content": "x"}, "stop")).finish == Finish("stop", "stop")


def test_done_after_text_is_enough_without_a_finish_reason():
    assert read(chunk({"content": "x"}), DONE).finish == Finish("stop", "")


def test_done_after_whole_calls_is_enough_without_a_finish_reason():
    assert read(calls({"index": 0, "id": "a", "name": "f", "args": "{}"}), DONE).finish == Finish("tool_calls", "")


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        DONE,
        chunk({"content": "x"}),
        calls({"index": 0, "id": "a", "name": "f", "args": '{"x"'}) + DONE,
        calls({"index": 0, "id": "a", "name": "f", "args": ""}) + DONE,
        calls({"index": 0, "id": "a", "name": "f", "args": "{}"}),
        chunk({"content": "x"}) + b"data: {broken\n\n" + STOP,
        chunk({"content": 5}) + STOP,
        chunk({"content": "x"}) + b"data: [1]\n\n" + STOP,
    ],
)
def test_a_stream_that_is_not_finished_fails(stream: bytes):
    assert failure(stream).kind == "malformed_reply"


def test_nothing_is_emitted_after_done():
    events = decode(chunk({"content": "x"}, "stop") + DONE + frame({"choices": [], "cost": "0"}))
    assert isinstance(events[-1], Finished)


def test_an_error_in_the_stream_keeps_its_class_and_message():
    problem = failure(
        chunk({"content": "x"}), frame({"error": {"message": "busy", "type": "server_error", "code": "slow_down"}})
    )
    assert (problem.kind, problem.message, problem.code) == ("overloaded", "busy", "slow_down")
    assert failure(frame({"error": {"message": "m", "code": 429}})).kind == "rate_limit"
    assert (
        failure(frame({"object": "error", "message": "flat", "type": "BadRequestError", "code": 400})).message == "flat"
    )
    assert failure(b'event: error\ndata: {"message":"named"}\n\n').message == "named"
    assert failure(frame({"error": "only words"})).message == "only words"


def test_an_empty_error_is_none():
    assert read(chunk({"content": "x"}, error=None), chunk({}, "stop", error={}), DONE).parts == (Text(text="x"),)


def test_the_first_text_with_an_empty_call_list_is_not_lost():
    assert read(chunk({"content": "He", "tool_calls": []}), chunk({"content": "y"}), STOP).parts == (Text(text="Hey"),)


def test_a_refusal_is_refused():
    response = read(chunk({"refusal": "No"}), chunk({"refusal": "."}), STOP)
    assert (response.parts, response.finish) == ((Refusal(text="No."),), Finish("refused", "stop"))


def test_both_field_names_of_reasoning_are_one_part():
    response = read(
        chunk({"reasoning": "a", "reasoning_content": "a"}), chunk({"reasoning": "b"}), chunk({"content": "x"}), STOP
    )
    assert response.parts == (Reasoning(texts=("ab",)), Text(text="x"))


@pytest.mark.parametrize("member", ["reasoning_text", "thinking"])
def test_reasoning_of_other_servers_is_a_part(member):
    response = read(chunk({member: "a"}), chunk({member: "b", "content": None}), chunk({"content": "x"}), STOP)
    assert response.parts == (Reasoning(texts=("ab",)), Text(text="x"))
    assert response.extras is None


def test_what_is_not_the_text_of_reasoning_is_kept_as_a_field():
    response = read(chunk({"reasoning_text": "a"}), chunk({"reasoning_opaque": "o", "thinking": {"on": 1}}), STOP)
    assert response.parts == (Reasoning(texts=("a",)),)
    assert response.extras is not None
    assert response.extras.fields == {
        "/choices/0/message/reasoning_opaque": b'"o"',
        "/choices/0/message/thinking": b'{"on": 1}',
    }


def test_content_in_parts_is_emitted_by_kind():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    response = read(
        chunk({"content": [thinking]}),
        chunk({"content": [thinking]}),
        chunk({"content": [{"type": "text", "text": "x"}]}),
        chunk({"content": [{"type": "reference", "ids": [1]}]}),
        STOP,
    )
    assert response.parts[:2] == (Reasoning(texts=("hmhm",)), Text(text="x"))
    assert isinstance(response.parts[2], Opaque)


def test_vendor_fields_are_put_together_as_a_whole_reply_has_them():
    response = read(
        chunk({"content": "a", "reasoning_details": [{"n": 1}]}, system_fingerprint="fp", x={"y": 1}),
        chunk({"content": "b", "reasoning_details": [{"n": 2}]}, system_fingerprint="fp", service_tier=None),
        STOP,
    )
    assert response.extras is not None
    fields = {pointer: json.loads(raw) for pointer, raw in response.extras.fields.items()}
    assert fields == {
        "/system_fingerprint": "fp",
        "/x": {"y": 1},
        "/choices/0/message/reasoning_details": [{"n": 1}, {"n": 2}],
    }


def test_other_answers_are_never_mixed_into_the_first():
    def other(text: str, finish: str | None = None) -> bytes:
        return frame({"id": "c", "choices": [{"index": 1, "delta": {"content": text}, "finish_reason": finish}]})

    response = read(chunk({"content": "a"}), other("x"), chunk({"content": "b"}, "stop"), other("y", "length"), DONE)
    assert (response.parts, response.finish.reason) == ((Text(text="ab"),), "stop")
    assert response.extras is not None
    assert json.loads(response.extras.fields["/choices/1"]) == {
        "index": 1,
        "message": {"content": "xy"},
        "finish_reason": "length",
    }


def test_azures_empty_first_chunk_does_not_name_the_reply():
    first = frame({"id": "", "model": "", "created": 0, "choices": [], "prompt_filter_results": [{"prompt_index": 0}]})
    assert (read(first, chunk({"content": "x"}), STOP).id, read(first, chunk({"content": "x"}), STOP).model) == (
        "chatcmpl-1",
        "m",
    )


def test_usage_is_emitted_before_a_failure():
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    events = decode(chunk({"content": "x"}, usage=usage))
    assert [type(event) for event in events[-2:]] == [UsageSeen, Failed]


def test_comments_line_ends_and_split_letters_do_not_matter():
    stream = (
        (": keep\n\n" + chunk({"content": "hé"}).decode() + STOP.decode())
        .replace("\n", "\r\n")
        .replace("data: ", "data:")
        .encode()
    )
    assert collect(decode(stream, 1)).parts == (Text(text="hé"),)


@pytest.mark.parametrize(
    "second",
    [
        chunk({"content": "b"}),
        chunk({"role": "assistant", "content": "b", "refusal": None, "tool_calls": None, "reasoning_content": None}),
        chunk({"content": ""}),
        chunk({"content": "b"}, system_fingerprint="fp", service_tier=None, provider="p", obfuscation="x"),
        chunk({"content": "b"}, system_fingerprint="other", usage=None),
        chunk({"content": "b"}, usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}),
        chunk({"content": "b"}, finish="stop"),
        chunk({"content": "b", "reasoning": "r"}),
        chunk({"content": "b"}, object="error"),
        chunk({"content": "b"}, choices=[{"index": 1, "delta": {"content": "b"}}]),
        chunk({"content": "b"}, choices=[{"delta": {"content": "b"}}, {"delta": {"content": "c"}}]),
        chunk({"content": "b"}, error={"message": "late"}),
        b"event: error\n" + chunk({"content": "b"}),
        chunk({"content": "b"}).replace(b'"b"', b'"\xff"'),
        chunk({"content": "b"}, system_fingerprint="?").replace(b"?", b"\xff"),
    ],
)
def test_the_fast_path_for_text_chunks_matches_the_general_one(monkeypatch, second):
    stream = chunk({"content": "a"}, system_fingerprint="fp", provider="p") + second + second + STOP
    directly = decode(stream)
    monkeypatch.setattr(ChatDecoder, "_append_text", lambda _self, _data: False)
    assert repr(decode(stream)) == repr(directly)
