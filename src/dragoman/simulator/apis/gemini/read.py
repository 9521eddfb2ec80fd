"""Read what a request asks of the model behind the API."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from dragoman.simulator.apis.gemini.proto import snake
from dragoman.simulator.apis.gemini.request import GeminiRequest, Placed
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Ask, Call, Choice, ChoiceMode, Result, Tool, Turn

_MODES: dict[str, ChoiceMode] = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "validated"}
_SEARCHES = frozenset({"googleSearch", "googleSearchRetrieval", "enterpriseWebSearch"})
_KEPT = (
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


def read(request: GeminiRequest) -> Ask:
    """Return what the model looks at."""
    config = request.config
    return Ask(
        model=request.model,
        turns=(*_system(request), *_turns(request)),
        tools=tuple(_tools(request)),
        choice=_choice(request),
        max_tokens=config.get("maxOutputTokens"),
        stop=tuple(config.get("stopSequences", ())),
        output_schema=_output(config),
        thinks=thinks(request),
        seed=config.get("seed", 0),
        candidates=config.get("candidateCount") or 1,
    )


def thinks(request: GeminiRequest) -> bool:
    """Whether the model thinks: it can, and was not told not to."""
    return request.generation.thinks and request.thinking.get("thinkingBudget") != 0


def _system(request: GeminiRequest) -> Iterator[Turn]:
    text = _text(request.document.get("systemInstruction", {}).get("parts", ()))
    if text:
        yield Turn(role="system", text=text)


def _text(parts: Iterable[Json]) -> str:
    return "".join(part["text"] for part in parts if part.get("text") and not part.get("thought"))


def _turns(request: GeminiRequest) -> Iterator[Turn]:
    called: list[Call] = []
    for turn in request.turns:
        parts = [placed.part for placed in turn.parts]
        results = tuple(_results(turn.results, called))
        called = [_call(number, placed.part["functionCall"]) for number, placed in enumerate(turn.calls)]
        yield Turn(
            role="assistant" if turn.side == "model" else "user",
            text=_text(parts),
            calls=tuple(called),
            results=results,
            media=tuple(_media(parts)),
        )


def _call(number: int, call: Json) -> Call:
    name = call["name"]
    return Call(id=call.get("id") or f"{name} {number}", name=name, arguments=call.get("args", {}))


def _results(results: list[Placed], called: list[Call]) -> Iterator[Result]:
    """Read results: a function's output, its error, or the whole where it has neither."""
    for number, placed in enumerate(results):
        result = placed.part["functionResponse"]
        call_id = result.get("id") or (called[number].id if number < len(called) else "")
        fields: Json = result.get("response", {})
        failed = "error" in fields and "output" not in fields
        value = fields["error"] if failed else fields.get("output", fields)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield Result(call_id=call_id, name=result["name"], text=text, failed=failed)


def _media(parts: Iterable[Json]) -> Iterator[str]:
    for part in parts:
        media = part.get("inlineData", part.get("fileData"))
        if media is not None:
            yield media.get("mimeType", "")
        yield from _media(part.get("functionResponse", {}).get("parts", ()))


def _tools(request: GeminiRequest) -> Iterator[Tool]:
    for _, function in request.functions:
        schema: Any = function.get("parametersJsonSchema")
        if schema is None:
            schema = _json_schema(function["parameters"]) if "parameters" in function else {"type": "object"}
        yield Tool(name=function["name"], description=function.get("description", ""), schema=schema)
    for name in request.server_tools:
        yield Tool(name=snake(name), kind="search" if name in _SEARCHES else "other")


def _choice(request: GeminiRequest) -> Choice:
    calling = request.calling
    if not calling or not request.functions:
        return Choice()
    names = tuple(calling.get("allowedFunctionNames", ()))
    return Choice(mode=_MODES.get(calling.get("mode", ""), "auto"), names=names)


def _output(config: Json) -> Json | None:
    if config.get("responseMimeType") not in {_JSON, ENUM}:
        return None
    given = config.get("responseJsonSchema")
    if isinstance(given, dict):
        return cast("Json", given)
    return _json_schema(config["responseSchema"]) if "responseSchema" in config else {}


def _json_schema(schema: Json) -> Json:
    """Write Google's schema as a JSON schema."""
    made: Json = {name: schema[name] for name in _KEPT if name in schema}
    kind = schema.get("type")
    if kind is not None:
        made["type"] = [kind.lower(), "null"] if schema.get("nullable") else kind.lower()
    if schema.get("enum"):
        is_number = kind in {"INTEGER", "NUMBER"}
        made["enum"] = [_number(word) if is_number else word for word in schema["enum"]]
    if "items" in schema:
        made["items"] = _json_schema(schema["items"])
    if schema.get("properties"):
        made["properties"] = {name: _json_schema(inner) for name, inner in schema["properties"].items()}
    if schema.get("required"):
        made["required"] = schema["required"]
    if schema.get("anyOf"):
        made["anyOf"] = [_json_schema(inner) for inner in schema["anyOf"]]
    if schema.get("ref"):
        made["$ref"] = schema["ref"].replace("#/defs/", "#/$defs/")
    if schema.get("defs"):
        made["$defs"] = {name: _json_schema(inner) for name, inner in schema["defs"].items()}
    return made


def _number(word: str) -> float | str:
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word
