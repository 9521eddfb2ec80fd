"""A stream in its client's own dialect passes frame by frame, as the very bytes."""

import pytest

from dragoman.interpreter.stream import StreamTranslator

HEAD = b'{"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
FIRST = b"data: " + HEAD + b'{"role":"assistant","content":"hi"},"finish_reason":null}]}'
LAST = b"data: " + HEAD + b'{},"finish_reason":"stop"}]}'
DONE = b"data: [DONE]"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_a_whole_frame_passes_at_once_whatever_its_line_ends(end):
    stream = StreamTranslator("chat", "chat")
    for frame in (FIRST, LAST, DONE):
        assert stream.feed(frame + end) == frame + end
    assert stream.close() == b""


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
def test_a_frame_in_pieces_passes_when_it_is_whole(end):
    stream = StreamTranslator("chat", "chat")
    assert stream.feed(FIRST[:40]) == b""
    assert stream.feed(FIRST[40:]) == b""
    assert stream.feed(end + LAST[:50]) == FIRST + end
    assert stream.feed(LAST[50:] + end) == LAST + end


def test_a_last_frame_without_its_blank_line_passes_at_the_close():
    stream = StreamTranslator("chat", "chat")
    assert stream.feed(FIRST + b"\n\n" + LAST + b"\n\n") == FIRST + b"\n\n" + LAST + b"\n\n"
    assert stream.feed(DONE[:8]) == b""
    assert stream.feed(DONE[8:] + b"\n") == b""
    assert stream.close() == DONE + b"\n"


def test_a_stream_cut_inside_a_frame_ends_in_an_error_and_not_in_the_piece():
    stream = StreamTranslator("chat", "chat")
    stream.feed(FIRST + b"\n\n" + LAST[:60])
    result = stream.close()
    assert LAST[:60] not in result
    assert b'"error"' in result


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}',
        b'[{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]}',
    ],
)
def test_json_that_is_no_event_stream_passes_as_it_comes(body):
    stream = StreamTranslator("gemini", "gemini")
    assert stream.feed(body[:30]) == body[:30]
    assert stream.feed(body[30:]) == body[30:]
