"""Streams of every form, each decoded to its last event."""

from typing import Any

import pytest

from dialects.chat.chunks import DONE, STOP, TOOLS, calls, chunk, decode, frame
from dialects.outline import outline
from dragoman.core.events import Finished

PAGE = {"type": "url_citation", "url_citation": {"url": "https://e.org"}}


def choices(*given: dict[str, Any], **fields: Any) -> bytes:
    return frame({"id": "chatcmpl-1", "model": "m", "choices": list(given), **fields})


def test_content_is_emitted_part_by_part():
    stream = [
        chunk({"role": "assistant", "content": "", "reasoning_content": "r"}),
        chunk({"reasoning_content": "s", "reasoning": "t"}),
        chunk({"reasoning": "u", "content": "a"}),
        chunk({"content": "b", "annotations": [PAGE]}),
        chunk({"refusal": "no"}),
        chunk({"annotations": [PAGE], "reasoning_details": [{"a": 1}], "audio": {"data": "A"}, "none": None}),
        chunk({"reasoning_details": [{"b": 2}], "audio": {"data": "B"}}),
        chunk(finish="stop", system_fingerprint="fp", service_tier=None, provider="p", vendor={"a": 1}),
        choices(
            {
                "index": 0,
                "logprobs": {"content": [1]},
                "native_finish_reason": "end",
                "content_filter_results": {},
                "x": 1,
            },
            system_fingerprint="fp",
            obfuscation="zz",
            usage={"prompt_tokens": 1},
        ),
        choices(usage=None),
        DONE,
        chunk({"content": "late"}),
    ]
    assert (
        outline(decode(b"".join(stream)))
        == """\
Started id='chatcmpl-1' model='m' created=5
PartStarted index=0 part=Reasoning(where='/choices/0/message/reasoning_content', spelling='chat reasoning_content')
PartDelta index=0 text='r'
PartDelta index=0 text='s'
PartDelta index=0 text='u'
PartEnded index=0
PartStarted index=1 part=Text(where='/choices/0/message/content', text='')
PartDelta index=1 text='a'
PartDelta index=1 text='b'
PartCited index=1 citation=Citation(dialect='chat', raw=b'{"type": "url_citation", "url_citation": {"url": "https://e.org"}}', url='https://e.org', places=('/choices/0/message/annotations/0'))
PartEnded index=1
PartStarted index=2 part=Refusal(where='/choices/0/message/refusal', text='')
PartDelta index=2 text='no'
PartEnded index=2
Native dialect='chat' field='/choices/0/message/reasoning' raw=b'"t"'
Native dialect='chat' field='/choices/0/message/annotations' raw=b'[{"type": "url_citation", "url_citation": {"url": "https://e.org"}}]'
Native dialect='chat' field='/choices/0/message/audio' raw=b'{"data":"AB"}'
Native dialect='chat' field='/system_fingerprint' raw=b'"fp"'
Native dialect='chat' field='/provider' raw=b'"p"'
Native dialect='chat' field='/vendor' raw=b'{"a": 1}'
Native dialect='chat' field='/choices/0/logprobs' raw=b'{"content": [1]}'
Native dialect='chat' field='/choices/0/native_finish_reason' raw=b'"end"'
Native dialect='chat' field='/choices/0/content_filter_results' raw=b'{}'
Native dialect='chat' field='/choices/0/x' raw=b'1'
Native dialect='chat' field='/choices/0/message/reasoning_details' raw=b'[{"a":1},{"b":2}]'
UsageSeen usage=Usage(input=1)
Finished finish=Finish(reason='refused', raw='stop')
"""
    )


def test_content_given_as_parts_is_emitted_part_by_part():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "t"}, {"type": "text", "text": "u"}]},
        {"type": "text", "text": ""},
        {"type": "text", "text": "x", "a": 1},
        {"type": "text", "text": "", "b": 2},
        {"type": "refusal", "refusal": "no"},
        {"type": "strange"},
        {"type": "text", "text": "y"},
    ]
    assert (
        outline(decode(chunk({"content": parts}) + STOP))
        == """\
Started id='chatcmpl-1' model='m' created=5
PartStarted index=0 part=Reasoning(where='/choices/0/message/content/0', spelling='chat thinking')
PartDelta index=0 text='tu'
PartEnded index=0
PartStarted index=1 part=Text(where='/choices/0/message/content/1', spelling='chat part', text='')
PartDelta index=1 text='x'
PartNative index=1 dialect='chat' field='/a' raw=b'1'
PartNative index=1 dialect='chat' field='/b' raw=b'2'
PartEnded index=1
PartStarted index=2 part=Refusal(where='/choices/0/message/content/2', spelling='chat part', text='')
PartDelta index=2 text='no'
PartEnded index=2
PartStarted index=3 part=Opaque(where='/choices/0/message/content/3', dialect='chat', raw=b'{"type": "strange"}')
PartEnded index=3
PartStarted index=4 part=Text(where='/choices/0/message/content/4', spelling='chat part', text='')
PartDelta index=4 text='y'
PartEnded index=4
Finished finish=Finish(reason='refused', raw='stop')
"""
    )


