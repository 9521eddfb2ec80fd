"""Write an answer as a stream: the vendor's events, each under its name and number."""

import hashlib
from collections.abc import Iterator

import msgspec

from dragoman.simulator.api import Accepted, Occasion, Pace, Refusal
from dragoman.simulator.apis.responses.errors import error_of
from dragoman.simulator.apis.responses.output import items_of, partial
from dragoman.simulator.apis.responses.write import failed, finished, started
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer

Event = tuple[str, Json]
_BLOCK = 16
_EMPTY: dict[str, Json] = {
    "reasoning": {"summary": []},
    "web_search_call": {"action": {"type": "search"}},
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
    "tool_search_call": {"arguments": {}},
}


def stream(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[bytes]:
    """Write the frames of a stream."""
    options = accepted.body.body.stream_options
    padded = options is not None and bool(options.include_obfuscation)
    for number, (name, members) in enumerate(_events(answer, accepted, occasion)):
        yield frame(name, number, _padded(members) if padded and "delta" in members else members)


def _padded(members: Json) -> Json:
    """Add letters that mean nothing, so that the size of a frame tells nothing of the tokens in it.

    The vendor does that unless told not to. Its own SDK has no word for the member, so here it is done when asked for.
    """
    digest = hashlib.sha256(msgspec.json.encode(members)).hexdigest()
    return {**members, "obfuscation": digest[: -len(members["delta"]) % _BLOCK]}


def frame(name: str, number: int, members: Json) -> bytes:
    """Write one event."""
    data = msgspec.json.encode({"type": name, "sequence_number": number, **members})
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def broken_off(refusal: Refusal, accepted: Accepted, occasion: Occasion, number: int) -> bytes:
    """Write how a stream breaks off after `number` events: the error, then the reply that failed, as recorded."""
    error = error_of(refusal)
    told = failed(accepted, occasion, {"code": error["code"], "message": error["message"]})
    return frame("error", number, {"error": error}) + frame("response.failed", number + 1, {"response": told})


def _events(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[Event]:
    if accepted.body.body.background:
        yield "response.created", {"response": started(accepted, occasion, "queued")}
        yield "response.queued", {"response": started(accepted, occasion, "queued")}
    else:
        yield "response.created", {"response": started(accepted, occasion)}
    yield "response.in_progress", {"response": started(accepted, occasion)}
    items = items_of(answer, accepted, occasion)
    for index, item in enumerate(items):
        yield from _item(item, index, occasion.pace, triggered=item["type"] == "compaction" and len(items) == 1)
    told = finished(answer, accepted, occasion, items)
    yield f"response.{told['status']}", {"response": told}


def _item(item: Json, index: int, pace: Pace, *, triggered: bool) -> Iterator[Event]:
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
        begun["encrypted_content"] = partial(item["encrypted_content"])
    return begun


def _thought(item: Json, place: Json, pace: Pace) -> Iterator[Event]:
    for number, part in enumerate(item["summary"]):
        at: Json = {**place, "summary_index": number}
        yield "response.reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        for piece in pace.pieces(part["text"]):
            yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
        yield "response.reasoning_summary_text.done", {**at, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**at, "part": part}


def _search(place: Json) -> Iterator[Event]:
    for step in ("in_progress", "searching", "completed"):
        yield f"response.web_search_call.{step}", place


def _message(item: Json, place: Json, pace: Pace) -> Iterator[Event]:
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


def _text(part: Json, at: Json, pace: Pace) -> Iterator[Event]:
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


def _written(name: str, member: str, text: str, place: Json, pace: Pace) -> Iterator[Event]:
    for piece in pace.pieces(text):
        yield f"{name}.delta", {**place, "delta": piece}
    yield f"{name}.done", {**place, member: text}
