"""Whole replies of every form, each read to its last field and written again; the tables of finishes and of usage."""

import json
from typing import Any

import pytest

from dialects.outline import outline, short
from dragoman.core.parts import Citation, Opaque, Reasoning, Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.value import Extras
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.chat.encoder import write_finish, write_usage
from dragoman.dialects.chat.response import read_finish, read_usage
from dragoman.wire.json import encode


def reply(*choices: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "r", "object": "chat.completion", "created": 5, "model": "m", "choices": list(choices), **fields}


def choice(message: dict[str, Any], finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, **fields}


def parse(document: Any) -> Response:
    return DIALECT.parse_response(json.dumps(document).encode())


def function(call_id: str = "c1", arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}, **fields}


PAGE = {
    "type": "url_citation",
    "url_citation": {"url": "https://e.org", "title": "E", "content": "q", "start_index": 1, "end_index": 2},
}
FULL = reply(
    choice(
        {
            "content": "text",
            "reasoning_content": "r1",
            "reasoning": "r2",
            "refusal": "no",
            "tool_calls": [
                function(index=0, mood=1),
                function("c2", ""),
                function("c3", {"a": 1}),
                {"id": "c4", "type": "custom", "custom": {"name": "p", "input": "x"}},
                {"id": "c5", "type": "mcp", "mcp": {}},
                function("c6", extra_content={"google": {"thought_signature": "s"}}),
            ],
            "annotations": [PAGE, {"type": "note"}, {"type": "url_citation", "url_citation": 7}],
            "audio": {"id": "a"},
        },
        "tool_calls",
        logprobs={"content": []},
        extra=None,
    ),
    {"index": 1, "message": {"content": "other"}},
    usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    system_fingerprint="fp",
    service_tier=None,
)
PARTS = reply(
    choice(
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]},
                {"type": "text", "text": ""},
                {"type": "text", "text": "", "a": 1},
                {"type": "text", "text": "x", "b": 2},
                {"type": "refusal", "refusal": "no"},
                {"type": "strange"},
            ],
            "function_call": {"name": "g", "arguments": ""},
            "annotations": [PAGE],
        },
        "function_call",
    )
)
BARE: dict[str, Any] = {
    "choices": [{"index": 3}, {"index": 0, "message": {"annotations": [PAGE], "reasoning": "r"}}],
    "error": {"code": 1},
}


def test_every_form_of_a_reply_is_read_whole():
    assert (
        outline(parse(FULL))
        == """\
Response extras=chat{'/system_fingerprint': '"fp"', '/choices/0/logprobs': '{"content": []}', '/choices/1': '{"index": 1, "message": {"content": "other"}}', '/choices/0/message/audio': '{"id": "a"}'} id='r' model='m' finish=Finish(reason='tool_calls', raw='tool_calls') usage=Usage(input=1, output=2) created=5
  Reasoning where='/choices/0/message/reasoning_content' spelling='chat reasoning_content' texts=('r1')
  Reasoning where='/choices/0/message/reasoning' spelling='chat reasoning' texts=('r2')
  Text where='/choices/0/message/content' text='text' citations=(Citation(dialect='chat', raw=b'{"type": "url_citation", "url_citation": {"url": "https://e.org", "title": "E", "content": "q", "start_index": 1, "end_index": 2}}', url='https://e.org', title='E', quote='q', start=1, end=2, places=('/choices/0/message/annotations/0')), Citation(dialect='chat', raw=b'{"type": "note"}', places=('/choices/0/message/annotations/1')), Citation(dialect='chat', raw=b'{"type": "url_citation", "url_citation": 7}', places=('/choices/0/message/annotations/2')))
  Refusal where='/choices/0/message/refusal' text='no'
  ToolCall where='/choices/0/message/tool_calls/0' extras=chat{'/mood': '1'} id='c1' name='f' arguments='{}'
  ToolCall where='/choices/0/message/tool_calls/1' id='c2' name='f' arguments='{}'
  ToolCall where='/choices/0/message/tool_calls/2' spelling='chat object' id='c3' name='f' arguments='{"a":1}'
  ToolCall where='/choices/0/message/tool_calls/3' id='c4' name='p' arguments='x' form='text'
  Opaque where='/choices/0/message/tool_calls/4' spelling='chat call' dialect='chat' raw=b'{"id":"c5","type":"mcp","mcp":{}}'
  ToolCall where='/choices/0/message/tool_calls/5' signature=Signature(issuer='google', value='s') id='c6' name='f' arguments='{}'
"""
    )
    assert (
        outline(parse(PARTS))
        == """\
Response id='r' model='m' finish=Finish(reason='tool_calls', raw='function_call') created=5
  Reasoning where='/choices/0/message/content/0' spelling='chat thinking' texts=('t')
  Text where='/choices/0/message/content/2' spelling='chat part' extras=chat{'/a': '1'} text=''
  Text where='/choices/0/message/content/3' spelling='chat part' extras=chat{'/b': '2'} text='x' citations=(Citation(dialect='chat', raw=b'{"type": "url_citation", "url_citation": {"url": "https://e.org", "title": "E", "content": "q", "start_index": 1, "end_index": 2}}', url='https://e.org', title='E', quote='q', start=1, end=2, places=('/choices/0/message/annotations/0')))
  Refusal where='/choices/0/message/content/4' spelling='chat part' text='no'
  Opaque where='/choices/0/message/content/5' dialect='chat' raw=b'{"type": "strange"}'
  ToolCall where='/choices/0/message/function_call' spelling='chat function_call' id='' name='g' arguments='{}'
"""
    )
    assert (
        outline(parse(BARE))
        == """\
Response extras=chat{'/error': '{"code": 1}', '/choices/0': '{"index": 3}', '/choices/1/message/annotations': '[{"type": "url_citation", "url_citation": {"url": "https://e.org", "title": "E", "content": "q", "start_index": 1, "end_index": 2}}]'} id='' model='' finish=Finish(reason='stop')
  Reasoning where='/choices/1/message/reasoning' spelling='chat reasoning' texts=('r')
"""
    )


