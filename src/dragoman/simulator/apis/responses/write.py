"""Render an answer as a whole response or as a stream of the vendor's numbered events.

The fields are those the vendor's SDK knows, without `store` and billing.
"""

import hashlib
from collections.abc import Iterator
from typing import cast

from msgspec import structs
from msgspec.json import decode, encode

from dragoman.simulator.apis.api import AcceptedRequest, ApiRejection, Chunking, HttpReply, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, AnswerUsage, ModelRequest, TokenSigner
from dragoman.simulator.apis.openai import errors
from dragoman.simulator.apis.openai.models import Family
from dragoman.simulator.apis.openai.replies import build_moderation_result
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.conversations import assign_item_ids, normalise_input
from dragoman.simulator.apis.responses.ids import decode_response_id, encode_response_id
from dragoman.simulator.apis.responses.output import build_compaction_item, build_items, echo_request
from dragoman.simulator.apis.rule import Json

_Event = tuple[str, Json]
_PADDING_BLOCK = 16
_COMPACTION_TOKENS = 64
_EMPTY_ITEMS: dict[str, Json] = {
    "reasoning": {"summary": []},
    "web_search_call": {"action": {"type": "search"}},
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
    "tool_search_call": {"arguments": {}},
}
_STATUS_CODES = {
    401: "invalid_api_key",
    429: "rate_limit_exceeded",
    500: "server_error",
    503: "server_is_overloaded",
}
_ENDS = {
    "stop": ("completed", ""),
    "calls": ("completed", ""),
    "length": ("incomplete", "max_output_tokens"),
    "filtered": ("incomplete", "content_filter"),
    "malformed_call": ("failed", ""),
}
_MALFORMED = {"code": "server_error", "message": "The model produced a function call that could not be read."}
_NO_IMAGES: Json = {
    "input_tokens": 0,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "total_tokens": 0,
}


def render_error(rejection: ApiRejection) -> HttpReply:
    """Return the error reply."""
    return errors.render_error(rejection, _STATUS_CODES)


