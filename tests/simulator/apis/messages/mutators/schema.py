"""Mutators for the rules about schema: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import a_tool, change, onto, user_blocks_added, with_tool
from simulator.mutation import Mutate

_MOST_TOOLS = 20


_MOST_OPTIONAL = 24


_MOST_UNIONS = 16


def _strict_tool(properties: Json, name: str = "dragoman_strict") -> Json:
    required = [key for key in properties if not key.startswith("optional")]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return a_tool(name, strict=True, input_schema=schema)


_OUTSIDE: tuple[Json, ...] = (
    {"type": "integer", "minimum": 1, "maximum": 9},
    {"type": "string", "minLength": 2},
    {"type": "object", "properties": {}},
    {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    {"type": "array", "items": {"type": "string"}, "minItems": 2},
    {"type": "string", "format": "iban"},
    {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    {"type": "string", "pattern": r"^(?=a)\w+$"},
    {"$ref": "https://example.com/schema.json"},
    {"$ref": "#"},
    {"allOf": [{"$ref": "#/$defs/other"}]},
    {"enum": ["a", {"b": 1}]},
)


def _outside(body: Json, chance: Random) -> Iterator[Json]:
    wrong = chance.choice(_OUTSIDE)
    if "strict" in str(body.get("tools")) or "max_tokens" not in body:
        return
    for moved in onto(body, "claude-sonnet-4-6"):
        yield with_tool(moved, _strict_tool({"a": wrong}))
        schema = {"type": "object", "properties": {"a": wrong}, "required": ["a"], "additionalProperties": False}
        yield change(moved, output_config={"format": {"type": "json_schema", "schema": schema}})


def _too_many_strict(body: Json, _: Random) -> Iterator[Json]:
    for moved in onto(body, "claude-sonnet-4-6"):
        yield with_tool(moved, *(_strict_tool({}, f"strict_{number}") for number in range(_MOST_TOOLS + 1)))


def _too_many_optional(body: Json, _: Random) -> Iterator[Json]:
    properties: Json = {f"optional_{number}": {"type": "string"} for number in range(_MOST_OPTIONAL + 1)}
    for moved in onto(body, "claude-sonnet-4-6"):
        yield with_tool(moved, _strict_tool(properties))


def _too_many_unions(body: Json, _: Random) -> Iterator[Json]:
    properties: Json = {f"union_{number}": {"type": ["string", "null"]} for number in range(_MOST_UNIONS + 1)}
    for moved in onto(body, "claude-sonnet-4-6"):
        yield with_tool(moved, _strict_tool(properties))


_ANSWER = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


_FORMAT = {"type": "json_schema", "schema": _ANSWER}


def _for_old_model(body: Json, _: Random) -> Iterator[Json]:
    yield from onto(body, "claude-sonnet-4-20250514", output_config={"format": _FORMAT})


def _twice_formatted(body: Json, _: Random) -> Iterator[Json]:
    yield from onto(body, "claude-sonnet-4-6", output_config={"format": _FORMAT}, output_format=_FORMAT)


def _cite(body: Json, _: Random) -> Iterator[Json]:
    source = {"type": "text", "media_type": "text/plain", "data": "The grass is green."}
    document = {"type": "document", "source": source, "citations": {"enabled": True}}
    for moved in onto(body, "claude-sonnet-4-6", output_config={"format": _FORMAT}):
        yield from user_blocks_added(moved, document)


def _begin(body: Json, _: Random) -> Iterator[Json]:
    for moved in onto(body, "claude-haiku-4-5", output_config={"format": _FORMAT}):
        yield change(moved, messages=[*moved["messages"], {"role": "assistant", "content": "{"}])


MUTATORS: dict[str, Mutate] = {
    "messages.schema-subset": _outside,
    "messages.strict-tools": _too_many_strict,
    "messages.schema-optionals": _too_many_optional,
    "messages.schema-unions": _too_many_unions,
    "messages.output-format-model": _for_old_model,
    "messages.output-format-once": _twice_formatted,
    "messages.output-format-citations": _cite,
    "messages.output-format-prefill": _begin,
}
