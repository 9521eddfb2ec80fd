"""Replies of every form, whole and in chunks, decoded to the last event."""

import json
from typing import Any

import pytest

from dialects.outline import outline
from dragoman.core.events import Event, Failed, PartEnded
from dragoman.core.problems import Problem
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.decoder import GeminiChunkReader
from event_grammar import check_events


def chunk(*parts: Any, **fields: Any) -> dict[str, Any]:
    inside = {
        name: fields.pop(name) for name in ("finishReason", "safetyRatings", "finishMessage", "x") if name in fields
    }
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    return {"candidates": [{**content, **inside, "index": 0}], "modelVersion": "m", "responseId": "r", **fields}


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(one).encode() + b"\r\n\r\n" for one in chunks)


def decode(stream: bytes, size: int = 1 << 20) -> list[Event]:
    decoder = DIALECT.decoder()
    events: list[Event] = []
    for start in range(0, len(stream), size):
        events += decoder.feed(stream[start : start + size])
    events += decoder.close()
    assert decoder.feed(b"data: {}\n\n") == decoder.close() == []
    return list(check_events(events))


STOP = chunk(finishReason="STOP")
CHUNKS = [
    chunk({"text": "a", "thought": True}, usageMetadata={"promptTokenCount": 1}, createTime="t"),
    chunk({"text": "b", "thought": True}, {"text": "", "thought": True, "thoughtSignature": "s"}),
    chunk({"text": "c"}, {"text": ""}, promptFeedback={"safetyRatings": []}),
    chunk({"text": "d"}),
    chunk({"text": "e", "x": 1, "thoughtSignature": "t"}, usageMetadata={"trafficType": "X"}),
    chunk({"text": "f"}, safetyRatings=[1]),
    chunk({"thoughtSignature": "u"}),
    chunk({"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "v", "y": 2}),
    chunk({"functionCall": {"name": "f"}}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}),
    chunk({"executableCode": {"code": "1"}}, {"text": "t", "functionCall": {"name": "f"}}, {}),
    {
        "candidates": [
            {"index": 1, "content": {"parts": [{"text": "1"}]}, "z": 1},
            {"index": 0, "content": {"parts": {"text": "g"}}, "x": 3},
        ]
    },
    {
        "candidates": [
            {"content": {"parts": [{"text": "h"}]}},
            {"content": {"parts": [{"text": "2"}]}, "finishReason": "STOP"},
        ],
        "vendor": 1,
    },
    chunk(finishReason="STOP", finishMessage="m", usageMetadata={"promptTokenCount": 2, "candidatesTokenCount": 3}),
]


def test_a_stream_is_emitted_part_by_part():
    assert (
        outline(decode(sse(*CHUNKS)))
        == """\
Started id='r' model='m'
PartStarted index=0 part=Reasoning(where='/candidates/0/content/parts/0')
PartDelta index=0 text='a'
UsageSeen usage=Usage(input=1)
PartDelta index=0 text='b'
PartSigned index=0 signature=Signature(issuer='google', value='s')
PartEnded index=0
PartStarted index=1 part=Text(where='/candidates/0/content/parts/1', text='')
PartDelta index=1 text='c'
PartDelta index=1 text='d'
PartDelta index=1 text='e'
PartNative index=1 dialect='gemini' field='/x' raw=b'1'
PartSigned index=1 signature=Signature(issuer='google', value='t')
PartEnded index=1
PartStarted index=2 part=Text(where='/candidates/0/content/parts/2', text='')
PartDelta index=2 text='f'
PartSigned index=2 signature=Signature(issuer='google', value='u')
PartEnded index=2
PartStarted index=3 part=ToolCall(where='/candidates/0/content/parts/3', extras=gemini{'/y': '2'}, id='c1', name='f', arguments='')
PartSigned index=3 signature=Signature(issuer='google', value='v')
PartDelta index=3 text='{"a": 1}'
PartEnded index=3
PartStarted index=4 part=ToolCall(where='/candidates/0/content/parts/4', id='', name='f', arguments='')
PartDelta index=4 text='{}'
PartEnded index=4
PartStarted index=5 part=Media(where='/candidates/0/content/parts/5', kind='image', media_type='image/png', source=Inline(data='AA=='))
PartEnded index=5
PartStarted index=6 part=Opaque(where='/candidates/0/content/parts/6', dialect='gemini', raw=b'{"executableCode":{"code": "1"}}')
PartEnded index=6
PartStarted index=7 part=Opaque(where='/candidates/0/content/parts/7', dialect='gemini', raw=b'{"text":"t","functionCall":{"name":"f"}}')
PartEnded index=7
PartStarted index=8 part=Opaque(where='/candidates/0/content/parts/8', dialect='gemini', raw=b'{}')
PartEnded index=8
PartStarted index=9 part=Text(where='/candidates/0/content/parts/9', text='')
PartDelta index=9 text='g'
PartDelta index=9 text='h'
PartEnded index=9
UsageSeen usage=Usage(input=2, output=3)
Native dialect='gemini' field='/createTime' raw=b'"t"'
Native dialect='gemini' field='/promptFeedback' raw=b'{"safetyRatings": []}'
Native dialect='gemini' field='/candidates/0/safetyRatings' raw=b'[1]'
Native dialect='gemini' field='/candidates/0/x' raw=b'3'
Native dialect='gemini' field='/vendor' raw=b'1'
Native dialect='gemini' field='/candidates/0/finishMessage' raw=b'"m"'
Native dialect='gemini' field='/candidates/1' raw=b'{"content":{"parts":[{"text": "1"},{"text": "2"}],"role":"model"},"index":1,"z":1,"finishReason":"STOP"}'
Finished finish=Finish(reason='tool_calls', raw='STOP')
"""
    )


def test_a_stream_reads_alike_in_any_form():
    body = outline(decode(sse(*CHUNKS)))
    array = json.dumps(CHUNKS).encode()
    lines = b"\n".join(json.dumps(one).encode() for one in CHUNKS)
    unparted = b"\n".join(b"data: " + json.dumps(one).encode() for one in CHUNKS) + b"\n\n"
    for stream in (
        array,
        b"\r\n " + lines,
        unparted,
        sse(*CHUNKS) + b"data: [DONE]\n\n",
        b": hello\n\n" + sse(*CHUNKS),
    ):
        assert outline(decode(stream)) == body
        assert outline(decode(stream, 7)) == body


def test_calls_in_pieces_are_put_together():
    def piece(**fields: Any) -> dict[str, Any]:
        return chunk({"functionCall": fields})

    stream = sse(
        piece(id="c1", name="f", willContinue=True),
        piece(partialArgs=[{"jsonPath": "$.a", "stringValue": "x", "willContinue": True}], willContinue=True),
        piece(partialArgs=[{"jsonPath": "$.a", "stringValue": "y"}], willContinue=True),
        piece(),
        piece(name="g", args={"z": 1}, partialArgs=[{"jsonPath": "$.b", "numberValue": 1}], willContinue=True),
        piece(name="h", partialArgs=[{"jsonPath": "$.c", "boolValue": True}]),
        piece(name="i", partialArgs=[{"jsonPath": "$.d", "stringValue": "x", "willContinue": True}], willContinue=True),
        chunk({"text": "t"}, finishReason="MAX_TOKENS"),
    )
    assert (
        outline(decode(stream))
        == """\
Started id='r' model='m'
PartStarted index=0 part=ToolCall(where='/candidates/0/content/parts/0', id='c1', name='f', arguments='')
PartDelta index=0 text='{"a":"xy"}'
PartEnded index=0
PartStarted index=1 part=ToolCall(where='/candidates/0/content/parts/1', id='', name='g', arguments='')
PartDelta index=1 text='{"z":1,"b":1}'
PartEnded index=1
PartStarted index=2 part=ToolCall(where='/candidates/0/content/parts/2', id='', name='h', arguments='')
PartDelta index=2 text='{"c":true}'
PartEnded index=2
PartStarted index=3 part=ToolCall(where='/candidates/0/content/parts/3', id='', name='i', arguments='')
PartStarted index=4 part=Text(where='/candidates/0/content/parts/4', text='')
PartDelta index=4 text='t'
PartDelta index=3 text='{"d":"x'
PartEnded index=3 complete=False
PartEnded index=4
Finished finish=Finish(reason='length', raw='MAX_TOKENS')
"""
    )


@pytest.mark.parametrize(
    ("will_continue", "finish", "complete"),
    [(True, "STOP", False), (False, "STOP", True), (False, "MAX_TOKENS", False)],
)
def test_a_call_that_is_open_at_the_end_is_whole_only_if_nothing_waits(
    will_continue: bool, finish: str, complete: bool
):
    piece = {"jsonPath": "$.a", "stringValue": "x", "willContinue": will_continue}
    call = {"functionCall": {"name": "f", "partialArgs": [piece], "willContinue": True}}
    assert PartEnded(0, complete) in decode(sse(chunk(call), chunk(finishReason=finish)))


def test_the_envelope_is_taken_off():
    inner = [chunk({"text": "a"}), STOP]
    wrapped = sse(*({"response": one, "traceId": "t", "metadata": {"a": 1}} for one in inner))
    bare = outline(decode(sse(*inner))).splitlines()
    natives = [
        "Native dialect='gemini' field='/traceId' raw=b'\"t\"'",
        "Native dialect='gemini' field='/metadata' raw=b'{\"a\": 1}'",
    ]
    assert outline(decode(wrapped)).splitlines() == [*bare[:-1], *natives, bare[-1]]


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        (b"", "message='the stream ended before the reply was finished'"),
        (sse(chunk({"text": "a"})), "message='the stream ended before the reply was finished'"),
        (sse({"usageMetadata": {}}) + b"data: [DONE]\n\n", "message='the stream ended before the reply was finished'"),
        (
            sse(chunk({"text": "a"})) + b'{"error":{"code":503,"message":"m"}}',
            "kind='overloaded', message='m', status=503",
        ),
        (
            sse(chunk({"text": "a"})) + b'\n{"error":\n{"code":503,"message":"m"}}\n',
            "kind='overloaded', message='m', status=503",
        ),
        (sse({"error": {"code": 429, "message": "m"}}), "kind='rate_limit', message='m', status=429"),
        (b'[{"error":{"code":429,"message":"m"}}]', "kind='rate_limit', message='m', status=429"),
        (sse({"candidates": 7}), "kind='malformed_reply'"),
    ],
)
def test_a_reply_that_does_not_end_well_fails(stream: bytes, problem: str):
    last = decode(stream)[-1]
    assert isinstance(last, Failed)
    assert problem in outline(last)
    assert isinstance(decode(stream, 5)[-1], Failed)


