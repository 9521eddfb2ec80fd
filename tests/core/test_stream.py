"""Folding and unfolding replies, putting interleaved parts in sequence, and the grammar that judges decoders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from dragoman.core.events import (
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.parts import Citation, Data, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import Collector, collect, replay
from dragoman.core.value import Extras
from dragoman.interpreter.undo import NO_UNDO, ReplyPipeline
from event_grammar import GrammarError, check_events

STOP = Finished(Finish("stop"))
TEXT = PartStarted(0, Text(text=""))
CITATION = Citation("chat", b"{}")


@given(strategies.responses())
def test_a_reply_replayed_as_a_stream_folds_into_itself(response):
    assert collect(check_events(replay(response))) == response


@st.composite
def interleavings(draw):
    """A reply and its events with the parts' events in any order the grammar allows."""
    response = draw(strategies.responses())
    queues, head, tail = {}, [], []
    for event in replay(response):
        index = getattr(event, "index", None)
        if index is not None:
            queues.setdefault(index, []).append(event)
        elif isinstance(event, Started):
            head.append(event)
        else:
            tail.append(event)
    events = list(head)
    started = 0
    while queues:
        choices = [index for index in queues if index <= started]
        index = draw(st.sampled_from(choices))
        event = queues[index].pop(0)
        started += isinstance(event, PartStarted)
        events.append(event)
        if not queues[index]:
            del queues[index]
    return response, events + tail


def sequential(events):
    pipeline = ReplyPipeline(NO_UNDO)
    return [ordered for event in events for ordered in pipeline.feed(event)]


@given(interleavings())
def test_interleaved_parts_fold_into_the_same_reply(drawn):
    response, events = drawn
    assert collect(check_events(events)) == response


@given(interleavings())
def test_a_sequence_has_one_open_part_and_the_same_content(drawn):
    response, events = drawn
    result = list(check_events(sequential(events)))
    assert collect(result) == response
    assert sorted(map(repr, result)) == sorted(map(repr, events))
    open_parts = 0
    for event in result:
        open_parts += isinstance(event, PartStarted) - isinstance(event, PartEnded)
        assert open_parts in {0, 1}


def test_the_open_part_flows_through_while_later_parts_wait():
    call = PartStarted(1, ToolCall(id="c", name="f", arguments=""))
    sequence = list(sequential([TEXT, call, PartDelta(1, "{}"), PartDelta(0, "a"), PartEnded(1), PartEnded(0)]))
    assert sequence == [TEXT, PartDelta(0, "a"), PartEnded(0), call, PartDelta(1, "{}"), PartEnded(1)]


def test_a_part_that_starts_after_its_predecessor_ended_flows_at_once():
    call = PartStarted(1, ToolCall(id="c", name="f", arguments=""))
    events = [TEXT, PartEnded(0), call, PartDelta(1, "{"), PartDelta(1, "}"), PartEnded(1)]
    assert list(sequential(events)) == events


def test_a_failure_is_emitted_at_once_and_waiting_events_are_dropped():
    failed = Failed(Problem("overloaded", "busy"))
    later = PartStarted(1, Text(text=""))
    assert list(sequential([TEXT, later, PartDelta(1, "x"), failed])) == [TEXT, failed]


def test_events_grow_the_part_they_name():
    response = collect(
        [
            Started("r", "m", 7),
            TEXT,
            PartStarted(1, Reasoning()),
            PartStarted(2, ToolCall(id="c", name="f", arguments="", extras=Extras("chat", {"/a": b"1"}))),
            PartDelta(0, "Hel"),
            PartDelta(1, "one"),
            PartDelta(1, "two", 1),
            PartDelta(2, '{"a"'),
            PartDelta(0, "lo"),
            PartCited(0, CITATION),
            PartSigned(1, Signature("google", "s")),
            PartNative(2, "chat", "/b", b"2"),
            PartDelta(1, "!", 1),
            PartEnded(0),
            PartEnded(2, complete=False),
            PartEnded(1),
            UsageSeen(Usage(input=1)),
            Native("chat", "/x", b"1"),
            Native("chat", "/x", b"2"),
            UsageSeen(Usage(input=2)),
            Finished(Finish("length", "max_tokens")),
        ]
    )
    assert response == Response(
        id="r",
        model="m",
        created=7,
        parts=(
            Text(text="Hello", citations=(CITATION,)),
            Reasoning(texts=("one", "two!"), signature=Signature("google", "s")),
            ToolCall(
                id="c", name="f", arguments='{"a"', complete=False, extras=Extras("chat", {"/a": b"1", "/b": b"2"})
            ),
        ),
        finish=Finish("length", "max_tokens"),
        usage=Usage(input=2),
        extras=Extras("chat", {"/x": b"2"}),
    )


