"""Events of every form, each encoded to its last byte."""

import json

from dialects.outline import outline
from dialects.responses.streams import encode
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
from dragoman.core.response import Finish, Usage
from dragoman.core.value import Extras

STARTED = Started("r", "m", 5)


def own(**fields: str) -> Extras:
    return Extras("responses", {f"/{name.replace('__', '/')}": raw.encode() for name, raw in fields.items()})


def lines(events: list[Event]) -> str:
    """Every frame after the two that begin the reply, and without what each terminal object repeats."""
    stream = encode(events).decode()
    first, second, *rest = stream.split("\n\n")[:-1]
    assert first.startswith(
        'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"r"'
    )
    assert second == first.replace("response.created", "response.in_progress").replace(":0,", ":1,", 1)
    shown = []
    for number, frame in enumerate(rest, 2):
        name, data = frame.removeprefix("event: ").split("\ndata: ")
        head = f'{{"type":"{name}","sequence_number":{number}'
        assert data.startswith(head)
        if json.loads(data).get("response"):
            members = json.loads(data)["response"]
            data = head + json.dumps(
                {key: members[key] for key in ("status", "output", "usage", "error", "incomplete_details")}
            )
        shown.append(f"{name.removeprefix('response.')} {data.removeprefix(head)}")
    return outline([line.replace("454349e422f05297191ead13e21d3db5", "#") for line in shown])


def test_messages_are_encoded_to_the_last_byte():
    cited = Citation("chat", b"{}", url="u", title="t")
    assert (
        lines(
            [
                STARTED,
                PartStarted(0, Text(text="")),
                PartDelta(0, 'q"'),
                PartDelta(0, ""),
                PartDelta(0, "r"),
                PartCited(0, cited),
                PartCited(0, Citation("chat", b"{}")),
                PartCited(0, Citation("responses", b'{\n"a":1}')),
                PartNative(0, "responses", "/x", b"[\n1]"),
                PartNative(0, "chat", "/never", b"1"),
                PartEnded(0),
                PartStarted(1, Refusal(text="")),
                PartDelta(1, "no"),
                PartEnded(1),
                PartStarted(2, Data(json=b"[1]")),
                PartEnded(2),
                UsageSeen(Usage(input=1)),
                Finished(Finish("stop")),
            ]
        )
        == """\
'output_item.added ,"output_index":0,"item":{"type":"message","id":"msg_#0000","role":"assistant","content":[],"status":"in_progress"}}'
'content_part.added ,"item_id":"msg_#0000","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}'
'output_text.delta ,"item_id":"msg_#0000","output_index":0,"content_index":0,"delta":"q\\\\"","logprobs":[]}'
'output_text.delta ,"item_id":"msg_#0000","output_index":0,"content_index":0,"delta":"","logprobs":[]}'
'output_text.delta ,"item_id":"msg_#0000","output_index":0,"content_index":0,"delta":"r","logprobs":[]}'
'output_text.annotation.added ,"item_id":"msg_#0000","output_index":0,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":"u","title":"t","start_index":0,"end_index":3}}'
'output_text.annotation.added ,"item_id":"msg_#0000","output_index":0,"content_index":0,"annotation_index":1,"annotation":{"a":1}}'
'output_text.done ,"item_id":"msg_#0000","output_index":0,"content_index":0,"text":"q\\\\"r","logprobs":[]}'
'content_part.done ,"item_id":"msg_#0000","output_index":0,"content_index":0,"part":{"type":"output_text","text":"q\\\\"r","annotations":[{"type":"url_citation","url":"u","title":"t","start_index":0,"end_index":3},{"a":1}],"logprobs":[],"x":[1]}}'
'output_item.done ,"output_index":0,"item":{"type":"message","id":"msg_#0000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"q\\\\"r","annotations":[{"type":"url_citation","url":"u","title":"t","start_index":0,"end_index":3},{"a":1}],"logprobs":[],"x":[1]}]}}'
'output_item.added ,"output_index":1,"item":{"type":"message","id":"msg_#0001","role":"assistant","content":[],"status":"in_progress"}}'
'content_part.added ,"item_id":"msg_#0001","output_index":1,"content_index":0,"part":{"type":"refusal","refusal":""}}'
'refusal.delta ,"item_id":"msg_#0001","output_index":1,"content_index":0,"delta":"no"}'
'refusal.done ,"item_id":"msg_#0001","output_index":1,"content_index":0,"refusal":"no"}'
'content_part.done ,"item_id":"msg_#0001","output_index":1,"content_index":0,"part":{"type":"refusal","refusal":"no"}}'
'output_item.done ,"output_index":1,"item":{"type":"message","id":"msg_#0001","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}}'
'output_item.added ,"output_index":2,"item":{"type":"message","id":"msg_#0002","role":"assistant","content":[],"status":"in_progress"}}'
'content_part.added ,"item_id":"msg_#0002","output_index":2,"content_index":0,"part":{"type":"output_text","text":"[1]","annotations":[],"logprobs":[]}}'
'content_part.done ,"item_id":"msg_#0002","output_index":2,"content_index":0,"part":{"type":"output_text","text":"[1]","annotations":[],"logprobs":[]}}'
'output_item.done ,"output_index":2,"item":{"type":"message","id":"msg_#0002","status":"completed","role":"assistant","content":[{"type":"output_text","text":"[1]","annotations":[],"logprobs":[]}]}}'
'completed {"status": "completed", "output": [{"type": "message", "id": "msg_#0000", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "q\\\\"r", "annotations": [{"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 3}, {"a": 1}], "logprobs": [], "x": [1]}]}, {"type": "message", "id": "msg_#0001", "status": "completed", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, {"type": "message", "id": "msg_#0002", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "[1]", "annotations": [], "logprobs": []}]}], "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens": 0, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1}, "error": null, "incomplete_details": null}'
"""
    )


