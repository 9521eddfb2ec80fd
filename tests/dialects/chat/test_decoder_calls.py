"""Calls in Chat Completions streams are distinguished whatever ids and indexes the server sends."""

import json
from typing import Any

import pytest

from dialects.chat.chunks import DONE, STOP, TOOLS, calls, chunk, decode, failure, read
from dragoman.core.events import PartEnded, PartStarted
from dragoman.core.parts import Reasoning, Signature, Text, ToolCall
from dragoman.core.response import Finish
from dragoman.dialects.chat.decoder_state import StreamedCall
from dragoman.wire.json import encode
from dragoman.wire.sse import render_data_frame


def test_arguments_with_the_name_are_not_lost():
    response = read(calls({"index": 0, "id": "a", "name": "f", "args": '{"x":1}'}), TOOLS)
    assert response.parts == (ToolCall(id="a", name="f", arguments='{"x":1}'),)


def test_a_repeated_id_continues_its_call():
    response = read(
        calls({"id": "a", "name": "f"}), calls({"id": "a", "args": "{"}), calls({"id": "a", "args": "}"}), TOOLS
    )
    assert response.parts == (ToolCall(id="a", name="f", arguments="{}"),)


def test_calls_with_odd_indexes_are_matched_by_id_then_index_then_order():
    response = read(
        calls({"index": 1, "id": "a", "name": "f"}),
        calls({"index": 1, "args": '{"n":1}'}),
        calls({"id": "b", "name": "g"}),
        calls({"args": '{"n":2}'}),
        TOOLS,
    )
    assert response.parts == (
        ToolCall(id="a", name="f", arguments='{"n":1}'),
        ToolCall(id="b", name="g", arguments='{"n":2}'),
    )


def test_a_reused_index_with_a_new_id_is_a_new_call():
    response = read(
        calls({"index": 0, "id": "a", "name": "f", "args": '{"n":1}'}),
        calls({"index": 0, "id": "b", "name": "f", "args": '{"n":1}'}),
        TOOLS,
    )
    assert [part.id for part in response.parts if isinstance(part, ToolCall)] == ["a", "b"]


def test_equal_calls_without_ids_are_not_merged():
    piece = {"name": "f", "args": '{"n":1}'}
    assert len(read(calls(piece, piece), TOOLS).parts) == 2
    assert len(read(calls({"index": 0, **piece}), calls({"index": 0, **piece}), TOOLS).parts) == 2


def test_a_late_named_call_starts_when_its_name_is_known():
    stream = [
        calls({"id": "c0", "args": ""}),
        calls({"name": "read", "args": '{"p":1}'}),
        calls({"name": None, "args": ""}),
        TOOLS,
    ]
    assert read(*stream).parts == (ToolCall(id="c0", name="read", arguments='{"p":1}'),)
    started = [event for event in decode(stream[0]) if isinstance(event, PartStarted)]
    assert started == []


def test_arguments_before_the_name_wait_for_it():
    response = read(
        calls({"index": 0, "id": "a", "args": '{"x"'}), calls({"index": 0, "name": "f", "args": ":1}"}), TOOLS
    )
    assert response.parts == (ToolCall(id="a", name="f", arguments='{"x":1}'),)


def test_a_late_id_belongs_to_the_call_that_has_none():
    response = read(calls({"index": 0, "name": "f"}), calls({"index": 0, "id": "a", "args": "{}"}), TOOLS)
    assert response.parts == (ToolCall(id="a", name="f", arguments="{}"),)


def test_a_repeated_name_does_not_begin_a_call():
    pieces = [
        calls({"index": 0, "id": "a", "name": "f", "args": '{"x"'}),
        calls({"index": 0, "name": "f", "args": ":1}"}),
    ]
    response = read(*pieces, calls({"index": 0, "name": "", "args": ""}), TOOLS)
    assert response.parts == (ToolCall(id="a", name="f", arguments='{"x":1}'),)