def test_a_failure_has_the_usage():
    stream = sse(
        chunk({"text": "a"}), chunk(usageMetadata={"promptTokenCount": 1}), chunk(usageMetadata={"promptTokenCount": 2})
    )
    assert (
        outline(decode(stream)[-3:])
        == """\
UsageSeen usage=Usage(input=1)
UsageSeen usage=Usage(input=2)
Failed problem=Problem(kind='malformed_reply', message='the stream ended before the reply was finished', status=502)
"""
    )


def test_a_refused_prompt_is_filtered():
    assert (
        outline(decode(sse({"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m"})))
        == """\
Started id='' model='m'
Native dialect='gemini' field='/promptFeedback' raw=b'{"blockReason": "SAFETY"}'
Finished finish=Finish(reason='filtered', raw='SAFETY')
"""
    )


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{}", "Problem('malformed_reply', 'the reply has no candidates', status=502, where='')"),
        (b'{"error":{"code":503,"message":"m"}}', "Problem('overloaded', 'm', status=503, where='')"),
        (b'{"candidates":[{"content":7}]}', "where='/candidates/0/content'"),
    ],
)
def test_a_broken_reply_is_a_problem(body: bytes, problem: str):
    with pytest.raises(Problem) as caught:
        DIALECT.parse_response(body)
    assert problem in repr(caught.value)


