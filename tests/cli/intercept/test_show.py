"""What differs between two bodies is shown line by line, and nothing secret with it."""

import json
from io import StringIO

import pytest

from cpu_limit import cpu_limit
from dragoman.cli.chat.terminal import Screen
from dragoman.cli.intercept.show import diff_bodies, format_exchange, lines_of
from dragoman.intercept.exchange import InterceptedExchange, to_saved
from dragoman.intercept.plan import CapturedToolCall


def signs(before: bytes, after: bytes) -> list[str]:
    return [sign + line for sign, line in diff_bodies(before, after)]


def test_an_added_field_is_shown_with_its_context():
    before = b'{"contents":[{"role":"user"}]}'
    after = b'{"contents":[{"role":"user"}],"tools":[{"functionDeclarations":[]}]}'
    result = signs(before, after)
    assert '+  "tools": [' in result
    assert '+      "functionDeclarations": []' in result
    assert not [line for line in result if line.startswith("-") and line.strip("- ,]")]


def test_what_is_alike_and_far_away_is_counted_not_shown():
    before = json.dumps({"long": list(range(100)), "last": 1}).encode()
    after = json.dumps({"long": list(range(100)), "last": 2}).encode()
    result = signs(before, after)
    assert '-  "last": 1' in result
    assert '+  "last": 2' in result
    assert len(result) < 12
    assert any(line.startswith("@") and "unchanged lines" in line for line in result)


def test_a_body_that_did_not_change_has_no_difference():
    assert all(sign in " @" for sign, _ in diff_bodies(b'{"a":1}', b'{ "a": 1 }'))


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
        (b"\xff\xfe", ["(2 bytes of binary data)"]),
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
    with cpu_limit():
        assert signs(before, after)


def exchange(**more):
    return to_saved(
        InterceptedExchange(name="client", method="POST", target="/v1/models/m:generateContent", status=200, **more)
    )


def format_text(passed, *, pretty=False):
    return format_exchange(passed, Screen(StringIO(), StringIO(), pretty=pretty))


def test_an_exchange_shows_what_was_received_sent_and_captured():
    call = b'{\n "functionCall": {"name": "look"},\n "thoughtSignature": "abcdefgh0123456789abcdefgh"}'
    result = format_text(
        exchange(
            came=b'{"contents":[]}',
            left=b'{"contents":[],"tools":[]}',
            rules=("tools put in",),
            reply_came=b'{"candidates":[1]}',
            reply_left=b'{"candidates":[2]}',
            captured=(CapturedToolCall(id="c1", name="look", part=call),),
        )
    )
    assert "client POST /v1/models/m:generateContent 200" in result
    assert "  rules: tools put in\n" in result
    assert "  request: 15 bytes received, 26 sent\n" in result
    assert '  +   "tools": []\n' in result
    assert "  -     1\n  +     2\n" in result
    assert "  captured look as c1\n" in result
    assert '{"functionCall": {"name": "look"}, "thoughtSignature": "abcdefgh…"}\n' in result
    assert "\x1b" not in result


def test_a_request_that_was_forwarded_unchanged_shows_the_reason():
    result = format_text(exchange(came=b"{", left=b"{", problem="it is no JSON"))
    assert "forwarded unchanged: it is no JSON" in result
    assert "request: 1 bytes, unchanged" in result


@pytest.mark.parametrize("pretty", [False, True])
def test_nothing_secret_and_nothing_that_steers_a_terminal_is_shown(pretty, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    secret = "AIza" + "Sy" * 16 + "1"
    body = json.dumps({"text": f"key {secret}\u202e\x9b31m", "tail": "x" * 5000}, ensure_ascii=False).encode()
    result = format_text(exchange(came=body, left=b'{"a":1}', target_left=f"/v1/\x1b[2J?key={secret}"), pretty=pretty)
    assert secret not in result
    for code in ("\u202e", "\x9b", "\x1b[2J"):
        assert code not in result
    assert max(map(len, result.splitlines())) < 500
    assert ("\x1b[" in result) is pretty