def test_a_call_that_never_gets_a_name_fails_the_reply():
    assert failure(calls({"index": 0, "id": "a", "args": "{}"}), TOOLS).kind == "malformed_reply"


def test_an_entry_without_name_arguments_and_id_is_no_call():
    nothing = chunk({"tool_calls": [{"index": 0, "id": "", "type": "function"}]})
    response = read(chunk({"content": "a"}), nothing, STOP)
    assert response.parts == (Text(text="a"),)
    assert response.finish.reason == "stop"
    assert failure(chunk({"tool_calls": [{"index": 0, "x": 1}]}), TOOLS).kind == "malformed_reply"


def test_calls_that_interleave_stay_apart():
    response = read(
        calls({"index": 0, "id": "a", "name": "f"}),
        calls({"index": 1, "id": "b", "name": "g"}),
        calls({"index": 0, "args": '{"x":'}),
        calls({"index": 1, "args": '{"y":'}),
        calls({"index": 0, "args": "1}"}),
        calls({"index": 1, "args": "2}"}),
        TOOLS,
    )
    assert response.parts == (
        ToolCall(id="a", name="f", arguments='{"x":1}'),
        ToolCall(id="b", name="g", arguments='{"y":2}'),
    )


def test_a_whole_call_ends_when_the_next_begins():
    events = decode(
        calls({"index": 0, "id": "a", "name": "f", "args": "{}"})
        + calls({"index": 1, "id": "b", "name": "g", "args": "{}"})
        + TOOLS
    )
    ended = events.index(PartEnded(0))
    assert events.index(PartStarted(1, ToolCall(id="b", name="g", arguments=""))) == ended + 1


def test_new_arguments_for_a_call_that_is_over_fail_and_repeated_ones_do_not():
    first = calls({"index": 0, "id": "a", "name": "f", "args": '{"x":1}'}) + calls(
        {"index": 1, "id": "b", "name": "g", "args": "{}"}
    )
    assert len(read(first, calls({"index": 0, "args": '{"x":1}'}), TOOLS).parts) == 2
    assert failure(first, calls({"index": 0, "args": '{"x":2}'}), TOOLS).kind == "malformed_reply"


def test_text_ends_when_a_call_begins_and_later_text_is_a_part_of_its_own():
    response = read(
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "a"}),
        calls({"index": 0, "id": "a", "name": "f", "args": "{}"}),
        chunk({"content": "b"}),
        TOOLS,
    )
    assert response.parts == (
        Reasoning(texts=("hm",)),
        Text(text="a"),
        ToolCall(id="a", name="f", arguments="{}"),
        Text(text="b"),
    )


def test_no_arguments_are_an_empty_object():
    assert read(calls({"index": 0, "id": "a", "name": "f", "args": ""}), TOOLS).parts == (
        ToolCall(id="a", name="f", arguments="{}"),
    )


def test_a_call_cut_by_the_limit_is_incomplete():
    response = read(calls({"index": 0, "id": "a", "name": "f", "args": '{"x'}), chunk(finish="length"), DONE)
    assert response.parts == (ToolCall(id="a", name="f", arguments='{"x', complete=False),)
    assert response.finish.reason == "length"


def test_stop_after_a_call_is_a_tool_call():
    assert read(calls({"index": 0, "id": "a", "name": "f", "args": "{}"}), STOP).finish == Finish("tool_calls", "stop")


def test_custom_calls_are_free_text():
    pieces = [
        {"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": ""}},
        {"index": 0, "custom": {"input": "*** Be"}},
        {"index": 0, "custom": {"input": "gin"}},
    ]
    response = read(*[chunk({"tool_calls": [piece]}) for piece in pieces], TOOLS)
    assert response.parts == (ToolCall(id="a", name="patch", arguments="*** Begin", form="text"),)


