"""Same dialect, same bytes: a document that needs no change is not changed."""

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from laws.documents import DIALECTS, requests
from shelf import needs_shelf, samples

BODY = b'{ "model" : "a",\n "x": [1.50, 1e3, "\\u00e9"], "model2": "model", "messages": [] }'


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_in_the_same_dialect_passes_byte_for_byte(dialect):
    assert translate_request(Call(BODY), dialect, dialect).call.body is BODY


def test_a_new_model_changes_the_model_and_no_other_byte():
    result = translate_request(Call(BODY), "chat", "chat", model="b").call
    assert result.body == BODY.replace(b'"model" : "a"', b'"model" : "b"')
    assert result.model == "b"


def test_a_dialect_that_names_the_model_in_the_url_keeps_its_body():
    body = b'{"contents": []}'
    assert translate_request(Call(body), "gemini", "gemini", model="b").call == Call(body, "b")


@needs_shelf
@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_requests_replies_and_streams_pass_unchanged(dialect):
    assert requests(dialect)
    for path in samples(dialect, ".response.json"):
        body = path.read_bytes()
        assert translate_response(body, dialect, dialect).body == body
    streams = samples(dialect, ".stream.sse")
    assert streams
    for path in streams:
        body = path.read_bytes()
        for size in (1, 7, 64, len(body)):
            stream = StreamTranslator(dialect, dialect)
            result = b"".join(stream.feed(body[at : at + size]) for at in range(0, len(body), size))
            assert result + stream.close() == body, f"{path.name} by {size}"


def test_a_cut_stream_ends_in_an_error_in_the_same_dialect_too():
    stream = StreamTranslator("chat", "chat")
    started = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    assert stream.feed(started) == started
    assert stream.close().startswith(b'data: {"error":')


def test_nothing_passes_after_the_end_of_the_reply():
    stream = StreamTranslator("chat", "chat")
    whole = (
        b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    assert stream.feed(whole + b'data: {"choices":[],"cost":"0"}\n\n') == whole
    assert stream.close() == b""


def test_what_breaks_a_stream_is_replaced_by_an_error_before_the_end():
    stream = StreamTranslator("messages", "messages")
    result = stream.feed(b"event: message_start\ndata: {nonsense\n\nevent: message_stop\ndata: {}\n\n") + stream.close()
    assert result.startswith(b"event: error\n")
    assert b"message_stop" not in result
