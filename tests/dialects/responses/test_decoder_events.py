"""Streams of every form, each decoded to its last event."""

from typing import Any

from dialects.outline import outline
from dialects.responses.streams import CALL, CREATED, arguments, build_added, complete, decode, done, sse, text
from event_grammar import check_events


def outline_events(*events: Any) -> str:
    return outline(list(check_events(decode(sse(*events)))))


def event(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **members}


MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "in_progress",
    "phase": "final",
    "content": [],
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "p", "input": "", "namespace": "n"}
NOTE = {"type": "url_citation", "url": "u"}
AT: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}


def test_a_message_is_emitted_as_it_arrives():
    whole = {"type": "output_text", "text": "Hi!", "annotations": [NOTE], "logprobs": [], "x": 1}
    refusal = {"type": "refusal", "refusal": "No."}
    second = {**AT, "content_index": 1}
    assert (
        outline_events(
            CREATED,
            event("in_progress", response=CREATED["response"]),
            build_added(MESSAGE),
            event("content_part.added", **AT, part={"type": "output_text", "text": ""}),
            event("output_text.delta", **AT, delta="H"),
            event("output_text.delta", **AT, delta=""),
            event("output_text.annotation.added", **AT, annotation=NOTE),
            event("output_text.annotation.added", **AT),
            event("output_text.done", **AT, text="Hi"),
            event("content_part.done", **AT, part=whole),
            event("content_part.added", **second, part={"type": "refusal", "refusal": ""}),
            event("refusal.delta", **second, delta="N"),
            event("refusal.done", **second, refusal="No"),
            event("content_part.done", **second, part=refusal),
            done({**MESSAGE, "status": "incomplete", "content": [whole, refusal, {"type": "odd"}]}),
            event("output_text.delta", **AT, delta="late"),
            complete({**MESSAGE, "content": [whole, refusal]}),
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=Text(where='/output/0/content/0', spelling='first', extras=responses{'/item/id': '"msg_1"', '/item/phase': '"final"'}, text='')
PartDelta index=0 text='H'
PartCited index=0 citation=Citation(dialect='responses', raw=b'{"type": "url_citation", "url": "u"}', url='u')
PartDelta index=0 text='i'
PartDelta index=0 text='!'
PartNative index=0 dialect='responses' field='/x' raw=b'1'
PartEnded index=0
PartStarted index=1 part=Refusal(where='/output/0/content/1', spelling='same', text='')
PartDelta index=1 text='N'
PartDelta index=1 text='o'
PartDelta index=1 text='.'
PartEnded index=1
PartStarted index=2 part=Opaque(where='/output/0/content/2', spelling='same', extras=responses{'/item/status': '"incomplete"'}, dialect='responses', raw=b'{"type": "odd"}')
PartEnded index=2
Finished finish=Finish(reason='refused', raw='completed')
"""
    )


def test_calls_are_emitted_as_they_arrive():
    whole = {**CALL, "arguments": '{"a":1}', "status": "completed", "x": 1}
    custom = {**CUSTOM, "input": "text", "status": "completed"}
    at = {"item_id": "ctc_1", "output_index": 1}
    assert (
        outline_events(
            CREATED,
            build_added(CALL),
            arguments('{"a"', item_id="fc_1"),
            arguments(":", item_id="changed"),
            build_added(CUSTOM, 1),
            event("custom_tool_call_input.delta", **at, delta="te"),
            event("custom_tool_call_input.done", **at, input="tex"),
            event("function_call_arguments.done", output_index=0, arguments='{"a":1'),
            done(custom, 1),
            done(whole),
            arguments("late", item_id="fc_1"),
            complete(whole, custom),
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=ToolCall(where='/output/0', extras=responses{'/id': '"fc_1"'}, id='c1', name='f', arguments='')
PartDelta index=0 text='{"a"'
PartDelta index=0 text=':'
PartStarted index=1 part=ToolCall(where='/output/1', extras=responses{'/id': '"ctc_1"'}, id='c2', name='p', arguments='', form='text', namespace='n')
PartDelta index=1 text='te'
PartDelta index=1 text='x'
PartDelta index=0 text='1'
PartDelta index=1 text='t'
PartEnded index=1
PartDelta index=0 text='}'
PartNative index=0 dialect='responses' field='/x' raw=b'1'
PartEnded index=0
Finished finish=Finish(reason='tool_calls', raw='completed')
"""
    )


def test_reasoning_is_emitted_as_it_arrives():
    at = {"item_id": "rs_1", "output_index": 0}
    raw = {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]}
    summaries = [{"type": "summary_text", "text": word} for word in ("ab", "c", "d")]
    assert (
        outline_events(
            CREATED,
            build_added(REASONING),
            event("reasoning_summary_part.added", **at, summary_index=0, part={"type": "summary_text", "text": ""}),
            event("reasoning_summary_text.delta", **at, summary_index=0, delta="a"),
            event("reasoning_summary_text.done", **at, summary_index=0, text="ab"),
            event("reasoning_summary_part.done", **at, summary_index=0, part=summaries[0]),
            event("reasoning_summary_text.delta", **at, summary_index=1, delta="c"),
            event("reasoning_text.delta", **at, content_index=0, delta="never"),
            done({**REASONING, "summary": summaries, "encrypted_content": "e"}),
            build_added({"type": "reasoning", "id": "rs_2", "summary": []}, 1),
            event(
                "content_part.added",
                item_id="rs_2",
                output_index=1,
                content_index=0,
                part={"type": "reasoning_text", "text": ""},
            ),
            event("reasoning_text.delta", item_id="rs_2", output_index=1, content_index=0, delta="r"),
            event("reasoning_text.done", item_id="rs_2", output_index=1, content_index=0, text="ra"),
            event("reasoning_summary_text.delta", item_id="rs_2", output_index=1, summary_index=0, delta="never"),
            done(raw, 1),
            complete(),
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=Reasoning(where='/output/0', extras=responses{'/id': '"rs_1"'})
PartDelta index=0 text='a'
PartDelta index=0 text='b'
PartDelta index=0 text='c' piece=1
PartDelta index=0 text='d' piece=2
PartSigned index=0 signature=Signature(issuer='openai', value='e', item='rs_1')
PartEnded index=0
PartStarted index=1 part=Reasoning(where='/output/1', spelling='content', extras=responses{'/id': '"rs_2"'})
PartDelta index=1 text='r'
PartDelta index=1 text='a'
PartDelta index=1 text='w'
PartEnded index=1
Finished finish=Finish(reason='stop', raw='completed')
"""
    )


def test_items_without_an_added_event_are_emitted_too():
    assert (
        outline_events(
            event("output_text.delta", delta="a"),
            event("output_text.delta", delta="b"),
            event("output_text.delta", item_id="msg_0", delta="c"),
            event("output_text.delta", item_id="msg_2", output_index=1, delta="b"),
            event("refusal.delta", item_id="msg_3", output_index=2, delta="no"),
            event("reasoning_summary_text.delta", item_id="rs_1", output_index=3, delta="r"),
            event("output_text.done", item_id="msg_4", output_index=4, text="whole"),
            complete(),
        )
        == """\
Started id='' model=''
PartStarted index=0 part=Text(where='/output/0/content/0', spelling='first', text='')
PartDelta index=0 text='a'
PartDelta index=0 text='b'
PartStarted index=1 part=Text(where='/output/1/content/0', spelling='first', extras=responses{'/item/id': '"msg_0"'}, text='')
PartDelta index=1 text='c'
PartStarted index=2 part=Text(where='/output/1/content/0', spelling='first', extras=responses{'/item/id': '"msg_2"'}, text='')
PartDelta index=2 text='b'
PartStarted index=3 part=Refusal(where='/output/2/content/0', spelling='first', extras=responses{'/item/id': '"msg_3"'}, text='')
PartDelta index=3 text='no'
PartStarted index=4 part=Reasoning(where='/output/3', extras=responses{'/id': '"rs_1"'})
PartDelta index=4 text='r'
PartStarted index=5 part=Text(where='/output/4/content/0', spelling='first', extras=responses{'/item/id': '"msg_4"'}, text='')
PartDelta index=5 text='whole'
PartEnded index=0
PartEnded index=1
PartEnded index=2
PartEnded index=3
PartEnded index=4
PartEnded index=5
Finished finish=Finish(reason='refused', raw='completed')
"""
    )


def test_items_only_in_the_terminal_object_are_emitted_from_there():
    search = {"type": "web_search_call", "id": "ws_1"}
    assert (
        outline_events(
            CREATED, complete(REASONING, text("Hi"), {**CALL, "arguments": "{}", "status": "completed"}, search)
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=Reasoning(where='/output/0', extras=responses{'/id': '"rs_1"'})
PartEnded index=0
PartStarted index=1 part=Text(where='/output/1/content/0', spelling='first', extras=responses{'/item/id': '"msg_1"'}, text='')
PartDelta index=1 text='Hi'
PartEnded index=1
PartStarted index=2 part=ToolCall(where='/output/2', extras=responses{'/id': '"fc_1"'}, id='c1', name='f', arguments='')
PartDelta index=2 text='{}'
PartEnded index=2
PartStarted index=3 part=Opaque(where='/output/3', dialect='responses', raw=b'{"type": "web_search_call", "id": "ws_1"}')
PartEnded index=3
Finished finish=Finish(reason='tool_calls', raw='completed')
"""
    )


def test_hosted_items_are_emitted_whole_and_in_their_order():
    first, second = ({"type": "web_search_call", "id": name, "status": "completed"} for name in ("a", "b"))
    assert (
        outline_events(
            CREATED,
            build_added({"type": "web_search_call", "id": "a"}),
            event("web_search_call.searching", output_index=0),
            build_added({"type": "web_search_call", "id": "b"}, 1),
            done(second, 1),
            event("output_text.delta", item_id="msg_1", output_index=2, delta="x"),
            done(first),
            complete(first, second, text("x")),
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=Text(where='/output/2/content/0', spelling='first', extras=responses{'/item/id': '"msg_1"'}, text='')
PartDelta index=0 text='x'
PartStarted index=1 part=Opaque(where='/output/0', dialect='responses', raw=b'{"type": "web_search_call", "id": "a", "status": "completed"}')
PartEnded index=1
PartStarted index=2 part=Opaque(where='/output/1', dialect='responses', raw=b'{"type": "web_search_call", "id": "b", "status": "completed"}')
PartEnded index=2
PartEnded index=0
Finished finish=Finish(reason='stop', raw='completed')
"""
    )


def test_a_cut_reply_ends_its_parts_as_far_as_they_came():
    at = {"item_id": "ctc_1", "output_index": 1}
    assert (
        outline_events(
            CREATED,
            build_added(CALL),
            arguments('{"a"', item_id="fc_1"),
            build_added(CUSTOM, 1),
            event("custom_tool_call_input.delta", **at, delta="te"),
            {
                "type": "response.incomplete",
                "response": {
                    "id": "r",
                    "model": "m",
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                    "output": [
                        {**CALL, "arguments": '{"a"', "status": "incomplete"},
                        {**CUSTOM, "input": "te", "status": "incomplete"},
                    ],
                    "usage": {"input_tokens": 1},
                    "service_tier": "default",
                },
            },
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=ToolCall(where='/output/0', extras=responses{'/id': '"fc_1"'}, id='c1', name='f', arguments='')
PartDelta index=0 text='{"a"'
PartStarted index=1 part=ToolCall(where='/output/1', extras=responses{'/id': '"ctc_1"'}, id='c2', name='p', arguments='', form='text', namespace='n')
PartDelta index=1 text='te'
PartEnded index=0 complete=False
PartEnded index=1 complete=False
Native dialect='responses' field='/service_tier' raw=b'"default"'
UsageSeen usage=Usage(input=1)
Finished finish=Finish(reason='length', raw='max_output_tokens')
"""
    )


def test_a_call_without_arguments_has_none():
    assert (
        outline_events(CREATED, build_added(CALL), complete())
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=ToolCall(where='/output/0', extras=responses{'/id': '"fc_1"'}, id='c1', name='f', arguments='')
PartDelta index=0 text='{}'
PartEnded index=0
Finished finish=Finish(reason='tool_calls', raw='completed')
"""
    )


def test_empty_reasoning_keeps_its_position():
    assert (
        outline_events(
            CREATED,
            build_added(REASONING),
            build_added(CALL, 1),
            done(CALL, 1),
            done({**REASONING, "encrypted_content": "e"}),
            complete(),
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=Reasoning(where='/output/0', extras=responses{'/id': '"rs_1"'})
PartStarted index=1 part=ToolCall(where='/output/1', extras=responses{'/id': '"fc_1"'}, id='c1', name='f', arguments='')
PartDelta index=1 text='{}'
PartNative index=1 dialect='responses' field='/status' raw=b'"in_progress"'
PartEnded index=1
PartSigned index=0 signature=Signature(issuer='openai', value='e', item='rs_1')
PartEnded index=0
Finished finish=Finish(reason='tool_calls', raw='completed')
"""
    )


def test_an_added_part_without_deltas_is_emitted():
    assert (
        outline_events(
            CREATED, build_added(MESSAGE), event("content_part.added", **AT, part={"type": "output_text"}), complete()
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=Text(where='/output/0/content/0', spelling='first', extras=responses{'/item/id': '"msg_1"', '/item/phase': '"final"'}, text='')
PartEnded index=0
Finished finish=Finish(reason='stop', raw='completed')
"""
    )
    assert (
        outline_events(CREATED, build_added(MESSAGE), event("content_part.added", **AT), complete()).count("Text(") == 1
    )
    assert "Text(" not in outline_events(
        CREATED, build_added(MESSAGE), event("content_part.added", **AT, part={"type": "odd"}), complete()
    )


def test_an_item_announced_twice_is_one_until_it_is_done():
    whole = {**CALL, "arguments": "{}", "status": "completed"}
    again = {**whole, "call_id": "c2", "arguments": "[]"}
    assert (
        outline_events(
            CREATED,
            build_added(CALL),
            build_added(CALL),
            done(whole),
            build_added({**CALL, "call_id": "c2"}, 1),
            done(again, 1),
            complete(whole, again),
        )
        == """\
Started id='r' model='m' created=1
PartStarted index=0 part=ToolCall(where='/output/0', extras=responses{'/id': '"fc_1"'}, id='c1', name='f', arguments='')
PartDelta index=0 text='{}'
PartEnded index=0
PartStarted index=1 part=ToolCall(where='/output/1', extras=responses{'/id': '"fc_1"'}, id='c2', name='f', arguments='')
PartDelta index=1 text='[]'
PartEnded index=1
Finished finish=Finish(reason='tool_calls', raw='completed')
"""
    )


def test_a_done_part_without_an_index_is_emitted_whole():
    whole = {"type": "output_text", "text": "Hi!", "annotations": [NOTE]}
    done_part = event("content_part.done", item_id="msg_1", part=whole)
    events = outline_events(
        CREATED, build_added(MESSAGE), event("output_text.delta", **AT, delta="H"), done_part, complete()
    )
    assert "PartDelta index=0 text='i!'\nPartCited index=0" in events


def test_added_raw_reasoning_without_deltas_is_emitted():
    announced = event("content_part.added", item_id="rs_1", output_index=0, part={"type": "reasoning_text"})
    assert "part=Reasoning(where='/output/0', spelling='content'" in outline_events(
        CREATED, build_added(REASONING), announced, complete()
    )
    assert "part=Reasoning(where='/output/0', extras" in outline_events(
        CREATED, build_added(REASONING), build_added(CALL, 1), complete()
    )
