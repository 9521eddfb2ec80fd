"""Write an answer as one chat completion, and what a stream of one shares with it."""

import hashlib
from typing import Any, cast

from msgspec import structs

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.chat.body import ChatRequest
from dragoman.simulator.apis.openai.reply_details import moderation_result, probabilities
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, Call
from dragoman.wire.json import decode, encode

_TIERS = {"auto": "default", "fast": "priority"}
_UNREADABLE = '{"'


def whole(answer: Answer, accepted: Accepted, occasion: Occasion) -> bytes:
    """Return the reply to a request that did not ask for a stream."""
    body = cast("ChatRequest", accepted.body)
    answer = said(answer, body)
    choices = [_choice(answer, body, occasion, index) for index in range(body.get("n") or 1)]
    return encode(
        {
            "id": f"chatcmpl-{occasion.id}",
            "object": "chat.completion",
            "created": occasion.created,
            "model": body.model,
            "choices": choices,
            "usage": usage(answer, body),
            "service_tier": tier(body),
            "system_fingerprint": fingerprint(body),
            **moderation(body),
        }
    )


def silenced(data: bytes) -> bytes:
    """Take the choices out of a reply or a chunk."""
    return encode({**decode(data), "choices": []})


def _choice(answer: Answer, body: ChatRequest, occasion: Occasion, index: int) -> Json:
    message: Json = {"role": "assistant", "content": content(answer)}
    if answer.calls and body.get("functions"):
        message["function_call"] = function_call(answer.calls[0])
    elif answer.calls:
        message["tool_calls"] = [
            tool_call(call, body, call_id(call, occasion, index, place)) for place, call in enumerate(answer.calls)
        ]
    message |= {"refusal": answer.refusal or None, "annotations": annotations(answer)}
    told = logprobs(answer.text, body) if body.get("logprobs") and answer.text else None
    return {"index": index, "message": message, "logprobs": told, "finish_reason": finish_reason(answer, body)}


def said(answer: Answer, body: ChatRequest) -> Answer:
    """Return what the model really said: OpenAI has no word for a call that cannot be read, but hands it on."""
    functions = [tool["function"]["name"] for tool in body.list("tools") if tool["type"] == "function"]
    if answer.end != "malformed_call" or answer.calls or not functions:
        return answer
    return structs.replace(answer, calls=(Call(id="", name=functions[0], arguments=_UNREADABLE),))


def content(answer: Answer) -> str | None:
    """Return the text of a message: null beside calls or a refusal, never null without them."""
    return answer.text or (None if answer.calls or answer.refusal else "")


def finish_reason(answer: Answer, body: ChatRequest) -> str:
    """Say why the answer ends. Models before GPT-5 say `stop` where the call was ordered by name."""
    if answer.end in {"length", "filtered"}:
        return "length" if answer.end == "length" else "content_filter"
    if not answer.calls:
        return "stop"
    choice = body.get("tool_choice") or body.get("function_call")
    named = isinstance(choice, dict) and "allowed_tools" not in choice
    if named and body.family.generation < (5, 0):
        return "stop"
    return "function_call" if body.get("functions") else "tool_calls"


def is_custom(call: Call, body: ChatRequest) -> bool:
    """Tell whether a call is one of a custom tool."""
    return any(tool["type"] == "custom" and tool["custom"]["name"] == call.name for tool in body.list("tools"))


def call_id(call: Call, occasion: Occasion, choice: int, place: int) -> str:
    """Return a call's own id if it is in OpenAI's style, or one that is."""
    if call.id.startswith("call_") and not choice:
        return call.id
    return "call_" + hashlib.sha256(f"{occasion.id} {choice} {place} {call.id}".encode()).hexdigest()[:24]


def arguments(call: Call) -> str:
    """Write a call's arguments as text."""
    return call.arguments if isinstance(call.arguments, str) else encode(call.arguments).decode()


def tool_call(call: Call, body: ChatRequest, identity: str) -> Json:
    """Write a call."""
    if is_custom(call, body):
        return {"id": identity, "type": "custom", "custom": {"name": call.name, "input": arguments(call)}}
    return {"id": identity, "type": "function", "function": function_call(call)}


def function_call(call: Call) -> Json:
    """Write a name and arguments."""
    return {"name": call.name, "arguments": arguments(call)}


def annotations(answer: Answer) -> list[Json]:
    """Write what was found on the web, each at the place where the text quotes it."""
    written: list[Json] = []
    for source in answer.sources:
        start = answer.text.find(source.quote)
        end = start + len(source.quote) if start >= 0 else len(answer.text)
        place = {"start_index": max(start, 0), "end_index": end}
        citation = {**place, "title": source.title, "url": source.url}
        written.append({"type": "url_citation", "url_citation": citation})
    return written


def usage(answer: Answer, body: ChatRequest) -> Json:
    """Count tokens: those of all choices, with what was thought among the completion's."""
    count = body.get("n") or 1
    counted = answer.usage
    prompt: dict[str, Any] = {"cached_tokens": counted.cached, "audio_tokens": 0}
    if body.family.generation >= (5, 6):
        prompt["cache_write_tokens"] = 0
    return {
        "prompt_tokens": counted.input,
        "completion_tokens": counted.output * count,
        "total_tokens": counted.input + counted.output * count,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {
            "reasoning_tokens": counted.thought * count,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def moderation(body: ChatRequest) -> Json:
    """Return the member that tells what the moderator said, if one was asked for."""
    if body.get("moderation") is None:
        return {}
    model = body.get("moderation")["model"]
    results: Json = {"type": "moderation_results", "model": model, "results": [moderation_result(model)]}
    return {"moderation": {"input": results, "output": results}}


def tier(body: ChatRequest) -> str:
    """Say which tier served the request."""
    asked = body.get("service_tier") or "auto"
    return _TIERS.get(asked, asked)


def fingerprint(body: ChatRequest) -> str | None:
    """Return the mark of the backend, which models since GPT-5 do not tell."""
    if body.family.generation >= (4, 2):
        return None
    return "fp_" + hashlib.sha256(body.model.encode()).hexdigest()[:10]


def logprobs(text: str, body: ChatRequest) -> Json:
    """Tell how likely each word was."""
    return {"content": probabilities(text, body.get("top_logprobs") or 0), "refusal": None}
