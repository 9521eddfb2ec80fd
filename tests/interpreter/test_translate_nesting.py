"""Documents nested up to the limit are translated and read again; deeper ones are clear errors.

Every check runs in a Python process of its own: its stack is shallow, so that msgspec reads deeper documents than under pytest, and
whatever walks or reads them again meets the deepest it can meet.
"""

import json
import subprocess
import sys

import pytest

DIALECTS = ("chat", "responses", "messages", "gemini")
HEAD = """
import json, sys
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.errors import translate_error
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request

MODELS = {"chat": "gpt-4.1", "responses": "gpt-5.5", "messages": "claude-opus-4-8", "gemini": "gemini-3-flash"}
NESTED = "nested too deeply: at most"
document, source = json.loads(sys.stdin.read())

def place(levels, as_list):
    opening, closing = ("[", "]") if as_list else ('{"a":', "}")
    return document.replace('"DEEP"', opening * levels + "1" + closing * levels).encode()

def depth(body):
    deepest = now = 0
    for byte in body:
        now += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, now)
    return deepest
"""
REQUESTS = (
    HEAD
    + """
for levels in (*range(180, 206), *range(940, 1000, 3)):
    for as_list in (True, False):
        for target in DIALECTS:
            body = place(levels, as_list)
            try:
                translation = translate_request(Call(body, "m"), source, target, model=MODELS[target])
            except Problem as problem:
                assert problem.status == 400, problem
                assert depth(body) > 200 and "at most 200 levels" in problem.message, problem
                continue
            assert depth(body) <= 200, (levels, target)
            translation.losses
            if source != target:
                DIALECTS[target].parse_request(translation.call)
"""
)
REPLIES = (
    HEAD
    + """
for levels in (*range(176, 196), *range(940, 1000, 3)):
    for as_list in (True, False):
        for target in DIALECTS:
            body = place(levels, as_list)
            try:
                reply = translate_response(body, source, target)
            except Problem as problem:
                assert problem.status == 502, problem
                assert depth(body) > 190 and "at most 190 levels" in problem.message, problem
                continue
            assert depth(body) <= 190, (levels, target)
            DIALECTS[target].parse_response(reply.body)
"""
)
ERRORS = (
    HEAD
    + """
for levels in (*range(180, 206, 5), *range(930, 1000, 3)):
    for as_list in (True, False):
        for target in DIALECTS:
            reply = translate_error(400, {}, place(levels, as_list), source, target)
            assert reply.status == 400
            assert b"too bad" in reply.body or levels > 980  # Python itself cannot read it
            DIALECTS[target].parse_error(reply.status, {}, reply.body)
            if 200 < levels <= 980 and source != target:
                assert [loss.what for loss in reply.losses] == ["nested too deeply: only its kind and message are sent"]
"""
)
STREAMS = (
    HEAD
    + """
for levels in (*range(180, 206, 5), *range(930, 1000, 3)):
    for target in DIALECTS:
        translator = StreamTranslator(source, target)
        written = translator.feed(place(levels, False)) + translator.close()
        translator.losses
        if translator.problem is not None:
            problem = translator.problem
            assert levels > 180 and problem.kind == "malformed_reply" and (
                NESTED in problem.message or "malformed tool call" in problem.message
            ), problem
        elif levels > 190 and target == "gemini" and source != target:
            assert translator.finish.reason == "malformed_call"
            assert "nested too deeply" in " ".join(loss.what for loss in translator.losses)
        decoder = DIALECTS[target].decoder()
        [*decoder.feed(written), *decoder.close()]
"""
)


def run(program, document, source):
    text = document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
    ran = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-c", program], input=json.dumps([text, source]), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]


USER = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PLACES = {
    "chat": [
        {"model": "m", "messages": [USER], "logit_bias": "DEEP"},
        {"model": "m", "messages": [USER | {"unknown": "DEEP"}], "seed": 1},
        {
            "model": "m",
            "messages": [USER, {"role": "assistant", "tool_calls": [CALL | {"extra_content": {"a": "DEEP"}}]}],
        },
    ],
    "responses": [
        {"model": "m", "input": "hi", "unknown": "DEEP"},
        {"model": "m", "input": [USER | {"unknown": "DEEP"}], "metadata": {"a": "b"}},
    ],
    "messages": [
        {"model": "m", "max_tokens": 9, "messages": [USER], "unknown": "DEEP"},
        {
            "model": "m",
            "max_tokens": 9,
            "top_k": 4,
            "messages": [
                USER,
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": "DEEP"}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
            ],
        },
    ],
    "gemini": [
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "unknown": "DEEP"},
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": "DEEP"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": "DEEP"}}}]},
            ],
            "generationConfig": {"topK": 3},
        },
    ],
}


