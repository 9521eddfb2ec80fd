import json

import pytest

from dialects.responses.streams import (
    CALL,
    CREATED,
    arguments,
    build_added,
    complete,
    decode,
    done,
    encode,
    frames,
    outcome,
    sse,
    text,
)
from dragoman.core.events import (
    Failed,
    Finished,
    Native,
    PartEnded,
    PartSigned,
    Started,
    UsageSeen,
)
from dragoman.core.parts import Text, ToolCall
from dragoman.core.response import Finish, Usage
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.decoder import ResponsesDecoder
from dragoman.interpreter.stream import StreamTranslator


def test_items_only_in_the_terminal_object_are_emitted():
    whole = {**CALL, "arguments": "{}", "status": "completed"}
    response = outcome(decode(sse(CREATED, complete(text("hi"), whole))))
    assert [type(part) for part in response.parts] == [Text, ToolCall]
    assert response.finish.reason == "tool_calls"


def test_items_only_in_events_are_emitted_once():
    response = outcome(decode(sse(CREATED, build_added(text("")), done(text("hi")), complete())))
    assert [part.text for part in response.parts] == ["hi"]


def test_items_in_events_and_terminal_object_are_emitted_once_though_their_ids_change():
    first, second = text("hi", id="a"), text("hi", id="b")
    response = outcome(decode(sse(CREATED, build_added(text("", id="x", content=[])), done(first), complete(second))))
    assert [part.text for part in response.parts] == ["hi"]


def test_parallel_calls_may_interleave_and_are_found_by_output_index():
    other = {**CALL, "id": "fc_2", "call_id": "c2"}
    data = sse(
        CREATED,
        build_added(CALL, 0),
        build_added(other, 1),
        arguments('{"a"', 0, item_id="changing"),
        arguments('{"b"', 1, item_id="ids"),
        arguments(":1}", 0),
        arguments(":2}", 1),
        done({**CALL, "arguments": '{"a":1}', "status": "completed"}, 0),
        done({**other, "arguments": '{"b":2}', "status": "completed"}, 1),
        complete(),
    )
    response = outcome(decode(data))
    assert [(part.id, part.arguments) for part in response.parts] == [("c1", '{"a":1}'), ("c2", '{"b":2}')]


def test_items_are_found_by_id_though_every_output_index_is_zero():
    other = {**CALL, "id": "fc_2", "call_id": "c2"}
    data = sse(
        CREATED,
        build_added(CALL, 0),
        build_added(other, 0),
        arguments('{"a":1}', 0, item_id="fc_1"),
        arguments('{"b":2}', 0, item_id="fc_2"),
        done({**CALL, "arguments": '{"a":1}'}, 0),
        done({**other, "arguments": '{"b":2}'}, 0),
        complete({**CALL, "arguments": '{"a":1}'}, {**other, "arguments": '{"b":2}'}),
    )
    assert [part.arguments for part in outcome(decode(data)).parts] == ['{"a":1}', '{"b":2}']


@pytest.mark.parametrize(
    "last",
    [
        ({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a":1}'},),
        (done({**CALL, "arguments": '{"a":1}'}),),
        (arguments('{"a"'), done({**CALL, "arguments": '{"a":1}'})),
        (arguments('{"a":1}'), done(CALL)),
    ],
)
def test_arguments_are_complete_from_deltas_done_or_the_item(last):
    response = outcome(decode(sse(CREATED, build_added(CALL), *last, complete())))
    assert response.parts[0].arguments == '{"a":1}'


def test_a_call_without_arguments_has_an_empty_object():
    assert outcome(decode(sse(CREATED, build_added(CALL), done(CALL), complete()))).parts[0].arguments == "{}"


def test_a_late_named_call_starts_when_its_name_is_known():
    nameless = {**CALL, "name": "", "call_id": ""}
    data = sse(CREATED, build_added(nameless), arguments('{"a":1}'), done({**CALL, "arguments": '{"a":1}'}), complete())
    response = outcome(decode(data))
    assert [(part.name, part.arguments) for part in response.parts] == [("f", '{"a":1}')]


def test_a_call_that_was_cut_is_not_complete():
    cut = {**CALL, "arguments": '{"a":', "status": "incomplete"}
    terminal = {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [cut]},
    }
    for events in ((build_added(CALL), arguments('{"a":'), done(cut)), (build_added(CALL), arguments('{"a":')), ()):
        response = outcome(decode(sse(CREATED, *events, terminal)))
        assert response.parts[0].complete is False
        assert response.finish == Finish("length", "max_output_tokens")


def test_several_summaries_are_one_part_with_the_final_signature():
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "partial"}
    final = {
        **item,
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": ""}],
        "encrypted_content": "final",
    }
    events = decode(
        sse(
            CREATED,
            build_added(item),
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "one"},
            {
                "type": "response.reasoning_summary_part.added",
                "output_index": 0,
                "summary_index": 1,
                "part": {"type": "summary_text", "text": ""},
            },
            done(final),
            complete(),
        )
    )
    assert [event.signature.value for event in events if isinstance(event, PartSigned)] == ["final"]
    assert outcome(events).parts[0].texts == ("one", "")


