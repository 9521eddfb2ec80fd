"""The undo: aliased names, wrapped inputs and changed values are restored for the caller."""

import pytest

from dragoman.core.events import Finished, PartDelta, PartEnded, PartStarted, Started
from dragoman.core.parts import Text, ToolCall
from dragoman.core.response import Finish
from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.undo import ReplyPipeline, Undo
from interpreter.workbench import exactly

NAMES = {"crm__find": ("crm", "find"), "a_b_1": ("", "a b")}


def feed_events(undo, *events):
    restorer = ReplyPipeline(undo)
    return [after for event in events for after in restorer.feed(event)]


def call(name, **more):
    return ToolCall(id="c", name=name, arguments="", **more)


def events(name, *pieces, index=0, complete=True):
    deltas = [PartDelta(index, piece) for piece in pieces]
    return [PartStarted(index, call(name)), *deltas, PartEnded(index, complete)]


def test_with_nothing_to_undo_every_event_passes():
    stream = [Started("r", "m"), *events("find", '{"a"', ":1}"), Finished(Finish("stop"))]
    assert feed_events(Undo(), *stream) == stream


@pytest.mark.parametrize(
    ("name", "caller"),
    [("crm__find", call("find", namespace="crm")), ("a_b_1", call("a b")), ("other", call("other"))],
)
def test_an_alias_becomes_the_callers_name_and_arguments_are_streamed(name, caller):
    assert feed_events(Undo(NAMES), *events(name, "{", "}")) == [
        PartStarted(0, caller),
        PartDelta(0, "{"),
        PartDelta(0, "}"),
        PartEnded(0),
    ]


def test_a_call_whose_name_was_not_changed_is_the_same_object():
    start = PartStarted(0, call("other", namespace="own", where="/w"))
    (after,) = feed_events(Undo(NAMES), start)
    assert after.part is start.part


def test_a_restored_name_keeps_the_calls_place():
    (after,) = feed_events(Undo(NAMES), PartStarted(0, call("a_b_1", where="/w")))
    assert exactly(after.part) == exactly(call("a b", where="/w"))


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (('{"input"', ':"ls -l"}'), "ls -l"),
        (('{"input":""}',), ""),
        (("ls -l",), "ls -l"),
        (('{"input":1}',), '{"input":1}'),
        (('{"command":"ls"}',), '{"command":"ls"}'),
        ((), ""),
    ],
)
def test_a_free_form_input_is_taken_out_of_its_function_when_it_is_whole(pieces, text):
    deltas = [PartDelta(0, text)] if text else []
    assert feed_events(Undo(custom=frozenset({"shell"})), *events("shell", *pieces)) == [
        PartStarted(0, call("shell", form="text")),
        *deltas,
        PartEnded(0),
    ]


def test_a_free_form_tool_with_an_alias_is_restored_as_free_form():
    undo = Undo({"s_1": ("", "my shell")}, frozenset({"my shell"}))
    assert feed_events(undo, *events("s_1", '{"input":"ls"}')) == [
        PartStarted(0, call("my shell", form="text")),
        PartDelta(0, "ls"),
        PartEnded(0),
    ]


def test_changed_values_are_changed_back_in_reverse_order_when_they_are_whole():
    steps = (ArgumentUndo(renamed={"x": "a b"}), ArgumentUndo(properties={"x": ArgumentUndo(parse=True)}))
    assert feed_events(Undo(arguments={"find": steps}), *events("find", '{"x"', ':"[1]"}')) == [
        PartStarted(0, call("find")),
        PartDelta(0, '{"a b":[1]}'),
        PartEnded(0),
    ]


def test_a_call_cut_off_keeps_what_there_is_of_its_arguments():
    undo = Undo(arguments={"find": (ArgumentUndo(renamed={"x": "y"}),)})
    assert feed_events(undo, *events("find", '{"x":', complete=False)) == [
        PartStarted(0, call("find")),
        PartDelta(0, '{"x":'),
        PartEnded(0, complete=False),
    ]


def test_parts_that_are_not_held_pass_behind_those_that_are():
    undo = Undo(custom=frozenset({"shell"}))
    text = [PartStarted(1, Text(text="")), PartDelta(1, "hi"), PartEnded(1)]
    start, delta, end = events("shell", '{"input":"ls"}')
    assert feed_events(undo, start, text[0], delta, *text[1:], end) == [
        PartStarted(0, call("shell", form="text")),
        PartDelta(0, "ls"),
        PartEnded(0),
        *text,
    ]


def test_two_held_calls_keep_their_arguments_apart():
    undo = Undo(custom=frozenset({"shell"}))
    first, second = events("shell", '{"input":"a"}'), events("shell", '{"input":"b"}', index=1)
    mixed = [first[0], second[0], second[1], first[1], first[2], second[2]]
    restored = [event for event in feed_events(undo, *mixed) if not isinstance(event, PartStarted)]
    assert restored == [PartDelta(0, "a"), PartEnded(0), PartDelta(1, "b"), PartEnded(1)]


def test_tools_of_one_name_in_two_namespaces_are_changed_back_each_in_its_way():
    names = {"crm__find": ("crm", "find"), "erp__find": ("erp", "find")}
    undo = Undo(names, arguments={"crm__find": (ArgumentUndo(renamed={"x": "y"}),)})
    assert feed_events(undo, *events("crm__find", '{"x":1}'))[1] == PartDelta(0, '{"y":1}')
    assert feed_events(undo, *events("erp__find", '{"x":1}'))[1] == PartDelta(0, '{"x":1}')
