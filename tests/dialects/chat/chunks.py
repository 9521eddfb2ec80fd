"""Write chunks and decode their events."""

import json
from typing import Any

from dragoman.core.events import Event, Failed
from dragoman.core.problems import Problem
from dragoman.core.response import Response
from dragoman.core.stream import collect
from dragoman.dialects.chat import DIALECT
from event_grammar import check_events


def frame(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [choice]}
    return frame({**head, **fields})


def call(**fields: Any) -> dict[str, Any]:
    """One piece of a call: `id`, `index`, `name`, `args`."""
    function = {word: fields.pop(key) for key, word in (("name", "name"), ("args", "arguments")) if key in fields}
    return {**fields, "function": function} if function else fields


def calls(*pieces: dict[str, Any]) -> bytes:
    return chunk({"tool_calls": [call(**piece) for piece in pieces]})


DONE = frame(b"[DONE]")
TOOLS = chunk(finish="tool_calls") + DONE
STOP = chunk(finish="stop") + DONE


def decode(stream: bytes, size: int | None = None) -> list[Event]:
    decoder = DIALECT.decoder()
    events: list[Event] = []
    for start in range(0, len(stream), size or len(stream) or 1):
        events += decoder.feed(stream[start : start + (size or len(stream))])
    events += decoder.close()
    assert decoder.feed(chunk({"content": "late"})) == []
    assert decoder.close() == []
    return list(check_events(events))


def read(*stream: bytes) -> Response:
    return collect(decode(b"".join(stream)))


def failure(*stream: bytes) -> Problem:
    last = decode(b"".join(stream))[-1]
    assert isinstance(last, Failed)
    return last.problem