def test_a_whole_reply_reads_as_a_stream_of_one_chunk():
    assert (
        outline(DIALECT.parse_response(json.dumps(CHUNKS).encode()))
        == """\
Response spelling='chunk' extras=gemini{'/createTime': '"t"', '/promptFeedback': '{"safetyRatings": []}', '/candidates/0/safetyRatings': '[1]', '/candidates/0/x': '3', '/vendor': '1', '/candidates/0/finishMessage': '"m"', '/candidates/1': '{"content":{"parts":[{"text": "1"},{"text": "2"}],"role":"model"},"index":1,"z":1,"finishReason":"STOP"}'} id='r' model='m' finish=Finish(reason='tool_calls', raw='STOP') usage=Usage(input=2, output=3)
  Reasoning where='/candidates/0/content/parts/0' signature=Signature(issuer='google', value='s') texts=('ab')
  Text where='/candidates/0/content/parts/1' extras=gemini{'/x': '1'} signature=Signature(issuer='google', value='t') text='cde'
  Text where='/candidates/0/content/parts/2' signature=Signature(issuer='google', value='u') text='f'
  ToolCall where='/candidates/0/content/parts/3' extras=gemini{'/y': '2'} signature=Signature(issuer='google', value='v') id='c1' name='f' arguments='{"a": 1}'
  ToolCall where='/candidates/0/content/parts/4' id='' name='f' arguments='{}'
  Media where='/candidates/0/content/parts/5' kind='image' media_type='image/png' source=Inline(data='AA==')
  Opaque where='/candidates/0/content/parts/6' dialect='gemini' raw=b'{"executableCode":{"code": "1"}}'
  Opaque where='/candidates/0/content/parts/7' dialect='gemini' raw=b'{"text":"t","functionCall":{"name":"f"}}'
  Opaque where='/candidates/0/content/parts/8' dialect='gemini' raw=b'{}'
  Text where='/candidates/0/content/parts/9' text='gh'
"""
    )


