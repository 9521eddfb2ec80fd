"""A stream in its client's own dialect passes frame by frame, as the very bytes."""

import pytest

from dragoman.core.stream import collect
from dragoman.dialects.registry import dialect_named
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


def test_a_json_array_that_is_no_event_stream_passes_as_it_comes():
    body = b'[{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]}'
    stream = StreamTranslator("gemini", "gemini")
    assert stream.feed(body[:30]) == body[:30]
    assert stream.feed(body[30:]) == body[30:]


WHOLE = {
    "chat": b'{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}',
    "responses": b'{"id":"r","model":"m","status":"completed","output":[{"type":"message","role":"assistant",'
    b'"content":[{"type":"output_text","text":"hi","annotations":[]}]}]}',
    "messages": b'{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],'
    b'"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}',
    "gemini": b'{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"responseId":"r"}',
}


@pytest.mark.parametrize("client", WHOLE)
@pytest.mark.parametrize("upstream", WHOLE)
@pytest.mark.parametrize("size", [5, 10_000])
def test_a_whole_reply_is_delivered_as_the_stream_that_the_client_asked_for(upstream, client, size):
    body = b"\n " + WHOLE[upstream]
    stream = StreamTranslator(upstream, client)
    sent = b"".join(stream.feed(body[at : at + size]) for at in range(0, len(body), size)) + stream.close()
    assert stream.problem is None
    assert stream.begun
    assert all(line.startswith((b"data: ", b"event: ")) for line in sent.splitlines() if line)
    reader = dialect_named(client).decoder()
    reply = collect([*reader.feed(sent), *reader.close()])
    assert [part.text for part in reply.parts] == ["hi"]
    assert reply.finish.reason == "stop"


@pytest.mark.parametrize("upstream", WHOLE)
def test_an_error_or_half_a_reply_instead_of_a_stream_is_a_problem(upstream):
    for body in (b'{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}', WHOLE[upstream][:40]):
        stream = StreamTranslator(upstream, "chat")
        sent = stream.feed(body) + stream.close()
        assert stream.problem is not None
        assert b'"error"' in sent
