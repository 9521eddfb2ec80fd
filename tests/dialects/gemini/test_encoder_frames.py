"""Replies of every form, whole and as events, encoded to the last byte."""

import json
from typing import Any

import pytest

from dialects.outline import outline
from dragoman.core.events import (
    Event,
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
from dragoman.core.parts import Citation, Data, Inline, Media, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.value import Extras
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.encoder import GeminiEncoder

FOREIGN = Response(
    id="r",
    model="",
    parts=(
        Reasoning(texts=("a", "b")),
        Text(text="x"),
        ToolCall(id="c1", name="f", arguments=""),
        ToolCall(id="c2", name="f", arguments="[1]"),
        ToolCall(id="c3", name="f", arguments="{}", complete=False),
    ),
    finish=Finish("tool_calls"),
    usage=Usage(input=1),
    extras=Extras("gemini", {"/traceId": b'"t"', "/candidates/0/x": b"1", "/vendor": b"2"}),
)


def test_a_foreign_reply_is_written_whole():
    parts = [
        {"text": "a\n\nb", "thought": True},
        {"text": "x"},
        {"functionCall": {"id": "c1", "name": "f", "args": {}}},
    ]
    body = {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0, "x": 1}],
        "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1},
        "modelVersion": "asked",
        "responseId": "r",
        "vendor": 2,
    }
    request = Request(model="asked", messages=())
    assert json.loads(DIALECT.build_response(FOREIGN, request)) == body
    wrapped = Request(model="asked", messages=(), spelling=frozenset({"code_assist"}))
    assert json.loads(DIALECT.build_response(FOREIGN, wrapped)) == {"response": body, "traceId": "t"}
    empty = Response(id="", model="", parts=(), finish=Finish("length"))
    assert json.loads(DIALECT.build_response(empty, None)) == {
        "candidates": [{"finishReason": "MAX_TOKENS", "index": 0}]
    }


@pytest.mark.parametrize("more", [{}, {"/candidates/0/x": b"1"}])
def test_a_refused_prompt_has_no_candidates(more: dict[str, bytes]):
    fields = {"/promptFeedback": b'{"blockReason":"SAFETY"}', **more}
    reply = Response(id="", model="", parts=(), finish=Finish("filtered", "SAFETY"), extras=Extras("gemini", fields))
    candidates: dict[str, Any] = {"candidates": [{"x": 1}]} if more else {}
    assert json.loads(DIALECT.build_response(reply, None)) == {
        "promptFeedback": {"blockReason": "SAFETY"},
        **candidates,
    }
    answered = Response(id="", model="", parts=(), finish=Finish("filtered", "OTHER"), extras=Extras("gemini", fields))
    assert json.loads(DIALECT.build_response(answered, None))["candidates"][0]["finishReason"] == "SAFETY"


