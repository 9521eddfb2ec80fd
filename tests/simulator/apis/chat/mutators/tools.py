"""Mutators for the rules about tools: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.chat import changes
from simulator.broken_grammars import BROKEN
from simulator.mutation import Mutate

_MOST = 128


def _break_empty(body: Json, _: Random) -> Iterable[Json]:
    yield changes.change(body, tools=[])
    if not body.get("tools"):
        yield changes.change(body, functions=[])


def _break_count(body: Json, _: Random) -> Iterable[Json]:
    if body.get("tools"):
        more = [changes.function_tool(f"extra_{number}") for number in range(_MOST)]
        yield changes.change(body, tools=[*body["tools"], *more])


def _break_name(body: Json, chance: Random) -> Iterable[Json]:
    tools = changes.tools(body)
    if tools:
        index = chance.randrange(len(tools))
        for name in ("get weather", "weather.get", "wetter_für", "", "x" * 65):
            yield changes.put(body, ("tools", index, tools[index]["type"], "name"), name)


def _break_duplicate(body: Json, chance: Random) -> Iterable[Json]:
    if tools := body.get("tools"):
        yield changes.with_tool(body, chance.choice(tools))


def _break_custom(body: Json, _: Random) -> Iterable[Json]:
    older = changes.change_model(body, "gpt-4.1")
    if older is not None:
        yield changes.with_tool(older, {"type": "custom", "custom": {"name": "run_anything"}})


def _break_grammar(body: Json, _: Random) -> Iterable[Json]:
    newer = changes.change_model(body, "gpt-5.2")
    if newer is None:
        return
    for syntax, definition in BROKEN:
        grammar = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
        yield changes.with_tool(newer, {"type": "custom", "custom": {"name": "by_grammar", "format": grammar}})


def _break_choice_alone(body: Json, _: Random) -> Iterable[Json]:
    bare = changes.without(body, "tools", "parallel_tool_calls")
    for choice in ("auto", "none", "required", {"type": "function", "function": {"name": "lookup"}}):
        yield changes.change(bare, tool_choice=choice)


def _break_parallel_alone(body: Json, _: Random) -> Iterable[Json]:
    for parallel in (True, False):
        yield changes.change(changes.without(body, "tools", "tool_choice"), parallel_tool_calls=parallel)


def _break_function_call_alone(body: Json, _: Random) -> Iterable[Json]:
    yield changes.change(changes.without(body, "functions"), function_call="auto")


def _break_choice_known(body: Json, _: Random) -> Iterable[Json]:
    if not body.get("tools"):
        return
    stranger = {"type": "function", "function": {"name": "never_declared"}}
    allowed = {"mode": "auto", "tools": [stranger]}
    yield changes.change(body, tool_choice=stranger)
    yield changes.change(body, tool_choice={"type": "custom", "custom": {"name": "never_declared"}})
    yield changes.change(body, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})


def _break_allowed_empty(body: Json, _: Random) -> Iterable[Json]:
    if body.get("tools"):
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": list[Json]()}}
        yield changes.change(body, tool_choice=choice)


def _break_effort(body: Json, _: Random) -> Iterable[Json]:
    if not any(changes.functions(body)):
        return
    for model, efforts in (
        ("gpt-5.4", ("low", "high")),
        ("gpt-5.6-luna", (None, "medium")),
        ("gpt-6-luna", (None, "max")),
    ):
        if (newer := changes.change_model(body, model)) is not None:
            for effort in efforts:
                yield changes.change(newer, reasoning_effort=effort)
    if (quiet := changes.change_model(changes.without(body, "tools"), "gpt-6-astra")) is not None:
        yield changes.change(quiet, tools=body["tools"])


MUTATORS: dict[str, Mutate] = {
    "chat.tools-empty": _break_empty,
    "chat.tools-count": _break_count,
    "chat.tool-name": _break_name,
    "chat.tool-name-duplicate": _break_duplicate,
    "chat.custom-tool-model": _break_custom,
    "chat.grammar": _break_grammar,
    "chat.tool-choice-without-tools": _break_choice_alone,
    "chat.parallel-without-tools": _break_parallel_alone,
    "chat.function-call-without-functions": _break_function_call_alone,
    "chat.allowed-tools-empty": _break_allowed_empty,
    "chat.tool-choice-unknown": _break_choice_known,
    "chat.tools-with-effort": _break_effort,
}