def build(response: Response) -> Any:
    return json.loads(DIALECT.build_response(response, None))


def test_every_form_of_a_reply_is_written_again():
    full = json.loads(json.dumps(FULL))
    calls = full["choices"][0]["message"]["tool_calls"]
    del calls[0]["index"], full["choices"][0]["extra"], full["service_tier"]
    calls[1]["function"]["arguments"] = "{}"
    calls[2]["function"]["arguments"] = '{"a":1}'
    assert build(parse(FULL)) == full
    parts = json.loads(json.dumps(PARTS))
    del parts["choices"][0]["message"]["content"][1]
    parts["choices"][0]["message"]["function_call"]["arguments"] = "{}"
    parts["choices"][0]["message"]["refusal"] = None
    parts["choices"][0]["logprobs"] = None
    assert build(parse(PARTS)) == parts


def test_a_foreign_reply_is_written_whole():
    response = Response(
        id="r",
        model="m",
        parts=(
            Reasoning(texts=("a", "b")),
            Reasoning(redacted=True),
            Reasoning(texts=("c",), spelling="chat reasoning"),
            Text(
                text="x",
                citations=(Citation("gemini", b"{}", url="u", title="t", start=1, end=2), Citation("gemini", b"{}")),
            ),
            Text(text="y", citations=(Citation("gemini", b"{}", url="v"),)),
            Opaque(dialect="gemini", raw=b"{}"),
            ToolCall(id="", name="f", arguments="{}", spelling="chat untyped object"),
            Refusal(text="n"),
            Refusal(text="o"),
        ),
        finish=Finish("tool_calls"),
        usage=Usage(input=5, output=4, cached=0, cache_written=1, reasoning=2),
    )
    assert build(response) == {
        "id": "r",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "xy",
                    "refusal": "no",
                    "reasoning_content": "a\n\nb",
                    "reasoning": "c",
                    "tool_calls": [{"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {"url": "u", "title": "t", "start_index": 1, "end_index": 2},
                        },
                        {
                            "type": "url_citation",
                            "url_citation": {"url": "v", "title": "", "start_index": 1, "end_index": 2},
                        },
                    ],
                },
                "finish_reason": "tool_calls",
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 4,
            "total_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }
    empty = Response(id="", model="", parts=(), finish=Finish("stop"))
    assert build(empty)["choices"][0]["message"] == {"role": "assistant", "content": None, "refusal": None}
    assert "usage" not in build(empty)


WORDS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "stop",
    "function_call": "stop",
    "content_filter": "filtered",
    "eos": "stop",
    "stop_sequence": "stop",
    "model_length": "length",
    "max_tokens": "length",
    "never heard of": "other",
    "": "stop",
}


@pytest.mark.parametrize(("word", "reason"), WORDS.items())
def test_every_finish_is_read_by_what_was_seen(word: str, reason: str):
    assert read_finish(word or None, has_call=False, has_refusal=False) == Finish(reason, word)  # pyright: ignore[reportArgumentType]
    refused = "refused" if reason == "stop" else reason
    assert read_finish(word, has_call=False, has_refusal=True) == Finish(refused, word)  # pyright: ignore[reportArgumentType]
    called = reason if reason in ("length", "filtered") else "tool_calls"
    assert read_finish(word, has_call=True, has_refusal=True) == Finish(called, word)  # pyright: ignore[reportArgumentType]


FINISHES = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "filtered": "content_filter",
    "refused": "content_filter",
    "paused": "stop",
    "other": "content_filter",
}


@pytest.mark.parametrize(("reason", "word"), FINISHES.items())
def test_every_finish_reason_is_rendered(reason: Any, word: str):
    assert write_finish(Finish(reason, "x"), has_refusal=False, is_legacy=False) == word
    refusal = "stop" if reason == "refused" else word
    assert write_finish(Finish(reason), has_refusal=True, is_legacy=False) == refusal
    legacy = "function_call" if reason == "tool_calls" else word
    assert write_finish(Finish(reason), has_refusal=False, is_legacy=True) == legacy


