"""Events of every form, each encoded to its last byte."""

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
from dragoman.core.parts import Citation, Media, Opaque, Plain, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Usage
from dragoman.core.value import Extras
from dragoman.dialects.chat.encoder import ChatEncoder

EVENTS: list[Event] = [
    Started("r", "m", 5),
    PartStarted(0, Reasoning()),
    PartDelta(0, "a"),
    PartDelta(0, "b", 1),
    PartDelta(0, "c", 1),
    PartEnded(0),
    PartStarted(1, Reasoning(spelling="chat thinking", extras=Extras("chat", {"/x": b"1"}))),
    PartDelta(1, "t"),
    PartEnded(1),
    PartStarted(2, Reasoning(spelling="chat reasoning")),
    PartNative(2, "chat", "/x", b"1"),
    PartDelta(2, "u"),
    PartEnded(2),
    PartStarted(3, Text(text="", extras=Extras("chat", {"/y": b'{\n"a": 1}'}))),
    PartDelta(3, 'q"'),
    PartCited(3, Citation("chat", b'{\n"type":"note"}')),
    PartCited(3, Citation("gemini", b"{}", url="u", title="t", start=1, end=2)),
    PartCited(3, Citation("gemini", b"{}")),
    PartEnded(3),
    PartStarted(4, Refusal(text="")),
    PartDelta(4, "no"),
    PartEnded(4),
    PartStarted(5, Opaque(dialect="chat", raw=b'{\n"type":"x"}')),
    PartEnded(5),
    PartStarted(6, Opaque(dialect="gemini", raw=b"{}")),
    PartDelta(6, "never"),
    PartEnded(6),
    PartStarted(7, Media(kind="image", media_type="", source=Plain("x"))),
    PartEnded(7),
    PartStarted(8, ToolCall(id="c1", name="f", arguments="", signature=Signature("google", "s"))),
    PartDelta(8, "{}"),
    PartSigned(8, Signature("google", "s2")),
    PartSigned(8, Signature("openai", "s3")),
    PartNative(8, "chat", "/function/x", b"[\n1]"),
    PartNative(8, "gemini", "/z", b"1"),
    PartEnded(8),
    PartStarted(9, ToolCall(id="c2", name="p", arguments="", form="text", extras=Extras("chat", {"/x": b"\n1"}))),
    PartDelta(9, "text"),
    PartSigned(9, Signature("google", "s4")),
    PartEnded(9),
    PartStarted(10, ToolCall(id="", name="old", arguments="", spelling="chat function_call")),
    PartDelta(10, "{}"),
    PartSigned(10, Signature("google", "never")),
    PartEnded(10),
    PartDelta(10, "never"),
    PartNative(10, "chat", "/never", b"1"),
    PartSigned(10, Signature("google", "never")),
    PartEnded(10),
    Native("chat", "/system_fingerprint", b'"fp"'),
    Native("chat", "/choices/0/logprobs", b'{\n"content":[]}'),
    Native("chat", "/choices/0/message/audio", b'{\n"id":"a"}'),
    Native("chat", "/choices/1", b'{"index":1,\n"message":{"content":"b"}}'),
    Native("chat", "/choices/2", b"[2]"),
    Native("gemini", "/never", b"1"),
    UsageSeen(Usage(input=9)),
    UsageSeen(Usage(input=1, output=2, extras=Extras("chat", {"/cost": b"\n1"}))),
    Finished(Finish("tool_calls")),
]


def encode(events: list[Event], request: Request | None = None) -> str:
    encoder = ChatEncoder(request)
    return b"".join(encoder.feed(event) for event in events).decode()