def test_parts_of_one_message_stay_in_it():
    first = own(item__id='"msg_1"', item__phase='"final"', item__x="\n1", y="2")
    assert (
        lines(
            [
                STARTED,
                PartStarted(0, Text(text="", spelling="first", extras=first)),
                PartDelta(0, "a"),
                PartEnded(0),
                PartStarted(1, Opaque(dialect="responses", spelling="same", raw=b'{\n"type":"odd"}')),
                PartEnded(1),
                PartStarted(2, Refusal(text="", spelling="same")),
                PartDelta(2, "no"),
                PartNative(2, "responses", "/item/status", b'"incomplete"'),
                PartEnded(2),
                PartStarted(3, Text(text="", spelling="first")),
                PartEnded(3),
                PartStarted(4, ToolCall(id="c", name="f", arguments="")),
                PartEnded(4),
                Finished(Finish("tool_calls")),
            ]
        )
        == """\
'output_item.added ,"output_index":0,"item":{"type":"message","role":"assistant","content":[],"id":"msg_1","phase":"final","x":1,"status":"in_progress"}}'
'content_part.added ,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}'
'output_text.delta ,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"a","logprobs":[]}'
'output_text.done ,"item_id":"msg_1","output_index":0,"content_index":0,"text":"a","logprobs":[]}'
'content_part.done ,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"a","annotations":[],"logprobs":[],"y":2}}'
'content_part.added ,"item_id":"msg_1","output_index":0,"content_index":1,"part":{"type":"odd"}}'
'content_part.done ,"item_id":"msg_1","output_index":0,"content_index":1,"part":{"type":"odd"}}'
'content_part.added ,"item_id":"msg_1","output_index":0,"content_index":2,"part":{"type":"refusal","refusal":""}}'
'refusal.delta ,"item_id":"msg_1","output_index":0,"content_index":2,"delta":"no"}'
'refusal.done ,"item_id":"msg_1","output_index":0,"content_index":2,"refusal":"no"}'
'content_part.done ,"item_id":"msg_1","output_index":0,"content_index":2,"part":{"type":"refusal","refusal":"no"}}'
'output_item.done ,"output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[],"y":2},{"type":"odd"},{"type":"refusal","refusal":"no"}],"id":"msg_1","phase":"final","x":1,"status":"incomplete"}}'
'output_item.added ,"output_index":1,"item":{"type":"message","id":"msg_#0001","role":"assistant","content":[],"status":"in_progress"}}'
'content_part.added ,"item_id":"msg_#0001","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}'
'output_text.done ,"item_id":"msg_#0001","output_index":1,"content_index":0,"text":"","logprobs":[]}'
'content_part.done ,"item_id":"msg_#0001","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}'
'output_item.done ,"output_index":1,"item":{"type":"message","id":"msg_#0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]}}'
'output_item.added ,"output_index":2,"item":{"type":"function_call","id":"fc_#0002","status":"in_progress","call_id":"c","name":"f","arguments":""}}'
'function_call_arguments.done ,"item_id":"fc_#0002","output_index":2,"name":"f","arguments":""}'
'output_item.done ,"output_index":2,"item":{"type":"function_call","id":"fc_#0002","status":"completed","call_id":"c","name":"f","arguments":""}}'
'completed {"status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": [], "logprobs": [], "y": 2}, {"type": "odd"}, {"type": "refusal", "refusal": "no"}], "id": "msg_1", "phase": "final", "x": 1, "status": "incomplete"}, {"type": "message", "id": "msg_#0001", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "", "annotations": [], "logprobs": []}]}, {"type": "function_call", "id": "fc_#0002", "status": "completed", "call_id": "c", "name": "f", "arguments": ""}], "usage": null, "error": null, "incomplete_details": null}'
"""
    )


