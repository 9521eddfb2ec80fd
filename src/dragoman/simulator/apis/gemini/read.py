"""Convert a Gemini request to the vendor-neutral `ModelRequest`."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from dragoman.simulator.apis.conversation import (
    Call,
    ChoiceMode,
    ModelRequest,
    RequestResult,
    RequestTool,
    RequestToolChoice,
    RequestTurn,
)
from dragoman.simulator.apis.gemini.proto import to_snake_case
from dragoman.simulator.apis.gemini.request import GeminiRequest, PlacedPart
from dragoman.simulator.apis.rule import Json

_MODES: dict[str, ChoiceMode] = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "validated"}
_SEARCHES = frozenset({"googleSearch", "googleSearchRetrieval", "enterpriseWebSearch"})
_SHARED_KEYWORDS = (
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "title",
    "description",
    "default",
    "format",
)
"""Keywords that mean the same in a JSON schema."""
_JSON = "application/json"
ENUM = "text/x.enum"


def read_model_request(request: GeminiRequest) -> ModelRequest:
    """Return everything the model uses of a request."""
    config = request.config
    return ModelRequest(
        model=request.model,
        turns=(*_read_system(request), *_read_turns(request)),
        tools=tuple(_read_tools(request)),
        choice=_read_choice(request),
        max_tokens=config.get("maxOutputTokens"),
        stop=tuple(config.get("stopSequences", ())),
        output_schema=_read_output_schema(config),
        thinks=is_thinking(request),
        seed=config.get("seed", 0),
        candidates=config.get("candidateCount") or 1,
    )


def is_thinking(request: GeminiRequest) -> bool:
    """Return whether the model thinks: it can, and thinking is not switched off."""
    return request.generation.can_think and request.thinking.get("thinkingBudget") != 0


def _read_system(request: GeminiRequest) -> Iterator[RequestTurn]:
    text = _join_text(request.document.get("systemInstruction", {}).get("parts", ()))
    if text:
        yield RequestTurn(role="system", text=text)


def _join_text(parts: Iterable[Json]) -> str:
    return "".join(part["text"] for part in parts if part.get("text") and not part.get("thought"))


def _read_turns(request: GeminiRequest) -> Iterator[RequestTurn]:
    called: list[Call] = []
    for turn in request.turns:
        parts = [placed.part for placed in turn.parts]
        results = tuple(_read_results(turn.results, called))
        called = [_read_call(number, placed.part["functionCall"]) for number, placed in enumerate(turn.calls)]
        yield RequestTurn(
            role="assistant" if turn.side == "model" else "user",
            text=_join_text(parts),
            calls=tuple(called),
            results=results,
            media=tuple(_read_media_types(parts)),
        )


def _read_call(number: int, call: Json) -> Call:
    name = call["name"]
    return Call(id=call.get("id") or f"{name} {number}", name=name, arguments=call.get("args", {}))


def _read_results(results: list[PlacedPart], called: list[Call]) -> Iterator[RequestResult]:
    """Yield results: a function's output, its error, or the whole response if it has neither."""
    for number, placed in enumerate(results):
        result = placed.part["functionResponse"]
        call_id = result.get("id") or (called[number].id if number < len(called) else "")
        fields: Json = result.get("response", {})
        failed = "error" in fields and "output" not in fields
        value = fields["error"] if failed else fields.get("output", fields)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield RequestResult(call_id=call_id, name=result["name"], text=text, failed=failed)


def _read_media_types(parts: Iterable[Json]) -> Iterator[str]:
    for part in parts:
        media = part.get("inlineData", part.get("fileData"))
        if media is not None:
            yield media.get("mimeType", "")
        yield from _read_media_types(part.get("functionResponse", {}).get("parts", ()))


def _read_tools(request: GeminiRequest) -> Iterator[RequestTool]:
    for _, function in request.functions:
        schema: Any = function.get("parametersJsonSchema")
        if schema is None:
            schema = _convert_schema(function["parameters"]) if "parameters" in function else {"type": "object"}
        yield RequestTool(name=function["name"], description=function.get("description", ""), schema=schema)
    for name in request.server_tools:
        yield RequestTool(name=to_snake_case(name), kind="search" if name in _SEARCHES else "other")


def _read_choice(request: GeminiRequest) -> RequestToolChoice:
    calling = request.calling
    if not calling or not request.functions:
        return RequestToolChoice()
    names = tuple(calling.get("allowedFunctionNames", ()))
    return RequestToolChoice(mode=_MODES.get(calling.get("mode", ""), "auto"), names=names)


def _read_output_schema(config: Json) -> Json | None:
    if config.get("responseMimeType") not in {_JSON, ENUM}:
        return None
    given = config.get("responseJsonSchema")
    if isinstance(given, dict):
        return cast("Json", given)
    return _convert_schema(config["responseSchema"]) if "responseSchema" in config else {}


def _convert_schema(schema: Json) -> Json:
    """Convert Google's schema to a JSON schema."""
    made: Json = {name: schema[name] for name in _SHARED_KEYWORDS if name in schema}
    kind = schema.get("type")
    if kind is not None:
        made["type"] = [kind.lower(), "null"] if schema.get("nullable") else kind.lower()
    if schema.get("enum"):
        is_number = kind in {"INTEGER", "NUMBER"}
        made["enum"] = [_parse_number(word) if is_number else word for word in schema["enum"]]
    if "items" in schema:
        made["items"] = _convert_schema(schema["items"])
    if schema.get("properties"):
        made["properties"] = {name: _convert_schema(inner) for name, inner in schema["properties"].items()}
    if schema.get("required"):
        made["required"] = schema["required"]
    if schema.get("anyOf"):
        made["anyOf"] = [_convert_schema(inner) for inner in schema["anyOf"]]
    if schema.get("ref"):
        made["$ref"] = schema["ref"].replace("#/defs/", "#/$defs/")
    if schema.get("defs"):
        made["$defs"] = {name: _convert_schema(inner) for name, inner in schema["defs"].items()}
    return made


def _parse_number(word: str) -> float | str:
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word
