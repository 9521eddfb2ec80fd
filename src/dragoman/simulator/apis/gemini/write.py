"""Write an answer as Google's reply, whole or in chunks.

Chunks hold new parts only and running counts; the last tells how the answer ended. From Gemini 3 on a text ends in an
empty one that carries its signature, and on AI Studio calls are followed by an empty text. Calls come whole: one a
chunk, all in one before Gemini 3, and in pieces where Vertex was asked for that. Gemini 4 stops at a limit, and goes on
when it is asked again with the token it gave: what was asked is asked again as it was, so the answer is the same one.
"""

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast
from urllib.parse import quote_plus

import msgspec
from msgspec import Struct, structs

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.gemini.read import ENUM, thinks
from dragoman.simulator.apis.gemini.request import GeminiRequest
from dragoman.simulator.apis.gemini.signatures import continued_from, issue_continuation, sign
from dragoman.simulator.model.usage import text_tokens
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, Call, Usage

_FINISHES = {
    "stop": "STOP",
    "calls": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "malformed_call": "MALFORMED_FUNCTION_CALL",
}
_NEUTRAL = re.compile(r"(?:[0-9a-f]{24})?")
"""Ids that the model behind the API made, not a script."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RATING = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
_MALFORMED = "Malformed function call: print(default_api."
_ENTRY = '<div class="container"><a class="chip" href="https://www.google.com/search?q={asked}">{shown}</a></div>'
_DATA = b"data: "
_CONTINUES = "gemini-4"
_HOP = 600
"""Characters Gemini 4 says before it stops; with Google it is some 32,000 tokens."""


class _Reply(Struct, frozen=True):
    """An answer to be written, and the request it answers."""

    answer: Answer
    accepted: Accepted
    occasion: Occasion

    @property
    def request(self) -> GeminiRequest:
        return self.accepted.body

    @property
    def is_blocked(self) -> bool:
        """Whether the prompt was refused, and not what the model said."""
        answer = self.answer
        return answer.end == "filtered" and not (answer.text or answer.thought or answer.calls)

    @property
    def shows_search(self) -> bool:
        return bool(self.answer.query and self.request.tool_config.get("includeServerSideToolInvocations"))

    @property
    def text(self) -> str:
        """The text; a word of an enum is written bare."""
        if self.request.config.get("responseMimeType") == ENUM:
            try:
                word = json.loads(self.answer.text)
            except ValueError:
                return self.answer.text
            return word if isinstance(word, str) else self.answer.text
        return self.answer.text

    def sign(self, part: Json, place: str) -> Json:
        occasion = self.occasion
        return {"thoughtSignature": sign(part, self.request.model, occasion.signer, f"{occasion.id} {place}")}

    def make_id(self, place: str) -> str:
        """Make an id as Google makes them: eight small letters and digits."""
        digest = sha256(f"{self.occasion.id} {place}".encode()).digest()
        return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:8])


def whole(answer: Answer, accepted: Accepted, occasion: Occasion) -> bytes:
    """Write a whole reply, indented as Google sends it."""
    reply, continuation = _prepare(answer, accepted, occasion)
    if reply.is_blocked:
        made = _blocked(reply)
    else:
        parts = _thoughts(reply) + _search(reply)
        if reply.text:
            parts.append({"text": reply.text, **_text_signature(reply)})
        parts += (_call_part(reply, number) for number in range(len(reply.answer.calls)))
        made = _chunk(reply, {**_content(reply, parts), **_end(reply), **continuation}, reply.answer.usage)
    return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def stream(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[bytes]:
    """Yield the frames of a stream of events."""
    for made in _chunks(*_prepare(answer, accepted, occasion)):
        yield _DATA + msgspec.json.encode(made) + b"\r\n\r\n"


def stream_array(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of one JSON array: a stream as it comes without `alt=sse`."""
    before = b"["
    for frame in frames:
        yield before + msgspec.json.format(frame.removeprefix(_DATA).rstrip(), indent=2)
        before = b"\n,\r\n"
    yield b"\n]\n"


