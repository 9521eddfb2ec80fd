"""Mutators for the rules about schema limits: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.gemini import changes
from simulator.mutation import Mutate

_MOST_STATES = 5000


def _limit_to(body: Json, mode: str, schema: Json) -> Json:
    changed = changes.with_function(body, parameters={"type": "OBJECT", "properties": {"it": schema}})
    changes.ensure_message(changes.request_in(changed), "tool_config", "function_calling_config")["mode"] = mode
    return changed


def _many_words(body: Json, chance: Random) -> Iterable[Json]:
    words = [f"word {number}" for number in range(_MOST_STATES)]
    yield _limit_to(body, chance.choice(("ANY", "VALIDATED")), {"type": "STRING", "enum": words})


def _remove_definitions(body: Json, _: Random) -> Iterable[Json]:
    one = {"One": {"type": "STRING"}}
    for schema in ({"type": "OBJECT", "defs": one}, {"ref": "#/defs/Missing"}):
        yield changes.with_function(body, parameters={"type": "OBJECT", "properties": {"it": schema}, "defs": one})


def _endless(body: Json, _: Random) -> Iterable[Json]:
    for way in ({"$ref": "#/$defs/Node"}, {"type": "array", "items": {"$ref": "#/$defs/Node"}}):
        node = {"type": "object", "properties": {"next": way}, "required": ["next"]}
        changed = changes.with_function(body)
        for function in changes.functions(changed):
            del function["parameters"]
            function["parametersJsonSchema"] = {"type": "object", "properties": {"first": way}, "$defs": {"Node": node}}
        yield changed


MUTATORS: dict[str, Mutate] = {
    "gemini.schema-states": _many_words,
    "gemini.schema-defs": _remove_definitions,
    "gemini.json-schema-cycle": _endless,
}