EVENTS: list[Event] = [
    Started("r", "m"),
    PartStarted(0, Reasoning(extras=Extras("gemini", {"/x": b"\n1"}))),
    PartDelta(0, "a"),
    PartDelta(0, "b", 1),
    PartDelta(0, "c", 1),
    PartSigned(0, Signature("google", "s")),
    PartEnded(0),
    PartStarted(1, Text(text="")),
    PartDelta(1, 'q"'),
    PartNative(1, "gemini", "/y", b"[\n1]"),
    PartNative(1, "chat", "/never", b"1"),
    PartCited(1, Citation("gemini", b"{}")),
    PartSigned(1, Signature("google", "t")),
    PartEnded(1),
    PartStarted(2, Refusal(text="")),
    PartDelta(2, "no"),
    PartEnded(2),
    PartStarted(3, ToolCall(id="c1", name="f", arguments="", extras=Extras("gemini", {"/z": b"1"}))),
    PartDelta(3, '{"a"'),
    PartDelta(3, ":1}"),
    PartSigned(3, Signature("google", "u")),
    PartNative(3, "gemini", "/w", b"\n2"),
    PartEnded(3),
    PartStarted(4, ToolCall(id="", name="g", arguments="", signature=Signature("google", "v"))),
    PartEnded(4),
    PartStarted(5, ToolCall(id="", name="cut", arguments="")),
    PartDelta(5, "{}"),
    PartEnded(5, complete=False),
    PartStarted(6, Reasoning(redacted=True, signature=Signature("anthropic", "w"))),
    PartEnded(6),
    PartStarted(7, Opaque(dialect="gemini", raw=b'{\n"a":1}')),
    PartEnded(7),
    PartStarted(8, Opaque(dialect="chat", raw=b"{}")),
    PartEnded(8),
    PartStarted(9, Media(kind="image", media_type="image/png", source=Inline("AA=="))),
    PartEnded(9),
    PartStarted(10, Data(json=b"1")),
    PartEnded(10),
    PartDelta(10, "never"),
    PartSigned(10, Signature("google", "never")),
    PartNative(10, "gemini", "/never", b"1"),
    Native("gemini", "/traceId", b'"t"'),
    Native("gemini", "/candidates/0/safetyRatings", b"[\n]"),
    Native("chat", "/never", b"1"),
    UsageSeen(Usage(input=9)),
    UsageSeen(Usage(input=1)),
    Finished(Finish("tool_calls")),
]


def encode(events: list[Event], request: Request | None = None) -> str:
    encoder = GeminiEncoder(request)
    return b"".join(encoder.feed(event) for event in events).decode()


def test_every_event_is_encoded_to_the_last_byte():
    lines = [
        line.replace(',"role":"model"},"index":0}],"modelVersion":"m","responseId":"r"}', " |")
        for line in encode(EVENTS).split("\r\n\r\n")
    ]
    assert (
        outline(lines)
        == """\
'data: {"candidates":[{"content":{"parts":[{"text":"","thought":true,"x":1}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"a","thought":true}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"\\\\n\\\\nb","thought":true}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"c","thought":true}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"","thought":true,"thoughtSignature":"s"}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"q\\\\""}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"","y":[1]}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"t"}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"no"}] |'
'data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"c1","name":"f","args":{"a":1}},"thoughtSignature":"u","z":1,"w":2}] |'
'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"g","args":{}},"thoughtSignature":"v"}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"","thought":true,"thoughtSignature":"w"}] |'
'data: {"candidates":[{"content":{"parts":[{"a":1}] |'
'data: {"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}] |'
'data: {"candidates":[{"content":{"parts":[{"text":"1"}] |'
'data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0,"safetyRatings":[]}],"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1},"modelVersion":"m","responseId":"r"}'
''
"""
    )


def test_the_envelope_is_put_around_every_chunk():
    request = Request(model="asked", messages=(), spelling=frozenset({"code_assist"}))
    bare = encode(EVENTS).split("\r\n\r\n")[:-1]
    wrapped = encode(EVENTS, request).split("\r\n\r\n")[:-1]
    for one, other in zip(bare[:-1], wrapped[:-1], strict=True):
        assert other == 'data: {"response":' + one.removeprefix("data: ") + "}"
    last = json.loads(bare[-1].removeprefix("data: "))
    assert json.loads(wrapped[-1].removeprefix("data: ")) == {"response": last, "traceId": "t"}


def test_a_reply_without_a_start_has_the_requested_model():
    request = Request(model="asked", messages=())
    assert encode([PartStarted(0, Text(text="")), PartDelta(0, "x")], request) == (
        'data: {"candidates":[{"content":{"parts":[{"text":"x"}],"role":"model"},"index":0}],"modelVersion":"asked"}\r\n\r\n'
    )
    assert encode([Finished(Finish("stop"))]) == 'data: {"candidates":[{"finishReason":"STOP","index":0}]}\r\n\r\n'


def test_a_failure_is_one_line():
    failed = encode([Started("r", "m"), Failed(Problem("internal", "a\nb"))])
    assert failed == 'data: {"error":{"code":500,"message":"a\\nb","status":"INTERNAL"}}\r\n\r\n'
