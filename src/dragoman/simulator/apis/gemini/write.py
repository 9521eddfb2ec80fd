"""Write an answer as Google's reply, whole or in chunks.

A chunk has new parts only, and running counts; the last has the finish reason. From Gemini 3 on a text ends in an empty
text with its signature, and on AI Studio an empty text follows calls. Calls are sent whole: one per chunk, all in one
before Gemini 3, and in pieces where a Vertex request asks for that. Gemini 4 continues a limited answer by its token.
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

from dragoman.simulator.api import AcceptedRequest, ReplyMeta
from dragoman.simulator.apis.gemini.read import ENUM, is_thinking
from dragoman.simulator.apis.gemini.request import GeminiRequest
from dragoman.simulator.apis.gemini.signatures import issue_continuation_token, read_continuation_token, sign
from dragoman.simulator.model.usage import count_text_tokens
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer, AnswerUsage, Call

_FINISHES = {
    "stop": "STOP",
    "calls": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "malformed_call": "MALFORMED_FUNCTION_CALL",
}
_GENERATED_ID = re.compile(r"(?:[0-9a-f]{24})?")
"""Ids that the model behind the API made, not a script."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RATING = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
_MALFORMED = "Malformed function call: print(default_api."
_ENTRY = '<div class="container"><a class="chip" href="https://www.google.com/search?q={asked}">{shown}</a></div>'
_DATA = b"data: "
_CONTINUING_MODEL = "gemini-4"
_SEGMENT_LENGTH = 600
"""Characters Gemini 4 says before it stops; with Google it is some 32,000 tokens."""


class _GeminiReply(Struct, frozen=True):
    """An answer to be written, and the request it answers."""

    answer: Answer
    accepted: AcceptedRequest
    meta: ReplyMeta

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

    def sign(self, part: Json, position: str) -> Json:
        occasion = self.meta
        return {"thoughtSignature": sign(part, self.request.model, occasion.signer, f"{occasion.id} {position}")}

    def make_id(self, position: str) -> str:
        """Make an id as Google makes them: eight small letters and digits."""
        digest = sha256(f"{self.meta.id} {position}".encode()).digest()
        return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:8])


