"""Streams of OpenAI Chat Completions, encoded: our own decoder and the official SDK read them back."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.parts import Citation, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import collect, replay
from dragoman.core.value import Extras
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.encoder import ChatEncoder
from event_grammar import check_events
from shelf import needs_shelf


def encode(events: Iterable[Event], request: Request | None = None) -> bytes:
    encoder = ChatEncoder(request)
    return b"".join([encoder.feed(event) for event in events])


def chunks(stream: bytes) -> list[Any]:
    frames = [part.removeprefix(b"data: ") for part in stream.split(b"\n\n") if part]
    return [part if part == b"[DONE]" else json.loads(part) for part in frames]


def deltas(stream: bytes) -> list[Any]:
    return [one["choices"][0]["delta"] for one in chunks(stream) if isinstance(one, dict) and one.get("choices")]


def decode(stream: bytes) -> Response:
    decoder = DIALECT.decoder()
    return collect(check_events([*decoder.feed(stream), *decoder.close()]))


def encode_reply(*parts: Any, finish: str = "stop", **fields: Any) -> bytes:
    response = Response(id="r", model="m", created=5, parts=parts, finish=Finish(finish), **fields)  # pyright: ignore[reportArgumentType]
    return encode(replay(response))


def get_meaning(response: Response) -> Any:
    usage = response.usage
    counts = usage and (usage.input, usage.output, usage.cached, usage.reasoning, members(usage.extras))
    return (
        response.id,
        response.model,
        response.created,
        response.parts,
        response.finish.reason,
        counts,
        members(response.extras),
    )


def members(extras: Any) -> Any:
    return extras and {pointer: json.loads(raw) for pointer, raw in extras.fields.items()}


@needs_shelf
def test_every_recorded_reply_survives_being_streamed(replies: list[Any]):
    for name, body in replies:
        response = DIALECT.parse_response(body)
        assert get_meaning(decode(encode(replay(response)))) == get_meaning(response), name


@needs_shelf
def test_every_recorded_stream_survives_a_round_trip(streams: list[Any]):
    for name, stream in streams:
        decoder = DIALECT.decoder()
        events = [*decoder.feed(stream), *decoder.close()]
        if isinstance(events[-1], Failed):
            continue
        assert get_meaning(decode(encode(events))) == get_meaning(collect(events)), name


@needs_shelf
def test_the_official_sdk_reads_every_recorded_reply_we_stream(replies: list[Any], ask: Any):
    from openai.lib.streaming.chat._completions import ChatCompletionStreamState

    for name, body in replies[::7]:
        response = DIALECT.parse_response(body)
        if any(part.spelling in ("chat part", "chat thinking") for part in response.parts):
            continue  # Mistral's content lists are outside the official types
        response = Response(id=response.id, model=response.model, parts=response.parts, finish=response.finish)
        state = ChatCompletionStreamState()
        for piece in ask(encode(replay(response)), stream=True):
            type(piece).model_validate(piece.to_dict(exclude_unset=False), strict=True)
            state.handle_chunk(piece)
        message = state.current_completion_snapshot.to_dict()["choices"][0]["message"]
        calls = [
            (one["id"], one["function"]["name"], one["function"]["arguments"])
            for one in message.get("tool_calls") or []
            if "function" in one
        ]
        assert calls == [
            (p.id, p.name, p.arguments) for p in response.parts if isinstance(p, ToolCall) and p.form == "json" and p.id
        ], name
        assert (message.get("content") or "") == "".join(p.text for p in response.parts if isinstance(p, Text)), name


def test_a_call_has_its_id_type_and_name_once():
    stream = encode(
        [
            Started("r", "m", 5),
            PartStarted(0, Text(text="")),
            PartDelta(0, "Hi"),
            PartEnded(0),
            PartStarted(1, ToolCall(id="a", name="f", arguments="")),
            PartDelta(1, '{"x"'),
            PartDelta(1, ":1}"),
            PartEnded(1),
            PartStarted(2, ToolCall(id="b", name="g", arguments="")),
            PartEnded(2),
            Finished(Finish("tool_calls")),
        ]
    )
    assert deltas(stream) == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "Hi"},
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]
    assert chunks(stream)[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks(stream)[-1] == b"[DONE]"
    assert {(one["id"], one["created"], one["model"]) for one in chunks(stream)[:-1]} == {("r", 5, "m")}


def test_a_cut_call_is_not_completed():
    stream = encode_reply(ToolCall(id="a", name="f", arguments="", complete=False), finish="length")
    assert "{}" not in [
        delta.get("tool_calls", [{}])[0].get("function", {}).get("arguments") for delta in deltas(stream)
    ]


def test_custom_calls_stream_as_custom():
    stream = encode_reply(ToolCall(id="a", name="patch", arguments="*** Begin\n", form="text"), finish="tool_calls")
    assert deltas(stream)[1:3] == [
        {"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": ""}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "*** Begin\n"}}]},
    ]


def test_summaries_are_parted_by_a_blank_line_as_in_a_whole_reply():
    parts = (Reasoning(texts=("a", "b")), Reasoning(texts=("c",)), Text(text="x"))
    stream = encode_reply(*parts)
    response = Response(id="r", model="m", created=5, parts=parts, finish=Finish("stop"))
    assert decode(stream).parts == DIALECT.parse_response(DIALECT.build_response(response, None)).parts
    assert decode(stream).parts[0] == Reasoning(texts=("a\n\nb\n\nc",))


def test_signatures_of_google_ride_on_their_call():
    stream = encode_reply(
        ToolCall(id="a", name="f", arguments="{}", signature=Signature("google", "U0lH")), finish="tool_calls"
    )
    assert decode(stream).parts[0].signature == Signature("google", "U0lH")
    foreign = encode_reply(
        ToolCall(id="a", name="f", arguments="{}", signature=Signature("anthropic", "x")), finish="tool_calls"
    )
    assert b"extra_content" not in foreign


def test_a_signature_of_a_part_without_a_place_for_it_is_left_out():
    start: list[Event] = [Started("r", "m"), PartStarted(0, Reasoning())]
    assert encode([*start, PartSigned(0, Signature("google", "x"))]) == encode(start)


def test_usage_is_sent_only_if_requested():
    events: list[Event] = [Started("r", "m"), UsageSeen(Usage(input=1, output=2)), Finished(Finish("stop"))]

    def last(options: bytes | None) -> Any:
        extras = Extras("chat", {"/stream_options": options}) if options else None
        return chunks(encode(events, Request(model="m", messages=(), stream=True, extras=extras)))[-2]

    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert last(b'{"include_usage": true}')["usage"] == usage
    assert last(b'{"include_usage": true}')["choices"] == []
    assert "usage" not in last(b'{"include_usage":false}')
    assert "usage" not in last(None)
    assert chunks(encode(events))[-2]["usage"] == usage
    assert chunks(encode(events))[0]["usage"] is None


def test_a_failure_has_the_vendors_format_and_is_raised_by_the_official_sdk(ask: Any):
    import openai

    stream = encode(
        [Started("r", "m"), PartStarted(0, Text(text="")), PartDelta(0, "x"), Failed(Problem("overloaded", "busy"))]
    )
    assert b"[DONE]" not in stream
    assert stream.endswith(
        b'data: {"error":{"message":"busy","type":"server_error","param":null,"code":"server_is_overloaded"}}\n\n'
    )
    with pytest.raises(openai.APIError, match="busy") as caught:
        list(ask(stream, stream=True))
    assert (caught.value.type, caught.value.code) == ("server_error", "server_is_overloaded")


def test_a_malformed_call_ends_in_an_error_and_never_in_stop():
    last = chunks(encode_reply(Text(text="x"), finish="malformed_call"))[-1]
    assert last["error"]["code"] == "malformed_function_call"


def test_a_refusal_is_rendered_as_a_refusal():
    stream = encode_reply(Refusal(text="No."), finish="refused")
    assert {"refusal": "No."} in deltas(stream)
    assert decode(stream).finish == Finish("refused", "stop")


def test_citations_are_annotations():
    events: list[Event] = [
        Started("r", "m"),
        PartStarted(0, Text(text="")),
        PartDelta(0, "x"),
        PartCited(0, Citation("gemini", b"{}", url="https://e.org", title="E")),
        PartCited(0, Citation("messages", b"{}")),
        PartEnded(0),
        Finished(Finish("stop")),
    ]
    [text] = decode(encode(events)).parts
    assert isinstance(text, Text)
    assert [citation.url for citation in text.citations] == ["https://e.org"]


def test_spans_in_a_stream_count_from_where_the_first_text_begins():
    events: list[Event] = [
        Started("r", "m"),
        PartStarted(0, Text(text="")),
        PartDelta(0, "héy "),
        PartEnded(0),
        PartStarted(1, ToolCall(id="a", name="f", arguments="")),
        PartDelta(1, '{"long": "arguments"}'),
        PartEnded(1),
        PartStarted(2, Text(text="")),
        PartDelta(2, "th"),
        PartDelta(2, "ere"),
        PartCited(2, Citation("gemini", b"", url="https://e.org", start=1, end=3)),
        PartCited(2, Citation("messages", b"{}", url="https://e.net")),
        PartEnded(2),
        Finished(Finish("tool_calls")),
    ]
    cited = [citation for part in decode(encode(events)).parts if isinstance(part, Text) for citation in part.citations]
    assert [(citation.start, citation.end) for citation in cited] == [(5, 7), (4, 9)]


def test_fields_with_line_breaks_do_not_cut_a_frame():
    start: list[Event] = [Started("r", "m"), PartStarted(0, ToolCall(id="a", name="f", arguments=""))]
    stream = encode(
        [*start, PartNative(0, "chat", "/mood", b'{\n "a":\r\n 1}'), PartEnded(0), Finished(Finish("tool_calls"))]
    )
    [part] = decode(stream).parts
    assert members(part.extras) == {"/mood": {"a": 1}}


def test_interleaved_calls_interleave():
    stream = encode(
        [
            Started("r", "m"),
            PartStarted(0, ToolCall(id="a", name="f", arguments="")),
            PartStarted(1, ToolCall(id="b", name="g", arguments="")),
            PartDelta(1, "{}"),
            PartDelta(0, '{"x":1}'),
            PartEnded(1),
            PartEnded(0),
            Finished(Finish("tool_calls")),
        ]
    )
    assert decode(stream).parts == (
        ToolCall(id="a", name="f", arguments='{"x":1}'),
        ToolCall(id="b", name="g", arguments="{}"),
    )
