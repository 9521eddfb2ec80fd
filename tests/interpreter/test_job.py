"""One translation as the command does it, and what a reply is an answer to."""

import json

import pytest

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.interpreter.job import JobResult, TranslationJob, context_of, open_stream, perform, target_of
from dragoman.interpreter.reply_adapter import NO_CONTEXT, Context
from dragoman.interpreter.undo import Undo


def encode(value):
    return json.dumps(value).encode()


HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 50, "stream": True}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
REPLY = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "responseId": "r",
    "modelVersion": "g",
}
SPOKEN = {
    "id": "r",
    "model": "g",
    "parts": [{"type": "text", "text": "hi"}],
    "finish": {"reason": "stop", "raw": "STOP"},
}
ERROR = {"error": {"message": "slow", "type": "rate_limit_error", "code": "x"}}


def job(operation, source, target, body, **more):
    return perform(TranslationJob(operation=operation, source=source, target=target, body=encode(body), **more))


def test_targets_are_dialects_and_code_assist_is_one_in_its_envelope():
    assert target_of("chat") == ("chat", "")
    assert target_of("code-assist") == ("gemini", "code_assist")


def test_a_request_has_its_model_and_whether_it_streams():
    done = job("request", "chat", "gemini", HELLO | {"user": "u"}, model="gemini-3-pro")
    assert json.loads(done.body) == CONTENTS | {"generationConfig": {"maxOutputTokens": 50}}
    loss = Loss("/user", "the target has no field for it", "dropped", "informational")
    assert done == JobResult(body=done.body, losses=(loss,), model="gemini-3-pro", stream=True)


def test_a_request_without_model_or_streaming_gets_them_from_options():
    done = job("request", "gemini", "chat", CONTENTS, model="gpt-4.1", stream=True)
    body = json.loads(done.body)
    assert (body["model"], body["stream"], done.model, done.stream) == ("gpt-4.1", True, "gpt-4.1", True)


def test_strict_refuses_losses_of_requests_and_responses():
    with pytest.raises(Problem) as caught:
        job("request", "chat", "gemini", HELLO | {"user": "u"}, model="gemini-3-pro", strict="all")
    assert caught.value.where == "/user"
    with pytest.raises(Problem) as caught:
        job("response", "gemini", "chat", REPLY | {"x": 1}, strict=True)
    assert caught.value.where == "/x"
    assert json.loads(job("response", "gemini", "chat", REPLY, strict=True).body)["model"] == "g"


def test_a_response_has_its_losses():
    done = job("response", "gemini", "chat", REPLY | {"x": 1})
    assert done == JobResult(body=done.body, losses=(Loss("/x", "not known to the client's dialect", "dropped"),))


def test_code_assist_both_ways():
    asked = job("request", "chat", "code-assist", HELLO, model="gemini-3-pro")
    assert json.loads(asked.body) == {
        "model": "gemini-3-pro",
        "request": CONTENTS | {"generationConfig": {"maxOutputTokens": 50}},
    }
    back = job("request", "gemini", "chat", json.loads(asked.body), model="gpt-4.1")
    assert json.loads(back.body)["messages"] == HELLO["messages"]
    answered = json.loads(job("response", "gemini", "code-assist", REPLY).body)
    assert answered["response"]["candidates"][0]["content"] == REPLY["candidates"][0]["content"]
    body = json.loads(job("response", "gemini", "chat", answered).body)
    assert body["choices"][0]["message"]["content"] == "hi"