def render_reply(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> bytes:
    """Write a whole reply, indented as Google sends it."""
    reply, continuation = _prepare_reply(answer, accepted, meta)
    if reply.is_blocked:
        made = _render_blocked(reply)
    else:
        parts = _render_thoughts(reply) + _render_search(reply)
        if reply.text:
            parts.append({"text": reply.text, **_sign_text(reply)})
        parts += (_render_call(reply, number) for number in range(len(reply.answer.calls)))
        made = _render_chunk(
            reply, {**_render_content(reply, parts), **_render_finish(reply), **continuation}, reply.answer.usage
        )
    return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def render_stream(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> Iterator[bytes]:
    """Yield the frames of a stream of events."""
    for made in _render_chunks(*_prepare_reply(answer, accepted, meta)):
        yield _DATA + msgspec.json.encode(made) + b"\r\n\r\n"


def render_array(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of one JSON array: a stream as it comes without `alt=sse`."""
    before = b"["
    for frame in frames:
        yield before + msgspec.json.format(frame.removeprefix(_DATA).rstrip(), indent=2)
        before = b"\n,\r\n"
    yield b"\n]\n"


def drop_candidates(reply: bytes) -> bytes:
    """Take the answer out of a reply, or out of a chunk of one."""
    document: Json = msgspec.json.decode(reply)
    document.pop("candidates", None)
    return msgspec.json.encode(document)


def _prepare_reply(answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> tuple[_GeminiReply, Json]:
    """Return what is said in this reply, and how its candidate tells that there is more.

    A refusal is said as text: Google has nothing else for it.
    """
    if answer.refusal:
        answer = structs.replace(answer, text="\n\n".join(filter(None, (answer.text, answer.refusal))), refusal="")
    request: GeminiRequest = accepted.body
    plain = answer.end == "stop" and not (answer.calls or answer.query) and accepted.ask.output_schema is None
    if not plain or not request.model.startswith(_CONTINUING_MODEL) or len(answer.text) <= _SEGMENT_LENGTH:
        return _GeminiReply(answer, accepted, meta), {}
    begin = read_continuation_token(request.get("continuationToken") or "", meta.signer) or 0
    end = begin + _SEGMENT_LENGTH
    thought, text = ("", answer.text[begin:end]) if begin else (answer.thought, answer.text[:end])
    tokens = 0 if begin else answer.usage.thought
    usage = structs.replace(answer.usage, output=tokens + count_text_tokens(text), thought=tokens)
    is_last = end >= len(answer.text)
    part = structs.replace(answer, text=text, thought=thought, usage=usage, end="stop" if is_last else "length")
    token = {"finishReason": "CONTINUATION", "continuationToken": issue_continuation_token(end, meta.signer)}
    return _GeminiReply(part, accepted, meta), {} if is_last else token


def _render_chunks(reply: _GeminiReply, continuation: Json) -> Iterator[Json]:
    if reply.is_blocked:
        yield _render_blocked(reply)
        return
    usage, pace = reply.answer.usage, reply.meta.chunking
    thoughts = [
        [{**part, "text": piece}] for part in _render_thoughts(reply) for piece in pace.split_text(part["text"])
    ]
    parts = [*thoughts, *_iterate_chunk_parts(reply)]
    counts = _iterate_usage(usage, len(thoughts), len(parts) - len(thoughts))
    end = {**_render_finish(reply), **continuation}
    closing = _find_closing_parts(reply)
    ends_in_parts = closing is None and bool(parts)
    for number, given in enumerate(parts, 1):
        last = end if ends_in_parts and number == len(parts) else {}
        yield _render_chunk(reply, {**_render_content(reply, given), **last}, next(counts))
    if not ends_in_parts:
        yield _render_chunk(reply, {**_render_content(reply, closing or []), **end}, usage)


def _iterate_chunk_parts(reply: _GeminiReply) -> Iterator[list[Json]]:
    """Yield the parts of each chunk behind the thoughts."""
    for part in _render_search(reply):
        yield [part]
    for piece in reply.meta.chunking.split_text(reply.text):
        yield [{"text": piece}]
    numbers = range(len(reply.answer.calls))
    if _streams_arguments(reply):
        for number in numbers:
            yield from ([part] for part in _iterate_call_parts(reply, number))
    elif reply.request.generation.signs_calls:
        yield from ([_render_call(reply, number)] for number in numbers)
    elif numbers:
        yield [_render_call(reply, number) for number in numbers]


def _find_closing_parts(reply: _GeminiReply) -> list[Json] | None:
    """Return the parts of the last chunk; None where the last thing said ends the stream."""
    answer, request = reply.answer, reply.request
    if answer.end == "malformed_call" or not (answer.text or answer.calls):
        return []
    if answer.calls:
        return [{"text": ""}] if request.generation.signs_calls and not request.vertex else None
    signature = _sign_text(reply)
    return [{"text": "", **signature}] if signature else None


def _iterate_usage(usage: AnswerUsage, thoughts: int, pieces: int) -> Iterator[AnswerUsage]:
    """Yield the counts up to each chunk: first the thoughts grow, then what is said."""
    spoken = usage.output - usage.thought
    for number in range(1, thoughts + 1):
        thought = usage.thought * number // thoughts
        yield structs.replace(usage, output=thought, thought=thought)
    for number in range(1, pieces + 1):
        yield structs.replace(usage, output=usage.thought + spoken * number // pieces)


def _render_blocked(reply: _GeminiReply) -> Json:
    """Say that a filter refused the prompt."""
    usage = AnswerUsage(input=reply.answer.usage.input, output=0)
    return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, **_render_metadata(reply, usage)}


def _render_chunk(reply: _GeminiReply, candidate: Json, usage: AnswerUsage) -> Json:
    """Write a reply, or a chunk of one, around a candidate."""
    candidates = [{**candidate, "index": index} for index in range(reply.accepted.ask.candidates)]
    return {"candidates": candidates, **_render_metadata(reply, usage)}


def _render_metadata(reply: _GeminiReply, usage: AnswerUsage) -> Json:
    """Write what stands beside candidates."""
    request, occasion = reply.request, reply.meta
    made: Json = {"usageMetadata": _render_usage(usage, vertex=request.vertex), "modelVersion": request.model}
    if request.vertex:
        made["createTime"] = datetime.fromtimestamp(occasion.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    made["responseId"] = urlsafe_b64encode(sha256(occasion.id.encode()).digest()[:17]).decode().rstrip("=")
    return made


def _render_usage(usage: AnswerUsage, *, vertex: bool) -> Json:
    """Write usage; counts of zero are left out."""
    spoken = usage.output - usage.thought
    made: Json = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": spoken,
        "totalTokenCount": usage.input + usage.output,
        "cachedContentTokenCount": usage.cached,
        "promptTokensDetails": _render_text_count(usage.input),
        "cacheTokensDetails": usage.cached and _render_text_count(usage.cached),
        "thoughtsTokenCount": usage.thought,
        "trafficType": "ON_DEMAND" if vertex else 0,
        "candidatesTokensDetails": vertex and spoken and _render_text_count(spoken),
    }
    always = {"promptTokenCount", "totalTokenCount"}
    return {name: value for name, value in made.items() if value or name in always}


def _render_text_count(count: int) -> list[Json]:
    return [{"modality": "TEXT", "tokenCount": count}]


def _render_content(reply: _GeminiReply, parts: list[Json]) -> Json:
    """Write what the model says; a reply cut off before it said anything has no parts, a filtered one no content."""
    if parts or reply.answer.end == "malformed_call":
        return {"content": {"parts": parts, "role": "model"}}
    return {} if reply.answer.end == "filtered" else {"content": {"role": "model"}}


def _render_finish(reply: _GeminiReply) -> Json:
    """Write how the model ended."""
    answer = reply.answer
    made: Json = {"finishReason": _FINISHES[answer.end]}
    if answer.end == "filtered":
        made["safetyRatings"] = [_RATING]
    if answer.end == "malformed_call":
        made["finishMessage"] = _MALFORMED
    if answer.query:
        made["groundingMetadata"] = _render_grounding(
            answer, len(_render_thoughts(reply)) + (2 if reply.shows_search else 0)
        )
    return made


def _render_grounding(answer: Answer, text_part: int) -> Json:
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


def _render_thoughts(reply: _GeminiReply) -> list[Json]:
    """Write thoughts, if they are to be shown."""
    is_shown = reply.answer.thought and reply.request.thinking.get("includeThoughts")
    return [{"text": reply.answer.thought, "thought": True}] if is_shown else []


def _render_search(reply: _GeminiReply) -> list[Json]:
    """Write the search the model did, if that is to be shown."""
    if not reply.shows_search:
        return []
    named = {"toolType": "GOOGLE_SEARCH_WEB", "id": reply.make_id("search")}
    found = [{"title": source.title, "url": source.url} for source in reply.answer.sources]
    return [
        {"toolCall": {**named, "args": {"queries": [reply.answer.query]}}, **reply.sign({}, "toolCall")},
        {"toolResponse": {**named, "response": {"results": found}}, **reply.sign({}, "toolResponse")},
    ]


def _sign_text(reply: _GeminiReply) -> Json:
    """Sign a text that ends an answer, from Gemini 3 on."""
    answer, request = reply.answer, reply.request
    if answer.end != "stop" or answer.calls or not request.generation.signs_calls or not is_thinking(request):
        return {}
    return reply.sign({}, "text")


def _render_call(reply: _GeminiReply, number: int) -> Json:
    """Write a call; of parallel ones the first is signed."""
    call = reply.answer.calls[number]
    named = {"name": call.name, "args": _as_argument_object(call), **_render_call_id(reply, number)}
    return {"functionCall": named, **_sign_call(reply, number)}


def _render_call_id(reply: _GeminiReply, number: int) -> Json:
    """Write a call's id, from Gemini 3 on where the surface has one."""
    if not reply.request.generation.signs_calls or reply.request.surface == "vertex v1":
        return {}
    given = reply.answer.calls[number].id
    return {"id": reply.make_id(f"call {number}") if _GENERATED_ID.fullmatch(given) else given}


def _sign_call(reply: _GeminiReply, number: int) -> Json:
    """Sign the first call, if the model signs."""
    if number or not (reply.request.generation.signs_calls or is_thinking(reply.request)):
        return {}
    call = reply.answer.calls[number]
    return reply.sign({"functionCall": {"name": call.name, "args": _as_argument_object(call)}}, f"call {number}")


def _as_argument_object(call: Call) -> Json:
    """Return arguments as an object, which is all Google has."""
    return call.arguments if isinstance(call.arguments, dict) else {"input": call.arguments}


def _streams_arguments(reply: _GeminiReply) -> bool:
    request = reply.request
    wanted = request.calling.get("streamFunctionCallArguments") or reply.meta.chunking.partial_args
    return request.vertex and request.generation.combines_tools and bool(wanted)


def _iterate_call_parts(reply: _GeminiReply, number: int) -> Iterator[Json]:
    call = reply.answer.calls[number]
    named = {"name": call.name, **_render_call_id(reply, number)}
    yield {"functionCall": {**named, "willContinue": True}, **_sign_call(reply, number)}
    for piece in _iterate_partial_args("$", _as_argument_object(call), reply.meta):
        yield {"functionCall": {"partialArgs": [piece], "willContinue": True}}
    yield {"functionCall": {}}


def _iterate_partial_args(path: str, value: Any, meta: ReplyMeta) -> Iterator[Json]:
    match value:
        case dict():
            members = cast("Json", value)
            if not members and path != "$":
                yield {"jsonPath": path}
            for name, item in members.items():
                yield from _iterate_partial_args(path + _render_path_step(name), item, meta)
        case list():
            items = cast("list[Any]", value)
            if not items:
                yield {"jsonPath": f"{path}[]"}
            for index, item in enumerate(items):
                yield from _iterate_partial_args(f"{path}[{index}]", item, meta)
        case str():
            pieces = meta.chunking.split_text(value)
            if len(pieces) > 1:
                for piece in pieces:
                    yield {"jsonPath": path, "stringValue": piece, "willContinue": True}
            yield {"jsonPath": path, "stringValue": "" if len(pieces) > 1 else value}
        case bool():
            yield {"jsonPath": path, "boolValue": value}
        case None:
            yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
        case _:
            yield {"jsonPath": path, "numberValue": value}


def _render_path_step(name: str) -> str:
    if _IDENTIFIER.fullmatch(name):
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"
