"""A reply as each client's dialect can hold it: parts, calls, ids, sources, ends."""

import json

import pytest

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
from dragoman.core.parts import Citation, Inline, Media, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Usage
from dragoman.core.value import Extras
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.ids import build_call_id_stem, hash_text
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import ReplyOptions
from interpreter.workbench import exactly, loss_pointers, nobodys_dialect

CLIENTS = ["chat", "responses", "messages", "gemini"]


def adapt_part(client, *events, whole=False, salt="", source_issuer="nobody"):
    """Return the adapted events for a client, and the losses."""
    ledger = Ledger({"part.signature": ("/signature",)})
    options = ReplyOptions(salt, is_whole=whole)
    adapter = EventAdapter(nobodys_dialect(source_issuer), dialect_named(client), ledger, options)
    return [result for event in events for result in adapter.feed(event)], loss_pointers(ledger)


def part(index, start, *pieces, complete=True):
    return [PartStarted(index, start), *(PartDelta(index, piece) for piece in pieces), PartEnded(index, complete)]


def call(call_id="a", name="f", **more):
    return ToolCall(id=call_id, name=name, arguments="", where="/c", **more)


TEXT = Text(text="", where="/t")
IMAGE = Media(kind="image", media_type="image/png", source=Inline("AA"), where="/i")
STOP = Finished(Finish("stop", "end"))


@pytest.mark.parametrize("client", CLIENTS)
def test_text_calls_usage_and_the_end_pass(client):
    stream = [
        Started("r", "m", 3),
        *part(0, TEXT, "he", "llo"),
        *part(1, call(), '{"a":1}'),
        UsageSeen(Usage(input=1)),
        Finished(Finish("tool_calls", "x")),
    ]
    assert adapt_part(client, *stream) == (stream, [])


def test_usage_loses_what_only_the_source_counts():
    usage = Usage(input=1, extras=Extras("chat", {"/x": b"1"}))
    assert adapt_part("gemini", UsageSeen(usage)) == ([UsageSeen(Usage(input=1))], [("dropped", "/x")])


def test_fields_of_the_reply_and_of_its_parts_are_dropped_and_reported():
    stream = [
        Native("chat", "/fingerprint", b"1"),
        PartStarted(0, Text(text="", where="/t", extras=Extras("chat", {"/x": b"1"}))),
        PartNative(0, "chat", "/y", b"2"),
        PartEnded(0),
    ]
    assert adapt_part("messages", *stream) == (
        part(0, TEXT),
        [("dropped", "/fingerprint"), ("dropped", "/t/x"), ("dropped", "/t/y")],
    )


@pytest.mark.parametrize(
    ("client", "start", "kept"),
    [
        ("chat", Opaque(dialect="messages", raw=b"{}", where="/p"), False),
        ("messages", Opaque(dialect="messages", raw=b"{}", where="/p"), True),
        ("chat", Media(kind="image", media_type="", source=Inline("AA"), where="/p"), False),
        ("messages", Media(kind="image", media_type="", source=Inline("AA"), where="/p"), False),
        ("gemini", Media(kind="image", media_type="", source=Inline("AA"), where="/p"), True),
    ],
)
def test_a_part_the_client_cannot_hold_is_left_out_and_indexes_close_up(client, start, kept):
    stream = [*part(0, start), *part(1, TEXT, "hi")]
    after = stream if kept else part(0, TEXT, "hi")
    assert adapt_part(client, *stream) == (after, [] if kept else [("dropped", "/p")])


def test_no_further_events_of_a_dropped_part_are_emitted():
    stream = [
        PartStarted(0, IMAGE),
        PartSigned(0, Signature("google", "s")),
        PartCited(0, Citation("chat", b"{}", url="u")),
        PartEnded(0),
    ]
    assert adapt_part("chat", *stream) == ([], [("dropped", "/i")])


@pytest.mark.parametrize(
    ("client", "kind"), [("chat", Refusal), ("responses", Refusal), ("messages", Text), ("gemini", Text)]
)
def test_a_refusal_is_text_where_there_are_none(client, kind):
    adapted, losses = adapt_part(client, *part(0, Refusal(text="", where="/p"), "no"))
    assert exactly(adapted) == exactly(part(0, kind(text="", where="/p"), "no"))
    assert losses == ([] if kind is Refusal else [("approximated", "/p")])


def test_pieces_of_reasoning_stay_apart():
    stream = [PartStarted(0, Reasoning()), PartDelta(0, "a"), PartDelta(0, "b", 1), PartEnded(0)]
    assert adapt_part("chat", *stream) == (stream, [])


# Calls


