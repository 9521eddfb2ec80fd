"""Every recorded reply, judged by the official SDKs: we read it as they do, and they read our translation as it was meant."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from conformance import ours
from conformance.comparison import build_expected, same_meaning, same_reading
from conformance.recordings import DIALECTS, KNOWN_BROKEN, Recording, all_ids, replies
from dragoman.core.problems import Problem
from oracles import Reading, read_live, read_stream, read_whole
from shelf import needs_shelf

PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS if source != target]
TEXTS = {"chat", "responses"}
"""Dialects whose SDKs keep arguments as the text they came in."""
EVERY = 12
"""One stream in so many goes through the whole client too."""


@functools.cache
def judge(dialect: str) -> dict[str, Reading]:
    """What the dialect's own SDK makes of each recording."""
    readings: dict[str, Reading] = {}
    for recording in replies(dialect):
        read = read_stream if recording.streamed else read_whole
        readings[recording.id] = read(dialect, recording.body, strict=False)
    return readings


def _ends_as_we_say(reading: Reading, dialect: str, recording: Recording) -> Reading:
    """Some compatible hosts send no finish reason; for them our default is expected."""
    if reading.finish or reading.problem:
        return reading
    return replace(reading, finish=ours.read(dialect, recording.body, streamed=recording.streamed).finish)


def failures(dialect: str, differences: Callable[[Recording], Iterator[str]]) -> str:
    """Run `differences` over a dialect's recordings and say what differs where."""
    found = {recording.id: "; ".join(differences(recording)) for recording in replies(dialect)}
    return "\n".join(f"{name}: {what}" for name, what in found.items() if what)


@needs_shelf
@pytest.mark.parametrize("dialect", DIALECTS)
def test_we_read_every_recorded_reply_as_its_own_sdk_does(dialect):
    def differences(recording: Recording) -> Iterator[str]:
        mine = ours.read(dialect, recording.body, streamed=recording.streamed)
        return same_reading(judge(dialect)[recording.id], mine, exact=dialect in TEXTS)

    assert not (result := failures(dialect, differences)), result


@needs_shelf
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_client_reads_a_translated_reply_as_it_was_meant(source, target):
    def differences(recording: Recording) -> Iterator[str]:
        streamed = recording.streamed
        meant = _ends_as_we_say(judge(source)[recording.id], source, recording)
        expected = build_expected(meant, target, streamed=streamed)
        translated = ours.translate(recording.body, source, target, streamed=streamed)
        got = _read_by_client(target, translated, expected, streamed=streamed)
        return same_meaning(expected, got, exact={source, target} <= TEXTS)

    assert not (result := failures(source, differences)), result


def _read_by_client(target: str, translated: bytes | Problem, expected: Reading, *, streamed: bool) -> Reading:
    if isinstance(translated, Problem):
        return Reading(problem=repr(translated))
    if not streamed:
        return read_whole(target, translated)
    # The SDK's type of a chunk knows functions only, though its client lets free-form calls through.
    free_form = target == "chat" and any(call.form == "text" for call in expected.calls)
    return read_stream(target, translated, strict=not free_form)


@needs_shelf
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_the_whole_client_with_its_helper_reads_what_the_judge_reads(source, target):
    seen = 0
    for recording in [recording for recording in replies(source) if recording.streamed][::EVERY]:
        translated = ours.translate(recording.body, source, target, streamed=True)
        assert isinstance(translated, bytes)
        reading = read_stream(target, translated)
        if reading.problem or reading.finish not in {"stop", "tool_calls"}:
            continue  # the helper of Responses knows complete replies only
        result = "; ".join(same_reading(reading, read_live(target, translated), exact=False))
        assert not result, f"{recording.id}: {result}"
        seen += 1
    assert seen >= 10


@needs_shelf
@pytest.mark.parametrize("dialect", DIALECTS)
def test_there_are_enough_replies_to_mean_something(dialect):
    assert len(replies(dialect)) > 600
    assert sum(bool(reading.calls) for reading in judge(dialect).values()) > 100
    assert sum(bool(reading.problem) for reading in judge(dialect).values()) < 20


@needs_shelf
def test_few_recordings_are_set_aside_as_broken_and_all_of_them_exist():
    everything = all_ids()
    assert everything.keys() >= KNOWN_BROKEN.keys()
    assert len(KNOWN_BROKEN) <= len(everything) // 100