def test_calls_are_encoded_to_the_last_byte():
    assert (
        lines(
            [
                STARTED,
                PartStarted(
                    0, ToolCall(id="c1", name="f", arguments="", namespace="n", extras=own(id='"fc_1"', x="\n1"))
                ),
                PartDelta(0, '{"a"'),
                PartDelta(0, ":1}"),
                PartEnded(0),
                PartStarted(1, ToolCall(id="c2", name="p", arguments="", form="text")),
                PartDelta(1, "te\nxt"),
                PartEnded(1, complete=False),
                Finished(Finish("length")),
            ]
        )
        == """\
'output_item.added ,"output_index":0,"item":{"type":"function_call","status":"in_progress","call_id":"c1","name":"f","namespace":"n","arguments":"","id":"fc_1","x":1}}'
'function_call_arguments.delta ,"item_id":"fc_1","output_index":0,"delta":"{\\\\"a\\\\""}'
'function_call_arguments.delta ,"item_id":"fc_1","output_index":0,"delta":":1}"}'
'function_call_arguments.done ,"item_id":"fc_1","output_index":0,"name":"f","arguments":"{\\\\"a\\\\":1}"}'
'output_item.done ,"output_index":0,"item":{"type":"function_call","status":"completed","call_id":"c1","name":"f","namespace":"n","arguments":"{\\\\"a\\\\":1}","id":"fc_1","x":1}}'
'output_item.added ,"output_index":1,"item":{"type":"custom_tool_call","id":"ctc_#0001","status":"in_progress","call_id":"c2","name":"p","input":""}}'
'custom_tool_call_input.delta ,"item_id":"ctc_#0001","output_index":1,"delta":"te\\\\nxt"}'
'output_item.done ,"output_index":1,"item":{"type":"custom_tool_call","id":"ctc_#0001","status":"incomplete","call_id":"c2","name":"p","input":"te\\\\nxt"}}'
'incomplete {"status": "incomplete", "output": [{"type": "function_call", "status": "completed", "call_id": "c1", "name": "f", "namespace": "n", "arguments": "{\\\\"a\\\\":1}", "id": "fc_1", "x": 1}, {"type": "custom_tool_call", "id": "ctc_#0001", "status": "incomplete", "call_id": "c2", "name": "p", "input": "te\\\\nxt"}], "usage": null, "error": null, "incomplete_details": {"reason": "max_output_tokens"}}'
"""
    )


