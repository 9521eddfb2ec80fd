"""Mutators for the rules about pairing: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import (
    PIXEL,
    block_changed,
    change,
    ends_with,
    places,
    user_blocks_added,
    with_exchange,
)
from simulator.mutation import Mutate


def _illegal_id(body: Json, chance: Random) -> Iterator[Json]:
    yield from with_exchange(body, id=chance.choice(["", "call.1", "call 1", "call:1", "fc|1"]))


def _same_id(body: Json, _: Random) -> Iterator[Json]:
    for once in with_exchange(body):
        once["messages"][-2]["content"] *= 2
        yield once


def _talks_on(body: Json, _: Random) -> Iterator[Json]:
    for once in with_exchange(body):
        once["messages"][-2]["content"].append({"type": "text", "text": "Let me look."})
        yield once


def _not_answered(body: Json, _: Random) -> Iterator[Json]:
    yield from with_exchange(body, results=False)
    for once in with_exchange(body, results=False):
        yield change(once, messages=[*once["messages"], {"role": "user", "content": "Go on."}])
    for once in with_exchange(body):
        result = once["messages"].pop()
        other = {**result["content"][0], "tool_use_id": "toolu_02Other"}
        yield change(once, messages=[*once["messages"], {"role": "user", "content": [other]}])


def _talks_first(body: Json, _: Random) -> Iterator[Json]:
    for once in with_exchange(body):
        yield from user_blocks_added(once, {"type": "text", "text": "Here it is:"}, first=True)


def _out_of_nowhere(body: Json, _: Random) -> Iterator[Json]:
    result = {"type": "tool_result", "tool_use_id": "toolu_02Nowhere", "content": "18"}
    if ends_with(body) == "user":
        yield change(body, messages=[{"role": "user", "content": [result]}])
    yield from user_blocks_added(body, result, first=True)


def _answer_twice(body: Json, _: Random) -> Iterator[Json]:
    for once in with_exchange(body):
        once["messages"][-1]["content"] *= 2
        yield once


def _fail_with_image(body: Json, _: Random) -> Iterator[Json]:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    for place in list(places(body, "tool_result"))[:1]:
        yield block_changed(body, place, content=[image], is_error=True, cache_control=None)


def _other_toolset(body: Json, _: Random) -> Iterator[Json]:
    yield from with_exchange(body, toolset_name="computer")


def _call_from_program(body: Json, _: Random) -> Iterator[Json]:
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_01Program"}
    for once in with_exchange(body, caller=caller):
        yield from user_blocks_added(once, {"type": "text", "text": "What next?"})


def _without_container(body: Json, _: Random) -> Iterator[Json]:
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_01Program"}
    for once in with_exchange(body, caller=caller):
        if "max_tokens" in body:
            yield change(once, container=None)


def _search_of_nobody(body: Json, _: Random) -> Iterator[Json]:
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01Nobody", "content": []}
    answer = {"role": "assistant", "content": [found, {"type": "text", "text": "Nothing."}]}
    if ends_with(body) == "user":
        yield change(body, messages=[*body["messages"], answer, {"role": "user", "content": "Go on."}])


def _search_left_open(body: Json, _: Random) -> Iterator[Json]:
    search = {"type": "server_tool_use", "id": "srvtoolu_01Open", "name": "web_search", "input": {"query": "a"}}
    answer = {"role": "assistant", "content": [search]}
    if ends_with(body) == "user":
        yield change(body, messages=[*body["messages"], answer, {"role": "user", "content": "Go on."}])


MUTATORS: dict[str, Mutate] = {
    "messages.tool-use-id": _illegal_id,
    "messages.tool-use-ids-unique": _same_id,
    "messages.tool-use-last": _talks_on,
    "messages.tool-result-missing": _not_answered,
    "messages.tool-result-first": _talks_first,
    "messages.tool-result-unknown": _out_of_nowhere,
    "messages.tool-result-once": _answer_twice,
    "messages.tool-result-error-text": _fail_with_image,
    "messages.tool-result-toolset": _other_toolset,
    "messages.programmatic-results": _call_from_program,
    "messages.programmatic-container": _without_container,
    "messages.server-result-unknown": _search_of_nobody,
    "messages.server-result-missing": _search_left_open,
}
