import json

import pytest

import shelf
from dialects.messages import official, recordings
from dragoman.core.events import (
    Failed,
    Finished,
    Native,
    PartDelta,
    PartNative,
    Started,
    UsageSeen,
)
from dragoman.core.parts import Opaque, Reasoning, Signature, Text, ToolCall
from dragoman.core.response import Finish, Usage
from dragoman.core.stream import collect, replay
from dragoman.core.value import Extras
from dragoman.dialects.messages import DIALECT
from dragoman.dialects.messages.decoder import MessagesDecoder
from event_grammar import check_events

KNOWN_BROKEN = {
    "anthropic/lingua-0109": "a whole reply saved as one `message` frame, which no server streams",
    "anthropic/lingua-0111": "a whole reply saved as one `message` frame, which no server streams",
    "anthropic/lingua-0116": "a whole reply saved as one `message` frame, which no server streams",
    "anthropic/lingua-0118": "a whole reply saved as one `message` frame, which no server streams",
}
FELL_BACK = "anthropic/vercel-ai-0021"
"""A fallback block names another model in mid-stream; `Started` has named the first, and names it once."""
FOREIGN_TAIL = b"data: [DONE]"
"""OpenRouter ends its stream with it; the SDK's parser stumbles over it, ours has stopped listening."""


def decode(stream, size=None):
    decoder = MessagesDecoder()
    size = size or max(len(stream), 1)
    events = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
    return list(check_events([*events, *decoder.close()]))


def encode(events):
    encoder = DIALECT.encoder(None)
    return b"".join(encoder.feed(event) for event in events)


def sse(*frames, names=True):
    lines = []
    for frame in frames:
        if names:
            lines.append(f"event: {frame['type']}")
        lines += [f"data: {json.dumps(frame)}", ""]
    return ("\n".join(lines) + "\n").encode()


START = {
    "type": "message_start",
    "message": {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}},
}
STOP = {"type": "message_stop"}


def block(start, *deltas, index=0):
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def end(reason="end_turn", **members):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, **members}


def reply(*frames, reason="end_turn"):
    return decode(sse(START, *frames, end(reason), STOP))


def fragment(text):
    return {"type": "input_json_delta", "partial_json": text}


CALL = {"type": "tool_use", "id": "t", "name": "n", "input": {}}


def whole_streams():
    for name, stream in recordings.streams():
        if name not in KNOWN_BROKEN:
            yield name, stream


@shelf.needs_shelf
def test_every_recorded_stream_keeps_the_grammar_at_any_chunk_size():
    count = 0
    for name, stream in whole_streams():
        expected = collect(decode(stream))
        for size in (1, 7, 64) if len(stream) < 20_000 else (64,):
            assert collect(decode(stream, size)) == expected, name
        count += 1
    assert count > 240


@shelf.needs_shelf
def test_every_recorded_stream_matches_the_official_accumulator():
    for name, stream in whole_streams():
        response, message = collect(decode(stream)), official.accumulate(stream.replace(FOREIGN_TAIL, b""))
        assert (response.id, response.finish.raw) == (message.id, message.stop_reason)
        assert response.model == message.model or name == FELL_BACK
        assert len(response.parts) == len(message.content), name
        for part, block in zip(response.parts, message.content, strict=True):
            match part:
                case Text(text=text, citations=citations):
                    assert text == block.text, name
                    assert len(citations) == len(block.citations or []), name
                case ToolCall(complete=True):
                    assert (part.id, part.name, json.loads(part.arguments)) == (block.id, block.name, block.input), name
                case Reasoning(redacted=False, signature=signature):
                    assert "".join(part.texts) == block.thinking, name
                    assert (signature.value if signature else "") == (block.signature or ""), name
                case Opaque(raw=raw):
                    body = json.loads(raw)
                    assert body["type"] == block.type, name
                    assert body.get("input", {}) == (getattr(block, "input", None) or {}), name
                case Reasoning(signature=signature):
                    assert signature.value == block.data, name
                case _:
                    assert isinstance(part, ToolCall), name
        assert response.usage.output == message.usage.output_tokens, name


@shelf.needs_shelf
def test_every_recorded_stream_can_be_streamed_again_without_a_new_fault_by_the_official_types():
    for name, stream in whole_streams():
        events = decode(stream)
        response = collect(events)
        written = encode(events)
        official.accepts_order(written)
        assert official.stream_faults(written) <= official.stream_faults(stream), name
        assert collect(decode(written)) == response, name
        assert official.accumulate(written).stop_reason == response.finish.raw, name