def test_a_malformed_call_is_an_error():
    with pytest.raises(Problem) as caught:
        write_finish(Finish("malformed_call"), has_refusal=False, is_legacy=False)
    assert short(caught.value) == (
        "Problem(kind='malformed_reply', message='the model made a malformed tool call', status=502, "
        "code='malformed_function_call')"
    )


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, "Usage"),
        ({"prompt_tokens": 3}, "Usage input=3"),
        ({"prompt_tokens": 3, "total_tokens": 3}, "Usage input=3"),
        ({"completion_tokens": 4, "total_tokens": 4}, "Usage output=4"),
        ({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, "Usage input=3 output=4"),
        (
            {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 8},
            "Usage input=3 output=4 extras=chat{'/total_tokens': '8'}",
        ),
        ({"completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 4}}, "Usage output=4 reasoning=4"),
        ({"completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 0}}, "Usage output=4 reasoning=0"),
        (
            {"completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 5}},
            "Usage output=9 reasoning=5 extras=chat{'/completion_tokens': '4'}",
        ),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 4,
                "total_tokens": 7,
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            "Usage input=1 output=6 reasoning=2 extras=chat{'/completion_tokens': '4'}",
        ),
        (
            {"completion_tokens_details": {"reasoning_tokens": 2}},
            "Usage output=2 reasoning=2 extras=chat{'/completion_tokens': '0'}",
        ),
        (
            {
                "prompt_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2, "audio_tokens": 3},
                "cost": 1,
                "none": None,
            },
            "Usage input=9 cached=1 cache_written=2 extras=chat{'/cost': '1', '/prompt_tokens_details/audio_tokens': '3'}",
        ),
    ],
)
def test_usage_is_read_whole_and_written_again(given: Any, read: str):
    usage = read_usage(json.dumps(given).encode())
    assert outline(usage) == f"{read}\n"
    assert usage is not None
    again = json.loads(encode(write_usage(usage)))
    assert again.items() >= {name: count for name, count in given.items() if count is not None}.items()
    if "/total_tokens" not in read and "/completion_tokens" not in read:
        assert again["total_tokens"] == again["prompt_tokens"] + again["completion_tokens"]
    assert outline(read_usage(json.dumps(again).encode())) == outline(read_usage(encode(write_usage(usage))))


def test_odd_usage_is_none():
    assert (read_usage(None), read_usage(b'{"prompt_tokens":"x"}')) == (None, None)
    assert json.loads(encode(write_usage(Usage()))) == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    foreign = Usage(input=1, extras=Extras("gemini", {"/a": b"1"}))
    assert json.loads(encode(write_usage(foreign))) == {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}


@pytest.mark.parametrize(
    ("arguments", "form", "finish", "complete"),
    [
        ('{"a":', "json", "length", [False, False]),
        ("{}", "json", "length", [True, True]),
        ("", "json", "length", [False, False]),
        ("x", "text", "length", [True, False]),
        ('{"a":', "json", "stop", [True, True]),
        ('{"a":', "json", "content_filter", [True, True]),
    ],
)
def test_a_limit_cuts_calls(arguments: str, form: str, finish: str, complete: list[bool]):
    kind, field = ("function", "arguments") if form == "json" else ("custom", "input")
    calls = [{"id": name, "type": kind, kind: {"name": "f", field: arguments}, "x": 1} for name in "ab"]
    parts = parse(reply(choice({"content": "t", "tool_calls": calls}, finish))).parts
    expected = [
        ToolCall(id=name, name="f", arguments=arguments, form=form, complete=whole, extras=Extras("chat", {"/x": b"1"}))  # pyright: ignore[reportArgumentType]
        for name, whole in zip("ab", complete, strict=True)
    ]
    assert parts == (Text(text="t"), *expected)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "Problem(kind='malformed_reply', message="),
        (
            b'{"choices":[]}',
            "Problem(kind='malformed_reply', message='the reply has no choices', status=502, where='/choices')",
        ),
        (b'{"choices":[7]}', "Problem(kind='malformed_reply', message="),
        (b'{"error":{"message":"m","code":429}}', "Problem(kind='rate_limit', message='m', status=429, detail="),
        (
            b'{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}}]}',
            "Problem(kind='malformed_reply', message='a tool call has no name', status=502, where='/choices/0/message/tool_calls/0')",
        ),
        (
            b'{"choices":[{"message":{"function_call":{"arguments":"{}"}}}]}',
            "Problem(kind='malformed_reply', message='a tool call has no name', status=502, where='/choices/0/message/function_call')",
        ),
    ],
)
def test_a_broken_reply_is_a_problem(body: bytes, problem: str):
    with pytest.raises(Problem) as caught:
        DIALECT.parse_response(body)
    assert short(caught.value).startswith(problem)
