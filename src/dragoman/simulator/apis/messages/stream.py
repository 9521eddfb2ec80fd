"""A streamed reply: the same blocks as the whole one, one after the other, each started, grown and stopped."""

from collections.abc import Iterator

from msgspec.json import encode

from dragoman.simulator.api import Accepted, Occasion, Pace
from dragoman.simulator.apis.messages.read import arguments_text
from dragoman.simulator.apis.messages.usage import about, input_usage, output_details, silent
from dragoman.simulator.apis.messages.write import (
    blocks,
    ending,
    opening,
    reading_of,
)
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def stream(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[bytes]:
    """Write the frames of a reply."""
    reading = reading_of(accepted)
    started: Json = {
        **opening(reading, occasion),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            **input_usage(answer, reading),
            "output_tokens": 0 if silent(reading) else 1,
            **about(),
        },
    }
    yield _frame("message_start", message=started)
    for index, block in enumerate(blocks(answer, reading, occasion)):
        yield _frame("content_block_start", index=index, content_block=_beginning(block))
        if index == 0:
            yield _PING
        for delta in _deltas(block, occasion.pace):
            yield _frame("content_block_delta", index=index, delta=delta)
        yield _frame("content_block_stop", index=index)
    counted = {name: count for name, count in input_usage(answer, reading).items() if name != "cache_creation"}
    written = 0 if silent(reading) else answer.usage.output
    used = {**counted, "output_tokens": written, **output_details(answer)}
    yield _frame("message_delta", delta=ending(answer, reading), usage=used)
    yield _frame("message_stop")


def _frame(event: str, **members: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event.encode(), encode({"type": event, **members}))


def _beginning(block: Json) -> Json:
    """Return a block as it starts; what does not grow is there at once."""
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {**({"citations": []} if "citations" in block else {}), "type": "text", "text": ""}
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: Json, pace: Pace) -> Iterator[Json]:
    match block["type"]:
        case "thinking":
            for piece in pace.pieces(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            for citation in block.get("citations", ()):
                yield {"type": "citations_delta", "citation": citation}
            for piece in pace.pieces(block["text"]):
                yield {"type": "text_delta", "text": piece}
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in pace.pieces(arguments_text(block["input"])) if block["input"] else ():
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            return