def test_raw_reasoning_is_emitted_and_encoded_as_content():
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    final = {**item, "content": [{"type": "reasoning_text", "text": "hmm"}]}
    delta = {
        "type": "response.reasoning_text.delta",
        "output_index": 0,
        "content_index": 0,
        "item_id": "rs_1",
        "delta": "hmm",
    }
    response = outcome(decode(sse(CREATED, build_added(item), delta, done(final), complete())))
    assert response.parts[0].texts == ("hmm",)
    result = frames(encode(replay(response)))
    assert "response.reasoning_text.delta" in [name for name, _ in result]
    assert result[-1][1]["response"]["output"][0]["content"] == final["content"]


def test_a_text_without_an_added_event_is_emitted():
    delta = {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": 0,
        "content_index": 0,
        "delta": "hi",
    }
    assert outcome(decode(sse(CREATED, delta, complete()))).parts[0].text == "hi"


def test_a_citation_is_emitted_once():
    note = {"type": "url_citation", "url": "https://x", "title": "t", "start_index": 0, "end_index": 2}
    final = text("hi")
    final["content"][0]["annotations"] = [note, {**note, "url": "https://y"}]
    event = {
        "type": "response.output_text.annotation.added",
        "output_index": 0,
        "content_index": 0,
        "annotation_index": 0,
        "annotation": note,
    }
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "hi"}
    response = outcome(
        decode(sse(CREATED, build_added(text("", content=[])), delta, event, done(final), complete(final)))
    )
    assert [citation.url for citation in response.parts[0].citations] == ["https://x", "https://y"]


def test_hosted_items_are_emitted_whole_and_in_order():
    first = {"type": "mcp_list_tools", "id": "a", "server_label": "x", "tools": []}
    second = {**first, "id": "b"}
    progress = {"type": "response.mcp_list_tools.completed", "output_index": 1, "item_id": "b"}
    events = decode(
        sse(
            CREATED,
            build_added(first, 0),
            build_added(second, 1),
            progress,
            done(second, 1),
            done(first, 0),
            complete(),
        )
    )
    assert [json.loads(part.raw)["id"] for part in outcome(events).parts] == ["a", "b"]
    assert not any(isinstance(event, Native) and "/stream/" in event.field for event in events)


def test_an_unknown_event_is_kept_and_sent_on():
    novelty = {"type": "response.hologram.delta", "sequence_number": 9, "delta": {"rays": 7}}
    early = {"type": "codex.rate_limits", "limit": 1}
    response = outcome(decode(sse(early, CREATED, novelty, complete())))
    assert [json.loads(raw) for raw in response.extras.fields.values()] == [early, novelty]
    assert frames(encode(replay(response)))[3] == (
        "response.hologram.delta",
        {"type": "response.hologram.delta", "sequence_number": 3, "delta": {"rays": 7}},
    )
    assert json.loads(DIALECT.build_response(response, None))["output"] == []


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}, "rate_limit"),
        (
            {"type": "error", "error": {"type": "server_error", "code": "context_length_exceeded", "message": "long"}},
            "context_length",
        ),
        ({"error": {"message": "odd", "type": "server_error"}}, "internal"),
        ({"error": "just words"}, "internal"),
        (
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "invalid_prompt", "message": "no"}},
            },
            "policy",
        ),
        ({"type": "response.failed", "response": {"status": "failed", "error": None}}, "internal"),
        ({"type": "response.completed", "response": 5}, "malformed_reply"),
        (
            {"type": "response.output_item.done", "item": {"type": "message", "role": "assistant", "content": 5}},
            "malformed_reply",
        ),
    ],
)
def test_an_error_in_the_stream_fails_it_with_the_vendors_class(event, kind):
    for before in ((), (CREATED,)):
        events = decode(sse(*before, event, complete()))
        assert outcome(events).kind == kind
        assert isinstance(events[-1], Failed)