def test_every_event_is_encoded_to_the_last_byte():
    head = 'data: {"id":"r","object":"chat.completion.chunk","created":5,"model":"m",'
    lines = encode(EVENTS).split("\n\n")
    frames = [line.replace(head, "| ").replace(',"usage":null}', " |") for line in lines]
    assert (
        outline(frames)
        == """\
'| "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"reasoning_content":"a"},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"reasoning_content":"\\\\n\\\\nb"},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"reasoning_content":"c"},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[],"x":1}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"\\\\n\\\\nt"}]}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"reasoning":"\\\\n\\\\nu"},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"content":[{"type":"text","text":"","y":{"a":1}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"content":"q\\\\""},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"refusal":"no"},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"content":[{"type":"x"}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{},"extra_content":{"google":{"thought_signature":"s"}}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{},"extra_content":{"google":{"thought_signature":"s2"}}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"x":[1]}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"custom","custom":{"name":"p","input":""},"x":1}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"custom":{"input":"text"}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"extra_content":{"google":{"thought_signature":"s4"}}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"function_call":{"name":"old","arguments":""}},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"function_call":{"arguments":"{}"}},"finish_reason":null}] |'
'| "choices":[{"index":1,"delta":{"content":"b"}}] |'
'| "choices":[[2]] |'
'| "choices":[{"index":0,"delta":{"annotations":[{"type":"note"},{"type":"url_citation","url_citation":{"url":"u","title":"t","start_index":1,"end_index":2}}]},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{"audio":{"id":"a"}},"finish_reason":null}] |'
'| "choices":[{"index":0,"delta":{},"finish_reason":"function_call","logprobs":{"content":[]}}],"usage":null,"system_fingerprint":"fp"}'
'| "choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":1}}'
'data: [DONE]'
''
"""
    )


def test_usage_is_not_sent_if_not_requested():
    asked = {
        b'{"include_usage": true}': True,
        b'{"include_usage":1}': False,
        b"{}": False,
        b"null": False,
        b"[]": False,
    }
    events = [Started("", "m"), UsageSeen(Usage(input=1)), Finished(Finish("stop"))]
    for options, expected in asked.items():
        request = Request(model="m", messages=(), extras=Extras("chat", {"/stream_options": options}))
        assert ("usage" in encode(events, request)) is expected
    foreign = Request(model="m", messages=(), extras=Extras("gemini", {"/stream_options": b'{"include_usage":true}'}))
    head = 'data: {"id":"","object":"chat.completion.chunk","created":0,"model":"m","choices":['
    assert encode(events, foreign) == (
        head
        + '{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}\n\n'
        + head
        + '{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    assert "usage" not in encode(events[::2], None).replace('"usage":null', "")


@pytest.mark.parametrize(
    ("part", "finish", "word"),
    [
        (Refusal(text=""), Finish("refused"), "stop"),
        (Text(text=""), Finish("refused"), "content_filter"),
        (ToolCall(id="", name="f", arguments="", spelling="chat function_call"), Finish("tool_calls"), "function_call"),
    ],
)
def test_the_last_chunk_has_the_finish_reason(part: Any, finish: Finish, word: str):
    frames = encode([Started("r", "m"), PartStarted(0, part), PartEnded(0), Finished(finish)]).split("\n\n")
    assert json.loads(frames[-3].removeprefix("data: "))["choices"][0]["finish_reason"] == word


def test_failures_end_a_stream_without_done():
    for event in (Failed(Problem("internal", "m")), Finished(Finish("malformed_call"))):
        ended = encode([Started("r", "m"), event])
        assert ended.endswith("\n\n")
        assert "error" in json.loads(ended.split("\n\n")[-2].removeprefix("data: "))


def test_empty_arguments_are_an_object_only_of_a_call_that_is_whole():
    call = ToolCall(id="a", name="f", arguments="")
    begun: list[Event] = [Started("r", "m"), PartStarted(0, call)]
    output = encode([*begun, PartEnded(0)]).removeprefix(encode(begun))
    assert json.loads(output.removeprefix("data: "))["choices"][0]["delta"] == {
        "tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]
    }
    assert encode([*begun, PartEnded(0, complete=False)]) == encode(begun)
    free: list[Event] = [Started("r", "m"), PartStarted(0, ToolCall(id="a", name="f", arguments="", form="text"))]
    assert encode([*free, PartEnded(0)]) == encode(free)
