"""Recorded replies and histories: captured or not, the program gets a valid reply."""

import json

import pytest

from dragoman.core.events import Failed, PartStarted
from dragoman.core.parts import ToolCall
from dragoman.dialects.registry import dialect_named
from dragoman.intercept.plan import CallerTools, CapturedToolCall, Group, RewritePlan
from dragoman.intercept.replies import CallCapture, TurnRequest, choose_reply_form
from dragoman.intercept.rewrite import rewrite_request
from shelf import exchanges, needs_shelf

GEMINI = dialect_named("gemini")
STREAM = TurnRequest(stream=True, events=True)
PROMPT = "(The tools have answered: go on.)"
MARK = "dt-0123456789abcdef"
PART = b'{"functionCall":{"name":"ours","args":{}},"thoughtSignature":"c2ln"}'


def load_recordings(kind):
    named = [("gemini", one) for one in exchanges("gemini")] + [
        ("code_assist", one) for one in exchanges("code_assist")
    ]
    return [(name, one) for name, one in named if one.get(kind) and (one["status"] or 200) == 200]


def events_of(raw):
    decoder = GEMINI.decoder()
    return [*decoder.feed(raw), *decoder.close()]


def calls_in(events):
    parts = [event.part for event in events if isinstance(event, PartStarted)]
    return [part.name for part in parts if isinstance(part, ToolCall) and part.executor == "client"]


def pass_through(raw, names, size, turn=STREAM, kind="text/event-stream"):
    capture = CallCapture(frozenset(names), f"wait {MARK}")
    form = choose_reply_form(turn, kind, capture)
    return capture, b"".join(form.feed(raw[at : at + size]) for at in range(0, len(raw), size)) + form.close()


@needs_shelf
def test_recorded_streams_stay_valid_when_their_calls_are_taken_out():
    streams = load_recordings("sse")
    assert len(streams) > 200
    with_calls = 0
    for _, one in streams:
        raw = one["sse"].encode()
        assert pass_through(raw, (), 50)[1] == raw
        before = events_of(raw)
        names = calls_in(before)
        if b"partialArgs" in raw or b"willContinue" in raw:
            continue
        capture, result = pass_through(raw, names, 97)
        assert pass_through(raw, names, len(raw))[1] == result
        after = events_of(result)
        assert not calls_in(after), one["id"]
        assert isinstance(after[-1], Failed) == isinstance(before[-1], Failed), one["id"]
        assert len(capture.calls) == len(names)
        with_calls += bool(names)
        for call in capture.calls:
            assert call.part in raw
    assert with_calls > 40


@needs_shelf
def test_recorded_whole_replies_stay_valid_when_their_calls_are_taken_out():
    found = 0
    for _, one in load_recordings("response"):
        raw = json.dumps(one["response"], indent=1).encode()
        if isinstance(one["response"], list) or b'"functionCall"' not in raw:
            continue
        parts = one["response"]["candidates"][0]["content"]["parts"]
        names = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        capture, result = pass_through(raw, names, 1000, TurnRequest(), "application/json")
        assert [call.name for call in capture.calls] == names
        response = GEMINI.parse_response(result)
        assert not [part for part in response.parts if isinstance(part, ToolCall) and part.executor == "client"]
        found += 1
    assert found > 40


@needs_shelf
@pytest.mark.parametrize("strip", ["all", "none"])
def test_recorded_requests_keep_all_that_no_rule_is_about(strip):
    call = CapturedToolCall(id="c", name="ours", part=PART)
    group = Group(mark=MARK, calls=(call,), results=(b'{"functionResponse":{"name":"ours","response":{}}}',))
    tools = CallerTools(objects=(b'{"functionDeclarations":[{"name":"ours"}]}',), names=frozenset({"ours"}))
    plan = RewritePlan(tools=tools, strip=strip, groups={MARK: group}, placeholder="wait {id}", prompt=PROMPT)
    asked = [(name, one) for name, one in load_recordings("request") if one["op"] == "generate"]
    assert len(asked) > 500
    for name, one in asked:
        wrapped = name == "code_assist"
        body = json.loads(json.dumps(one["request"]))
        inner = body["request"] if wrapped else body
        contents = inner.get("contents")
        if not isinstance(contents, list):
            continue
        contents += [
            {"role": "model", "parts": [{"text": f"wait {MARK}"}]},
            {"role": "user", "parts": [{"text": PROMPT}]},
        ]
        turn = TurnRequest(wrapped=wrapped, model="m")
        going = rewrite_request("/v1beta/models/m:generateContent", json.dumps(body).encode(), turn, plan)
        assert not going.problem, (one["id"], going.problem)
        if going.is_side_request:
            assert json.loads(going.body) == body
            continue
        after = json.loads(going.body)
        after = after["request"] if wrapped else after
        assert after["contents"][:-2] == contents[:-2], one["id"]
        assert after["contents"][-2]["parts"] == [json.loads(PART)]
        assert "ours" in json.dumps(after.pop("tools"))
        changed = {"contents", "tools", "toolConfig", "tool_config"}
        assert {key: value for key, value in after.items() if key not in changed} == {
            key: value for key, value in inner.items() if key not in changed
        }
