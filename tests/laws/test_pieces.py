"""A stream gives the same result however it is split: at once, by event, or by few bytes."""

import json

import pytest

from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.signature_recorder import SignatureRecorder
from dragoman.interpreter.stream import StreamTranslator
from dragoman.wire.sse import split_frames
from laws.documents import DIALECTS
from laws.streams import STREAMS
from shelf import exchanges

MADE = [(source, kind, client) for source in DIALECTS for kind in STREAMS[source] for client in DIALECTS]
RECORDED = [(source, client) for source in DIALECTS for client in DIALECTS if source != client]


def events_of(sse: bytes) -> list[bytes]:
    rest = bytearray()
    return [*split_frames(rest, sse), bytes(rest)]


def translate_pieces(pieces: list[bytes], source: str, client: str) -> tuple[object, ...]:
    watch = SignatureRecorder()
    translator = StreamTranslator(source, client, Context(now=1), watch)
    content = b"".join([*(translator.feed(piece) for piece in pieces), translator.close()])
    problem = translator.problem
    words = None if problem is None else (problem.kind, problem.message)
    return content, translator.losses, translator.usage, translator.finish, watch.ended, words


@pytest.mark.parametrize(("source", "kind", "client"), MADE)
def test_a_stream_gives_the_same_result_by_event_by_few_bytes_and_at_once(source, kind, client):
    sse = STREAMS[source][kind](6)
    whole = translate_pieces([sse], source, client)
    assert translate_pieces(events_of(sse), source, client) == whole
    assert translate_pieces([sse[at : at + 7] for at in range(0, len(sse), 7)], source, client) == whole


@pytest.mark.parametrize(("source", "client"), RECORDED)
def test_a_recorded_stream_gives_the_same_result_by_event_and_at_once(source, client):
    recorded = [each["sse"].encode() for each in exchanges(source) if "sse" in each]
    if not recorded:
        pytest.skip("the recorded exchanges are not here")
    for sse in recorded[:200]:
        assert translate_pieces(events_of(sse), source, client) == translate_pieces([sse], source, client)


@pytest.mark.parametrize("kind", STREAMS["gemini"])
def test_comments_are_taken_out_of_a_stream_for_clients_that_fail_on_them(kind):
    sse = STREAMS["gemini"][kind](3)
    noisy = b"".join([b": ping\n\n", *(b": x\n" + frame for frame in events_of(sse) if frame)])
    passed = translate_pieces([noisy], "gemini", "gemini")
    assert (passed[0].lstrip(), *passed[1:]) == translate_pieces([sse], "gemini", "gemini")


def test_a_line_of_a_json_array_that_starts_with_a_colon_is_no_comment():
    reply = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}
    array = b"[" + json.dumps(reply).encode().replace(b'"text":', b'"text"\n:') + b"]"
    for size in (1, 7, len(array)):
        pieces = [array[at : at + size] for at in range(0, len(array), size)]
        assert translate_pieces(pieces, "gemini", "gemini")[0] == array
