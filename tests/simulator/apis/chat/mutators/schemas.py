"""Mutators for the rules about schemas: each yields bodies that break its rule."""

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

from dragoman.simulator.apis.openai.schemas import (
    LISTS,
    LONG_ENUM,
    MOST_CHARACTERS_OF_LONG_ENUM,
    MOST_LEVELS,
    MOST_PROPERTIES,
    MOST_VALUES,
    ROOT_FORBIDDEN,
    STRICT_FORBIDDEN,
    iterate_schemas,
    read_types,
)
from dragoman.simulator.apis.rule import Json
from simulator.apis.chat import changes
from simulator.mutation import Mutate

_WORDY = MOST_CHARACTERS_OF_LONG_ENUM // LONG_ENUM


def _break_root(body: Json, chance: Random) -> Iterable[Json]:
    for path, schema in changes.schemas(body):
        yield changes.put(body, path, {**schema, "type": "array", "items": {"type": "string"}})
        yield changes.put(body, path, {name: value for name, value in schema.items() if name != "type"})
        combinator = chance.choice(ROOT_FORBIDDEN[:3])
        yield changes.put(body, path, {**schema, combinator: [{"type": "object"}]})


def _inner(schema: Json, expected: Callable[[Json], bool]) -> Iterator[changes.Path]:
    """Iterate over the paths of the schemas within a schema that the condition selects."""
    for way, node in iterate_schemas(schema):
        if expected(node):
            numbered = zip(("", *way), way, strict=False)
            yield tuple(int(step) if before in LISTS else step for before, step in numbered)


def _is_object(node: Json) -> bool:
    return "object" in read_types(node)


def _is_plain(node: Json) -> bool:
    return read_types(node) == ("string",) and "enum" not in node


def _break_items(body: Json, _: Random) -> Iterable[Json]:
    for path, schema in changes.schemas(body):
        for inner in _inner(schema, _is_plain):
            yield changes.put(body, (*path, *inner), {"type": "array"})


def _break_keywords(body: Json, _: Random) -> Iterable[Json]:
    within: tuple[Json, ...] = ({"type": {"x": 1}}, {"type": "text"}, {"type": "string", "format": []})
    outside: tuple[Json, ...] = ({"properties": []}, {"required": None}, {"$defs": {"one": []}})
    for path, schema in changes.schemas(body):
        for inner in _inner(schema, _is_plain):
            for wrong in within:
                yield changes.put(body, (*path, *inner), wrong)
        for wrong in outside:
            yield changes.put(body, path, {**schema, **wrong})


def _change_schemas(expected: Callable[[Json], bool], *changed: Callable[[Json], Json]) -> Mutate:
    """Return a mutator of strict schemas: each selected subschema is changed in each way."""

    def mutate(body: Json, _: Random) -> Iterable[Json]:
        for path, schema in changes.schemas(body, strict=True):
            for inner in _inner(schema, expected):
                node: Any = schema
                for step in inner:
                    node = node[step]
                for change in changed:
                    yield changes.put(body, (*path, *inner), change(node))

    return mutate


def _without(name: str) -> Callable[[Json], Json]:
    return lambda node: {key: value for key, value in node.items() if key != name}


def _with(**members: Any) -> Callable[[Json], Json]:
    return lambda node: {**node, **members}


def _forbid(keyword: str) -> Callable[[Json], Json]:
    values: dict[str, Any] = {
        "allOf": [{"type": "string"}],
        "oneOf": [{"type": "string"}],
        **dict.fromkeys(("minProperties", "maxProperties"), 1),
        "uniqueItems": True,
    }
    return _with(**{keyword: values.get(keyword, {})})


def _partly_required(node: Json) -> Json:
    return {**node, "required": list(node.get("properties") or {})[1:]}


def _is_filled_object(node: Json) -> bool:
    return _is_object(node) and bool(node.get("properties"))


def _deep(_node: Json) -> Json:
    schema: Json = {"type": "string"}
    for _level in range(MOST_LEVELS + 1):
        properties = {"next": schema}
        schema = {"type": "object", "properties": properties, "required": ["next"], "additionalProperties": False}
    return schema


def _wide(node: Json) -> Json:
    names = [f"p{number}" for number in range(MOST_PROPERTIES + 1)]
    return {**node, "properties": {name: {"type": "string"} for name in names}, "required": names}


def _break_size(body: Json, chance: Random) -> Iterable[Json]:
    many = {"type": "string", "enum": [f"v{number}" for number in range(MOST_VALUES + 1)]}
    long = {"type": "string", "enum": [str(number).zfill(130) for number in range(MOST_VALUES)]}
    wordy = {"type": "string", "enum": [str(number).zfill(_WORDY) for number in range(LONG_ENUM + 1)]}
    for path, schema in changes.schemas(body, strict=True):
        inner = list(_inner(schema, _is_plain))
        if inner:
            place = (*path, *chance.choice(inner))
            for values in (many, long, wordy):
                yield changes.put(body, place, values)
        if chance.randrange(4) == 0:  # it is slow to check
            yield changes.put(body, path, _wide(schema))


def _break_schema_given(body: Json, _: Random) -> Iterable[Json]:
    if changes.schema_answer(body).get("strict"):
        yield changes.drop(body, ("response_format", "json_schema", "schema"))


MUTATORS: dict[str, Mutate] = {
    "chat.strict-schema-missing": _break_schema_given,
    "chat.schema-root": _break_root,
    "chat.schema-malformed": _break_keywords,
    "chat.schema-array-items": _break_items,
    "chat.strict-additional-properties": _change_schemas(
        _is_object, _without("additionalProperties"), _with(additionalProperties=True)
    ),
    "chat.strict-required": _change_schemas(_is_filled_object, _without("required"), _partly_required),
    "chat.strict-reference": _change_schemas(lambda node: "$ref" in node, _with(description="See there.")),
    "chat.strict-keyword": _change_schemas(_is_plain, *(_forbid(keyword) for keyword in STRICT_FORBIDDEN)),
    "chat.strict-type": _change_schemas(_is_plain, _without("type"), lambda _node: {}),
    "chat.strict-format": _change_schemas(_is_plain, _with(format="uri"), _with(format="phone")),
    "chat.strict-nesting": _change_schemas(_is_plain, _deep),
    "chat.strict-size": _break_size,
}
