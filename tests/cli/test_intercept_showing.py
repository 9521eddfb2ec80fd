"""What differs between two bodies is shown line by line, and nothing secret with it."""

import json
import time

import pytest

from dragoman.cli.intercept.differing import difference, lines_of


def signs(before: bytes, after: bytes) -> list[str]:
    return [sign + line for sign, line in difference(before, after)]


def test_a_member_that_is_added_is_shown_with_what_stands_around_it():
    before = b'{"contents":[{"role":"user"}]}'
    after = b'{"contents":[{"role":"user"}],"tools":[{"functionDeclarations":[]}]}'
    told = signs(before, after)
    assert '+  "tools": [' in told
    assert '+      "functionDeclarations": []' in told
    assert not [line for line in told if line.startswith("-") and line.strip("- ,]")]


def test_what_is_alike_and_far_away_is_counted_not_shown():
    before = json.dumps({"long": list(range(100)), "last": 1}).encode()
    after = json.dumps({"long": list(range(100)), "last": 2}).encode()
    told = signs(before, after)
    assert '-  "last": 1' in told
    assert '+  "last": 2' in told
    assert len(told) < 12
    assert any(line.startswith("@") and "lines alike" in line for line in told)


def test_a_body_that_did_not_change_has_no_difference():
    assert all(sign in " @" for sign, _ in difference(b'{"a":1}', b'{ "a": 1 }'))


def test_events_of_a_stream_are_laid_out_each():
    assert lines_of(b'data: {"a":1}\r\n\r\ndata: {"b":2}\n\n') == [
        "data: {",
        '  "a": 1',
        "}",
        "",
        "data: {",
        '  "b": 2',
        "}",
        "",
    ]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"", []),
        (b"no json\nat all", ["no json", "at all"]),
        (b"\xff\xfe", ["(2 bytes that are no text)"]),
        (b'{"cut": ', ['{"cut": ']),
        (b"data: [DONE]", ["data: [DONE]"]),
    ],
)
def test_any_bytes_can_be_shown(body, lines):
    assert lines_of(body) == lines


def test_numbers_and_double_keys_are_shown_as_they_were_written():
    assert lines_of(b'{"a":1.50,"a":1e999}') == ["{", '  "a": 1.50,', '  "a": 1e999', "}"]


def test_large_bodies_that_differ_everywhere_take_no_long_time():
    before = json.dumps(list(range(300_000))).encode()
    after = json.dumps(list(range(1, 300_001, 2))).encode()
    began = time.process_time()
    assert signs(before, after)
    assert time.process_time() - began < 5
