"""Write an answer as a whole reply or as a stream: the vendor's events, each under its name and number.

The members are those the vendor's SDK knows, `store` and billing left out.
"""

import hashlib
from collections.abc import Iterator
from typing import cast

from msgspec import structs
from msgspec.json import decode, encode

from dragoman.simulator.api import Accepted, Occasion, Pace, Refusal, Told
from dragoman.simulator.apis.openai import errors
from dragoman.simulator.apis.openai.models import Family
from dragoman.simulator.apis.openai.replies import moderation_result
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.conversations import input_items, kept
from dragoman.simulator.apis.responses.ids import reply_of, response_id
from dragoman.simulator.apis.responses.output import compaction_item, echoed, items_of
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, Ask, Signer, Usage

_Event = tuple[str, Json]
_BLOCK = 16
_SEALED_TOKENS = 64
_EMPTY: dict[str, Json] = {
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


def refuse(refusal: Refusal) -> Told:
    """Return the reply that refuses."""
    return errors.refuse(refusal, _STATUS_CODES)


def whole(answer: Answer, accepted: Accepted, occasion: Occasion) -> bytes:
    """Write a whole reply."""
    return encode(_finished(answer, accepted, occasion, items_of(answer, accepted, occasion)))


def _finished(answer: Answer, accepted: Accepted, occasion: Occasion, items: list[Json]) -> Json:
    """Return a reply that has ended."""
    request = cast("ResponsesRequest", accepted.body)
    status, reason = _ENDS[answer.end]
    told = _response(accepted, occasion, status, items)
    told["error"] = _MALFORMED if status == "failed" else None
    told["incomplete_details"] = {"reason": reason} if reason else None
    searches = len([item for item in items if item["type"] == "web_search_call"])
    told["tool_usage"] = {"image_gen": _NO_IMAGES, "web_search": {"num_requests": searches}}
    used = structs.replace(answer.usage, output=0, thought=0) if request.prewarms else answer.usage
    told["usage"] = _usage(used) if status != "failed" else None
    if (moderation := request.get("moderation")) is not None:
        result = moderation_result(moderation["model"])
        told["moderation"] = {"input": result, "output": result}
    if compared := request.at("/prompt_cache_options/comparison_response_id"):
        seen = "cache_hit" if answer.usage.cached else "unavailable"
        told["prompt_cache_diagnostics"] = {"type": seen if reply_of(compared) else "comparison_response_not_found"}
    told["completed_at"] = occasion.created + 1 if status == "completed" else None
    return told


def unfinished(told: Json, status: str) -> Json:
    """Return a reply as it is told before it has ended, or after it was cancelled."""
    rest = {name: value for name, value in told.items() if name != "tool_usage"}
    open_members: Json = {"status": status, "output": [], "usage": None, "error": None, "incomplete_details": None}
    return {**rest, **open_members, "completed_at": None}


def _usage(usage: Usage) -> Json:
    """Count as the vendor does: input with what was cached, output with what was thought."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thought},
        "total_tokens": usage.input + usage.output,
    }


def compact(accepted: Accepted, occasion: Occasion, tokens: int) -> bytes:
    """Make a conversation short: what users said stays, all else is sealed into one item only the vendor can read."""
    items = input_items(accepted.body.get("input"))
    sealed = [number for number, item in enumerate(items, 1) if item.get("type") == "compaction"]
    since = items[sealed[-1] if sealed else 0 :]
    said = [one.told() for one in kept(since, occasion.id) if one.item.get("role") == "user"]
    return encode(
        {
            "id": response_id(occasion.id),
            "object": "response.compaction",
            "created_at": occasion.created,
            "output": [*said, compaction_item(occasion, len(said), stored=True)],
            "usage": _usage(Usage(input=tokens, output=_SEALED_TOKENS)),
        }
    )


def count(_: Accepted, tokens: int) -> bytes:
    """Write the answer to a request for a count."""
    return encode({"object": "response.input_tokens", "input_tokens": tokens})


def silenced(data: bytes) -> bytes:
    """Take the answer out of a whole reply, or leave out the event that would tell it."""
    told: Json = decode(data)
    if told.get("object") == "response":
        return encode({**told, "output": []})
    if "response" not in told:
        return b""
    return encode({**told, "response": {**told["response"], "output": []}})


def _response(accepted: Accepted, occasion: Occasion, status: str, items: list[Json]) -> Json:
    return {
        "id": response_id(occasion.id),
        "object": "response",
        "created_at": occasion.created,
        "status": status,
        **echoed(accepted.body),
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": accepted.body.model,
        "output": items,
        "usage": None,
    }


def stream(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[bytes]:
    """Write the frames of a stream."""
    padded = bool(accepted.body.at("/stream_options/include_obfuscation"))
    for number, (name, members) in enumerate(_events(answer, accepted, occasion)):
        yield _frame(name, number, _padded(members) if padded and "delta" in members else members)


def _padded(members: Json) -> Json:
    """Add letters that mean nothing, so that the size of a frame tells nothing of the tokens in it.

    The vendor does that unless told not to. Its own SDK has no word for the member, so here it is done when asked for.
    """
    digest = hashlib.sha256(encode(members)).hexdigest()
    return {**members, "obfuscation": digest[: -len(members["delta"]) % _BLOCK]}


def _frame(name: str, number: int, members: Json) -> bytes:
    """Write one event."""
    data = encode({"type": name, "sequence_number": number, **members})
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def broken_off(refusal: Refusal, accepted: Accepted, occasion: Occasion, number: int) -> bytes:
    """Write how a stream breaks off after `number` events: the error, then the reply that failed, as recorded."""
    error = errors.error_of(refusal, _STATUS_CODES)
    told = _response(accepted, occasion, "failed", [])
    told["error"] = {"code": error["code"] or "server_error", "message": error["message"]}
    return _frame("error", number, {"error": error}) + _frame("response.failed", number + 1, {"response": told})


def fail(refusal: Refusal) -> bytes:
    """Write how a stream breaks off, not knowing which: the error, then a reply that failed, as recorded."""
    name = hashlib.sha256(refusal.message.encode()).hexdigest()[:24]
    request = ResponsesRequest({"model": ""}, model="", family=Family(generation=(0, 0)), signer=Signer(), items=[])
    accepted = Accepted(ask=Ask(model="", turns=()), body=request)
    return broken_off(refusal, accepted, Occasion(id=name, created=0, signer=Signer()), 0)


def _events(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[_Event]:
    running = {"response": _response(accepted, occasion, "in_progress", [])}
    if accepted.body.get("background"):
        queued = {"response": _response(accepted, occasion, "queued", [])}
        yield "response.created", queued
        yield "response.queued", queued
    else:
        yield "response.created", running
    yield "response.in_progress", running
    items = items_of(answer, accepted, occasion)
    for index, item in enumerate(items):
        yield from _item(item, index, occasion.pace, triggered=item["type"] == "compaction" and len(items) == 1)
    told = _finished(answer, accepted, occasion, items)
    yield f"response.{told['status']}", {"response": told}


def _item(item: Json, index: int, pace: Pace, *, triggered: bool) -> Iterator[_Event]:
    """Write the events of an item; a compaction tells that it goes on only if it was asked for by a trigger."""
    yield "response.output_item.added", {"output_index": index, "item": _begun(item)}
    place: Json = {"item_id": item["id"], "output_index": index}
    match item["type"]:
        case "reasoning":
            yield from _thought(item, place, pace)
        case "web_search_call":
            yield from _search(place)
        case "message":
            yield from _message(item, place, pace)
        case "function_call":
            yield from _written("response.function_call_arguments", "arguments", item["arguments"], place, pace)
        case "custom_tool_call":
            yield from _written("response.custom_tool_call_input", "input", item["input"], place, pace)
        case "compaction" if triggered:
            yield "response.compaction.compacting", place
        case _:
            pass
    yield "response.output_item.done", {"output_index": index, "item": item}


def _begun(item: Json) -> Json:
    """An item before anything of it is known but what it will be."""
    begun: Json = {**item, **_EMPTY.get(str(item["type"]), {})}
    if "status" in item:
        begun["status"] = "in_progress"
    if "encrypted_content" in item:
        begun["encrypted_content"] = _partial(item["encrypted_content"])
    return begun


def _partial(token: str) -> str:
    """Return what a stream tells of encrypted content before the thought is complete: not yet the real thing."""
    return token[: len(token) // 2]


def _thought(item: Json, place: Json, pace: Pace) -> Iterator[_Event]:
    for number, part in enumerate(item["summary"]):
        at: Json = {**place, "summary_index": number}
        yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        for piece in pace.pieces(part["text"]):
            yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
        yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**at, "part": part}


def _search(place: Json) -> Iterator[_Event]:
    for step in ("in_progress", "searching", "completed"):
        yield f"response.web_search_call.{step}", place


def _message(item: Json, place: Json, pace: Pace) -> Iterator[_Event]:
    for number, part in enumerate(item["content"]):
        at: Json = {**place, "content_index": number}
        if part["type"] == "refusal":
            yield "response.content_part.added", {**at, "part": {**part, "refusal": ""}}
            yield from _written("response.refusal", "refusal", part["refusal"], at, pace)
            yield "response.content_part.done", {**at, "part": part}
            continue
        yield "response.content_part.added", {**at, "part": {**part, "text": "", "annotations": [], "logprobs": []}}
        yield from _text(part, at, pace)
        likely = [_likely(token) for token in part["logprobs"]]
        yield "response.output_text.done", {**at, "text": part["text"], "logprobs": likely}
        yield "response.content_part.done", {**at, "part": part}


def _text(part: Json, at: Json, pace: Pace) -> Iterator[_Event]:
    """A citation is told as soon as the words it belongs to are."""
    annotations: list[Json] = part["annotations"]
    waiting = list(enumerate(annotations))
    tokens: list[Json] = list(part["logprobs"])
    told = said = 0
    for piece in pace.pieces(part["text"]):
        said += len(piece)
        likely: list[Json] = []
        while tokens and told < said:
            told += len(tokens[0]["token"])
            likely.append(_likely(tokens.pop(0)))
        yield "response.output_text.delta", {**at, "delta": piece, "logprobs": likely}
        for number, annotation in list(waiting):
            if annotation["end_index"] <= said:
                waiting.remove((number, annotation))
                yield (
                    "response.output_text.annotation.added",
                    {**at, "annotation_index": number, "annotation": annotation},
                )


def _likely(token: Json) -> Json:
    """Tell of a token in an event, where its bytes are left out."""
    top = [{"token": other["token"], "logprob": other["logprob"]} for other in token["top_logprobs"]]
    return {"token": token["token"], "logprob": token["logprob"], "top_logprobs": top}


def _written(name: str, member: str, text: str, place: Json, pace: Pace) -> Iterator[_Event]:
    for piece in pace.pieces(text):
        yield f"{name}.delta", {**place, "delta": piece}
    yield f"{name}.done", {**place, member: text}