COUNTED = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3, "trafficType": "ON_DEMAND"}


@pytest.mark.parametrize("thought", [False, True])
@pytest.mark.parametrize(
    "second",
    [
        chunk({"text": "b"}),
        chunk({"text": "b", "thought": True}),
        chunk({"text": ""}),
        chunk({"text": "b"}, usageMetadata=COUNTED),
        chunk({"text": "b"}, usageMetadata={"trafficType": "ON_DEMAND"}),
        chunk({"text": "b", "thoughtSignature": "s"}),
        chunk({"text": "b"}, {"text": "c"}),
        chunk({"text": "b"}, safetyRatings=[1]),
        chunk({"text": "b"}, createTime="t", x=1),
        chunk({"text": "b"}, candidates=[{"index": 1, "content": {"parts": [{"text": "b"}]}}]),
        chunk({"text": "b"}, error={"code": 500, "message": "late", "status": "INTERNAL"}),
    ],
)
def test_the_fast_path_for_text_chunks_matches_the_general_one(monkeypatch, second, thought):
    first = chunk({"text": "a", "thought": thought}, usageMetadata=COUNTED)
    stream = sse(first, second, second, STOP)
    directly = decode(stream)
    monkeypatch.setattr(GeminiChunkReader, "append_text", lambda _self, _body: False)
    assert repr(decode(stream)) == repr(directly)