def test_reasoning_is_encoded_to_the_last_byte():
    assert (
        lines(
            [
                STARTED,
                PartStarted(0, Reasoning(signature=Signature("openai", "s"))),
                PartDelta(0, "a"),
                PartDelta(0, "b"),
                PartDelta(0, "d", 2),
                PartSigned(0, Signature("openai", "t")),
                PartEnded(0),
                PartStarted(1, Reasoning(spelling="content", extras=own(id='"rs_1"'))),
                PartDelta(1, "raw"),
                PartDelta(1, "more", 1),
                PartEnded(1),
                PartStarted(2, Reasoning(redacted=True)),
                PartEnded(2),
                Finished(Finish("filtered")),
            ]
        )
        == """\
'output_item.added ,"output_index":0,"item":{"type":"reasoning","id":"rs_#0000","summary":[]}}'
'reasoning_summary_part.added ,"item_id":"rs_#0000","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}'
'reasoning_summary_text.delta ,"item_id":"rs_#0000","output_index":0,"summary_index":0,"delta":"a"}'
'reasoning_summary_text.delta ,"item_id":"rs_#0000","output_index":0,"summary_index":0,"delta":"b"}'
'reasoning_summary_text.done ,"item_id":"rs_#0000","output_index":0,"summary_index":0,"text":"ab"}'
'reasoning_summary_part.done ,"item_id":"rs_#0000","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"ab"}}'
'reasoning_summary_part.added ,"item_id":"rs_#0000","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}'
'reasoning_summary_text.done ,"item_id":"rs_#0000","output_index":0,"summary_index":1,"text":""}'
'reasoning_summary_part.done ,"item_id":"rs_#0000","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}'
'reasoning_summary_part.added ,"item_id":"rs_#0000","output_index":0,"summary_index":2,"part":{"type":"summary_text","text":""}}'
'reasoning_summary_text.delta ,"item_id":"rs_#0000","output_index":0,"summary_index":2,"delta":"d"}'
'reasoning_summary_text.done ,"item_id":"rs_#0000","output_index":0,"summary_index":2,"text":"d"}'
'reasoning_summary_part.done ,"item_id":"rs_#0000","output_index":0,"summary_index":2,"part":{"type":"summary_text","text":"d"}}'
'output_item.done ,"output_index":0,"item":{"type":"reasoning","id":"rs_#0000","summary":[{"type":"summary_text","text":"ab"},{"type":"summary_text","text":""},{"type":"summary_text","text":"d"}],"encrypted_content":"t"}}'
'output_item.added ,"output_index":1,"item":{"type":"reasoning","summary":[],"id":"rs_1"}}'
'content_part.added ,"item_id":"rs_1","output_index":1,"content_index":0,"part":{"type":"reasoning_text","text":""}}'
'reasoning_text.delta ,"item_id":"rs_1","output_index":1,"content_index":0,"delta":"raw"}'
'reasoning_text.done ,"item_id":"rs_1","output_index":1,"content_index":0,"text":"raw"}'
'content_part.done ,"item_id":"rs_1","output_index":1,"content_index":0,"part":{"type":"reasoning_text","text":"raw"}}'
'content_part.added ,"item_id":"rs_1","output_index":1,"content_index":1,"part":{"type":"reasoning_text","text":""}}'
'reasoning_text.delta ,"item_id":"rs_1","output_index":1,"content_index":1,"delta":"more"}'
'reasoning_text.done ,"item_id":"rs_1","output_index":1,"content_index":1,"text":"more"}'
'content_part.done ,"item_id":"rs_1","output_index":1,"content_index":1,"part":{"type":"reasoning_text","text":"more"}}'
'output_item.done ,"output_index":1,"item":{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"raw"},{"type":"reasoning_text","text":"more"}],"id":"rs_1"}}'
'output_item.added ,"output_index":2,"item":{"type":"reasoning","id":"rs_#0002","summary":[]}}'
'output_item.done ,"output_index":2,"item":{"type":"reasoning","id":"rs_#0002","summary":[]}}'
'incomplete {"status": "incomplete", "output": [{"type": "reasoning", "id": "rs_#0000", "summary": [{"type": "summary_text", "text": "ab"}, {"type": "summary_text", "text": ""}, {"type": "summary_text", "text": "d"}], "encrypted_content": "t"}, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}, {"type": "reasoning_text", "text": "more"}], "id": "rs_1"}, {"type": "reasoning", "id": "rs_#0002", "summary": []}], "usage": null, "error": null, "incomplete_details": {"reason": "content_filter"}}'
"""
    )


