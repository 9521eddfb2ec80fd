"""Whole replies, each read to its last field and written again; the table of finishes."""

import json
from typing import Any

import pytest

from dialects.outline import outline, short
from dragoman.core.parts import (
    Text,
    ToolCall,
)
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.dialects.messages import DIALECT
from dragoman.dialects.messages.response import read_finish, write_finish

HI = Text(text="hi")


FULL: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "text", "text": "x", "a": 1},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}, "caller": {"type": "direct"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 4,
        "output_tokens_details": {"thinking_tokens": 5, "x": 6},
        **{
            name: {"a": 1}
            for name in (
                "cache_creation",
                "service_tier",
                "inference_geo",
                "server_tool_use",
                "iterations",
                "speed",
                "new",
            )
        },
    },
    **{name: {"a": 1} for name in ("stop_details", "container", "context_management", "diagnostics", "new")},
}


def test_a_reply_is_read_whole_and_written_again():
    response = DIALECT.parse_response(json.dumps(FULL).encode())
    assert (
        outline(response)
        == """\
Response extras=messages{'/stop_details': '{"a": 1}', '/container': '{"a": 1}', '/context_management': '{"a": 1}', '/diagnostics': '{"a": 1}', '/new': '{"a": 1}'} id='msg_1' model='m' finish=Finish(reason='tool_calls', raw='tool_use') usage=Usage(input=8, output=2, cached=4, cache_written=3, reasoning=5, extras=messages{'/cache_creation': '{"a": 1}', '/service_tier': '{"a": 1}', '/inference_geo': '{"a": 1}', '/server_tool_use': '{"a": 1}', '/iterations': '{"a": 1}', '/speed': '{"a": 1}', '/output_tokens_details/x': '6', '/new': '{"a": 1}'})
  Reasoning where='/content/0' signature=Signature(issuer='anthropic', value='s') texts=('t')
  Text where='/content/1' extras=messages{'/a': '1'} text='x'
  ToolCall where='/content/2' extras=messages{'/caller': '{"type": "direct"}'} id='c' name='f' arguments='{}'
"""
    )
    assert json.loads(DIALECT.build_response(response, None)) == FULL
    bare = DIALECT.parse_response(
        b'{"content":[{"type":"tool_use","id":"c","name":"f"}],"container":null,"usage":{"speed":null}}'
    )
    assert (
        outline(bare)
        == """\
Response id='' model='' finish=Finish(reason='tool_calls') usage=Usage()
  ToolCall where='/content/0' id='c' name='f' arguments='{}'
"""
    )


def test_a_foreign_reply_is_written_whole():
    calls = [
        ToolCall(id="a", name="f", arguments="{"),
        ToolCall(id="b", name="f", arguments="{}"),
        ToolCall(id="c", name="f", arguments="{}", complete=False),
    ]
    usage = Usage(input=1, cached=2, reasoning=3)
    response = Response(id="", model="m", parts=(HI, *calls), finish=Finish("stop", "", "END"), usage=usage)
    assert json.loads(DIALECT.build_response(response, None)) == {
        "id": "msg_0",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "b", "name": "f", "input": {}}],
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            "cache_read_input_tokens": 2,
            "output_tokens_details": {"thinking_tokens": 3},
        },
    }
    empty = Response(id="r", model="m", parts=(), finish=Finish("length"))
    assert json.loads(DIALECT.build_response(empty, None))["usage"] == {"input_tokens": 0, "output_tokens": 0}


FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "pause_turn": "paused",
    "refusal": "refused",
    "compaction": "other",
}


@pytest.mark.parametrize(("word", "reason"), FINISHES.items())
def test_every_finish_reason_survives_a_round_trip(word: str, reason: Any):
    assert read_finish(word, "x", has_call=False) == Finish(reason, word, "x")
    called = "tool_calls" if reason in ("stop", "paused", "other") else reason
    assert read_finish(word, None, has_call=True) == Finish(called, word)
    assert write_finish(Finish(reason, word)) == word


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("filtered", "refusal"),
        ("refused", "refusal"),
        ("paused", "pause_turn"),
    ],
)
def test_every_finish_reason_is_rendered(reason: Any, word: str):
    assert write_finish(Finish(reason)) == write_finish(Finish(reason, "STOP")) == word
    assert read_finish(None, None, has_call=False) == read_finish("", None, has_call=False) == Finish("other", "")


@pytest.mark.parametrize(
    ("finish", "problem"),
    [
        (
            Finish("malformed_call"),
            "message='the model made a malformed tool call', status=502, code='malformed_function_call'",
        ),
        (Finish("other", "x"), "message=\"the model stopped with finish reason 'x'\", status=502, code='x'"),
        (Finish("other"), "message=\"the model stopped with finish reason ''\", status=502"),
    ],
)
def test_a_missing_stop_reason_is_an_error(finish: Finish, problem: str):
    with pytest.raises(Problem) as caught:
        write_finish(finish)
    assert short(caught.value) == f"Problem(kind='malformed_reply', {problem})"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{}", "message='the reply has no content', status=502, where='/content'"),
        (
            b'{"content":[{"type":"tool_use","id":"a","name":""}]}',
            "message='a tool call has no name', status=502, where='/content/0/name'",
        ),
        (b'{"content":7}', "where='/content'"),
    ],
)
def test_a_broken_reply_is_a_problem(body: bytes, problem: str):
    with pytest.raises(Problem) as caught:
        DIALECT.parse_response(body)
    assert short(caught.value).startswith("Problem(kind='malformed_reply'")
    assert problem in short(caught.value)


def test_an_error_in_place_of_a_reply_is_raised_as_its_problem():
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}'
    with pytest.raises(Problem) as caught:
        DIALECT.parse_response(body)
    detail = f"detail={body!r}, detail_dialect='messages'"
    assert short(caught.value) == f"Problem(kind='overloaded', message='m', status=529, {detail})"
