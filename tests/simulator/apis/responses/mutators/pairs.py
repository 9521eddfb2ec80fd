"""Mutators for the rules about pairs: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.responses.changes import alter, is_standalone, items_of, places, with_items, without
from simulator.mutation import Mutate


def _drop_answer(body: Json, _: Random) -> Iterator[Json]:
    items = items_of(body)
    calls = {item["call_id"] for item in items if item.get("type") in {"function_call", "custom_tool_call"}}
    for number in places(items, "function_call_output", "custom_tool_call_output"):
        if items[number]["call_id"] in calls:
            yield without(body, number)
            yield alter(body, number, call_id=f"{items[number]['call_id'][:60]}_x")


def _answer_nothing(body: Json, _: Random) -> Iterator[Json]:
    if not is_standalone(body):
        return
    items = items_of(body)
    yield with_items(body, [*items, {"type": "function_call_output", "call_id": "call_lost", "output": "?"}])
    yield with_items(body, [*items, {"type": "custom_tool_call_output", "call_id": "call_lost", "output": "?"}])
    for number in places(items, "function_call"):
        # A stored reasoning item without its call would be rejected first.
        if number and items[number - 1].get("type") != "reasoning":
            yield without(body, number)


def _repeat_call(body: Json, _: Random) -> Iterator[Json]:
    items = items_of(body)
    for number in places(items, "function_call_output", "custom_tool_call_output"):
        again = {name: value for name, value in items[number].items() if name != "id"}
        yield with_items(body, [*items, again])
    for number in places(items, "function_call", "custom_tool_call"):
        again = {name: value for name, value in items[number].items() if name != "id"}
        yield with_items(body, [*items[: number + 1], again, *items[number + 1 :]])


def _approve_nothing(body: Json, _: Random) -> Iterator[Json]:
    if is_standalone(body):
        answer: Json = {"type": "mcp_approval_response", "approval_request_id": "mcpr_lost", "approve": True}
        yield with_items(body, [*items_of(body), answer])


MUTATORS: dict[str, Mutate] = {
    "responses.call-once": _repeat_call,
    "responses.call-answered": _drop_answer,
    "responses.answer-called": _answer_nothing,
    "responses.approval-asked": _approve_nothing,
}