@shelf.needs_shelf
def test_a_streamed_reply_folds_into_the_reply_that_is_built_from_it():
    for name, stream in whole_streams():
        response = collect(decode(stream))
        if all(part.complete for part in response.parts if isinstance(part, ToolCall)):
            assert DIALECT.parse_response(DIALECT.build_response(response, None)) == response, name


def test_arguments_arrive_fragment_by_fragment():
    events = reply(*block(CALL, fragment(""), fragment('{"a":'), fragment(" 1}")), reason="tool_use")
    assert [event.text for event in events if isinstance(event, PartDelta)] == ['{"a":', " 1}"]
    assert collect(events).parts == (ToolCall(id="t", name="n", arguments='{"a": 1}'),)


@pytest.mark.parametrize("deltas", [(), (fragment(""),), (fragment(""), fragment(""))])
def test_a_call_without_fragments_has_the_empty_object(deltas):
    assert collect(reply(*block(CALL, *deltas), reason="tool_use")).parts[0].arguments == "{}"


def test_input_may_be_whole_at_the_start():
    events = reply(*block({**CALL, "input": {"a": 1}}), reason="tool_use")
    assert collect(events).parts[0].arguments == '{"a": 1}'


def test_fragments_win_over_input_at_the_start_if_they_are_json():
    given = {**CALL, "input": {"a": 1}}
    assert collect(reply(*block(given, fragment('{"b"'), fragment(":2}")))).parts[0].arguments == '{"b":2}'
    assert collect(reply(*block(given, fragment('{"b"')))).parts[0].arguments == '{"a": 1}'


def test_blocks_may_be_whole_in_message_start():
    content = [{"type": "text", "text": "hi"}, {**CALL, "input": {"a": 1}}]
    start = {"type": "message_start", "message": {**START["message"], "content": content, "stop_reason": "tool_use"}}
    response = collect(decode(sse(start, end("tool_use"), STOP)))
    assert response.parts == (Text(text="hi"), ToolCall(id="t", name="n", arguments='{"a": 1}'))


def test_a_call_cut_off_at_the_limit_is_emitted_as_incomplete():
    response = collect(reply(*block(CALL, fragment('{"ci')), reason="max_tokens"))
    assert response.parts == (ToolCall(id="t", name="n", arguments='{"ci', complete=False),)
    assert response.finish == Finish("length", "max_tokens")


def test_a_complete_call_outweighs_end_turn():
    assert collect(reply(*block(CALL))).finish == Finish("tool_calls", "end_turn")


def test_a_server_tool_is_emitted_whole_when_it_stops():
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    events = reply(*block(server, fragment('{"query"'), fragment(': "x"}')))
    part = collect(events).parts[0]
    assert isinstance(part, Opaque)
    assert json.loads(part.raw) == {**server, "input": {"query": "x"}}
    assert sum(isinstance(event, PartDelta) for event in events) == 0


def test_a_block_of_the_future_grows_by_its_own_deltas():
    start = {"type": "compaction", "content": None}
    deltas = [{"type": "compaction_delta", "content": "a"}, {"type": "compaction_delta", "content": "b"}]
    part = collect(reply(*block(start, *deltas))).parts[0]
    assert isinstance(part, Opaque)
    assert json.loads(part.raw) == {"type": "compaction", "content": "ab"}


def test_an_unknown_delta_of_a_known_block_is_kept_on_its_part_and_written_again():
    start = {"type": "text", "text": ""}
    events = reply(*block(start, {"type": "mood_delta", "mood": "gl"}, {"type": "mood_delta", "mood": "ad"}))
    assert PartNative(0, "messages", "/mood", b'"glad"') in events
    response = collect(events)
    assert response.parts[0].extras == Extras("messages", {"/mood": b'"glad"'})
    assert collect(decode(encode(replay(response)))) == response


def test_unknown_events_and_fields_are_native_and_pings_nothing():
    strange = {"type": "weather_report", "sun": 1}
    final = end("end_turn", context_management={"applied_edits": []})
    stop = {**STOP, "amazon-bedrock-invocationMetrics": {"n": 1}}
    start = {"type": "message_start", "message": {**START["message"], "provider": "P", "container": None}}
    events = decode(sse(start, {"type": "ping"}, strange, final, stop))
    natives = {event.field: json.loads(event.raw) for event in events if isinstance(event, Native)}
    assert natives == {
        "/provider": "P",
        "/weather_report": strange,
        "/context_management": {"applied_edits": []},
        "/amazon-bedrock-invocationMetrics": {"n": 1},
    }


