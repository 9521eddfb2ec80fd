"""Replies that are read straight say what they say when they are read as a stream of one chunk."""

import json

import pytest
from hypothesis import given

import shelf
import strategies
from dialects.gemini.recordings import replies
from dragoman.core.problems import Problem
from dragoman.core.stream import collect
from dragoman.dialects.gemini.chunks import ChunkReader
from dragoman.dialects.gemini.plain_reply import read_plain
from dragoman.dialects.gemini.response import build_response, parse_response
from dragoman.wire import json as wire_json


def as_one_chunk(body):
    reader = ChunkReader()
    reader.feed(body.strip())
    reader.conclude()
    return collect(reader.events)


def assert_read_alike(body):
    plain = read_plain(body)
    if plain is not None:
        other = as_one_chunk(body)
        assert plain == other
        assert [part.where for part in plain.parts] == [part.where for part in other.parts]
    return plain is not None


def reply(*parts, **candidate):
    told = {"content": {"parts": list(parts), "role": "model"}, "finishReason": "STOP", **candidate}
    return json.dumps({"candidates": [told], "responseId": "r"}).encode()


CALL = {"functionCall": {"name": "f", "args": {"a": 1}}}


@shelf.needs_shelf
def test_every_recorded_reply_is_read_alike_and_most_are_plain():
    found = [assert_read_alike(body) for _, body in replies()]
    assert sum(found) > len(found) / 2


@given(strategies.responses("gemini"))
def test_every_generated_reply_is_read_alike(response):
    try:
        body = build_response(response, None)
        as_one_chunk(body)
    except (Problem, wire_json.Malformed):
        return
    assert_read_alike(body)


@pytest.mark.parametrize(
    "body",
    [
        reply({"text": "a"}, CALL, {"text": "b"}),
        reply({"text": "a", "thought": True}, {"text": "b"}, {**CALL, "thoughtSignature": "c2ln"}),
        reply({"text": "a", "thoughtSignature": "c2ln"}),
        reply({"functionCall": {"name": "f", "args": None, "id": "x"}}),
        reply({"functionCall": {"name": "f"}}, safetyRatings=[{"category": "A"}], finishReason="MAX_TOKENS"),
        reply(),
    ],
)
def test_plain_replies_are_read_straight(body):
    assert assert_read_alike(body)


@pytest.mark.parametrize(
    "body",
    [
        reply({"text": "a"}, {"text": "b"}),
        reply({"text": "a"}, {"text": "", "thoughtSignature": "c2ln"}),
        reply({"text": "a", "unheard": 1}),
        reply({"text": "a"}, index=1),
        reply({"text": "a"}, groundingMetadata={}),
        reply({"text": "a", **CALL}),
        reply({"functionCall": {"name": "", "args": {}}}),
        b'{"candidates":[]}',
        b"[]",
    ],
)
def test_whatever_is_not_quite_plain_is_left_to_the_reader_of_chunks(body):
    assert read_plain(body) is None


@pytest.mark.parametrize(
    "body",
    [
        reply({"text": "a"}).replace(b'"a"', b'"\xff"'),
        reply({"functionCall": {"name": "f", "args": {"a": "x"}}}).replace(b'"x"', b'"\xff"'),
        reply({"text": "a"}, safetyRatings=[{"category": "x"}]).replace(b'"x"', b'"\xff"'),
        reply({"text": "a"})[:-1] + b',"usageMetadata":{"promptTokensDetails":["\xff"]}}',
    ],
)
def test_a_plain_reply_must_be_text(body):
    assert read_plain(body) is None
    with pytest.raises(Problem):
        parse_response(body)
