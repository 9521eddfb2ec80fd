"""Write an answer as Google's reply: members it sends, ids and counts as it makes them, signatures where it signs."""

import json
import re
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import structs

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.gemini.continuation import hop
from dragoman.simulator.apis.gemini.grounding import grounding
from dragoman.simulator.apis.gemini.heard import heard_in
from dragoman.simulator.apis.gemini.read import ENUM, thinks
from dragoman.simulator.apis.gemini.shape import FunctionCall, Part
from dragoman.simulator.apis.gemini.signing import sign
from dragoman.simulator.talk import Answer, Call, Usage

Json = dict[str, Any]
_FINISHES = {
    "stop": "STOP",
    "calls": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "malformed_call": "MALFORMED_FUNCTION_CALL",
}
_NEUTRAL = re.compile(r"[0-9a-f]{24}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_RATING = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
_MALFORMED = "Malformed function call: print(default_api."


def whole(answer: Answer, accepted: Accepted, occasion: Occasion) -> bytes:
    """Write a whole reply, indented as Google sends it."""
    answer = outspoken(answer)
    if blocked(answer):
        reply = prompt_blocked(answer, accepted, occasion)
    else:
        answer, continuing = hop(answer, accepted, occasion)
        candidate = {
            **content(parts(answer, accepted, occasion), answer),
            **ended(answer, text_part(answer, accepted)),
            **continuing,
        }
        reply = chunk(candidate, answer.usage, accepted, occasion)
    return msgspec.json.format(msgspec.json.encode(reply), indent=2) + b"\n"


def outspoken(answer: Answer) -> Answer:
    """Say a refusal as text: Google has nothing else for it."""
    if not answer.refusal:
        return answer
    return structs.replace(answer, text="\n\n".join(filter(None, (answer.text, answer.refusal))), refusal="")


def silenced(reply: bytes) -> bytes:
    """Take the answer out of a reply, or out of a chunk of one."""
    document: Json = msgspec.json.decode(reply)
    document.pop("candidates", None)
    return msgspec.json.encode(document)


def blocked(answer: Answer) -> bool:
    """Whether the prompt was refused, and not what the model said."""
    return answer.end == "filtered" and not (answer.text or answer.thought or answer.calls)


def prompt_blocked(answer: Answer, accepted: Accepted, occasion: Occasion) -> Json:
    """Say that a filter refused the prompt."""
    usage = Usage(input=answer.usage.input, output=0)
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **_about(usage, accepted, occasion)}


def chunk(candidate: Json, usage: Usage, accepted: Accepted, occasion: Occasion) -> Json:
    """Write a reply, or a chunk of one, around a candidate."""
    count = accepted.ask.candidates
    candidates = [{**candidate, "index": index} for index in range(count)]
    return {"candidates": candidates, **_about(usage, accepted, occasion)}


def content(given: list[Json], answer: Answer) -> Json:
    """Write what the model says; a reply cut off before it said anything has no parts, a filtered one no content."""
    if given:
        return {"content": {"parts": given, "role": "model"}}
    if answer.end == "malformed_call":
        return {"content": {"parts": [], "role": "model"}}
    return {} if answer.end == "filtered" else {"content": {"role": "model"}}


def ended(answer: Answer, part_index: int = 0) -> Json:
    """Write how the model ended."""
    made: Json = {"finishReason": _FINISHES[answer.end]}
    if answer.end == "filtered":
        made["safetyRatings"] = [_RATING]
    if answer.end == "malformed_call":
        made["finishMessage"] = _MALFORMED
    if answer.query:
        made["groundingMetadata"] = grounding(answer, part_index)
    return made


def parts(answer: Answer, accepted: Accepted, occasion: Occasion) -> list[Json]:
    """Write everything the model says, in order."""
    made = thoughts(answer, accepted) + server_calls(answer, accepted, occasion)
    text = said(answer, accepted)
    if text:
        made.append({"text": text, **text_signature(answer, accepted, occasion)})
    return made + [call_part(number, answer, accepted, occasion) for number in range(len(answer.calls))]


def text_part(answer: Answer, accepted: Accepted) -> int:
    """Return the number of the part that holds the text."""
    return len(thoughts(answer, accepted)) + (2 if _shows_server_calls(answer, accepted) else 0)


def said(answer: Answer, accepted: Accepted) -> str:
    """Return the text; a word of an enum is written bare."""
    if heard_in(accepted).config.response_mime_type != ENUM:
        return answer.text
    try:
        word = json.loads(answer.text)
    except ValueError:
        return answer.text
    return word if isinstance(word, str) else answer.text


def thoughts(answer: Answer, accepted: Accepted) -> list[Json]:
    """Write thoughts, if they are to be shown."""
    thinking = heard_in(accepted).config.thinking_config
    shown = thinking is not None and thinking.include_thoughts
    return [{"text": answer.thought, "thought": True}] if answer.thought and shown else []


