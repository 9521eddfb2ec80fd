"""Mutators for the rules about schema: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random
from typing import Any

from dragoman.simulator.apis.rule import Json
from simulator.apis.gemini import changes
from simulator.mutation import Mutate


def _with_property(body: Json, *schemas: Json) -> Iterable[Json]:
    for schema in schemas:
        yield changes.with_function(body, parameters={"type": "OBJECT", "properties": {"it": schema}})


def _other_roots(body: Json, _: Random) -> Iterable[Json]:
    for kind in ("STRING", "array"):
        yield changes.with_function(body, parameters={"type": kind, "items": {"type": "STRING"}})


def _no_items(body: Json, _: Random) -> Iterable[Json]:
    yield from _with_property(body, {"type": "ARRAY"}, {"type": "array", "items": {"type": "array"}})


def _bad_enums(body: Json, _: Random) -> Iterable[Json]:
    yield from _with_property(
        body,
        {"type": "INTEGER", "enum": ["1"]},
        {"type": "BOOLEAN", "enum": ["true"]},
        {"type": "STRING", "enum": ["", "a"]},
    )


def _bad_required(body: Json, _: Random) -> Iterable[Json]:
    yield changes.with_function(body, parameters={"type": "OBJECT", "properties": {}, "required": ["it"]})
    yield changes.with_function(body, parameters={"type": "OBJECT", "required": ["it"]})


def _bad_formats(body: Json, chance: Random) -> Iterable[Json]:
    text = chance.choice(("uri", "email", "uuid", "date"))
    yield from _with_property(
        body,
        {"type": "STRING", "format": text},
        {"type": "INTEGER", "format": "int8"},
        {"type": "NUMBER", "format": "x"},
    )


def _beside_any(body: Json, _: Random) -> Iterable[Json]:
    one = {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]}
    yield from _with_property(body, {**one, "description": "either"}, {**one, "nullable": True})


def _empty_properties(body: Json, _: Random) -> Iterable[Json]:
    yield changes.with_function(body, parameters={"type": "OBJECT", "properties": {}})


def _with_json_schema(body: Json, schema: Any) -> Json:
    changed = changes.with_function(body, parametersJsonSchema=schema)
    for function in changes.functions(changed):
        del function["parameters"]
    return changed


def _other_json_roots(body: Json, _: Random) -> Iterable[Json]:
    others: tuple[Any, ...] = ({"type": "string"}, {"type": "array", "items": {}}, "object", [{"type": "object"}], True)
    for schema in others:
        yield _with_json_schema(body, schema)


def _bad_references(body: Json, _: Random) -> Iterable[Json]:
    for reference in (
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/$defs/One", "type": "object"},
    ):
        schema = {"type": "object", "properties": {"it": reference}, "$defs": {"One": {"type": "object"}}}
        yield _with_json_schema(body, schema)


MUTATORS: dict[str, Mutate] = {
    "gemini.schema-root": _other_roots,
    "gemini.schema-items": _no_items,
    "gemini.schema-enum": _bad_enums,
    "gemini.schema-required": _bad_required,
    "gemini.schema-format": _bad_formats,
    "gemini.schema-any-of": _beside_any,
    "gemini.schema-properties": _empty_properties,
    "gemini.json-schema-root": _other_json_roots,
    "gemini.json-schema-ref": _bad_references,
}
