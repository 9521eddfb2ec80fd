"""The neutral view: core values as plain JSON."""

import json

import pytest

from dragoman.core.parts import (
    Data,
    Inline,
    Link,
    Media,
    Plain,
    Reasoning,
    Signature,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Message, NativeTool, Request, Sampling, Tool, ToolChoice
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.value import Extras
from dragoman.interpreter.job import encode, view, view_problem


def show(value):
    return json.loads(encode(view(value)))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Text(text="hi", where="/w", spelling="s"), {"type": "text", "text": "hi"}),
        (Text(text=""), {"type": "text", "text": ""}),
        (
            Reasoning(texts=("a",), signature=Signature("google", "s")),
            {"type": "reasoning", "signature": {"issuer": "google", "value": "s"}, "texts": ["a"]},
        ),
        (
            ToolCall(id="a", name="f", arguments="{}", form="text", complete=False),
            {"type": "tool_call", "id": "a", "name": "f", "arguments": "{}", "form": "text", "complete": False},
        ),
        (
            ToolResult(call_id="a", content=(Data(json=b'{"n":1}'),), failed=True),
            {"type": "tool_result", "call_id": "a", "content": [{"type": "data", "json": {"n": 1}}], "failed": True},
        ),
        (Inline("AA"), {"type": "inline", "data": "AA"}),
        (Link("u"), {"type": "link", "url": "u"}),
        (Plain("x"), {"type": "plain", "text": "x"}),
        (Stored("openai", "f"), {"type": "stored", "issuer": "openai", "id": "f"}),
        (
            Media(kind="image", media_type="", source=Link("u")),
            {"type": "media", "kind": "image", "media_type": "", "source": {"type": "link", "url": "u"}},
        ),
        (Tool(name="f", parameters=b'{"a":1}'), {"type": "tool", "name": "f", "parameters": {"a": 1}}),
        (NativeTool(dialect="chat", raw=b"{}"), {"type": "native_tool", "dialect": "chat", "raw": {}}),
        (ToolChoice(mode="auto"), {"mode": "auto"}),
        (Data(json=b"not json \xff"), {"type": "data", "json": "not json \ufffd"}),
        (frozenset({"x"}), ["x"]),
        ({"k": b"1"}, {"k": 1}),
        ([Finish("stop")], [{"reason": "stop"}]),
        (None, None),
    ],
)
def test_every_value_is_shown_with_its_kind_and_content(value, plain):
    assert show(value) == plain


def test_a_request_is_shown_without_unset_fields():
    request = Request(
        model="m",
        messages=(Message(role="user", parts=(Text(text="hi"),), where="/m"),),
        sampling=Sampling(temperature=0),
        extras=Extras("chat", {"/x": b"[1]"}),
    )
    assert show(request) == {
        "model": "m",
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}],
        "sampling": {"temperature": 0},
        "extras": {"dialect": "chat", "fields": {"/x": [1]}},
    }


def test_a_reply_is_shown():
    reply = Response(id="r", model="m", parts=(), finish=Finish("stop", "end"), usage=Usage(input=1))
    assert show(reply) == {
        "id": "r",
        "model": "m",
        "parts": [],
        "finish": {"reason": "stop", "raw": "end"},
        "usage": {"input": 1},
    }


def test_a_problem_is_shown_without_unset_fields():
    full = Problem("rate_limit", "slow", where="/w", code="c", retry_after=3)
    assert view_problem(full) == {
        "kind": "rate_limit",
        "message": "slow",
        "status": 429,
        "where": "/w",
        "code": "c",
        "retry_after": 3,
    }
    assert view_problem(Problem("internal", "oops")) == {"kind": "internal", "message": "oops", "status": 500}