def test_calls_are_emitted_with_all_their_fields():
    sign = {"google": {"thought_signature": "s"}}
    stream = [
        chunk({"content": "x"}),
        calls({"index": 0, "id": "a", "type": "function", "name": "f", "args": ""}),
        calls(
            {"index": 0, "args": '{"x"'}, {"index": 1, "id": "b", "name": "g", "args": "{}", "mood": 1, "none": None}
        ),
        calls({"index": 0, "args": ":1}", "extra_content": sign}),
        chunk({"tool_calls": [{"index": 2, "id": "c", "type": "custom", "custom": {"name": "p", "input": "te"}}]}),
        chunk({"tool_calls": [{"index": 2, "custom": {"input": "xt"}}]}),
        calls({"index": 3, "id": "d", "name": "h"}),
        calls({"index": 4, "args": "{", "extra_content": sign}),
        calls({"index": 4, "id": "e"}),
        calls({"index": 4, "name": "late"}, {"index": 4, "args": "}"}),
        chunk({"function_call": {"name": "old", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}),
        TOOLS,
    ]
    assert (
        outline(decode(b"".join(stream)))
        == """\
Started id='chatcmpl-1' model='m' created=5
PartStarted index=0 part=Text(where='/choices/0/message/content', text='')
PartDelta index=0 text='x'
PartEnded index=0
PartStarted index=1 part=ToolCall(where='/choices/0/message/tool_calls/0', id='a', name='f', arguments='')
PartDelta index=1 text='{"x"'
PartStarted index=2 part=ToolCall(where='/choices/0/message/tool_calls/1', id='b', name='g', arguments='')
PartDelta index=2 text='{}'
PartNative index=2 dialect='chat' field='/mood' raw=b'1'
PartDelta index=1 text=':1}'
PartSigned index=1 signature=Signature(issuer='google', value='s')
PartEnded index=1
PartEnded index=2
PartStarted index=3 part=ToolCall(where='/choices/0/message/tool_calls/2', id='c', name='p', arguments='', form='text')
PartDelta index=3 text='te'
PartDelta index=3 text='xt'
PartStarted index=4 part=ToolCall(where='/choices/0/message/tool_calls/3', id='d', name='h', arguments='')
PartStarted index=5 part=ToolCall(where='/choices/0/message/tool_calls/4', id='e', name='late', arguments='')
PartDelta index=5 text='{'
PartSigned index=5 signature=Signature(issuer='google', value='s')
PartDelta index=5 text='}'
PartEnded index=5
PartStarted index=6 part=ToolCall(where='/choices/0/message/function_call', spelling='chat function_call', id='', name='old', arguments='')
PartDelta index=6 text='{}'
PartEnded index=3
PartDelta index=4 text='{}'
PartEnded index=4
PartEnded index=6
Finished finish=Finish(reason='tool_calls', raw='tool_calls')
"""
    )


def test_a_limit_cuts_the_calls_that_are_not_whole():
    stream = [
        calls({"index": 0, "id": "a", "name": "f", "args": "{"}, {"index": 1, "id": "b", "name": "f", "args": "{}"}),
        chunk({"tool_calls": [{"index": 2, "id": "c", "type": "custom", "custom": {"name": "p", "input": "t"}}]}),
        calls({"index": 3, "id": "d", "name": "f"}),
        chunk({"tool_calls": [{"index": 4, "id": "e", "type": "custom", "custom": {"name": "p", "input": "t"}}]}),
        chunk(finish="length"),
    ]
    assert (
        outline(decode(b"".join(stream)))
        == """\
Started id='chatcmpl-1' model='m' created=5
PartStarted index=0 part=ToolCall(where='/choices/0/message/tool_calls/0', id='a', name='f', arguments='')
PartDelta index=0 text='{'
PartStarted index=1 part=ToolCall(where='/choices/0/message/tool_calls/1', id='b', name='f', arguments='')
PartDelta index=1 text='{}'
PartEnded index=1
PartStarted index=2 part=ToolCall(where='/choices/0/message/tool_calls/2', id='c', name='p', arguments='', form='text')
PartDelta index=2 text='t'
PartStarted index=3 part=ToolCall(where='/choices/0/message/tool_calls/3', id='d', name='f', arguments='')
PartStarted index=4 part=ToolCall(where='/choices/0/message/tool_calls/4', id='e', name='p', arguments='', form='text')
PartDelta index=4 text='t'
PartEnded index=0 complete=False
PartEnded index=2
PartEnded index=3 complete=False
PartEnded index=4 complete=False
Finished finish=Finish(reason='length', raw='length')
"""
    )


def test_other_answers_are_gathered_and_never_mixed_in():
    other = {
        "index": 1,
        "delta": {"role": "assistant", "content": "b", "tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
    }
    more = {
        "index": 1,
        "delta": {"content": "c", "tool_calls": [{"index": 0, "function": {"arguments": "}"}}, {"index": 1}]},
    }
    last = {"index": 1, "delta": {"content": None}, "finish_reason": "stop", "logprobs": {"content": [1]}}
    stream = [
        choices({"index": 2, "delta": {"content": "z"}}, other, created=7.0),
        choices({"delta": {"content": "a"}}, more),
        choices(last, {"index": 0, "finish_reason": "stop", "x": 1}),
        DONE,
    ]
    assert (
        outline(decode(b"".join(stream)))
        == """\
Started id='chatcmpl-1' model='m' created=7
PartStarted index=0 part=Text(where='/choices/0/message/content', text='')
PartDelta index=0 text='a'
PartEnded index=0
Native dialect='chat' field='/choices/0/x' raw=b'1'
Native dialect='chat' field='/choices/1' raw=b'{"index":1,"message":{"role":"assistant","content":"bc","tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1}]},"finish_reason":"stop","logprobs":{"content":[1]}}'
Native dialect='chat' field='/choices/2' raw=b'{"index":2,"message":{"content":"z"},"finish_reason":null}'
Finished finish=Finish(reason='stop', raw='stop')
"""
    )


@pytest.mark.parametrize(
    ("stream", "last"),
    [
        (b"", "the stream ended before the reply was finished"),
        (DONE, "the stream ended before the reply was finished"),
        (chunk({"content": "x"}), "the stream ended before the reply was finished"),
        (
            calls({"index": 0, "id": "a", "name": "f", "args": "{"}) + DONE,
            "the stream ended before the reply was finished",
        ),
        (calls({"index": 0, "id": "a", "args": "{}"}) + TOOLS, "a tool call has no name"),
        (frame(b"nonsense"), "malformed_reply"),
        (frame({"choices": [{"delta": {"content": 7}}]}), "/choices/0/delta/content"),
        (b'event: error\ndata: {"message":"m","code":429}\n\n', "kind='rate_limit', message='m', status=429"),
        (frame({"object": "error", "message": "m", "type": "tokens"}), "kind='rate_limit', message='m', status=429"),
        (frame({"error": {"message": "m", "code": 503}}), "kind='overloaded', message='m', status=503"),
    ],
)
def test_a_reply_that_does_not_end_well_fails(stream: bytes, last: str):
    assert last in outline(decode(stream)[-1])


def test_a_failure_has_the_usage():
    stream = chunk({"content": "x"}, usage={"prompt_tokens": 1}) + frame({"error": {"message": "m"}})
    assert (
        outline(decode(stream)[-2:])
        == """\
UsageSeen usage=Usage(input=1)
Failed problem=Problem(kind='internal', message='m', status=500, detail=b'{"error":{"message": "m"}}', detail_dialect='chat')
"""
    )


def test_no_error_is_not_an_error():
    for error in ({}, "", False, [], None):
        assert isinstance(decode(chunk({"content": "x"}, "stop", error=error) + DONE)[-1], Finished)


def test_text_alone_is_enough_at_done():
    assert (
        outline(decode(chunk({"content": "x"}) + frame(b"  [DONE]")))
        == """\
Started id='chatcmpl-1' model='m' created=5
PartStarted index=0 part=Text(where='/choices/0/message/content', text='')
PartDelta index=0 text='x'
PartEnded index=0
Finished finish=Finish(reason='stop')
"""
    )
