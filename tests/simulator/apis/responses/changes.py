"""Small changes to accepted bodies, used by the mutators of the rules. The given body is never changed."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, cast

from dragoman.simulator.apis.rule import Json

USER: Json = {"role": "user", "content": "Hello."}
SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs")
OBJECT: Json = {"type": "object", "properties": {}}


def change(body: Json, **members: Any) -> Json:
    """Return a copy with some fields set."""
    return {**deepcopy(body), **deepcopy(members)}


def items_of(body: Json) -> list[Json]:
    """Return a copy of the input as a list of items."""
    given: Any = body.get("input")
    if isinstance(given, list):
        return deepcopy(cast("list[Json]", given))
    return [{"role": "user", "content": given}] if isinstance(given, str) else []


def with_items(body: Json, items: list[Json]) -> Json:
    """Return a copy with other input."""
    return change(body, input=items)


def tools_of(body: Json) -> list[Json]:
    """Return a copy of the tools."""
    given: Any = body.get("tools")
    return deepcopy(cast("list[Json]", given)) if isinstance(given, list) else []


def with_tool(body: Json, tool: Json) -> Json:
    """Return a copy with one more tool."""
    return change(body, tools=[*tools_of(body), tool])


def places(items: list[Json], *kinds: str) -> Iterator[int]:
    """Yield the indexes of items of these types; "message" also matches items without a type."""
    for number, item in enumerate(items):
        kind = item.get("type") or ("message" if "role" in item else "")
        if kind in kinds:
            yield number


def alter(body: Json, number: int, **members: Any) -> Json:
    """Return a copy with fields of one input item set."""
    items = items_of(body)
    items[number] = {**items[number], **members}
    return with_items(body, items)


def without(body: Json, number: int) -> Json:
    """Return a copy without one input item."""
    items = items_of(body)
    return with_items(body, items[:number] + items[number + 1 :])


def is_standalone(body: Json) -> bool:
    """Return whether the whole conversation is in the body."""
    kept = ("previous_response_id", "conversation", "prompt")
    return not any(body.get(name) for name in kept) and not list(places(items_of(body), "item_reference"))


def on_model(body: Json, model: str, **members: Any) -> Json:
    """Return a copy for another model, without fields that only some models accept."""
    text = cast("Json", body.get("text") or {})
    kept = {name: value for name, value in text.items() if name != "verbosity"}
    dropped = {"reasoning", "include", "prompt_cache_options", "prompt_cache_retention", *SAMPLING}
    rest = {name: value for name, value in body.items() if name not in dropped}
    return change({**rest, "text": kept}, **{"model": model, **members})