def test_a_failed_stream_raises_its_problem():
    problem = Problem("rate_limit", "slow down", retry_after=3)
    with pytest.raises(Problem) as caught:
        collect([Started("r", "m"), TEXT, Failed(problem)])
    assert caught.value is problem


def test_a_stream_without_an_end_is_a_problem_and_not_a_reply():
    with pytest.raises(Problem) as caught:
        collect([Started("r", "m"), TEXT, PartEnded(0)])
    assert caught.value.kind == "malformed_reply"


def test_parts_can_be_seen_before_the_end():
    collector = Collector()
    for event in [Started("r", "m"), TEXT, PartDelta(0, "so far")]:
        collector.feed(event)
    assert collector.parts == (Text(text="so far"),)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [Started("r", "m")],
        [STOP],
        [TEXT],
        [Started("r", "m"), Started("r", "m"), STOP],
        [Started("r", "m"), STOP, STOP],
        [Started("r", "m"), STOP, UsageSeen(Usage())],
        [Started("r", "m"), TEXT, STOP],
        [Started("r", "m"), PartStarted(1, Text(text="")), PartEnded(1), STOP],
        [Started("r", "m"), TEXT, PartEnded(0), TEXT, PartEnded(0), STOP],
        [Started("r", "m"), PartDelta(0, "x"), STOP],
        [Started("r", "m"), TEXT, PartEnded(0), PartDelta(0, "x"), STOP],
        [Started("r", "m"), TEXT, PartEnded(0), PartEnded(0), STOP],
        [Started("r", "m"), TEXT, PartSigned(-1, Signature("google", "s")), PartEnded(0), STOP],
        [Started("r", "m"), TEXT, PartNative(1, "chat", "/a", b"1"), PartEnded(0), STOP],
        [Started("r", "m"), TEXT, PartDelta(0, "x", 1), PartEnded(0), STOP],
        [Started("r", "m"), PartStarted(0, Text(text="x")), PartEnded(0), STOP],
        [Started("r", "m"), PartStarted(0, Refusal(text="x")), PartEnded(0), STOP],
        [Started("r", "m"), PartStarted(0, Reasoning(texts=("x",))), PartEnded(0), STOP],
        [Started("r", "m"), PartStarted(0, ToolCall(id="c", name="f", arguments="{}")), PartEnded(0), STOP],
        [Started("r", "m"), PartStarted(0, Data(json=b"1")), PartDelta(0, "x"), PartEnded(0), STOP],
        [Started("r", "m"), PartStarted(0, Opaque(dialect="chat", raw=b"{}")), PartDelta(0, "x"), PartEnded(0), STOP],
        [Started("r", "m"), PartStarted(0, Reasoning()), PartCited(0, CITATION), PartEnded(0), STOP],
        [Native("chat", "/x", b"1"), Started("r", "m"), STOP],
    ],
)
def test_a_stream_that_breaks_the_grammar_is_refused(events):
    with pytest.raises(GrammarError):
        list(check_events(events))


@pytest.mark.parametrize(
    "events",
    [
        [Failed(Problem("internal", "x"))],
        [Started("r", "m"), Failed(Problem("internal", "x"))],
        [Started("r", "m"), TEXT, Failed(Problem("internal", "x"))],
        [Started("r", "m"), UsageSeen(Usage()), STOP],
        [Started("r", "m"), PartStarted(0, Data(json=b"1")), PartEnded(0), STOP],
    ],
)
def test_a_stream_within_the_grammar_passes_unchanged(events):
    assert list(check_events(events)) == events
