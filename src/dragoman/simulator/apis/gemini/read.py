"""Read what a request asks of the model behind the API."""

import json
from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.gemini.heard import Heard
from dragoman.simulator.apis.gemini.proto import members_of
from dragoman.simulator.apis.gemini.shape import FunctionResponse, Part
from dragoman.simulator.apis.gemini.shape_tools import Schema, Tool, server_tools
from dragoman.simulator.apis.gemini.turns import Turn as Gathered
from dragoman.simulator.talk import Ask, Call, Choice, ChoiceMode, Result, Turn
from dragoman.simulator.talk import Tool as Offered

_MODES: dict[str, ChoiceMode] = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "validated"}
_SEARCHES = frozenset({"google_search", "google_search_retrieval", "enterprise_web_search"})
_BOUNDS = {
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "title": "title",
    "description": "description",
    "default": "default",
    "format": "format",
}
_JSON = "application/json"
ENUM = "text/x.enum"


def asked(heard: Heard) -> Ask:
    """Return what the model looks at."""
    config = heard.config
    request = heard.request
    return Ask(
        model=heard.model,
        turns=(*_system(heard), *_turns(heard)),
        tools=tuple(_tools(request.tools or [])),
        choice=_choice(heard),
        max_tokens=config.max_output_tokens,
        stop=tuple(config.stop_sequences or ()),
        output_schema=_output(heard),
        thinks=thinks(heard),
        seed=config.seed or 0,
        candidates=config.candidate_count or 1,
    )


def thinks(heard: Heard) -> bool:
    """Whether the model thinks: it can, and was not told not to."""
    thinking = heard.config.thinking_config
    return heard.generation.thinks and (thinking is None or thinking.thinking_budget != 0)


def _system(heard: Heard) -> Iterator[Turn]:
    instruction = heard.request.system_instruction
    text = _text(instruction.parts or [] if instruction is not None else [])
    if text:
        yield Turn(role="system", text=text)


def _text(parts: list[Part]) -> str:
    return "".join(part.text for part in parts if part.text and not part.thought)


def _turns(heard: Heard) -> Iterator[Turn]:
    called: list[Call] = []
    for gathered in heard.turns:
        parts = [placed.part for placed in gathered.parts]
        results = _results(gathered, called)
        called = _calls(gathered)
        yield Turn(
            role="assistant" if gathered.side == "model" else "user",
            text=_text(parts),
            calls=tuple(called),
            results=results,
            media=tuple(_media(parts)),
        )


def _calls(turn: Gathered) -> list[Call]:
    return [
        Call(id=call.id or f"{call.name} {number}", name=call.name, arguments=call.args or {})
        for number, (_, call) in enumerate(turn.calls)
    ]


def _results(turn: Gathered, called: list[Call]) -> tuple[Result, ...]:
    made: list[Result] = []
    for number, (_, response) in enumerate(turn.results):
        known = called[number].id if number < len(called) else ""
        text, failed = _answered(response)
        made.append(Result(call_id=response.id or known, name=response.name, text=text, failed=failed))
    return tuple(made)


def _answered(response: FunctionResponse) -> tuple[str, bool]:
    """Return what a function answered: its output, its error, or the whole where it has neither."""
    fields = response.response or {}
    failed = "error" in fields and "output" not in fields
    value = fields["error"] if failed else fields.get("output", fields)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), failed


def _media(parts: list[Part]) -> Iterator[str]:
    for part in parts:
        media = part.inline_data or part.file_data
        if media is not None:
            yield media.mime_type or ""
        for shown in (part.function_response.parts or []) if part.function_response is not None else []:
            inner = shown.inline_data or shown.file_data
            if inner is not None:
                yield inner.mime_type or ""


def _tools(tools: list[Tool]) -> Iterator[Offered]:
    for tool in tools:
        for function in tool.function_declarations or []:
            schema: Any = function.parameters_json_schema
            if schema is None:
                schema = json_schema(function.parameters) if function.parameters is not None else {"type": "object"}
            yield Offered(name=function.name, description=function.description or "", schema=schema)
    for name in server_tools(tools):
        yield Offered(name=name, kind="search" if name in _SEARCHES else "other")


def _choice(heard: Heard) -> Choice:
    config = heard.request.tool_config
    calling = config.function_calling_config if config is not None else None
    if calling is None or not heard.functions:
        return Choice()
    return Choice(mode=_MODES.get(calling.mode or "", "auto"), names=tuple(calling.allowed_function_names or ()))


def _output(heard: Heard) -> dict[str, Any] | None:
    config = heard.config
    if config.response_mime_type not in {_JSON, ENUM}:
        return None
    given = members_of(config.response_json_schema)
    if given is not None:
        return given
    return json_schema(config.response_schema) if config.response_schema is not None else {}


def json_schema(schema: Schema) -> dict[str, Any]:
    """Write Google's schema as a JSON schema."""
    made: dict[str, Any] = {
        name: getattr(schema, attribute)
        for attribute, name in _BOUNDS.items()
        if getattr(schema, attribute) is not None
    }
    if schema.type is not None:
        kind = schema.type.lower()
        made["type"] = [kind, "null"] if schema.nullable else kind
    if schema.enum:
        numbers = schema.type in {"INTEGER", "NUMBER"}
        made["enum"] = [_number(word) if numbers else word for word in schema.enum]
    if schema.items is not None:
        made["items"] = json_schema(schema.items)
    if schema.properties:
        made["properties"] = {name: json_schema(inner) for name, inner in schema.properties.items()}
    if schema.required:
        made["required"] = schema.required
    if schema.any_of:
        made["anyOf"] = [json_schema(inner) for inner in schema.any_of]
    if schema.ref:
        made["$ref"] = schema.ref.replace("#/defs/", "#/$defs/")
    if schema.defs:
        made["$defs"] = {name: json_schema(inner) for name, inner in schema.defs.items()}
    return made


def _number(word: str) -> float | str:
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word