@pytest.mark.parametrize(
    ("client", "prefix"), [("chat", "call_"), ("responses", "call_"), ("messages", "toolu_"), ("gemini", "")]
)
def test_a_call_without_an_id_gets_one_in_the_clients_style(client, prefix):
    stream = [Started("r", "m"), *part(0, call("")), *part(1, call("")), *part(2, call("", "g"))]
    adapted, _ = adapt_part(client, *stream, salt="7")
    ids = [event.part.id for event in adapted if isinstance(event, PartStarted)]
    assert ids == [f"{prefix}{build_call_id_stem('r', '7')}000{count}" for count in (1, 2, 3)]
    assert adapt_part(client, *stream)[0][1].part.id == f"{prefix}{build_call_id_stem('r', '')}0001"


@pytest.mark.parametrize(
    ("call_id", "after"),
    [
        ("a-B_9", "a-B_9"),
        ("i" * 64, "i" * 64),
        ("a.b", "a_b_" + hash_text("a.b", 24)),
        ("i" * 65, "i" * 15 + "_" + hash_text("i" * 65, 24)),
    ],
)
def test_ids_are_plain_where_the_client_checks_them(call_id, after):
    result, _ = adapt_part("messages", *part(0, call(call_id)))
    assert result[0].part.id == after
    assert adapt_part("chat", *part(0, call(call_id)))[0][0].part.id == call_id


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_free_form_call_passes_where_there_are_some(client):
    stream = part(0, call(form="text"), "l", "s")
    assert adapt_part(client, *stream) == (stream, [])


@pytest.mark.parametrize("client", ["messages", "gemini"])
@pytest.mark.parametrize("pieces", [("l", "s"), ()])
def test_a_free_form_call_becomes_a_function_call_and_is_emitted_when_complete(client, pieces):
    stream = part(0, call(form="text"), *pieces)
    adapted, losses = adapt_part(client, *stream)
    assert adapted[0] == PartStarted(0, call())
    assert json.loads(adapted[1].text) == {"input": "".join(pieces)}
    assert adapted[2:] == [PartEnded(0)]
    assert adapt_part(client, *stream[:-1]) == ([], [])
    assert losses == []


def test_a_call_is_emitted_when_its_arguments_begin():
    stream = part(0, call(), '{"a"', ":1}")
    for client in ("chat", "responses", "messages"):
        assert adapt_part(client, *stream[:1]) == ([], [])
        assert adapt_part(client, *stream[:2]) == (stream[:2], [])
        assert adapt_part(client, *stream) == (stream, [])


def test_a_call_for_gemini_or_in_a_whole_claude_reply_is_emitted_when_complete():
    stream = part(0, call(), '{"a"', ":1}")
    for client, whole in (("gemini", False), ("gemini", True), ("messages", True)):
        assert adapt_part(client, *stream[:-1], whole=whole) == ([], [])
        assert adapt_part(client, *stream, whole=whole) == (stream, [])


def test_a_call_is_held_until_it_is_seen_to_be_an_object():
    stream = part(0, call(), "", " ", "\n{", "}")
    assert adapt_part("messages", *stream[:3]) == ([], [])
    assert adapt_part("messages", *stream[:4]) == (stream[:4], [])
    assert adapt_part("chat", *stream[:2]) == (stream[:2], [])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_call_without_arguments_is_emitted(client):
    assert adapt_part(client, *part(0, call())) == (part(0, call()), [])


@pytest.mark.parametrize("client", ["messages", "gemini"])
def test_null_is_no_arguments(client):
    result, losses = adapt_part(client, *part(0, call(), "nu", "ll "), Finished(Finish("tool_calls")))
    assert result == [*part(0, call(), "{}"), Finished(Finish("tool_calls"))]
    assert losses == [("approximated", "/c")]


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_null_is_passed_to_clients_that_read_arguments_as_text(client):
    stream = part(0, call(), "null")
    assert adapt_part(client, *stream) == (stream, [])


BROKEN = Finished(Finish("malformed_call", "t"))
FAILED = Failed(Problem("malformed_reply", "the model made a malformed tool call (t)", code="malformed_function_call"))


@pytest.mark.parametrize(
    ("client", "whole", "end"),
    [("gemini", False, BROKEN), ("gemini", True, BROKEN), ("messages", True, FAILED), ("messages", False, FAILED)],
)
@pytest.mark.parametrize("arguments", ["[1]", "oops", '"text"'])
def test_a_call_with_invalid_arguments_is_dropped_and_reported_at_the_end(client, whole, end, arguments):
    stream = [*part(0, call(), arguments), *part(1, TEXT, "hi"), Finished(Finish("tool_calls", "t"))]
    assert adapt_part(client, *stream, whole=whole) == ([*part(0, TEXT, "hi"), end], [("dropped", "/c")])