def test_legacy_function_calls_stream_too():
    response = read(
        chunk({"role": "assistant", "function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}),
        chunk(finish="function_call"),
        DONE,
    )
    assert response.parts == (ToolCall(id="", name="f", arguments="{}"),)
    assert response.finish == Finish("tool_calls", "function_call")


def test_a_google_signature_and_vendor_fields_of_a_call_are_kept():
    piece = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "mood": 1}
    extra = {"google": {"thought_signature": "U0lH"}}
    response = read(
        chunk({"tool_calls": [piece]}), chunk({"tool_calls": [{"index": 0, "extra_content": extra}]}), TOOLS
    )
    [part] = response.parts
    assert part.signature == Signature("google", "U0lH")
    assert part.extras is not None
    assert part.extras.fields == {"/mood": b"1"}


@pytest.mark.parametrize(
    ("pieces", "result"),
    [
        ([{"name": "f", "args": "{"}, {"name": "f", "args": "}"}], [("", "f", "{}")]),
        ([{"name": "f", "args": "{}"}, {"name": "f", "args": ""}], [("", "f", "{}")]),
        ([{"name": "f", "args": "{}"}, {"name": "g", "args": "{}"}], [("", "f", "{}"), ("", "g", "{}")]),
        ([{"name": "f", "args": "{"}, {"name": "g", "args": "{}"}], [("", "f", "{"), ("", "g", "{}")]),
        ([{"index": 0, "name": "f", "args": "{"}, {"index": 0, "name": "g", "args": "}"}], [("", "f", "{}")]),
        ([{"index": 0, "name": "f", "args": "{}"}, {"index": 1, "name": "f", "args": "{}"}], [("", "f", "{}")] * 2),
        (
            [{"index": 0, "id": "a", "name": "f"}, {"index": 0, "id": "b", "name": "g"}],
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        ([{"index": 0, "id": "a", "name": "f"}, {"index": 1, "id": "a", "args": "{}"}], [("a", "f", "{}")]),
        (
            [{"index": 0, "id": "a", "name": "f"}, {"index": 1, "id": "a"}, {"index": 1, "args": "{}"}],
            [("a", "f", "{}")],
        ),
        ([{"index": 0, "args": "{"}, {"index": 0, "name": "f", "args": "}"}], [("", "f", "{}")]),
        ([{"id": "a", "name": "f"}, {"args": "{"}, {"args": "}"}], [("a", "f", "{}")]),
    ],
)
def test_deltas_belong_to_the_call_of_their_id_index_and_name(pieces: Any, result: Any):
    parts = read(*map(calls, pieces), TOOLS).parts
    assert [(part.id, part.name, part.arguments) for part in parts if isinstance(part, ToolCall)] == result


@pytest.mark.parametrize(
    ("pieces", "result"),
    [
        (
            [
                {"index": 0, "id": "a", "name": "f", "args": '{"x":1}'},
                {"index": 1, "id": "a", "name": "f", "args": "{}"},
            ],
            [("a", "f", '{"x":1}'), ("a", "f", "{}")],
        ),
        (
            [
                {"index": 0, "id": "a", "name": "f"},
                {"index": 1, "id": "a", "name": "f"},
                {"index": 1, "id": "a", "args": '{"x":'},
                {"index": 0, "id": "a", "args": "{}"},
                {"index": 1, "args": "2}"},
            ],
            [("a", "f", "{}"), ("a", "f", '{"x":2}')],
        ),
        (
            [{"id": "a", "name": "f", "args": '{"x":1}'}, {"id": "a", "name": "g", "args": '{"x":2}'}],
            [("a", "f", '{"x":1}'), ("a", "g", '{"x":2}')],
        ),
        (
            [{"index": 0, "id": "a", "name": "f", "args": "{"}, {"index": 0, "id": "a", "name": "f", "args": "}"}],
            [("a", "f", "{}")],
        ),
        (
            [
                {"index": 0, "id": "a", "name": "f", "args": '{"x":'},
                {"index": 0, "id": "a", "name": "f", "args": "{}}"},
            ],
            [("a", "f", '{"x":{}}')],
        ),
        ([{"id": "a", "name": "f"}, {"index": 0, "id": "a", "name": "f", "args": "{}"}], [("a", "f", "{}")]),
        ([{"index": 0, "id": "a"}, {"index": 1, "id": "a", "name": "f", "args": "{}"}], [("a", "f", "{}")]),
    ],
)
def test_calls_that_share_an_id_are_distinguished_by_index_and_name(pieces: Any, result: Any):
    parts = read(*map(calls, pieces), TOOLS).parts
    assert [(part.id, part.name, part.arguments) for part in parts if isinstance(part, ToolCall)] == result


def test_a_streamed_call_has_its_pointer_in_the_whole_reply():
    pieces = [{"index": 3, "id": "a", "name": "f"}, {"index": 7, "id": "b", "name": "f"}]
    assert [part.where for part in read(*map(calls, pieces), TOOLS).parts] == [
        "/choices/0/message/tool_calls/0",
        "/choices/0/message/tool_calls/1",
    ]
    legacy = chunk({"function_call": {"name": "f", "arguments": "{}"}})
    (call,) = read(legacy, chunk(finish="function_call"), DONE).parts
    assert call.where == "/choices/0/message/function_call"


def test_a_server_may_repeat_a_call_that_is_over_but_not_add_to_it():
    over = [
        calls({"index": 0, "id": "a", "name": "f", "args": '{"x":'}),
        calls({"index": 0, "args": "1}"}),
        chunk({"content": "t"}),
    ]
    for again in ('{"x":1}', " ", ""):
        assert read(*over, calls({"index": 0, "args": again}), TOOLS).parts[0] == ToolCall(
            id="a", name="f", arguments='{"x":1}'
        )
    problem = failure(*over, calls({"index": 0, "args": '{"x":2}'}), TOOLS)
    assert (problem.kind, problem.message) == (
        "malformed_reply",
        "the upstream sent more arguments for a tool call that had ended",
    )


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["{}"], True),
        (["{", "}"], True),
        (['{"a":"', '}"', "}"], True),
        (['{"a":"\\', '"}"', "}", " \n"], True),
        (['{"a":"\\\\', '"', "}"], True),
        (['{"a":[{}', ",{}]", "}"], True),
        (["{", "}", "}"], False),
        (["{}", " ", "x"], False),
        (['{"a":"}'], False),
        (['{"a":{}'], False),
        (["{a}"], False),
        (["]", "{}"], False),
        (["[]"], False),
        (["null"], False),
        ([], False),
    ],
)
def test_arguments_in_pieces_are_whole_when_they_are_one_object(pieces: list[str], whole: bool):
    call = StreamedCall("a", "f", 0)
    checked_often = StreamedCall("a", "f", 0)
    for piece in pieces:
        call.append_delta(piece)
        checked_often.append_delta(piece)
        checked_often.is_complete()
    assert (call.is_complete(), checked_often.is_complete(), call.is_complete()) == (whole, whole, whole)


def test_calls_end_in_their_order_though_later_ones_were_whole_first():
    stream = [
        calls({"index": 0, "id": "a", "name": "f", "args": "{"}),
        calls({"index": 1, "id": "b", "name": "f", "args": "{"}),
        calls({"index": 1, "args": "}"}),
        calls({"index": 0, "args": "}"}),
        chunk({"content": "x"}),
        STOP,
        DONE,
    ]
    assert [event.index for event in decode(b"".join(stream)) if isinstance(event, PartEnded)] == [0, 1, 2]


def test_the_pieces_of_another_answer_are_put_together():
    other = [
        {"content": "a", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}]},
        {"content": None, "tool_calls": None},
        {"content": "b", "tool_calls": [{"index": 1, "id": "b"}, {"index": 0, "function": {"arguments": "}"}}]},
    ]
    pieces = [render_data_frame(encode({"id": "c", "choices": [{"index": 1, "delta": delta}]})) for delta in other]
    first = chunk({"content": "x"})
    extras = read(first, *pieces, STOP).extras
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    assert extras is not None
    body = json.loads(extras.fields["/choices/1"])["message"]
    assert body == {"content": "ab", "tool_calls": [call, {"index": 1, "id": "b"}]}