def silenced(reply: bytes) -> bytes:
    """Take the answer out of a reply, or out of a chunk of one."""
    document: Json = msgspec.json.decode(reply)
    document.pop("candidates", None)
    return msgspec.json.encode(document)


def _prepare(answer: Answer, accepted: Accepted, occasion: Occasion) -> tuple[_Reply, Json]:
    """Return what is said in this reply, and how its candidate tells that there is more.

    A refusal is said as text: Google has nothing else for it.
    """
    if answer.refusal:
        answer = structs.replace(answer, text="\n\n".join(filter(None, (answer.text, answer.refusal))), refusal="")
    request: GeminiRequest = accepted.body
    plain = answer.end == "stop" and not (answer.calls or answer.query) and accepted.ask.output_schema is None
    if not plain or not request.model.startswith(_CONTINUES) or len(answer.text) <= _HOP:
        return _Reply(answer, accepted, occasion), {}
    begin = continued_from(request.get("continuationToken") or "", occasion.signer) or 0
    end = begin + _HOP
    thought, text = ("", answer.text[begin:end]) if begin else (answer.thought, answer.text[:end])
    tokens = 0 if begin else answer.usage.thought
    usage = structs.replace(answer.usage, output=tokens + text_tokens(text), thought=tokens)
    is_last = end >= len(answer.text)
    part = structs.replace(answer, text=text, thought=thought, usage=usage, end="stop" if is_last else "length")
    token = {"finishReason": "CONTINUATION", "continuationToken": issue_continuation(end, occasion.signer)}
    return _Reply(part, accepted, occasion), {} if is_last else token


def _chunks(reply: _Reply, continuation: Json) -> Iterator[Json]:
    if reply.is_blocked:
        yield _blocked(reply)
        return
    usage, pace = reply.answer.usage, reply.occasion.pace
    thoughts = [[{**part, "text": piece}] for part in _thoughts(reply) for piece in pace.pieces(part["text"])]
    parts = [*thoughts, *_part_chunks(reply)]
    counts = _running_counts(usage, len(thoughts), len(parts) - len(thoughts))
    end = {**_end(reply), **continuation}
    closing = _closing(reply)
    ends_in_parts = closing is None and bool(parts)
    for number, given in enumerate(parts, 1):
        last = end if ends_in_parts and number == len(parts) else {}
        yield _chunk(reply, {**_content(reply, given), **last}, next(counts))
    if not ends_in_parts:
        yield _chunk(reply, {**_content(reply, closing or []), **end}, usage)


def _part_chunks(reply: _Reply) -> Iterator[list[Json]]:
    """Yield the parts of each chunk behind the thoughts."""
    for part in _search(reply):
        yield [part]
    for piece in reply.occasion.pace.pieces(reply.text):
        yield [{"text": piece}]
    numbers = range(len(reply.answer.calls))
    if _streams_arguments(reply):
        for number in numbers:
            yield from ([part] for part in _call_pieces(reply, number))
    elif reply.request.generation.signs:
        yield from ([_call_part(reply, number)] for number in numbers)
    elif numbers:
        yield [_call_part(reply, number) for number in numbers]


def _closing(reply: _Reply) -> list[Json] | None:
    """Return the parts of the last chunk; None where the last thing said ends the stream."""
    answer, request = reply.answer, reply.request
    if answer.end == "malformed_call" or not (answer.text or answer.calls):
        return []
    if answer.calls:
        return [{"text": ""}] if request.generation.signs and not request.vertex else None
    signature = _text_signature(reply)
    return [{"text": "", **signature}] if signature else None


def _running_counts(usage: Usage, thoughts: int, pieces: int) -> Iterator[Usage]:
    """Yield the counts up to each chunk: first the thoughts grow, then what is said."""
    spoken = usage.output - usage.thought
    for number in range(1, thoughts + 1):
        thought = usage.thought * number // thoughts
        yield structs.replace(usage, output=thought, thought=thought)
    for number in range(1, pieces + 1):
        yield structs.replace(usage, output=usage.thought + spoken * number // pieces)


def _blocked(reply: _Reply) -> Json:
    """Say that a filter refused the prompt."""
    usage = Usage(input=reply.answer.usage.input, output=0)
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **_metadata(reply, usage)}