@pytest.mark.parametrize(("target", "kind"), [("messages", "rate_limit_error"), ("code-assist", "RESOURCE_EXHAUSTED")])
def test_an_error_has_its_status_and_headers(target, kind):
    done = job("error", "chat", target, ERROR, status=429)
    error = json.loads(done.body)["error"]
    assert error.get("type", error.get("status")) == kind
    assert done == JobResult(body=done.body, losses=done.losses, status=429, headers=done.headers)
    assert [loss.where for loss in done.losses] == ["/error/code"]
    assert done.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize(
    ("operation", "source", "body", "more", "shown"),
    [
        (
            "request",
            "gemini",
            CONTENTS,
            {"model": "g", "stream": True},
            {"model": "g", "messages": [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}], "stream": True},
        ),
        ("response", "gemini", REPLY, {}, SPOKEN),
        (
            "error",
            "chat",
            ERROR,
            {"status": 429},
            {"kind": "rate_limit", "message": "slow", "status": 429, "code": "x"},
        ),
    ],
)
def test_the_neutral_view_of_every_operation(operation, source, body, more, shown):
    done = job(operation, source, "core", body, **more)
    assert json.loads(done.body) == shown
    assert done == JobResult(body=done.body)


SSE = b"data: " + encode(REPLY) + b"\n\n"


def test_the_neutral_view_of_a_stream_is_its_complete_reply():
    stream = open_stream("gemini", "core")
    assert stream.feed(SSE) == b""
    assert json.loads(stream.close()) == SPOKEN
    assert stream.losses == ()


def test_the_neutral_view_of_a_stream_that_failed_has_its_parts_and_its_problem():
    stream = open_stream("chat", "core")
    stream.feed(b'data: {"id":"r","model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n')
    shown = json.loads(stream.close())
    assert shown["parts"] == [{"type": "text", "text": "hi"}]
    assert (shown["problem"]["kind"], shown["problem"]["status"]) == ("malformed_reply", 502)


def test_a_stream_for_code_assist_is_wrapped():
    stream = open_stream("gemini", "code-assist")
    events = stream.feed(SSE) + stream.close()
    frames = [json.loads(line[6:]) for line in events.splitlines() if line.startswith(b"data: ")]
    assert frames
    assert all(frame.keys() == {"response"} for frame in frames)


TOOLS = [{"type": "function", "function": {"name": "f 1", "parameters": {"type": "object", "properties": {}}}}]
ASKED = encode(HELLO | {"tools": TOOLS})


def test_a_reply_answers_the_clients_request():
    context = context_of("gemini", "chat", "gemini-2.5-pro", ASKED)
    assert context.undo == Undo({"f_1_3b6abec1": ("", "f 1")})
    assert (context.request.model, context.form) == ("m", "")


def test_a_reply_in_the_clients_dialect_answers_it_too():
    context = context_of("chat", "chat", "gpt-4.1", ASKED)
    assert (context.undo, context.request.model) == (Undo(), "m")


def test_a_request_in_the_upstreams_dialect_does_not_determine_the_client():
    assert context_of("gemini", "chat", "g", encode(CONTENTS)) is NO_CONTEXT
    assert context_of("gemini", "code-assist", "g", ASKED) == Context(form="code_assist")


def test_without_a_request_a_reply_answers_nothing_in_particular():
    assert context_of("gemini", "chat", "g", None) is NO_CONTEXT
    assert context_of("chat", "code-assist", "g", None) == Context(form="code_assist")


def test_a_code_assist_clients_request_is_answered_in_its_envelope():
    context = context_of("chat", "code-assist", "gpt-4.1", encode({"model": "g", "request": CONTENTS}))
    assert (context.form, len(context.request.messages)) == ("code_assist", 1)


def test_the_request_gives_a_response_and_a_stream_their_names():
    parts = [{"functionCall": {"name": "f_1_3b6abec1", "args": {}}}]
    reply = {**REPLY, "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    done = job("response", "gemini", "chat", reply, model="gemini-2.5-pro", request=ASKED)
    assert json.loads(done.body)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "f 1"
    stream = open_stream("gemini", "chat", "gemini-2.5-pro", ASKED)
    assert b'"name":"f 1"' in stream.feed(b"data: " + encode(reply) + b"\n\n") + stream.close()
