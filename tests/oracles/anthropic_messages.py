"""Read Messages replies with the anthropic package: its stream class and its message accumulator."""

import json
from typing import Any

import anthropic
import httpx2
from anthropic._streaming import Stream
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent

from oracles.clients import anthropic_client, silent
from oracles.reading import Call, Reading, Usage, add_counts, as_json, describe_error, finish_after

_POST = httpx2.Request("POST", "http://oracle/v1/messages")
_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refused",
    "pause_turn": "paused",
}


def read_whole(body: bytes, *, strict: bool) -> Reading:
    """Read a whole reply; strict validates every field against the SDK's types."""
    response = httpx2.Response(200, content=body, request=_POST)
    with silent():
        try:
            message = anthropic_client(strict=strict)._process_response_data(
                data=json.loads(body), cast_to=Message, response=response
            )
            return _read(message, {})
        except Exception as error:  # noqa: BLE001  whatever the SDK raises is the reading
            return Reading(problem=describe_error(error))


def read_stream(sse: bytes, *, strict: bool) -> Reading:
    """Read a stream with the SDK's stream class and accumulator; argument texts are the accumulator's buffers."""
    response = httpx2.Response(200, content=sse, request=_POST)
    buffers: dict[int, bytes] = {}
    message: Any = None
    stopped = False
    problem = ""
    with silent():
        try:
            for event in Stream(
                cast_to=RawMessageStreamEvent, response=response, client=anthropic_client(strict=strict)
            ):
                message = accumulate_event(event=event, current_snapshot=message, json_bufs=buffers)
                stopped = stopped or event.type == "message_stop"
        except Exception as error:  # noqa: BLE001  whatever the SDK raises is the reading
            problem = describe_error(error)
        if message is None:
            return Reading(problem=problem or "no message_start")
        return _read(message, buffers, problem or ("" if stopped else "no message_stop"))


def read_helper(client: anthropic.Anthropic) -> Reading:
    """Read what `client` receives with `messages.stream`."""
    with client.messages.stream(model="m", max_tokens=1, messages=[]) as stream:
        return _read(stream.get_final_message(), {})


def _read(message: Any, buffers: dict[int, bytes], problem: str = "") -> Reading:
    text: list[str] = []
    thinking: list[str] = []
    calls: list[Call] = []
    for index, block in enumerate(message.content):
        match block.type:
            case "text":
                text.append(block.text)
            case "thinking":
                thinking.append(block.thinking)
            case "tool_use":
                buffer = buffers.get(index, b"").decode()
                calls.append(Call(block.name, buffer or as_json(block.input), block.id))
            case _:
                pass
    word = message.stop_reason
    return Reading(
        text="".join(text),
        calls=tuple(calls),
        finish=finish_after(_FINISHES.get(word, "other") if word else "", calls=bool(calls), refusal=False),
        usage=_usage(message.usage),
        reasoning="".join(thinking),
        problem=problem,
    )


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    details = getattr(usage, "output_tokens_details", None)
    return Usage(
        add_counts(usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens),
        usage.output_tokens,
        usage.cache_read_input_tokens,
        getattr(details, "thinking_tokens", None),
    )
