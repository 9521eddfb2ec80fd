"""The streams that are translated: a long text in pieces of a few words, then a tool call, then the end."""

import json
from typing import Any

from msgspec import Struct

from benchmarks.bodies import compact

_SAID = (
    "I read both tables first and will then say what moved. The second one has two new rows („déjà vu“) and the "
    "totals differ by the same amount, so nothing else has changed since the last report. "
)
_ARGUMENTS = {"file": "/data/7.csv", "lines": 120, "action": "show"}
PIECES = 200


class Stream(Struct, frozen=True):
    """The bytes of each event as they arrive, and the JSON in each."""

    chunks: list[bytes]
    documents: list[bytes]


def _pieces(count: int = PIECES) -> list[str]:
    words = (_SAID * count).split(" ")
    return [" ".join(words[at : at + 4]) + " " for at in range(0, count * 4, 4)]


def _stream(events: list[Any], *, named: bool = False, end: bytes = b"\n") -> Stream:
    documents = [compact(event) for event in events]
    heads = [b"event: " + event["type"].encode() + end if named else b"" for event in events]
    chunks = [head + b"data: " + data + end + end for head, data in zip(heads, documents, strict=True)]
    return Stream(chunks, documents)


def gemini(count: int = PIECES) -> Stream:
    """Return a stream as Gemini sends it: `count` text chunks with the usage so far, the call whole, the end."""
    usage = {"promptTokenCount": 812, "candidatesTokenCount": 64, "totalTokenCount": 876}
    beside = {"usageMetadata": usage, "modelVersion": "some-model", "responseId": "r-0123456789"}

    def chunk(part: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0, **more}], **beside}

    texts = [chunk({"text": piece}) for piece in _pieces(count)]
    call = chunk({"functionCall": {"id": "a1", "name": "table_00_read", "args": _ARGUMENTS}})
    return _stream([*texts, call, chunk({"text": ""}, finishReason="STOP")], end=b"\r\n")


def gemini_whole() -> bytes:
    """Return a whole reply of Gemini's: a text and two calls, with Gemini's other fields."""
    calls = [{"functionCall": {"name": f"table_{number:02d}_read", "args": _ARGUMENTS}} for number in range(2)]
    candidate = {
        "content": {"parts": [{"text": _SAID * 2}, *calls], "role": "model"},
        "finishReason": "STOP",
        "index": 0,
        "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}],
    }
    usage = {"promptTokenCount": 812, "candidatesTokenCount": 64, "totalTokenCount": 876}
    details = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 812}]}
    result = {"candidates": [candidate], "usageMetadata": {**usage, **details}, "modelVersion": "some-model"}
    return compact({**result, "responseId": "r-0123456789"})


def chat_whole() -> bytes:
    """Return a whole reply as OpenAI's Chat Completions sends it: a text and two calls."""
    arguments = json.dumps(_ARGUMENTS)
    calls = [
        {"id": f"call_{at}", "type": "function", "function": {"name": f"table_{at:02d}_read", "arguments": arguments}}
        for at in range(2)
    ]
    message = {"role": "assistant", "content": _SAID * 2, "refusal": None, "annotations": [], "tool_calls": calls}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 812, "completion_tokens": 64, "total_tokens": 876}
    head = {"id": "chatcmpl-0123", "object": "chat.completion", "created": 1790000000, "model": "some-model"}
    return compact({**head, "choices": [choice], "usage": usage})


def messages_whole() -> bytes:
    """Return a whole reply as Anthropic sends it: a text and two calls."""
    calls = [
        {"type": "tool_use", "id": f"toolu_0{at}", "name": f"table_{at:02d}_read", "input": _ARGUMENTS}
        for at in range(2)
    ]
    head = {"id": "msg_01", "type": "message", "role": "assistant", "model": "some-model"}
    end = {"stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 812, "output_tokens": 64}}
    return compact({**head, "content": [{"type": "text", "text": _SAID * 2}, *calls], **end})


def chat(count: int = PIECES) -> Stream:
    """Return a stream as OpenAI's Chat Completions sends it, with `count` texts."""
    head = {"id": "chatcmpl-0123", "object": "chat.completion.chunk", "created": 1790000000, "model": "some-model"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    def call(**fields: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": 0, **fields}]})

    arguments = json.dumps(_ARGUMENTS)
    events = [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": piece}) for piece in _pieces(count)),
        call(id="call_01", type="function", function={"name": "table_00_read", "arguments": ""}),
        *(call(function={"arguments": arguments[at : at + 4]}) for at in range(0, len(arguments), 4)),
        chunk({}, "tool_calls"),
    ]
    stream = _stream(events)
    return Stream([*stream.chunks, b"data: [DONE]\n\n"], [*stream.documents, b'"[DONE]"'])


def messages(count: int = PIECES) -> Stream:
    """Return a stream as Anthropic sends it, with `count` texts."""
    usage = {"input_tokens": 812, "cache_read_input_tokens": 0, "output_tokens": 1}
    head: dict[str, Any] = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "some-model",
        "content": [],
    }
    arguments = json.dumps(_ARGUMENTS)

    def delta(index: int, **fields: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    def begin(index: int, **fields: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": fields}

    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        begin(0, type="text", text=""),
        *(delta(0, type="text_delta", text=piece) for piece in _pieces(count)),
        {"type": "content_block_stop", "index": 0},
        begin(1, type="tool_use", id="toolu_01", name="table_00_read", input={}),
        *(delta(1, type="input_json_delta", partial_json=arguments[at : at + 4]) for at in range(0, len(arguments), 4)),
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 64},
        },
        {"type": "message_stop"},
    ]
    return _stream(events, named=True)


STREAMS = {"gemini": gemini, "chat": chat, "messages": messages}
WHOLE = {"gemini": gemini_whole, "chat": chat_whole, "messages": messages_whole}
