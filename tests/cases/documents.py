"""Smallest complete documents of each dialect around the part that a case is about."""

from collections.abc import Iterable
from typing import Any

from cases.through import DONE

Json = dict[str, Any]
HELLO: Json = {"role": "user", "content": "q"}


# Requests


def chat_request(*messages: Json, **members: Any) -> Json:
    return {"model": "m", "messages": list(messages or (HELLO,)), **members}


def messages_request(*messages: Json, **members: Any) -> Json:
    return {"model": "m", "max_tokens": 1000, "messages": list(messages or (HELLO,)), **members}


def responses_request(*items: Json, **members: Any) -> Json:
    return {"model": "m", "input": list(items or (HELLO,)), **members}


def gemini_request(*contents: Json, **members: Any) -> Json:
    return {"contents": list(contents or ({"role": "user", "parts": [{"text": "q"}]},)), **members}


def chat_call(call_id: str, name: str, arguments: str = "{}") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_calls(*calls: Json, **members: Any) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **members}


def chat_result(call_id: str, content: Any, **members: Any) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **members}


def chat_tool(name: str, parameters: Json | None = None, **members: Any) -> Json:
    schema = {} if parameters is None else {"parameters": parameters}
    return {"type": "function", "function": {"name": name, **schema, **members}}


def tool_use(call_id: str, name: str, arguments: Json | None = None) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}}


def tool_result(call_id: str, content: Any, **members: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **members}


def function_call(call_id: str, name: str, arguments: str = "{}") -> Json:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def function_output(call_id: str, output: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


# Whole replies


def chat_reply(message: Json, finish_reason: str = "stop", **members: Any) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **members}


def messages_reply(*content: Json, stop_reason: str = "end_turn", usage: Json | None = None) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage or {"input_tokens": 1, "output_tokens": 2},
    }


def responses_reply(*output: Json, status: str = "completed", **members: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": list(output),
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        **members,
    }


def gemini_reply(*parts: Json, finish: str | None = "STOP", **members: Any) -> Json:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"responseId": "r1", "modelVersion": "gemini-3-flash", "candidates": [candidate], **members}


# Streams, as lists of frames


def gemini_chunk(*parts: Json, finish: str | None = None, **members: Any) -> Json:
    return gemini_reply(*parts, finish=finish, **members)


def chat_chunk(delta: Json, finish_reason: str | None = None, **members: Any) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice], **members}


def chat_stream(*deltas: Json, finish_reason: str = "stop") -> list[Any]:
    return [*map(chat_chunk, deltas), chat_chunk({}, finish_reason), DONE]


def chat_call_deltas(*pieces: Json) -> list[Json]:
    return [{"tool_calls": [piece]} for piece in pieces]


def message_start(**usage: int) -> Json:
    counts = {"input_tokens": 1, "output_tokens": 1, **usage}
    message = {**messages_reply(usage=counts), "stop_reason": None}
    return {"type": "message_start", "message": message}


def message_end(stop_reason: str, **usage: int) -> list[Json]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {"output_tokens": 2, **usage},
        },
        {"type": "message_stop"},
    ]


def block(index: int, start: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def messages_stream(*blocks: list[Json], stop_reason: str = "end_turn") -> list[Json]:
    return [message_start(), *(event for one in blocks for event in one), *message_end(stop_reason)]


def responses_stream(*events: Json, output: Iterable[Json] = ()) -> list[Json]:
    whole = responses_reply(*output)
    opening = {**whole, "status": "in_progress", "output": [], "usage": None}
    frames: list[Json] = [
        {"type": "response.created", "response": opening},
        *events,
        {"type": "response.completed", "response": whole},
    ]
    return [{**frame, "sequence_number": number} for number, frame in enumerate(frames)]


def call_item_events(index: int, call_id: str, name: str, *pieces: str) -> list[Json]:
    item: Json = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
    place = {"output_index": index, "item_id": item["id"]}
    arguments = "".join(pieces)
    return [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "arguments": "", "status": "in_progress"},
        },
        *({"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.function_call_arguments.done", **place, "arguments": arguments, "name": name},
        {
            "type": "response.output_item.done",
            "output_index": index,
            "item": {**item, "arguments": arguments, "status": "completed"},
        },
    ]


def call_item(call_id: str, name: str, arguments: str) -> Json:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def message_item_events(index: int, *pieces: str) -> list[Json]:
    text = "".join(pieces)
    item = {"type": "message", "id": f"msg_{index}", "role": "assistant"}
    place = {"output_index": index, "item_id": item["id"], "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    return [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "content": [], "status": "in_progress"},
        },
        {"type": "response.content_part.added", **place, "part": empty},
        *({"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in pieces),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": {**empty, "text": text}},
        {"type": "response.output_item.done", "output_index": index, "item": message_item(index, text)},
    ]


def message_item(index: int, text: str) -> Json:
    return {
        "type": "message",
        "id": f"msg_{index}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


# What a client sees


def list_seen_calls(frames: Iterable[Any]) -> list[Json]:
    """Accumulate the tool calls of Chat chunks as clients do: by index, id and name from the first piece."""
    calls: dict[int, Json] = {}
    for frame in frames:
        for piece in chat_delta(frame).get("tool_calls") or ():
            function = piece.get("function", {})
            call = calls.setdefault(piece["index"], {"arguments": ""})
            call.update({key: piece[key] for key in ("id", "extra_content") if key in piece})
            if "name" in function:
                call["name"] = function["name"]
            call["arguments"] += function.get("arguments", "")
    return [{"index": index, **calls[index]} for index in sorted(calls)]


def chat_delta(frame: Any) -> Json:
    choices = frame.get("choices") if isinstance(frame, dict) else None
    return choices[0]["delta"] if choices else {}


def finish_reasons(frames: Iterable[Any]) -> list[str | None]:
    """The finish reason of every Chat chunk that has a choice."""
    return [
        frame["choices"][0]["finish_reason"] for frame in frames if isinstance(frame, dict) and frame.get("choices")
    ]


def of_type(frames: Iterable[Any], *kinds: str) -> list[Json]:
    return [frame for frame in frames if isinstance(frame, dict) and frame.get("type") in kinds]


def list_seen_blocks(frames: Iterable[Any]) -> list[Json]:
    """Accumulate the content blocks of a Messages stream as clients do."""
    blocks: dict[int, Json] = {}
    for frame in of_type(frames, "content_block_start", "content_block_delta"):
        if frame["type"] == "content_block_start":
            start = frame["content_block"]
            blocks[frame["index"]] = {**start, "input": ""} if start["type"] == "tool_use" else dict(start)
            continue
        block_, delta = blocks[frame["index"]], frame["delta"]
        key, word = _GROWN[delta["type"]]
        block_[key] = (block_.get(key) or "") + delta[word]
    return [blocks[index] for index in sorted(blocks)]


_GROWN = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}
