"""Streams of this dialect: recorded ones, and the events to make others from."""

import functools
import json

from dragoman.core.problems import Problem
from dragoman.core.stream import collect
from dragoman.dialects.responses import DIALECT
from dragoman.wire.json import decode_object
from dragoman.wire.sse import SseReader
from event_grammar import check_events
from shelf import exchanges, samples

TERMINAL = ("response.completed", "response.incomplete")


@functools.cache
def load_recordings():
    streams = {
        row["id"]: row["sse"].encode() for row in exchanges("responses") if row["status"] == 200 and "sse" in row
    }
    return streams | {path.name: path.read_bytes() for path in samples("responses", ".stream.sse")}


def decode(data, size=1 << 20):
    decoder = DIALECT.decoder()
    events = []
    for start in range(0, len(data), size):
        events += decoder.feed(data[start : start + size])
    return [*events, *decoder.close()]


def outcome(events):
    try:
        return collect(check_events(events))
    except Problem as problem:
        return problem


def sse(*events):
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def encode(events, request=None):
    encoder = DIALECT.encoder(request)
    return b"".join(encoder.feed(event) for event in events)


def frames(data):
    return [(frame.event, json.loads(frame.data)) for frame in whole_frames(data)]


def whole_frames(data):
    reader = SseReader()
    return [*reader.feed(data), *reader.close()]


def terminal(data):
    """The raw reply in the last terminal event."""
    found = [
        frame.data
        for frame in whole_frames(data)
        if frame.data[:1] == b"{" and json.loads(frame.data).get("type") in TERMINAL
    ]
    return bytes(decode_object(found[-1])["response"])


CREATED = {
    "type": "response.created",
    "response": {"id": "r", "model": "m", "created_at": 1, "status": "in_progress", "output": []},
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "", "status": "in_progress"}


def complete(*output, status="completed"):
    return {
        "type": f"response.{status}",
        "response": {"id": "r", "model": "m", "status": status, "output": list(output)},
    }


def build_added(item, index=0):
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item, index=0):
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def arguments(delta, index=0, **members):
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta, **members}


def text(words, **members):
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": words, "annotations": []}],
        **members,
    }
