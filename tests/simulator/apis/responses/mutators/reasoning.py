"""Mutators for the rules about reasoning: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.responses.ids import ItemId, decode_item_id, encode_item_id
from dragoman.simulator.apis.rule import Json
from simulator.apis.responses.changes import alter, is_standalone, items_of, places, with_items, without
from simulator.mutation import Mutate


def _strand(body: Json, _: Random) -> Iterator[Json]:
    items = items_of(body)
    thought: Json = {"type": "reasoning", "id": "rs_mutation", "summary": []}
    yield with_items(body, [thought, {"role": "user", "content": "Go on."}, *items])
    if body.get("store") is not False:
        yield with_items(body, [thought, {"role": "assistant", "content": "Yes."}, *items])
    for number in places(items, "reasoning"):
        following = items[number + 1].get("type") if number + 1 < len(items) else None
        if items[number].get("id") and following in {"message", "web_search_call"} and number + 2 == len(items):
            yield without(body, number + 1)


def _drop_thought(body: Json, _: Random) -> Iterator[Json]:
    if any(body.get(name) for name in ("previous_response_id", "conversation", "prompt")):
        return
    items = items_of(body)
    issued = ItemId(prefix="msg", reply="ab" * 12, index=1, stored=False, after_thought=True)
    output: Json = {
        "type": "message",
        "role": "assistant",
        "id": encode_item_id(issued),
        "content": "Hello.",
        "status": "completed",
    }
    yield with_items(body, [{"role": "user", "content": "Hi."}, output, *items])
    for number in places(items, "reasoning"):
        following = decode_item_id(str(items[number + 1].get("id"))) if number + 1 < len(items) else None
        if following is not None and following.after_thought:
            yield without(body, number)


def _forget(body: Json, _: Random) -> Iterator[Json]:
    items = items_of(body)
    issued = ItemId(prefix="rs", reply="cd" * 12, index=0, stored=False, after_thought=False)
    thought: Json = {"type": "reasoning", "id": encode_item_id(issued), "summary": []}
    output: Json = {
        "type": "message",
        "role": "assistant",
        "id": "msg_mutation",
        "content": "Hello.",
        "status": "completed",
    }
    if not any(item.get("id") == "msg_mutation" for item in items):
        yield with_items(body, [thought, output, *items])
    if is_standalone(body):
        yield with_items(body, [{"type": "item_reference", "id": encode_item_id(issued)}, *items])


def _unseal(body: Json, chance: Random) -> Iterator[Json]:
    items = items_of(body)
    token = TokenSigner().issue("rs_other", "a mutation")
    thought: Json = {"type": "reasoning", "summary": [], "encrypted_content": token}
    yield with_items(body, [{**thought, "encrypted_content": "not a token"}, *items])
    yield with_items(body, [{**thought, "encrypted_content": token[:-8]}, *items])
    yield with_items(body, [thought, thought, *items])
    for number in places(items, "reasoning"):
        given = items[number].get("encrypted_content")
        if isinstance(given, str) and given:
            at = chance.randrange(len(given))
            yield alter(body, number, encrypted_content=f"{given[:at]}!{given[at + 1 :]}")
            if items[number].get("id"):
                yield alter(body, number, encrypted_content=token)


MUTATORS: dict[str, Mutate] = {
    "responses.reasoning-followed": _strand,
    "responses.reasoning-kept": _drop_thought,
    "responses.item-stored": _forget,
    "responses.encrypted-content": _unseal,
}
