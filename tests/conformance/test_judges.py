"""The judges themselves: what they read in samples whose meaning is known, and that no difference escapes them."""

from dataclasses import replace

import pytest

from conformance.comparison import build_expected, same_meaning, same_reading
from conformance.recordings import DIALECTS
from oracles import Call, Reading, Usage, read_live, read_stream, read_stream_error, read_whole
from shelf import needs_shelf, samples

CASES = {
    "text": ("Hello there!", 0, "stop"),
    "one_tool": ("", 1, "tool_calls"),
    "two_tools": ("Checking both.", 2, "tool_calls"),
}
GOOD = Reading(text="hi", calls=(Call("f", '{"a":1}', "c1"),), finish="tool_calls", usage=Usage(3, 2, 1, 1))


def sample(dialect: str, name: str) -> bytes:
    (path,) = [path for path in samples(dialect, name) if path.name == name]
    return path.read_bytes()


@needs_shelf
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_judge_reads_the_same_in_a_stream_a_whole_reply_and_with_its_whole_client(dialect, case):
    stream = sample(dialect, f"{case}.stream.sse")
    reading = read_stream(dialect, stream)
    assert (reading.text, len(reading.calls), reading.finish, reading.problem) == (*CASES[case], "")
    whole = read_whole(dialect, sample(dialect, f"{case}.response.json"))
    assert not list(same_reading(reading, whole, exact=False))
    assert not list(same_reading(reading, read_live(dialect, stream), exact=False))


@needs_shelf
@pytest.mark.parametrize("dialect", ["chat", "messages", "gemini"])
def test_a_judge_sees_the_error_in_a_vendors_stream(dialect):
    assert read_stream(dialect, sample(dialect, "error.stream.sse")).problem
    assert read_stream_error(dialect, sample(dialect, "error.stream.sse")) is not None


@needs_shelf
def test_the_flat_error_event_of_responses_is_not_raised_so_a_nested_one_is_sent_too():
    assert read_stream_error("responses", sample("responses", "error.stream.sse")) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(GOOD, text="ho"),
        replace(GOOD, calls=()),
        replace(GOOD, calls=(Call("f", '{"a":2}', "c1"),)),
        replace(GOOD, calls=(Call("g", '{"a":1}', "c1"),)),
        replace(GOOD, calls=(Call("f", '{"a":1}', ""),)),
        replace(GOOD, finish="stop"),
        replace(GOOD, usage=Usage(3, 2, 0, 1)),
        replace(GOOD, usage=None),
        replace(GOOD, reasoning="hm"),
        replace(GOOD, refusal="no"),
        Reading(problem="raised"),
    ],
)
def test_no_difference_escapes_the_comparison(other):
    assert not list(same_meaning(GOOD, GOOD, exact=True))
    assert list(same_meaning(GOOD, other, exact=True))
    assert list(same_reading(GOOD, other, exact=True))


def test_unsupported_content_is_expected_to_fail_or_to_be_omitted():
    cut = replace(GOOD, calls=(Call("f", '{"a":', "c1"),), finish="length")
    assert build_expected(cut, "gemini", streamed=True).calls == ()
    assert build_expected(cut, "messages", streamed=True).calls == cut.calls
    assert build_expected(cut, "messages", streamed=False).calls == ()
    assert build_expected(cut, "chat", streamed=True).calls == cut.calls
    assert build_expected(replace(cut, finish="tool_calls"), "messages", streamed=True).problem
    assert build_expected(replace(GOOD, finish="other"), "chat", streamed=False).problem
    assert not build_expected(replace(GOOD, finish="other"), "gemini", streamed=False).problem
