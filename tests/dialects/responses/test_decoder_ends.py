"""Unknown events, and how a stream ends."""

import json
from typing import Any

import pytest

from dialects.outline import outline
from dialects.responses.streams import CREATED, build_added, complete, decode, done, sse
from dragoman.core.events import Failed
from dragoman.dialects.responses.decoder import ResponsesDecoder
from event_grammar import check_events


def outline_events(*events: Any) -> str:
    return outline(list(check_events(decode(sse(*events)))))


def event(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **members}


def test_unknown_events_are_kept():
    events = [
        {"type": "odd", "a": 1},
        {"type": "ping"},
        {"type": "keepalive"},
        event("keepalive"),
        event("heartbeat"),
        event("mcp_call.completed"),
        CREATED,
        event("image_generation_call.partial_image", partial="x"),
        event("shell_call_command.delta", delta="x"),
        {"type": "codex.rate_limits", "output_index": "odd"},
        ["a list"],
        complete(),
    ]
    assert (
        outline_events(*events)
        == """\
Started id='r' model='m' created=1
Native dialect='responses' field='/stream/0' raw=b'{"type": "odd", "a": 1}'
Native dialect='responses' field='/stream/1' raw=b'{"type": "response.image_generation_call.partial_image", "partial": "x"}'
Native dialect='responses' field='/stream/2' raw=b'{"type": "codex.rate_limits", "output_index": "odd"}'
Native dialect='responses' field='/stream/3' raw=b'["a list"]'
Finished finish=Finish(reason='stop', raw='completed')
"""
    )


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_the_terminal_events_name_gives_the_status_if_the_object_has_none(status: str):
    end = event(status, response={"id": "r", "model": "m"})
    reason = "stop" if status == "completed" else "other"
    assert (
        outline_events(end) == f"Started id='r' model='m'\nFinished finish=Finish(reason='{reason}', raw='{status}')\n"
    )
    assert outline_events(event("queued"), end).startswith("Started id='' model=''\n")


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([CREATED], "kind='malformed_reply', message='the stream ended before the reply was complete', status=502"),
        (
            [{"type": "error", "code": "slow_down", "message": "m", "param": "input", "sequence_number": 3}],
            (
                "kind='overloaded', message='m', status=503, where='/input', code='slow_down', detail="
                """b'{"error":{"code":"slow_down","message":"m","param":"input"}}', detail_dialect='responses'"""
            ),
        ),
        (
            [{"type": "error", "error": {"type": "tokens", "message": "m"}}],
            (
                "kind='rate_limit', message='m', status=429, detail="
                """b'{"error":{"type":"tokens","message":"m"}}', detail_dialect='responses'"""
            ),
        ),
        ([{"error": "m"}], "kind='internal', message='m', status=500"),
        (
            [event("failed", response={"status": "failed", "error": {"code": "slow_down", "message": "m"}})],
            "kind='overloaded', message='m', status=503, code='slow_down'",
        ),
        (
            [event("output_text.delta", delta=7)],
            "kind='malformed_reply', message='the stream event response.output_text.delta does not have the expected structure'",
        ),
        (
            [done({"type": "function_call", "call_id": "c"}, 3)],
            "message='a tool call has no name', status=502, where='/output/3/name'",
        ),
    ],
)
def test_a_reply_that_does_not_end_well_fails(events: Any, problem: str):
    *_, last = decode(sse(*events))
    assert outline(last).startswith("Failed problem=Problem(")
    assert problem in outline(last)


def test_the_name_of_a_frame_counts_where_the_event_has_none():
    named = b'event: error\ndata: {"message":"m"}\n\n'
    assert "kind='internal', message='m'" in outline(decode(named))
    start = b'event: response.created\ndata: {"response":{"id":"r","model":"m"}}\n\n'
    odd = b"event: odd\ndata: 7\n\n"
    assert (
        outline(decode(start + odd + b"data: [DONE]\n\n" + sse(complete())))
        == """\
Started id='r' model='m'
Native dialect='responses' field='/stream/0' raw=b'7'
Finished finish=Finish(reason='stop', raw='completed')
"""
    )


HOSTED = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "code_interpreter_call_code",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "mcp_call_arguments",
    "shell_call",
    "shell_call_command",
    "shell_call_output_content",
    "apply_patch_call",
    "apply_patch_call_operation_diff",
    "computer_call",
    "local_shell_call",
    "tool_search_call",
    "compaction",
]


@pytest.mark.parametrize("kind", HOSTED)
def test_the_progress_of_every_hosted_tool_is_padding(kind: str):
    nothing = outline_events(CREATED, complete())
    assert outline_events(CREATED, event(f"{kind}.in_progress"), {"type": f"{kind}.done"}, complete()) == nothing
    assert outline_events(CREATED, event(f"{kind}.partial_image"), complete()) != nothing
    assert outline_events(CREATED, event(f"{kind}s.in_progress"), complete()) != nothing


def test_a_done_item_without_its_text_keeps_the_emitted_text():
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    delta = event("output_text.delta", item_id="msg_1", output_index=0, delta="Hi")
    ended = "PartDelta index=0 text='Hi'\nPartEnded index=0\nFinished"
    assert ended in outline_events(CREATED, build_added(message), delta, done(message), complete(message))
    assert ended in outline_events(CREATED, build_added(message), delta, complete(message))


@pytest.mark.parametrize("number", [-1, 10**9])
def test_a_thought_of_absurdly_many_texts_fails_the_reply(number):
    place = {"item_id": "rs", "output_index": 0, "summary_index": number}
    event = {"type": "response.reasoning_summary_text.delta", **place, "delta": "x"}
    decoder = ResponsesDecoder()
    *_, last = decoder.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    assert isinstance(last, Failed)
    assert last.problem.kind == "malformed_reply"
