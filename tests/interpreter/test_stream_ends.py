"""The state of a stream translator: whether the stream has started, how it ended, and its usage."""

import pytest

from dragoman import Problem
from dragoman.interpreter.stream import StreamTranslator

CHUNK = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]}\n\n'
OPENING = CHUNK % b'{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}'
WORDS = CHUNK % b'{"index":0,"delta":{"content":"Hello"},"finish_reason":null}'
END = CHUNK % b'{"index":0,"delta":{},"finish_reason":"stop"}'
USAGE = (CHUNK % b"").replace(b'"choices":[]', b'"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}')
DONE = b"data: [DONE]\n\n"
CLIENTS = ["chat", "responses", "messages", "gemini"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_has_started_with_its_first_content_and_not_before(client):
    translator = StreamTranslator("chat", client)
    translator.feed(OPENING)
    assert not translator.begun
    translator.feed(WORDS)
    assert translator.begun
    assert not translator.over


@pytest.mark.parametrize("client", CLIENTS)
def test_a_whole_stream_is_over_with_its_finish_and_its_usage_and_no_problem(client):
    translator = StreamTranslator("chat", client)
    translator.feed(OPENING + WORDS + END + USAGE + DONE)
    assert translator.over
    assert translator.finish is not None
    assert translator.finish.reason == "stop"
    assert translator.usage is not None
    assert (translator.usage.input, translator.usage.output) == (3, 2)
    assert translator.problem is None
    assert translator.feed(WORDS) == b""
    assert translator.close() == b""


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_that_is_cut_is_over_with_a_problem(client):
    translator = StreamTranslator("chat", client)
    translator.feed(OPENING + WORDS)
    assert b"error" in translator.close()
    assert translator.over
    assert translator.finish is None
    assert translator.problem is not None
    assert translator.problem.kind == "malformed_reply"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_that_falls_silent_ends_for_the_client_in_the_error_it_is_given_once(client):
    translator = StreamTranslator("chat", client)
    translator.feed(OPENING + WORDS + b"data: {")
    problem = Problem("timeout", "nothing came for too long")
    assert b"nothing came for too long" in translator.fail(problem)
    assert (translator.over, translator.problem) == (True, problem)
    assert translator.fail(problem) == b""
    assert translator.feed(END + DONE) == b""
    assert translator.close() == b""


def test_an_error_before_any_content_belongs_to_a_stream_that_has_not_started():
    translator = StreamTranslator("chat", "messages")
    translator.feed(b'data: {"error":{"message":"busy","type":"server_error","code":"server_is_overloaded"}}\n\n')
    assert translator.problem is not None
    assert (translator.begun, translator.problem.message) == (False, "busy")