@pytest.mark.parametrize(
    "tail",
    [b"", b"data: {broken\n\n", b"data: [DONE]\n\n", b'data: {"type":"response.completed","resp', b"data: \xff\n\n"],
)
def test_a_stream_without_its_terminal_event_fails(tail):
    data = sse(CREATED, build_added(text("", content=[]))) + tail
    assert outcome(decode(data)).kind == "malformed_reply"


def test_nothing_is_emitted_after_the_end():
    decoder = ResponsesDecoder()
    events = decoder.feed(sse(CREATED, complete(), complete(text("again"))))
    assert [type(event) for event in events] == [Started, Finished]
    assert decoder.feed(sse(CREATED)) == decoder.close() == []


def test_usage_and_fields_of_the_terminal_object_are_emitted():
    terminal = complete()
    terminal["response"] |= {
        "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
        "service_tier": "flex",
    }
    events = decode(sse(CREATED, terminal))
    assert UsageSeen(Usage(input=3, output=4)) in events
    assert Native("responses", "/service_tier", b'"flex"') in events


def test_a_message_of_two_parts_is_one_item_again():
    final = text("a")
    final["content"].append({"type": "refusal", "refusal": "no"})
    events = decode(
        sse(
            CREATED,
            build_added(text("", content=[])),
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "a"},
            {
                "type": "response.content_part.added",
                "output_index": 0,
                "content_index": 1,
                "part": {"type": "refusal", "refusal": ""},
            },
            {"type": "response.refusal.delta", "output_index": 0, "content_index": 1, "delta": "no"},
            done(final),
            complete(final),
        )
    )
    assert [event.index for event in events if isinstance(event, PartEnded)] == [0, 1]
    items = frames(encode(events))[-1][1]["response"]["output"]
    assert [[part["type"] for part in item["content"]] for item in items] == [["output_text", "refusal"]]


@pytest.mark.parametrize("ends", [(True, False), (False, True), (True, True)], ids=["item", "reply", "both"])
@pytest.mark.parametrize("client", ["chat", "messages", "gemini"])
def test_text_whose_only_part_has_index_one_is_not_repeated_by_its_whole_item(client, ends):
    final = text("Hello")
    with_item, with_reply = ends
    data = sse(
        CREATED,
        build_added(text("", content=[])),
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 1, "delta": "Hel"},
        *([done(final)] if with_item else []),
        complete(*([final] if with_reply else [])),
    )
    response = outcome(decode(data))
    assert [part.text for part in response.parts] == ["Hello"]
    translator = StreamTranslator("responses", client)
    received = dialect_named(client).decoder()
    sent = outcome([*received.feed(translator.feed(data) + translator.close()), *received.close()])
    assert "".join(part.text for part in sent.parts) == "Hello"


def test_parts_that_are_counted_from_one_are_matched_in_order():
    final = text("a")
    final["content"].append({"type": "output_text", "text": "b", "annotations": []})
    deltas = [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": index, "delta": delta}
        for index, delta in ((1, "a"), (2, "b"))
    ]
    response = outcome(decode(sse(CREATED, build_added(text("", content=[])), *deltas, done(final), complete(final))))
    assert [part.text for part in response.parts] == ["a", "b"]


def test_a_summary_whose_only_index_is_one_is_not_repeated_by_its_whole_item():
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    final = {**item, "summary": [{"type": "summary_text", "text": "why"}]}
    delta = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "wh"}
    response = outcome(decode(sse(CREATED, build_added(item), delta, done(final), complete(final))))
    assert "".join(response.parts[0].texts) == "why"
