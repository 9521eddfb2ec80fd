"""Mutators for the rules about turns: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random
from typing import Any

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import change, ends_with, onto, places, user_blocks_added
from simulator.mutation import Mutate


def _make_empty(body: Json, _: Random) -> Iterator[Json]:
    yield change(body, messages=[])


def _empty_messages(body: Json, _: Random) -> Iterator[Json]:
    question = {"role": "user", "content": "Go on."}
    empty: list[Any] = ["", []]
    for nothing in empty:
        yield change(body, messages=[{"role": "user", "content": nothing}])
        if ends_with(body) == "user" and not list(places(body, "tool_result")):
            silent = {"role": "assistant", "content": nothing}
            yield change(body, messages=[*body["messages"], silent, question])


def _model_first(body: Json, _: Random) -> Iterator[Json]:
    first = {"role": "assistant", "content": "How can I help?"}
    for moved in onto(body, "claude-opus-4-7"):
        yield change(moved, messages=[first, *moved["messages"]])
    if body["messages"]:
        yield change(body, messages=[{"role": "system", "content": "Be brief."}, *body["messages"]])


def _add_instructions(body: Json, _: Random) -> Iterator[Json]:
    instruction = {"role": "system", "content": "Answer in French."}
    for moved in onto(body, "claude-sonnet-5"):
        yield change(moved, messages=[*moved["messages"], instruction])


def _move(body: Json, _: Random) -> Iterator[Json]:
    instruction = {"role": "system", "content": "Answer in French."}
    question = {"role": "user", "content": "Go on."}
    for moved in onto(body, "claude-opus-5-5"):
        yield change(moved, messages=[*moved["messages"], instruction, question])
        yield change(moved, messages=[*moved["messages"], instruction, instruction])


def _empty_text(body: Json, _: Random) -> Iterator[Json]:
    yield from user_blocks_added(body, {"type": "text", "text": ""})
    if isinstance(body.get("system"), str):
        yield change(body, system=[{"type": "text", "text": ""}])


def _blank_text(body: Json, _: Random) -> Iterator[Json]:
    yield from user_blocks_added(body, {"type": "text", "text": " \n"})


def _swap_owner(body: Json, _: Random) -> Iterator[Json]:
    used: Json = {"type": "tool_use", "id": "toolu_01Extra", "name": "get_weather", "input": {}}
    yield from user_blocks_added(body, used)
    result = {"type": "tool_result", "tool_use_id": "toolu_01Extra", "content": "18"}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Well."}, result]}
    if ends_with(body) == "user":
        yield change(body, messages=[*body["messages"], answer, {"role": "user", "content": "Go on."}])


def _begin(body: Json, chance: Random) -> Iterator[Json]:
    model = chance.choice(["claude-sonnet-4-6", "claude-opus-4-7", "claude-opus-5-5", "some-new-model"])
    for moved in onto(body, model):
        yield change(moved, messages=[*moved["messages"], {"role": "assistant", "content": "The answer is"}])


def _add_trailing(body: Json, _: Random) -> Iterator[Json]:
    for moved in onto(body, "claude-haiku-4-5"):
        yield change(moved, messages=[*moved["messages"], {"role": "assistant", "content": "The answer is "}])


MUTATORS: dict[str, Mutate] = {
    "messages.messages-present": _make_empty,
    "messages.message-empty": _empty_messages,
    "messages.first-turn": _model_first,
    "messages.system-turn-model": _add_instructions,
    "messages.system-turn-place": _move,
    "messages.text-empty": _empty_text,
    "messages.text-blank": _blank_text,
    "messages.block-role": _swap_owner,
    "messages.prefill": _begin,
    "messages.prefill-whitespace": _add_trailing,
}
