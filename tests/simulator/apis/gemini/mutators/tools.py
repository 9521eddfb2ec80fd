"""Mutators for the rules about tools: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.gemini import changes
from simulator.mutation import Mutate

_MOST_FUNCTIONS = 128


def _bad_names(body: Json, chance: Random) -> Iterable[Json]:
    for name in ("", "1st", "get weather", "météo", "a" * 129, "-dash", chance.choice(("a/b", "a$", "a@b"))):
        yield changes.with_function(body, name=name)


def _declare_twice(body: Json, _: Random) -> Iterable[Json]:
    yield changes.with_tools(body, {"functionDeclarations": [changes.WEATHER, {**changes.WEATHER, "description": "2"}]})
    yield changes.with_tools(
        body, {"functionDeclarations": [changes.WEATHER]}, {"function_declarations": [changes.WEATHER]}
    )


def _too_many(body: Json, _: Random) -> Iterable[Json]:
    many = [{**changes.WEATHER, "name": f"function_{number}"} for number in range(_MOST_FUNCTIONS + 1)]
    yield changes.with_tools(body, {"functionDeclarations": many})


def _two_schemas(body: Json, _: Random) -> Iterable[Json]:
    yield changes.with_function(body, parametersJsonSchema={"type": "object"})
    yield changes.with_function(body, response={"type": "STRING"}, response_json_schema={"type": "string"})


def _both_kinds(body: Json, chance: Random) -> Iterable[Json]:
    kind = chance.choice(("googleSearch", "codeExecution", "url_context"))
    yield changes.with_tools(body, {"functionDeclarations": [changes.WEATHER]}, {kind: {}})
    yield changes.with_tools(body, {"functionDeclarations": [changes.WEATHER], kind: {}})


def _search_beside(body: Json, chance: Random) -> Iterable[Json]:
    kind = chance.choice(("googleSearch", "url_context"))
    yield changes.with_tools(body, {"functionDeclarations": [changes.WEATHER]}, {kind: {}})
    yield changes.with_tools(body, {"functionDeclarations": [changes.WEATHER], kind: {}})


def _no_functions(body: Json, chance: Random) -> Iterable[Json]:
    changed = changes.with_tools(body)
    mode = chance.choice(("ANY", "AUTO", "NONE", "VALIDATED"))
    changes.ensure_message(changes.request_in(changed), "tool_config", "function_calling_config")["mode"] = mode
    yield changed


def _choose(body: Json, mode: str | None, name: str) -> Json:
    changed = changes.with_function(body)
    calling = changes.ensure_message(changes.request_in(changed), "tool_config", "function_calling_config")
    if mode is not None:
        calling["mode"] = mode
    calling["allowedFunctionNames"] = [name]
    return changed


def _not_choosing(body: Json, _: Random) -> Iterable[Json]:
    for mode in ("AUTO", "NONE", None):
        yield _choose(body, mode, changes.WEATHER["name"])


def _remove_declaration(body: Json, _: Random) -> Iterable[Json]:
    for mode in ("ANY", "VALIDATED"):
        yield _choose(body, mode, "no_such_function")


def _stream(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.with_function(body)
    calling = changes.ensure_message(changes.request_in(changed), "tool_config", "function_calling_config")
    calling["streamFunctionCallArguments"] = True
    yield changed


MUTATORS: dict[str, Mutate] = {
    "gemini.function-name": _bad_names,
    "gemini.function-once": _declare_twice,
    "gemini.function-count": _too_many,
    "gemini.one-schema": _two_schemas,
    "gemini.tools-mixed": _search_beside,
    "gemini.tools-flagged": _both_kinds,
    "gemini.mode-without-tools": _no_functions,
    "gemini.allowed-mode": _not_choosing,
    "gemini.allowed-known": _remove_declaration,
    "gemini.streamed-arguments": _stream,
}