def _shows_server_calls(answer: Answer, accepted: Accepted) -> bool:
    config = heard_in(accepted).request.tool_config
    return bool(answer.query and config is not None and config.include_server_side_tool_invocations)


def server_calls(answer: Answer, accepted: Accepted, occasion: Occasion) -> list[Json]:
    """Write the search the model did, if that is to be shown."""
    if not _shows_server_calls(answer, accepted):
        return []
    named = {"toolType": "GOOGLE_SEARCH_WEB", "id": short_id(occasion, "search")}
    found = [{"title": source.title, "url": source.url} for source in answer.sources]
    shown: list[Json] = [
        {"toolCall": {**named, "args": {"queries": [answer.query]}}},
        {"toolResponse": {**named, "response": {"results": found}}},
    ]
    for part in shown:
        part["thoughtSignature"] = _signature(Part(), accepted, occasion, next(iter(part)))
    return shown


def text_signature(answer: Answer, accepted: Accepted, occasion: Occasion) -> Json:
    """Sign a text that ends an answer, from Gemini 3 on."""
    heard = heard_in(accepted)
    if answer.end != "stop" or answer.calls or not heard.generation.signs or not thinks(heard):
        return {}
    return {"thoughtSignature": _signature(Part(), accepted, occasion, "text")}


def call_part(number: int, answer: Answer, accepted: Accepted, occasion: Occasion) -> Json:
    """Write a call; of parallel ones the first is signed."""
    call = answer.calls[number]
    named = call_named(number, answer, accepted, occasion)
    return {
        "functionCall": {"name": named["name"], "args": arguments(call), **_without_name(named)},
        **call_signature(number, answer, accepted, occasion),
    }


def call_named(number: int, answer: Answer, accepted: Accepted, occasion: Occasion) -> Json:
    """Write whose call it is: its name, and its id from Gemini 3 on where the surface has one."""
    call = answer.calls[number]
    heard = heard_in(accepted)
    if not heard.generation.names_calls or heard.surface == "vertex v1":
        return {"name": call.name}
    neutral = _NEUTRAL.fullmatch(call.id) is not None or not call.id
    return {"name": call.name, "id": short_id(occasion, f"call {number}") if neutral else call.id}


def _without_name(named: Json) -> Json:
    return {name: value for name, value in named.items() if name != "name"}


def call_signature(number: int, answer: Answer, accepted: Accepted, occasion: Occasion) -> Json:
    """Sign the first call, if the model signs."""
    heard = heard_in(accepted)
    if number or not (heard.generation.signs or thinks(heard)):
        return {}
    call = answer.calls[number]
    part = Part(function_call=FunctionCall(name=call.name, args=arguments(call)))
    return {"thoughtSignature": _signature(part, accepted, occasion, f"call {number}")}


def _signature(part: Part, accepted: Accepted, occasion: Occasion, place: str) -> str:
    return sign(part, heard_in(accepted).model, occasion.signer, f"{occasion.id} {place}")


def arguments(call: Call) -> Json:
    """Return arguments as an object, which is all Google has."""
    return call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}


def short_id(occasion: Occasion, place: str) -> str:
    """Make an id as Google makes them: eight small letters and digits."""
    digest = sha256(f"{occasion.id} {place}".encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:8])


def counted(usage: Usage, *, vertex: bool) -> Json:
    """Write usage; counts of zero are left out."""
    spoken = usage.output - usage.thought
    made: Json = {"promptTokenCount": usage.input}
    if spoken:
        made["candidatesTokenCount"] = spoken
    made["totalTokenCount"] = usage.input + usage.output
    if usage.cached:
        made["cachedContentTokenCount"] = usage.cached
    made["promptTokensDetails"] = _texts(usage.input)
    if usage.cached:
        made["cacheTokensDetails"] = _texts(usage.cached)
    if usage.thought:
        made["thoughtsTokenCount"] = usage.thought
    if vertex:
        made["trafficType"] = "ON_DEMAND"
        if spoken:
            made["candidatesTokensDetails"] = _texts(spoken)
    return made


def _texts(count: int) -> list[Json]:
    return [{"modality": "TEXT", "tokenCount": count}]


def _about(usage: Usage, accepted: Accepted, occasion: Occasion) -> Json:
    """Write what stands beside candidates."""
    heard = heard_in(accepted)
    made: Json = {
        "usageMetadata": counted(usage, vertex=heard.vertex),
        "modelVersion": heard.model.rpartition("/")[2],
    }
    if heard.vertex:
        made["createTime"] = datetime.fromtimestamp(occasion.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    made["responseId"] = urlsafe_b64encode(sha256(occasion.id.encode()).digest()[:17]).decode().rstrip("=")
    return made
