"""Read generateContent replies with the google-genai package: its line reader, converters and response types."""

import itertools
import json
import re
from typing import Any

import httpx2
from google import genai
from google.genai import errors
from google.genai._api_client import HttpResponse
from google.genai.types import FunctionCall, GenerateContentResponse

from oracles.clients import silent
from oracles.reading import Call, Reading, Usage, add_counts, as_json, describe_error, finish_after

_FILTERED = {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"}
_MALFORMED = {
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
}
_NUMBERED_ENDS = {1: "STOP", 2: "MAX_TOKENS"}
_ENUMS = {"modality", "trafficType", "category", "probability", "severity"}
_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")


def read_whole(body: bytes, *, strict: bool) -> Reading:
    """Read a whole reply; strict refuses fields the SDK's types do not know."""
    reader = _Reader()
    with silent():
        try:
            reader.take(_find_type(json.loads(body), strict=strict))
        except Exception as error:  # noqa: BLE001  whatever the SDK raises is the reading
            return reader.reading(describe_error(error))
    return reader.reading()


def read_stream(sse: bytes, *, strict: bool) -> Reading:
    """Read a stream, or the JSON array that the service sends where no SSE was asked for."""
    reader = _Reader()
    with silent():
        try:
            for chunk in _chunks(sse):
                reader.take(_find_type(chunk, strict=strict))
        except Exception as error:  # noqa: BLE001  whatever the SDK raises is the reading
            return reader.reading(describe_error(error))
    return reader.reading()


def read_helper(client: genai.Client) -> Reading:
    """Read what `client` receives with `models.generate_content_stream`."""
    reader = _Reader()
    for chunk in client.models.generate_content_stream(model="m", contents="x"):
        reader.take(chunk)
    return reader.reading()


def _chunks(sse: bytes) -> list[Any]:
    if sse.lstrip().startswith(b"["):
        return json.loads(sse)
    reply = HttpResponse({}, httpx2.Response(200, content=sse))
    chunks: list[Any] = []
    for chunk in reply.segments():
        # The client itself looks for an error so: by the first key.
        if isinstance(chunk, dict) and next(iter(chunk), "") == "error":
            errors.APIError.raise_error(chunk["error"].get("code"), chunk, None)
        chunks.append(chunk)
    return chunks


def _find_type(chunk: Any, *, strict: bool) -> GenerateContentResponse:
    # Code Assist wraps each reply.
    value = chunk.get("response", chunk)
    if strict:
        return GenerateContentResponse.model_validate(value)
    return GenerateContentResponse._from_response(response=_replace_enum_numbers(value), kwargs={})


def _replace_enum_numbers(value: Any) -> Any:
    """Spell enums that were asked for by number: how it ended by its name, the rest not at all."""
    match value:
        case dict():
            return {
                name: _NUMBERED_ENDS[member]
                if name == "finishReason" and isinstance(member, int)
                else _replace_enum_numbers(member)
                for name, member in value.items()
                if not (name in _ENUMS and isinstance(member, int))
            }
        case list():
            return [_replace_enum_numbers(member) for member in value]
        case _:
            return value


class _Reader:
    """Gathers chunks; a whole reply is one chunk."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[Call] = []
        self.word = ""
        self.blocked = False
        self.usage: Any = None
        self.partial: _PartialCall | None = None

    def take(self, chunk: GenerateContentResponse) -> None:
        self.usage = chunk.usage_metadata or self.usage
        feedback = chunk.prompt_feedback
        self.blocked = self.blocked or bool(feedback and (feedback.block_reason or feedback.block_reason_message))
        candidate = next((one for one in chunk.candidates or () if not one.index), None)
        if candidate is None:
            return
        if candidate.finish_reason is not None:
            self.word = str(getattr(candidate.finish_reason, "value", candidate.finish_reason))
        for part in (candidate.content.parts if candidate.content else None) or ():
            if part.function_call is not None:
                self._call(part.function_call)
            elif part.text is not None:
                (self.thoughts if part.thought else self.text).append(part.text)

    def _call(self, call: FunctionCall) -> None:
        if call.partial_args is None and call.will_continue is None and self.partial is None:
            self.calls.append(Call(call.name or "", as_json(call.args or {}), call.id or ""))
            return
        if self.partial is None:
            self.partial = _PartialCall(call)
        self.partial.take(call)
        if not call.will_continue:
            self.calls.append(self.partial.call())
            self.partial = None

    def reading(self, problem: str = "") -> Reading:
        word = "filtered" if self.blocked and not self.word else _neutral(self.word)
        return Reading(
            text="".join(self.text),
            calls=tuple(self.calls),
            finish=finish_after(word, calls=bool(self.calls), refusal=False),
            usage=_usage(self.usage),
            reasoning="".join(self.thoughts),
            problem=problem or ("" if word else "no finishReason"),
        )


class _PartialCall:
    """A call that Vertex streams argument by argument."""

    def __init__(self, call: FunctionCall) -> None:
        self.name, self.id = call.name or "", call.id or ""
        self.args: dict[str, Any] = {}

    def take(self, call: FunctionCall) -> None:
        for piece in call.partial_args or ():
            steps = [quoted or key or int(index) for key, index, quoted in _PATH_STEP.findall(piece.json_path)]
            value: Any = piece.string_value if piece.string_value is not None else piece.number_value
            if value is None:
                value = piece.bool_value
            self._put(steps, value)

    def _put(self, steps: list[str | int], value: Any) -> None:
        place: Any = self.args
        for step, following in itertools.pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            if isinstance(step, int):
                while len(place) <= step:
                    place.append(empty)
                place = place[step]
            else:
                place = place.setdefault(step, empty)
        last = steps[-1]
        if isinstance(last, int):
            while len(place) <= last:
                place.append("" if isinstance(value, str) else None)
            place[last] = place[last] + value if isinstance(value, str) else value
        else:
            place[last] = place.get(last, "") + value if isinstance(value, str) else value

    def call(self) -> Call:
        return Call(self.name, as_json(self.args), self.id)


def _neutral(word: str) -> str:
    if word in _FILTERED or word.startswith("IMAGE_"):
        return "filtered"
    if word in _MALFORMED:
        return "malformed_call"
    return {"": "", "STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "paused"}.get(word, "other")


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    return Usage(
        add_counts(usage.prompt_token_count, usage.tool_use_prompt_token_count),
        add_counts(usage.candidates_token_count, usage.thoughts_token_count),
        usage.cached_content_token_count,
        usage.thoughts_token_count,
    )