def test_items_that_do_not_grow_are_encoded_at_once():
    assert (
        lines(
            [
                STARTED,
                PartStarted(0, Opaque(dialect="responses", raw=b'{\n"type":"web_search_call"}')),
                PartEnded(0),
                PartStarted(1, Opaque(dialect="gemini", raw=b"{}")),
                PartEnded(1),
                PartStarted(2, Media(kind="image", media_type="image/png", source=Inline("AA=="))),
                PartEnded(2),
                PartEnded(2),
                Native("responses", "/stream/0", b'{\n"type":"odd.event","sequence_number":9,"a":[\n1]}'),
                Native("responses", "/stream/1", b'{"type":"not a name"}'),
                Native("responses", "/stream/2", b'{"a":1}'),
                Native("responses", "/stream/3", b"[1]"),
                Native("chat", "/never", b"1"),
                Finished(Finish("stop")),
            ]
        )
        == """\
'output_item.added ,"output_index":0,"item":{"type":"web_search_call"}}'
'web_search_call.in_progress ,"item_id":"","output_index":0}'
'web_search_call.searching ,"item_id":"","output_index":0}'
'web_search_call.completed ,"item_id":"","output_index":0}'
'output_item.done ,"output_index":0,"item":{"type":"web_search_call"}}'
'output_item.added ,"output_index":1,"item":{"type":"image_generation_call","id":"ig_#0001","status":"completed","result":"AA=="}}'
'output_item.done ,"output_index":1,"item":{"type":"image_generation_call","id":"ig_#0001","status":"completed","result":"AA=="}}'
'odd.event ,"a":[1]}'
'completed {"status": "completed", "output": [{"type": "web_search_call"}, {"type": "image_generation_call", "id": "ig_#0001", "status": "completed", "result": "AA=="}], "usage": null, "error": null, "incomplete_details": null}'
"""
    )


def test_a_failed_reply_has_two_error_events():
    assert (
        lines(
            [
                STARTED,
                PartStarted(0, Text(text="", spelling="first")),
                PartDelta(0, "x"),
                PartEnded(0),
                Failed(Problem("overloaded", "busy", where="/input/0")),
            ]
        )
        == """\
'output_item.added ,"output_index":0,"item":{"type":"message","id":"msg_#0000","role":"assistant","content":[],"status":"in_progress"}}'
'content_part.added ,"item_id":"msg_#0000","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}'
'output_text.delta ,"item_id":"msg_#0000","output_index":0,"content_index":0,"delta":"x","logprobs":[]}'
'output_text.done ,"item_id":"msg_#0000","output_index":0,"content_index":0,"text":"x","logprobs":[]}'
'content_part.done ,"item_id":"msg_#0000","output_index":0,"content_index":0,"part":{"type":"output_text","text":"x","annotations":[],"logprobs":[]}}'
'output_item.done ,"output_index":0,"item":{"type":"message","id":"msg_#0000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[],"logprobs":[]}]}}'
'failed {"status": "failed", "output": [{"type": "message", "id": "msg_#0000", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}]}], "usage": null, "error": {"code": "server_is_overloaded", "message": "busy"}, "incomplete_details": null}'
'error ,"code":"server_is_overloaded","message":"busy","param":"input[0]","error":{"type":"server_error","code":"server_is_overloaded","message":"busy","param":"input[0]"}}'
"""
    )
    assert (
        lines([STARTED, PartStarted(0, Text(text="")), PartDelta(0, "x"), Failed(Problem("permission", "no"))])
        == """\
'output_item.added ,"output_index":0,"item":{"type":"message","id":"msg_#0000","role":"assistant","content":[],"status":"in_progress"}}'
'content_part.added ,"item_id":"msg_#0000","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}'
'output_text.delta ,"item_id":"msg_#0000","output_index":0,"content_index":0,"delta":"x","logprobs":[]}'
'failed {"status": "failed", "output": [], "usage": null, "error": {"code": "server_error", "message": "no"}, "incomplete_details": null}'
'error ,"code":"server_error","message":"no","param":null,"error":{"type":"invalid_request_error","code":"server_error","message":"no","param":null}}'
"""
    )
    assert (
        lines([STARTED, Finished(Finish("malformed_call"))])
        == """\
'failed {"status": "failed", "output": [], "usage": null, "error": {"code": "malformed_function_call", "message": "the model made a malformed tool call"}, "incomplete_details": null}'
'error ,"code":"malformed_function_call","message":"the model made a malformed tool call","param":null,"error":{"type":"server_error","code":"malformed_function_call","message":"the model made a malformed tool call","param":null}}'
"""
    )
