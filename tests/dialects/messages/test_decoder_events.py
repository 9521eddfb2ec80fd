"""Streams of every form, each decoded to its last event."""

import json
from typing import Any

import pytest

from dialects.outline import outline
from dragoman.core.events import Event, Failed
from dragoman.dialects.messages.decoder import MessagesDecoder
from event_grammar import check_events


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (one.get("type", "x").encode(), json.dumps(one).encode()) for one in events
    )


def decode(stream: bytes) -> list[Event]:
    decoder = MessagesDecoder()
    events = [*decoder.feed(stream), *decoder.close()]
    assert decoder.feed(sse(STOP)) == decoder.close() == []
    return list(check_events(events))


def outline_events(*events: dict[str, Any]) -> str:
    return outline(decode(sse(*events)))


def block(index: int, *deltas: dict[str, Any], **content: Any) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(words: str) -> dict[str, Any]:
    return {"type": "text_delta", "text": words}


def piece(words: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": words}


START: dict[str, Any] = {
    "type": "message_start",
    "message": {"id": "r", "model": "m", "content": [], "usage": {"input_tokens": 1}},
}
END: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP: dict[str, Any] = {"type": "message_stop"}


def test_text_and_thinking_are_emitted_as_they_arrive():
    assert (
        outline_events(
            START,
            {"type": "ping"},
            *block(
                0,
                {"type": "thinking_delta", "thinking": "a"},
                {"type": "signature_delta", "signature": ""},
                {"type": "signature_delta", "signature": "s"},
                type="thinking",
                thinking="",
                signature="",
            ),
            *block(1, type="thinking", thinking="given", signature="t"),
            *block(2, type="redacted_thinking", data="d"),
            *block(
                3,
                text("x"),
                text(""),
                {"type": "citations_delta", "citation": {"url": "https://e.org"}},
                {"type": "new_delta", "new": "a", "b": 1},
                {"type": "new_delta", "new": "c"},
                {**text("y"), "mood": 1},
                type="text",
                text="w",
                more=2,
            ),
            *block(
                4,
                {"type": "signature_delta", "signature": "s"},
                {"type": "thinking_delta", "thinking": "odd"},
                type="text",
                text="",
            ),
            END,
            STOP,
        )
        == """\
Started id='r' model='m'
UsageSeen usage=Usage(input=1)
PartStarted index=0 part=Reasoning(where='/content/0')
PartDelta index=0 text='a'
PartSigned index=0 signature=Signature(issuer='anthropic', value='s')
PartEnded index=0
PartStarted index=1 part=Reasoning(where='/content/1')
PartDelta index=1 text='given'
PartSigned index=1 signature=Signature(issuer='anthropic', value='t')
PartEnded index=1
PartStarted index=2 part=Reasoning(where='/content/2', signature=Signature(issuer='anthropic', value='d'), redacted=True)
PartEnded index=2
PartStarted index=3 part=Text(where='/content/3', extras=messages{'/more': '2'}, text='')
PartDelta index=3 text='w'
PartDelta index=3 text='x'
PartCited index=3 citation=Citation(dialect='messages', raw=b'{"url": "https://e.org"}', url='https://e.org')
PartDelta index=3 text='y'
PartNative index=3 dialect='messages' field='/new' raw=b'"ac"'
PartNative index=3 dialect='messages' field='/b' raw=b'1'
PartNative index=3 dialect='messages' field='/mood' raw=b'1'
PartEnded index=3
PartStarted index=4 part=Text(where='/content/4', text='')
PartNative index=4 dialect='messages' field='/signature' raw=b'"s"'
PartNative index=4 dialect='messages' field='/thinking' raw=b'"odd"'
PartEnded index=4
Finished finish=Finish(reason='stop', raw='end_turn')
"""
    )


def test_calls_are_emitted_as_they_arrive():
    use = {"type": "tool_use", "name": "f"}
    assert (
        outline_events(
            START,
            *block(0, piece(""), piece('{"a"'), piece(":1}"), **use, id="a", input={}),
            *block(1, **use, id="b", input={}),
            *block(2, **use, id="c", input={"given": 1}, caller={"type": "direct"}),
            *block(3, piece('{"other":1}'), **use, id="d", input={"given": 1}),
            *block(4, piece('{"cut'), **use, id="e", input={"given": 1}),
            *block(5, piece('{"cut'), **use, id="f"),
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens", "stop_sequence": "END"}},
            STOP,
        )
        == """\
Started id='r' model='m'
UsageSeen usage=Usage(input=1)
PartStarted index=0 part=ToolCall(where='/content/0', id='a', name='f', arguments='')
PartDelta index=0 text='{"a"'
PartDelta index=0 text=':1}'
PartEnded index=0
PartStarted index=1 part=ToolCall(where='/content/1', id='b', name='f', arguments='')
PartDelta index=1 text='{}'
PartEnded index=1
PartStarted index=2 part=ToolCall(where='/content/2', extras=messages{'/caller': '{"type": "direct"}'}, id='c', name='f', arguments='')
PartDelta index=2 text='{"given": 1}'
PartEnded index=2
PartStarted index=3 part=ToolCall(where='/content/3', id='d', name='f', arguments='')
PartDelta index=3 text='{"other":1}'
PartEnded index=3
PartStarted index=4 part=ToolCall(where='/content/4', id='e', name='f', arguments='')
PartDelta index=4 text='{"given": 1}'
PartEnded index=4
PartStarted index=5 part=ToolCall(where='/content/5', id='f', name='f', arguments='')
PartDelta index=5 text='{"cut'
PartEnded index=5 complete=False
Finished finish=Finish(reason='length', raw='max_tokens', sequence='END')
"""
    )


def test_unknown_blocks_are_emitted_whole_when_they_stop():
    assert (
        outline_events(
            START,
            *block(0, piece('{"q":'), piece("1}"), type="server_tool_use", id="a", name="s", input={}),
            *block(1, piece("cut"), type="server_tool_use", id="b"),
            *block(
                2,
                {"type": "note_delta", "note": "b", "n": 1},
                {"type": "note_delta", "note": "c", "n": 2},
                type="noted",
                note="a",
            ),
            *block(3, text("t"), type="noted"),
            *block(4, type="web_search_tool_result", content=[]),
            *block(5, {"type": "text_delta", "text": "x"}, type="image", source={"type": "url", "url": "u"}),
            END,
            STOP,
        )
        == """\
Started id='r' model='m'
UsageSeen usage=Usage(input=1)
PartStarted index=0 part=Opaque(where='/content/0', dialect='messages', raw=b'{"type":"server_tool_use","id":"a","name":"s","input":{"q":1}}')
PartEnded index=0
PartStarted index=1 part=Opaque(where='/content/1', dialect='messages', raw=b'{"type":"server_tool_use","id":"b","input":"cut"}')
PartEnded index=1
PartStarted index=2 part=Opaque(where='/content/2', dialect='messages', raw=b'{"type":"noted","note":"abc","n":2}')
PartEnded index=2
PartStarted index=3 part=Opaque(where='/content/3', dialect='messages', raw=b'{"type":"noted","text":"t"}')
PartEnded index=3
PartStarted index=4 part=Opaque(where='/content/4', dialect='messages', raw=b'{"type": "web_search_tool_result", "content": []}')
PartEnded index=4
PartStarted index=5 part=Media(where='/content/5', kind='image', media_type='', source=Link(url='u'))
PartNative index=5 dialect='messages' field='/text' raw=b'"x"'
PartEnded index=5
Finished finish=Finish(reason='stop', raw='end_turn')
"""
    )


def test_the_fields_of_the_message_are_emitted():
    raw_members = {name: {"a": 1} for name in ("stop_details", "container", "context_management", "diagnostics")}
    usage = {"input_tokens": 1, "cache_read_input_tokens": 2, "service_tier": "x", "new": 1}
    parts = [{"type": "text", "text": "given"}, {"type": "tool_use", "id": "c", "name": "f"}]
    assert (
        outline_events(
            {
                "type": "message_start",
                "message": {
                    "id": "r",
                    "model": "m",
                    "content": parts,
                    "usage": usage,
                    **raw_members,
                    "vendor": 1,
                    "none": None,
                },
                "outer": 2,
            },
            {
                "type": "message_delta",
                "delta": {
                    "stop_reason": "stop_sequence",
                    "stop_sequence": "END",
                    "stop_details": {"b": 2},
                    "container": {"b": 2},
                    "inner": 3,
                },
                "usage": {"output_tokens": 3, "service_tier": "y", "output_tokens_details": {"thinking_tokens": 1}},
                "context_management": {"b": 2},
                "beside": 4,
            },
            {"type": "message_delta", "delta": {}},
            {**STOP, "last": 5},
        )
        == """\
Started id='r' model='m'
PartStarted index=0 part=Text(where='/content/0', text='')
PartDelta index=0 text='given'
PartEnded index=0
PartStarted index=1 part=ToolCall(where='/content/1', id='c', name='f', arguments='')
PartDelta index=1 text='{}'
PartEnded index=1
UsageSeen usage=Usage(input=3, cached=2, extras=messages{'/service_tier': '"x"', '/new': '1'})
Native dialect='messages' field='/stop_details' raw=b'{"a": 1}'
Native dialect='messages' field='/container' raw=b'{"a": 1}'
Native dialect='messages' field='/context_management' raw=b'{"a": 1}'
Native dialect='messages' field='/diagnostics' raw=b'{"a": 1}'
Native dialect='messages' field='/vendor' raw=b'1'
Native dialect='messages' field='/outer' raw=b'2'
Native dialect='messages' field='/stop_details' raw=b'{"b": 2}'
Native dialect='messages' field='/container' raw=b'{"b": 2}'
Native dialect='messages' field='/context_management' raw=b'{"b": 2}'
UsageSeen usage=Usage(input=3, output=3, cached=2, reasoning=1, extras=messages{'/service_tier': '"y"', '/new': '1'})
Native dialect='messages' field='/inner' raw=b'3'
Native dialect='messages' field='/beside' raw=b'4'
Native dialect='messages' field='/last' raw=b'5'
Finished finish=Finish(reason='tool_calls', raw='stop_sequence', sequence='END')
"""
    )


def test_a_stream_without_its_start_or_stops_is_still_emitted():
    started, grown, _ = block(7, text("x"), type="text", text="")
    assert (
        outline_events(
            started, grown, {"type": "content_block_stop", "index": 3}, {"type": "new/event", "a": 1}, END, STOP
        )
        == """\
Started id='' model=''
PartStarted index=0 part=Text(where='/content/7', text='')
PartDelta index=0 text='x'
Native dialect='messages' field='/new~1event' raw=b'{"type": "new/event", "a": 1}'
PartEnded index=0
Finished finish=Finish(reason='stop', raw='end_turn')
"""
    )
    assert (
        outline_events(
            START,
            {"type": "message_start", "message": {"id": "r", "stop_reason": "refusal", "stop_sequence": "END"}},
            STOP,
        )
        == """\
Started id='r' model='m'
UsageSeen usage=Usage(input=1)
Finished finish=Finish(reason='refused', raw='refusal', sequence='END')
"""
    )


def test_a_start_may_name_neither_id_nor_model():
    assert (
        outline_events({"type": "message_start", "message": {}}, STOP)
        == """\
Started id='' model=''
Finished finish=Finish(reason='other')
"""
    )


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([START, END], "message='the stream ended before message_stop', status=502"),
        (
            [START, {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}],
            "kind='overloaded', message='m', status=529",
        ),
        ([{"error": {"message": "m"}}], "kind='internal', message='m', status=500"),
        ([START, {"type": "message_start", "message": {"id": "other"}}], "message='a second message_start'"),
        ([START, *block(0, type="text", text=""), START], "message='a second message_start'"),
        (
            [START, block(0, type="text", text="")[0], block(0, type="text", text="")[0]],
            "message='block 0 started twice'",
        ),
        ([START, block(0, text("x"), type="text", text="")[1]], "message='a delta for block 0, which is not open'"),
        (
            [START, *block(0, type="tool_use", id="a", name="")],
            "message='a tool call has no name', status=502, where='/content/0/name'",
        ),
        ([{"type": "message_start", "message": {"content": 7}}], "where='/message/content'"),
    ],
)
def test_a_reply_that_does_not_end_well_fails(events: Any, problem: str):
    last = decode(sse(*events))[-1]
    assert isinstance(last, Failed)
    assert problem in outline(last)


def test_an_error_is_known_by_the_name_of_its_frame():
    assert "message='m'" in outline(decode(b'event: error\ndata: {"message":"m"}\n\n')[-1])
    kept = decode(b'event: odd\ndata: {"a":1}\n\n' + sse(START))
    assert outline(kept[1]) == "Native dialect='messages' field='/odd' raw=b'{\"a\":1}'\n"