def _chunk(reply: _Reply, candidate: Json, usage: Usage) -> Json:
    """Write a reply, or a chunk of one, around a candidate."""
    candidates = [{**candidate, "index": index} for index in range(reply.accepted.ask.candidates)]
    return {"candidates": candidates, **_metadata(reply, usage)}


def _metadata(reply: _Reply, usage: Usage) -> Json:
    """Write what stands beside candidates."""
    request, occasion = reply.request, reply.occasion
    made: Json = {"usageMetadata": _counts(usage, vertex=request.vertex), "modelVersion": request.model}
    if request.vertex:
        made["createTime"] = datetime.fromtimestamp(occasion.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    made["responseId"] = urlsafe_b64encode(sha256(occasion.id.encode()).digest()[:17]).decode().rstrip("=")
    return made


def _counts(usage: Usage, *, vertex: bool) -> Json:
    """Write usage; counts of zero are left out."""
    spoken = usage.output - usage.thought
    made: Json = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": spoken,
        "totalTokenCount": usage.input + usage.output,
        "cachedContentTokenCount": usage.cached,
        "promptTokensDetails": _text_count(usage.input),
        "cacheTokensDetails": usage.cached and _text_count(usage.cached),
        "thoughtsTokenCount": usage.thought,
        "trafficType": "ON_DEMAND" if vertex else 0,
        "candidatesTokensDetails": vertex and spoken and _text_count(spoken),
    }
    always = {"promptTokenCount", "totalTokenCount"}
    return {name: value for name, value in made.items() if value or name in always}


def _text_count(count: int) -> list[Json]:
    return [{"modality": "TEXT", "tokenCount": count}]


def _content(reply: _Reply, parts: list[Json]) -> Json:
    """Write what the model says; a reply cut off before it said anything has no parts, a filtered one no content."""
    if parts or reply.answer.end == "malformed_call":
        return {"content": {"parts": parts, "role": "model"}}
    return {} if reply.answer.end == "filtered" else {"content": {"role": "model"}}


def _end(reply: _Reply) -> Json:
    """Write how the model ended."""
    answer = reply.answer
    made: Json = {"finishReason": _FINISHES[answer.end]}
    if answer.end == "filtered":
        made["safetyRatings"] = [_RATING]
    if answer.end == "malformed_call":
        made["finishMessage"] = _MALFORMED
    if answer.query:
        made["groundingMetadata"] = _grounding(answer, len(_thoughts(reply)) + (2 if reply.shows_search else 0))
    return made


def _grounding(answer: Answer, text_part: int) -> Json:
    """Write what was searched and found, and which bytes of the text say it."""
    shown = answer.query.replace("&", "&amp;").replace("<", "&lt;")
    entry = _ENTRY.format(asked=quote_plus(answer.query), shown=shown)
    made: Json = {"searchEntryPoint": {"renderedContent": entry}}
    if answer.sources:
        made["groundingChunks"] = [{"web": {"uri": source.url, "title": source.title}} for source in answer.sources]
    supports: dict[str, Json] = {}
    for number, source in enumerate(answer.sources):
        at = answer.text.find(source.quote) if source.quote else -1
        if at < 0:
            continue
        if source.quote not in supports:
            start = len(answer.text[:at].encode())
            segment: Json = {"partIndex": text_part} if text_part else {}
            segment |= {"startIndex": start} if start else {}
            segment |= {"endIndex": start + len(source.quote.encode()), "text": source.quote}
            supports[source.quote] = {"segment": segment, "groundingChunkIndices": []}
        supports[source.quote]["groundingChunkIndices"].append(number)
    if supports:
        made["groundingSupports"] = list(supports.values())
    made["webSearchQueries"] = [answer.query]
    return made