def test_thinking_is_signed_and_an_empty_signature_is_none():
    start = {"type": "thinking", "thinking": "", "signature": ""}
    signed = {"type": "signature_delta", "signature": "sig"}
    part = collect(reply(*block(start, {"type": "thinking_delta", "thinking": "hm"}, signed))).parts[0]
    assert part == Reasoning(texts=("hm",), signature=Signature("anthropic", "sig"))
    assert collect(reply(*block(start, signed))).parts[0] == Reasoning(signature=Signature("anthropic", "sig"))
    assert collect(reply(*block(start, {"type": "signature_delta", "signature": ""}))).parts[0] == Reasoning()


def test_usage_is_laid_over_field_by_field_and_never_added():
    usage = {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1, "service_tier": "standard"}
    start = {"type": "message_start", "message": {**START["message"], "usage": usage}}
    final = {"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 9, "cost": 2}
    events = decode(sse(start, end("end_turn", usage=final), STOP))
    seen = [event.usage for event in events if isinstance(event, UsageSeen)]
    extras = Extras("messages", {"/service_tier": b'"standard"'})
    assert seen[0] == Usage(input=8, output=1, cached=3, extras=extras)
    extras = Extras("messages", {"/service_tier": b'"standard"', "/cost": b"2"})
    assert seen[1] == Usage(input=8, output=9, cached=3, extras=extras)


def test_frames_need_no_event_line_and_indexes_may_have_gaps():
    text = {"type": "text_delta", "text": "a"}
    frames = [*block({"type": "text", "text": ""}, text, index=3), *block(CALL, index=9)]
    response = collect(decode(sse(START, *frames, end("tool_use"), STOP, names=False)))
    assert response.parts == (Text(text="a"), ToolCall(id="t", name="n", arguments="{}"))


def test_a_block_left_open_ends_with_the_message():
    frames = block({"type": "text", "text": "a"})[:-1]
    assert collect(reply(*frames)).parts == (Text(text="a"),)


def test_the_same_start_twice_is_one_start():
    assert [event for event in reply(START) if isinstance(event, Started)] == [Started("msg_1", "m")]


def test_nothing_is_emitted_after_the_end():
    decoder = MessagesDecoder()
    assert isinstance(decoder.feed(sse(START, end(), STOP) + b"data: [DONE]\n\n")[-1], Finished)
    assert decoder.feed(sse(START)) == []
    assert decoder.close() == []


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        sse(START),
        sse(START, end()),
        sse(START, *block({"type": "text", "text": "a"})),
        sse(START) + b"data: {broken\n\n",
        sse(START) + b"data: [DONE]\n\n",
        sse(START) + b'data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use"}}\n\n',
        sse(
            START,
            *block({"type": "text", "text": ""})[1:],
            {"type": "content_block_delta", "index": 5, "delta": fragment("x")},
        ),
        sse(START, {"type": "message_start", "message": {"id": "msg_2", "model": "m", "content": []}}),
        sse(START, *block(CALL)[:1], *block(CALL)),
    ],
)
def test_a_stream_that_breaks_or_just_ends_is_a_failure(stream):
    for size in (1, None):
        last = decode(stream, size)[-1]
        assert isinstance(last, Failed)
        assert last.problem.kind == "malformed_reply"


@pytest.mark.parametrize(
    ("stream", "kind", "status"),
    [
        (
            b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Busy"}}\n\n',
            "overloaded",
            529,
        ),
        (b'data: {"type":"error","error":{"type":"rate_limit_error","message":"Busy"}}\n\n', "rate_limit", 429),
        (b'data: {"error":{"code":500,"message":"Busy","status":"INTERNAL"}}\n\n', "internal", 500),
        (b'event: error\ndata: {"message":"Busy"}\n\n', "internal", 500),
    ],
)
def test_an_error_in_the_stream_keeps_its_class_and_message(stream, kind, status):
    last = decode(sse(START, *block({"type": "text", "text": "a"})[:1]) + stream)[-1]
    assert isinstance(last, Failed)
    assert (last.problem.kind, last.problem.message, last.problem.status) == (kind, "Busy", status)