@pytest.mark.parametrize(("source", "at"), [(source, at) for source in DIALECTS for at in range(len(PLACES[source]))])
def test_a_request_nested_to_the_limit_is_translated_and_a_deeper_one_names_the_limit(source, at):
    run(REQUESTS, PLACES[source][at], source)


WHOLE = {
    "chat": {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "x", "unknown": "DEEP"}, "finish_reason": "stop"}
        ],
    },
    "responses": {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "x", "annotations": [], "unknown": "DEEP"}],
            }
        ],
    },
    "messages": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": "DEEP"}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": "DEEP"}}}]},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "responseId": "r",
        "modelVersion": "g",
    },
}


@pytest.mark.parametrize("source", DIALECTS)
def test_a_reply_nested_to_the_limit_is_translated_and_a_deeper_one_is_an_upstream_error(source):
    run(REPLIES, WHOLE[source], source)


@pytest.mark.parametrize("source", DIALECTS)
def test_an_error_of_any_nesting_keeps_its_status_and_message(source):
    error = {"type": "invalid_request_error", "message": "too bad", "status": "INVALID_ARGUMENT", "more": "DEEP"}
    run(ERRORS, {"type": "error", "error": error}, source)


def stream(*values, named=False, done=""):
    lines = [f"event: {value['type']}\n" if named else "" for value in values]
    return "".join(f"{line}data: {json.dumps(value)}\n\n" for line, value in zip(lines, values, strict=True)) + done


def chat_chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


BLOCK = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
START = WHOLE["messages"] | {"content": [], "stop_reason": None}
ITEM = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "", "status": "in_progress"}
HEAD_OF_RESPONSE = WHOLE["responses"] | {"status": "in_progress", "output": []}
STREAMED = {
    "chat": stream(
        chat_chunk(
            {"role": "assistant", "tool_calls": [{"index": 0, **CALL, "function": {"name": "f", "arguments": ""}}]}
        ),
        chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": "ARGUMENTS"}}]}),
        chat_chunk({}, "tool_calls"),
        done="data: [DONE]\n\n",
    ),
    "responses": stream(
        {"type": "response.created", "response": HEAD_OF_RESPONSE},
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc", "delta": "ARGUMENTS"},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": ITEM | {"arguments": "ARGUMENTS", "status": "completed"},
        },
        {"type": "response.completed", "response": HEAD_OF_RESPONSE | {"status": "completed"}},
        named=True,
    ),
    "messages": stream(
        {"type": "message_start", "message": START},
        {"type": "content_block_start", "index": 0, "content_block": BLOCK},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "ARGUMENTS"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 3},
        },
        {"type": "message_stop"},
        named=True,
    ),
    "gemini": stream(WHOLE["gemini"]),
}


@pytest.mark.parametrize("source", DIALECTS)
def test_streamed_arguments_of_any_nesting_are_sent_or_reported(source):
    # In a string the quotes of the arguments are escaped, so a list is nested there.
    escaped = '[{"a":"DEEP"}]'.replace('"a"', '\\"a\\"')[1:-1]
    run(
        STREAMS.replace("False)) +", f"{source != 'gemini'})) +"),
        STREAMED[source].replace("ARGUMENTS", escaped),
        source,
    )


@pytest.mark.parametrize("source", ["responses", "gemini"])
def test_an_error_of_any_nesting_ends_a_stream(source):
    error = {"type": "server_error", "message": "too bad", "status": "INTERNAL", "code": "x", "more": "DEEP"}
    if source == "gemini":
        document = stream({"error": error})
    else:
        failed = HEAD_OF_RESPONSE | {"status": "failed", "error": error}
        document = stream(
            {"type": "response.created", "response": HEAD_OF_RESPONSE},
            {"type": "response.failed", "response": failed},
            named=True,
        )
    program = (
        HEAD
        + """
for levels in (*range(180, 206, 5), *range(930, 1000, 3)):
    for target in DIALECTS:
        translator = StreamTranslator(source, target)
        written = translator.feed(place(levels, True)) + translator.close()
        assert translator.problem is not None
        message = translator.problem.message
        assert message == "too bad" or NESTED in message or levels > 980, message
"""
    )
    run(program, document, source)