def render_reply(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> bytes:
    """Return a whole response."""
    return encode(_build_finished(answer, accepted, meta, build_items(answer, accepted, meta)))


def _build_finished(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta, items: list[Json]) -> Json:
    """Return a response that has ended."""
    request = cast("ResponsesRequest", accepted.body)
    status, reason = _ENDS[answer.end]
    response = _build_response(accepted, meta, status, items)
    response["error"] = _MALFORMED if status == "failed" else None
    response["incomplete_details"] = {"reason": reason} if reason else None
    searches = len([item for item in items if item["type"] == "web_search_call"])
    response["tool_usage"] = {"image_gen": _NO_IMAGES, "web_search": {"num_requests": searches}}
    used = structs.replace(answer.usage, output=0, thought=0) if request.prewarms else answer.usage
    response["usage"] = _render_usage(used) if status != "failed" else None
    if (moderation := request.get("moderation")) is not None:
        result = build_moderation_result(moderation["model"])
        response["moderation"] = {"input": result, "output": result}
    if compared := request.at("/prompt_cache_options/comparison_response_id"):
        seen = "cache_hit" if answer.usage.cached else "unavailable"
        response["prompt_cache_diagnostics"] = {
            "type": seen if decode_response_id(compared) else "comparison_response_not_found"
        }
    response["completed_at"] = meta.created + 1 if status == "completed" else None
    return response


def build_unfinished(response: Json, status: str) -> Json:
    """Return a response as it is before it has ended, or after it was cancelled."""
    rest = {name: value for name, value in response.items() if name != "tool_usage"}
    open_members: Json = {"status": status, "output": [], "usage": None, "error": None, "incomplete_details": None}
    return {**rest, **open_members, "completed_at": None}


def _render_usage(usage: AnswerUsage) -> Json:
    """Return the usage: input tokens include cached ones, output tokens include reasoning."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thought},
        "total_tokens": usage.input + usage.output,
    }


def compact(accepted: AcceptedRequest, meta: ReplyMeta, tokens: int) -> bytes:
    """Compact a conversation: user messages stay, all else becomes one encrypted item only the vendor can read."""
    items = normalise_input(accepted.body.get("input"))
    sealed = [number for number, item in enumerate(items, 1) if item.get("type") == "compaction"]
    since = items[sealed[-1] if sealed else 0 :]
    messages = [one.render() for one in assign_item_ids(since, meta.id) if one.item.get("role") == "user"]
    return encode(
        {
            "id": encode_response_id(meta.id),
            "object": "response.compaction",
            "created_at": meta.created,
            "output": [*messages, build_compaction_item(meta, len(messages), stored=True)],
            "usage": _render_usage(AnswerUsage(input=tokens, output=_COMPACTION_TOKENS)),
        }
    )


def render_token_count(_: AcceptedRequest, tokens: int) -> bytes:
    """Return the reply to a token-count request."""
    return encode({"object": "response.input_tokens", "input_tokens": tokens})


def drop_output(data: bytes) -> bytes:
    """Remove the output from a whole response; of a stream, drop the events that carry output."""
    response: Json = decode(data)
    if response.get("object") == "response":
        return encode({**response, "output": []})
    if "response" not in response:
        return b""
    return encode({**response, "response": {**response["response"], "output": []}})


def _build_response(accepted: AcceptedRequest, meta: ReplyMeta, status: str, items: list[Json]) -> Json:
    return {
        "id": encode_response_id(meta.id),
        "object": "response",
        "created_at": meta.created,
        "status": status,
        **echo_request(accepted.body),
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": accepted.body.model,
        "output": items,
        "usage": None,
    }


def render_stream(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> Iterator[bytes]:
    """Yield the frames of a stream."""
    padded = bool(accepted.body.at("/stream_options/include_obfuscation"))
    for number, (name, members) in enumerate(_iterate_events(answer, accepted, meta)):
        yield _render_event(name, number, _pad_members(members) if padded and "delta" in members else members)


def _pad_members(members: Json) -> Json:
    """Pad an event with random letters, so that its size reveals nothing about the tokens in it.

    The vendor does that by default. Its own SDK does not know the field, so the simulator does it only on request.
    """
    digest = hashlib.sha256(encode(members)).hexdigest()
    return {**members, "obfuscation": digest[: -len(members["delta"]) % _PADDING_BLOCK]}


def _render_event(name: str, number: int, members: Json) -> bytes:
    """Return one event."""
    data = encode({"type": name, "sequence_number": number, **members})
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def render_broken_stream(rejection: ApiRejection, accepted: AcceptedRequest, meta: ReplyMeta, number: int) -> bytes:
    """Return the end of a stream that fails after `number` events: the error, then the failed response, as recorded."""
    error = errors.build_error(rejection, _STATUS_CODES)
    response = _build_response(accepted, meta, "failed", [])
    response["error"] = {"code": error["code"] or "server_error", "message": error["message"]}
    return _render_event("error", number, {"error": error}) + _render_event(
        "response.failed", number + 1, {"response": response}
    )


def render_stream_error(rejection: ApiRejection) -> bytes:
    """Return the end of an unknown stream that fails: the error, then a failed response, as recorded."""
    name = hashlib.sha256(rejection.message.encode()).hexdigest()[:24]
    request = ResponsesRequest(
        {"model": ""}, model="", family=Family(generation=(0, 0)), signer=TokenSigner(), items=[]
    )
    accepted = AcceptedRequest(model_request=ModelRequest(model="", turns=()), body=request)
    return render_broken_stream(rejection, accepted, ReplyMeta(id=name, created=0, signer=TokenSigner()), 0)


def _iterate_events(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> Iterator[_Event]:
    running = {"response": _build_response(accepted, meta, "in_progress", [])}
    if accepted.body.get("background"):
        queued = {"response": _build_response(accepted, meta, "queued", [])}
        yield "response.created", queued
        yield "response.queued", queued
    else:
        yield "response.created", running
    yield "response.in_progress", running
    items = build_items(answer, accepted, meta)
    for index, item in enumerate(items):
        yield from _iterate_item_events(
            item, index, meta.chunking, is_triggered=item["type"] == "compaction" and len(items) == 1
        )
    response = _build_finished(answer, accepted, meta, items)
    yield f"response.{response['status']}", {"response": response}


def _iterate_item_events(item: Json, index: int, chunking: Chunking, *, is_triggered: bool) -> Iterator[_Event]:
    """Yield the events of an item; a compaction reports its progress only if a trigger requested it."""
    yield "response.output_item.added", {"output_index": index, "item": _build_item_start(item)}
    place: Json = {"item_id": item["id"], "output_index": index}
    match item["type"]:
        case "reasoning":
            yield from _iterate_reasoning_events(item, place, chunking)
        case "web_search_call":
            yield from _iterate_search_events(place)
        case "message":
            yield from _iterate_message_events(item, place, chunking)
        case "function_call":
            yield from _iterate_delta_events(
                "response.function_call_arguments", "arguments", item["arguments"], place, chunking
            )
        case "custom_tool_call":
            yield from _iterate_delta_events("response.custom_tool_call_input", "input", item["input"], place, chunking)
        case "shell_call":
            yield from _iterate_command_events(item, index, chunking)
        case "apply_patch_call" if "diff" in item["operation"]:
            diff = item["operation"]["diff"]
            yield from _iterate_delta_events("response.apply_patch_call_operation_diff", "diff", diff, place, chunking)
        case "compaction" if is_triggered:
            yield "response.compaction.compacting", place
        case _:
            pass
    yield "response.output_item.done", {"output_index": index, "item": item}


def _build_item_start(item: Json) -> Json:
    """Return an item as it is before any of its content is known."""
    begun: Json = {**item, **_EMPTY_ITEMS.get(str(item["type"]), {})}
    match item["type"]:
        case "shell_call":
            begun["action"] = {**item["action"], "commands": []}
        case "local_shell_call":
            begun["action"] = {**item["action"], "command": []}
        case "apply_patch_call" if "diff" in item["operation"]:
            begun["operation"] = {**item["operation"], "diff": ""}
        case _:
            pass
    if "status" in item:
        begun["status"] = "in_progress"
    if "encrypted_content" in item:
        begun["encrypted_content"] = _truncate_token(item["encrypted_content"])
    return begun


def _truncate_token(token: str) -> str:
    """Return the encrypted content of a reasoning item that is still streaming: a prefix, not valid yet."""
    return token[: len(token) // 2]


def _iterate_reasoning_events(item: Json, place: Json, chunking: Chunking) -> Iterator[_Event]:
    for number, part in enumerate(item["summary"]):
        at: Json = {**place, "summary_index": number}
        yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        for piece in chunking.split_text(part["text"]):
            yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
        yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**at, "part": part}


def _iterate_search_events(place: Json) -> Iterator[_Event]:
    for step in ("in_progress", "searching", "completed"):
        yield f"response.web_search_call.{step}", place


def _iterate_command_events(item: Json, index: int, chunking: Chunking) -> Iterator[_Event]:
    """Yield the events of a shell call, which name the item by its index only."""
    for number, command in enumerate(item["action"]["commands"]):
        place: Json = {"output_index": index, "command_index": number}
        yield "response.shell_call_command.added", {**place, "command": ""}
        yield from _iterate_delta_events("response.shell_call_command", "command", command, place, chunking)


def _iterate_message_events(item: Json, place: Json, chunking: Chunking) -> Iterator[_Event]:
    for number, part in enumerate(item["content"]):
        at: Json = {**place, "content_index": number}
        if part["type"] == "refusal":
            yield "response.content_part.added", {**at, "part": {**part, "refusal": ""}}
            yield from _iterate_delta_events("response.refusal", "refusal", part["refusal"], at, chunking)
            yield "response.content_part.done", {**at, "part": part}
            continue
        yield "response.content_part.added", {**at, "part": {**part, "text": "", "annotations": [], "logprobs": []}}
        yield from _iterate_text_events(part, at, chunking)
        likely = [_render_logprob(token) for token in part["logprobs"]]
        yield "response.output_text.done", {**at, "text": part["text"], "logprobs": likely}
        yield "response.content_part.done", {**at, "part": part}


def _iterate_text_events(part: Json, at: Json, chunking: Chunking) -> Iterator[_Event]:
    """Yield the deltas of a text; a citation follows as soon as the text it refers to is complete."""
    annotations: list[Json] = part["annotations"]
    waiting = list(enumerate(annotations))
    tokens: list[Json] = list(part["logprobs"])
    logprobs_end = text_end = 0
    for piece in chunking.split_text(part["text"]):
        text_end += len(piece)
        likely: list[Json] = []
        while tokens and logprobs_end < text_end:
            logprobs_end += len(tokens[0]["token"])
            likely.append(_render_logprob(tokens.pop(0)))
        yield "response.output_text.delta", {**at, "delta": piece, "logprobs": likely}
        for number, annotation in list(waiting):
            if annotation["end_index"] <= text_end:
                waiting.remove((number, annotation))
                yield (
                    "response.output_text.annotation.added",
                    {**at, "annotation_index": number, "annotation": annotation},
                )


def _render_logprob(token: Json) -> Json:
    """Return a token's log probability as events have it, without its bytes."""
    top = [{"token": other["token"], "logprob": other["logprob"]} for other in token["top_logprobs"]]
    return {"token": token["token"], "logprob": token["logprob"], "top_logprobs": top}


def _iterate_delta_events(name: str, member: str, text: str, place: Json, chunking: Chunking) -> Iterator[_Event]:
    for piece in chunking.split_text(text):
        yield f"{name}.delta", {**place, "delta": piece}
    yield f"{name}.done", {**place, member: text}