@pytest.mark.parametrize(("client", "whole"), [("gemini", False), ("gemini", True), ("messages", True)])
def test_a_call_cut_off_is_left_out_where_it_cannot_be_shown(client, whole):
    stream = [*part(0, call(), '{"a"', complete=False), Finished(Finish("length"))]
    assert adapt_part(client, *stream, whole=whole) == ([Finished(Finish("length"))], [("dropped", "/c")])


@pytest.mark.parametrize(
    ("client", "whole"), [("messages", False), ("chat", True), ("chat", False), ("responses", True)]
)
def test_a_call_cut_off_is_shown_where_it_can_be(client, whole):
    stream = [*part(0, call(), '{"a"', complete=False), Finished(Finish("length"))]
    assert adapt_part(client, *stream, whole=whole) == (stream, [])


def test_a_cut_call_that_claims_to_be_whole_ends_a_stream_for_claudes_clients_in_an_error():
    stream = [*part(0, call(), '{"a"', ":"), Finished(Finish("tool_calls", "t"))]
    assert adapt_part("messages", *stream) == ([*stream[:-1], FAILED], [])
    assert adapt_part("chat", *stream) == (stream, [])


def test_a_lost_call_does_not_change_an_end_that_has_another_reason():
    stream = [*part(0, call(), "[1]"), Finished(Finish("stop"))]
    assert adapt_part("gemini", *stream)[0] == [Finished(Finish("stop"))]


# Sources and ends


@pytest.mark.parametrize(
    ("client", "citation", "kept"),
    [
        ("chat", Citation("gemini", b"{}", url="u"), True),
        ("chat", Citation("gemini", b"{}"), False),
        ("chat", Citation("chat", b"{}"), True),
        ("messages", Citation("chat", b"{}", url="u"), True),
        ("gemini", Citation("chat", b"{}", url="u"), True),
        ("gemini", Citation("chat", b"{}"), False),
    ],
)
def test_a_source_is_named_where_the_client_can_hold_it(client, citation, kept):
    cited = [PartCited(0, citation)] if kept else []
    stream = [PartStarted(0, TEXT), PartCited(0, citation), PartEnded(0)]
    assert adapt_part(client, *stream) == (
        [PartStarted(0, TEXT), *cited, PartEnded(0)],
        [] if kept else [("dropped", "/t")],
    )


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "filtered", "refused"])
def test_common_finish_reasons_are_unchanged(client, reason):
    end = Finished(Finish(reason, "raw", "seq"))
    assert adapt_part(client, end) == ([end], [] if client == "messages" else [("approximated", "")])
    assert adapt_part(client, Finished(Finish(reason, "raw"))) == ([Finished(Finish(reason, "raw"))], [])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_pause_is_a_reply_cut_by_length_where_there_are_none(client):
    end = Finished(Finish("paused", "pause_turn"))
    if client == "messages":
        assert adapt_part(client, end) == ([end], [])
    else:
        assert adapt_part(client, end) == ([Finished(Finish("length", "pause_turn"))], [("approximated", "")])


@pytest.mark.parametrize(
    ("reason", "raw", "message", "code"),
    [
        ("other", "WEIRD", "the model stopped for an unknown reason (WEIRD)", "unknown_finish"),
        ("other", "", "the model stopped for an unknown reason (other)", "unknown_finish"),
        ("malformed_call", "BAD", "the model made a malformed tool call (BAD)", "malformed_function_call"),
    ],
)
def test_a_finish_reason_that_the_client_does_not_have_is_an_error(reason, raw, message, code):
    end = Finished(Finish(reason, raw))
    for client in ("chat", "responses", "messages"):
        assert adapt_part(client, end) == ([Failed(Problem("malformed_reply", message, code=code))], [])
    assert adapt_part("gemini", end) == ([end], [])


def test_a_failure_is_passed_on_without_codes_of_the_source_dialect():
    problem = Problem("rate_limit", "slow", code="insufficient_quota")
    assert adapt_part("messages", Failed(problem), source_issuer="openai") == (
        [Failed(Problem("rate_limit", "slow"))],
        [],
    )
    assert adapt_part("chat", Failed(problem), source_issuer="openai") == ([Failed(problem)], [])


@pytest.mark.parametrize("client", CLIENTS)
def test_calls_in_many_pieces_follow_one_another_to_their_end(client):
    stream = [*part(0, call(), '{"a"', ":", "1}"), *part(1, call("b"), "{", "}"), *part(2, TEXT, "hi")]
    end = Finished(Finish("tool_calls", "t"))
    # Chat has one place for text, before the calls.
    moved = [("approximated", "/t")] if client == "chat" else []
    assert adapt_part(client, *stream, end) == ([*stream, end], moved)
