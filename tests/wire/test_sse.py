"""The SSE reader: any boundary, any line end, bounded, linear; and what our own writer writes."""

import itertools
import random

import pytest

from dragoman.wire.json import Malformed
from dragoman.wire.sse import Frame, SseReader, render_data_frame, render_named_frame, split_frames

STREAM = (
    b"\xef\xbb\xbf: hello\n"
    b"event: message_start\r\n"
    b'data: {"a":1}\r\n'
    b"\r\n"
    b"data:no space\r"
    b"\r"
    b"id: 7\n"
    b"retry: 100\n"
    b"data: two\n"
    b"data:  lines\n"
    b"\n"
    b"\n"
    b": heartbeat\n"
    b"\n"
    b"event: empty\n"
    b"\n"
    b"data\n"
    b"\n"
    b"data: \xc5\xa1um: \xe2\x82\xac\n"
    b"\n"
)
FRAMES = [
    Frame("message_start", b'{"a":1}'),
    Frame("", b"no space"),
    Frame("", b"two\n lines"),
    Frame("", b""),
    Frame("", "šum: €".encode()),
]


def read(stream: bytes, cuts: list[int]) -> list[Frame]:
    reader = SseReader()
    edges = [0, *cuts, len(stream)]
    frames = [frame for start, end in itertools.pairwise(edges) for frame in reader.feed(stream[start:end])]
    return frames + reader.close()


def test_an_event_with_several_line_ends_names_and_comments_is_read():
    assert read(STREAM, []) == FRAMES


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_a_cut_anywhere_changes_nothing(cut):
    assert read(STREAM, [cut]) == FRAMES


def test_single_bytes_change_nothing():
    assert read(STREAM, list(range(len(STREAM)))) == FRAMES


@pytest.mark.parametrize("seed", range(20))
def test_random_cuts_change_nothing(seed):
    chance = random.Random(seed)  # noqa: S311
    cuts = sorted(chance.choices(range(len(STREAM)), k=chance.randrange(40)))
    assert read(STREAM, cuts) == FRAMES


def test_a_crlf_cut_in_two_is_one_line_end():
    reader = SseReader()
    assert reader.feed(b"data: a\r") == []
    assert reader.feed(b"\ndata: b\r") == []
    assert reader.feed(b"\n\r") == [Frame("", b"a\nb")]
    assert reader.feed(b"\ndata: c\n\n") == [Frame("", b"c")]


def test_a_frame_is_returned_with_the_byte_that_ends_it():
    reader = SseReader()
    assert reader.feed(b"data: a\n") == []
    assert reader.feed(b"\n") == [Frame("", b"a")]
    assert reader.close() == []


def test_an_event_name_does_not_outlive_its_event():
    assert read(b"event: ping\n\ndata: x\n\n", []) == [Frame("", b"x")]


def test_an_event_cut_off_by_the_end_is_still_returned():
    assert read(b"data: a\n\ndata: b", []) == [Frame("", b"a"), Frame("", b"b")]
    assert read(b"event: e\ndata: b\n", []) == [Frame("e", b"b")]


def test_a_stream_of_comments_has_no_events():
    assert read(b": ping\n\n: ping\n\n", []) == []


def test_a_mark_of_byte_order_inside_the_stream_is_data():
    assert read(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", []) == [Frame("", b"a")]


def test_a_broken_name_does_not_stop_the_stream():
    assert read(b"event: \xff\ndata: b\n\n", []) == [Frame("�", b"b")]


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * 101],
        [b"data: " + b"x" * 60, b"x" * 60],
        [b"data: " + b"x" * 60 + b"\n", b"data: " + b"x" * 60 + b"\n"],
        [b"data: " + b"x" * 200 + b"\n\n"],
        [b"data:\n"] * 200,
        [b": " + b"c" * 60, b"c" * 60],
    ],
)
def test_an_event_larger_than_the_limit_is_malformed(chunks):
    reader = SseReader(max_event_bytes=100)
    with pytest.raises(Malformed, match="larger than 100 bytes"):
        list(map(reader.feed, chunks))


def test_many_events_within_the_limit_pass_it_together():
    reader = SseReader(max_event_bytes=100)
    chunks = [b"data: " + b"x" * 40, b"x" * 40 + b"\n\n"] * 50
    frames = [frame for chunk in chunks for frame in reader.feed(chunk)]
    assert frames == [Frame("", b"x" * 80)] * 50


def test_held_bytes_are_joined_once():
    """A line fed byte by byte must not be searched or copied again with each byte."""
    reader = SseReader()
    for _ in range(5000):
        reader.feed(b"x")
    assert len(reader._partial_line) == 5000
    assert sum(map(len, reader._partial_line)) == 5000


def test_what_we_write_we_read():
    stream = render_data_frame(b"{}") + render_named_frame("done", b"[1]") + render_data_frame(b"[DONE]")
    assert read(stream, []) == [Frame("", b"{}"), Frame("done", b"[1]"), Frame("", b"[DONE]")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    "body", [b"data: a", b"event: e\ndata: a", b"data: a\rdata: b", b"event: e\ndata: a\rb", b"data:a", b"data: "]
)
def test_an_event_alone_in_its_chunk_is_read_as_byte_by_byte(body, end):
    chunk = body.replace(b"\n", end) + end + end
    once, slowly = SseReader(), SseReader()
    result = [*once.feed(chunk), *once.feed(chunk), *once.close()]
    assert result == [*(frame for byte in chunk + chunk for frame in slowly.feed(bytes([byte]))), *slowly.close()]


@pytest.mark.parametrize(
    "chunk",
    [
        b"",
        b'data: {"a": 1}',
        b'data: {"a": 1}\n',
        b'data: {"a": 1}\r\r',
        b'data:{"a": 1}\n\n',
        b'id: 7\ndata: {"a": 1}\n\n',
        b'event: x\ndata: {"a": 1}\n\n',
        b'data: {"a":\ndata: 1}\n\n',
        b'data: {"a":\rdata: 1}\n\n',
        b'data: {"a": 1}\n\ndata: {"b": 2}\n\n',
    ],
)
@pytest.mark.parametrize("before", [b"", b"data: x\n", b"data: x\r", b"event: e\n", b"data: x", b"data: x\n\n"])
def test_a_chunk_is_read_the_same_behind_anything_that_came_before(chunk, before):
    assert read(before + chunk, [len(before)]) == read(before + chunk, list(range(len(before + chunk))))


def test_an_event_alone_in_its_chunk_is_held_to_the_limit():
    assert SseReader(13).feed(b"data: {123}\n\n") == [Frame("", b"{123}")]
    with pytest.raises(Malformed):
        SseReader(8).feed(b"data: {12345678}\n\n")


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_frames_as_they_came_lose_no_byte_of_blank_lines_between_them(size):
    raw = b"data: 1\r\n\r\n\ndata: 2\n\n\n\r\ndata: 3\r\n\r\n\n"
    started = bytearray()
    frames = [frame for at in range(0, len(raw), size) for frame in split_frames(started, raw[at : at + size])]
    assert b"".join(frames) + bytes(started) == raw