def _thoughts(reply: _Reply) -> list[Json]:
    """Write thoughts, if they are to be shown."""
    is_shown = reply.answer.thought and reply.request.thinking.get("includeThoughts")
    return [{"text": reply.answer.thought, "thought": True}] if is_shown else []


def _search(reply: _Reply) -> list[Json]:
    """Write the search the model did, if that is to be shown."""
    if not reply.shows_search:
        return []
    named = {"toolType": "GOOGLE_SEARCH_WEB", "id": reply.make_id("search")}
    found = [{"title": source.title, "url": source.url} for source in reply.answer.sources]
    return [
        {"toolCall": {**named, "args": {"queries": [reply.answer.query]}}, **reply.sign({}, "toolCall")},
        {"toolResponse": {**named, "response": {"results": found}}, **reply.sign({}, "toolResponse")},
    ]


def _text_signature(reply: _Reply) -> Json:
    """Sign a text that ends an answer, from Gemini 3 on."""
    answer, request = reply.answer, reply.request
    if answer.end != "stop" or answer.calls or not request.generation.signs or not thinks(request):
        return {}
    return reply.sign({}, "text")


def _call_part(reply: _Reply, number: int) -> Json:
    """Write a call; of parallel ones the first is signed."""
    call = reply.answer.calls[number]
    named = {"name": call.name, "args": _arguments(call), **_call_id(reply, number)}
    return {"functionCall": named, **_call_signature(reply, number)}


def _call_id(reply: _Reply, number: int) -> Json:
    """Write a call's id, from Gemini 3 on where the surface has one."""
    if not reply.request.generation.signs or reply.request.surface == "vertex v1":
        return {}
    given = reply.answer.calls[number].id
    return {"id": reply.make_id(f"call {number}") if _NEUTRAL.fullmatch(given) else given}


def _call_signature(reply: _Reply, number: int) -> Json:
    """Sign the first call, if the model signs."""
    if number or not (reply.request.generation.signs or thinks(reply.request)):
        return {}
    call = reply.answer.calls[number]
    return reply.sign({"functionCall": {"name": call.name, "args": _arguments(call)}}, f"call {number}")


def _arguments(call: Call) -> Json:
    """Return arguments as an object, which is all Google has."""
    return call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}


def _streams_arguments(reply: _Reply) -> bool:
    request = reply.request
    wanted = request.calling.get("streamFunctionCallArguments") or reply.occasion.pace.partial_args
    return request.vertex and request.generation.combines and bool(wanted)


def _call_pieces(reply: _Reply, number: int) -> Iterator[Json]:
    call = reply.answer.calls[number]
    named = {"name": call.name, **_call_id(reply, number)}
    yield {"functionCall": {**named, "willContinue": True}, **_call_signature(reply, number)}
    for piece in _argument_pieces("$", _arguments(call), reply.occasion):
        yield {"functionCall": {"partialArgs": [piece], "willContinue": True}}
    yield {"functionCall": {}}


def _argument_pieces(path: str, value: Any, occasion: Occasion) -> Iterator[Json]:
    match value:
        case dict():
            members = cast("Json", value)
            if not members and path != "$":
                yield {"jsonPath": path}
            for name, item in members.items():
                yield from _argument_pieces(path + _path_step(name), item, occasion)
        case list():
            items = cast("list[Any]", value)
            if not items:
                yield {"jsonPath": f"{path}[]"}
            for index, item in enumerate(items):
                yield from _argument_pieces(f"{path}[{index}]", item, occasion)
        case str():
            pieces = occasion.pace.pieces(value)
            if len(pieces) < 2:
                yield {"jsonPath": path, "stringValue": value}
                return
            for piece in pieces:
                yield {"jsonPath": path, "stringValue": piece, "willContinue": True}
            yield {"jsonPath": path, "stringValue": ""}
        case bool():
            yield {"jsonPath": path, "boolValue": value}
        case None:
            yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
        case _:
            yield {"jsonPath": path, "numberValue": value}


def _path_step(name: str) -> str:
    if _BARE.fullmatch(name):
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"
