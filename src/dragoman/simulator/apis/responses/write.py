"""Write an answer as a whole reply; the members are those the vendor's SDK knows, `store` and billing left out."""

import msgspec
from msgspec import Struct, structs

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.openai.reply_details import moderation_result
from dragoman.simulator.apis.responses.echo import echoed
from dragoman.simulator.apis.responses.ids import reply_of, response_id
from dragoman.simulator.apis.responses.output import items_of
from dragoman.simulator.apis.responses.read import model_name
from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.apis.responses.usage import usage_of
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer

_ENDS = {
    "stop": ("completed", ""),
    "calls": ("completed", ""),
    "length": ("incomplete", "max_output_tokens"),
    "filtered": ("incomplete", "content_filter"),
    "malformed_call": ("failed", ""),
}
MALFORMED = {"code": "server_error", "message": "The model produced a function call that could not be read."}
_NO_IMAGES: Json = {
    "input_tokens": 0,
    "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"image_tokens": 0, "text_tokens": 0},
    "total_tokens": 0,
}


class Ending(Struct, frozen=True):
    """How a reply ends: its status, why it is incomplete, what failed."""

    status: str
    reason: str = ""
    error: Json | None = None


def ending_of(answer: Answer) -> Ending:
    """Tell how an answer ends."""
    status, reason = _ENDS[answer.end]
    return Ending(status, reason, dict(MALFORMED) if status == "failed" else None)


def whole(answer: Answer, accepted: Accepted, occasion: Occasion) -> bytes:
    """Write a whole reply."""
    return msgspec.json.encode(finished(answer, accepted, occasion, items_of(answer, accepted, occasion)))


def started(accepted: Accepted, occasion: Occasion, status: str = "in_progress") -> Json:
    """Return a reply that has only begun."""
    return _response(accepted.body, occasion, Ending(status), [])


def finished(answer: Answer, accepted: Accepted, occasion: Occasion, items: list[Json]) -> Json:
    """Return a reply that has ended."""
    ending = ending_of(answer)
    told = _response(accepted.body, occasion, ending, items)
    searches = len([item for item in items if item["type"] == "web_search_call"])
    told["tool_usage"] = {"image_gen": _NO_IMAGES, "web_search": {"num_requests": searches}}
    used = structs.replace(answer.usage, output=0, thought=0) if accepted.body.prewarms else answer.usage
    told["usage"] = usage_of(used) if ending.status != "failed" else None
    told |= _looked_at(accepted.body, answer)
    told["completed_at"] = occasion.created + 1 if ending.status == "completed" else None
    return told


def _looked_at(request: Request, answer: Answer) -> Json:
    """Return what was looked at along the way, where that was asked for: the content, and the cache."""
    told: Json = {}
    moderation, options = request.body.moderation, request.body.prompt_cache_options
    if moderation is not None:
        told["moderation"] = {
            "input": moderation_result(moderation.model),
            "output": moderation_result(moderation.model),
        }
    if options is not None and options.comparison_response_id:
        seen = "cache_hit" if answer.usage.cached else "unavailable"
        found = reply_of(options.comparison_response_id)
        told["prompt_cache_diagnostics"] = {"type": seen if found else "comparison_response_not_found"}
    return told


def unfinished(told: Json, status: str) -> Json:
    """Return a reply as it is told before it has ended, or after it was cancelled."""
    rest = {name: value for name, value in told.items() if name != "tool_usage"}
    open_members: Json = {"status": status, "output": [], "usage": None, "error": None, "incomplete_details": None}
    return {**rest, **open_members, "completed_at": None}


def failed(accepted: Accepted, occasion: Occasion, error: Json) -> Json:
    """Return a reply that broke off."""
    return _response(accepted.body, occasion, Ending("failed", "", error), [])


def count(_: Accepted, tokens: int) -> bytes:
    """Write the answer to a request for a count."""
    return msgspec.json.encode({"object": "response.input_tokens", "input_tokens": tokens})


def silenced(data: bytes) -> bytes:
    """Take the answer out of a whole reply, or leave out the event that would tell it."""
    told: Json = msgspec.json.decode(data)
    if told.get("object") == "response":
        return msgspec.json.encode({**told, "output": []})
    if "response" not in told:
        return b""
    return msgspec.json.encode({**told, "response": {**told["response"], "output": []}})


def _response(request: Request, occasion: Occasion, ending: Ending, items: list[Json]) -> Json:
    return {
        "id": response_id(occasion.id),
        "object": "response",
        "created_at": occasion.created,
        "status": ending.status,
        **echoed(request),
        "completed_at": None,
        "error": ending.error,
        "incomplete_details": {"reason": ending.reason} if ending.reason else None,
        "model": model_name(request),
        "output": items,
        "usage": None,
    }
