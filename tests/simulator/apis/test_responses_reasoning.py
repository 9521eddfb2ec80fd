"""What the simulator issued must come back unchanged, or is rejected."""

import copy
import json
from copy import deepcopy
from typing import Any

import pytest

from dragoman.simulator.apis.conversation import Answer
from dragoman.simulator.apis.responses import API
from dragoman.simulator.apis.responses.store import expand_input
from simulator.apis.responses.answers import CASES, SIGNER, events, occasion, whole
from simulator.apis.responses.bodies import WEATHER, asks, require_accepted, require_rejected

MEMBERS: dict[str, Any] = {"tools": [WEATHER], "store": False, "reasoning": {"summary": "auto"}}
ANSWER = Answer(thought="Look it up.", calls=CASES["two calls"][1].calls, end="calls")
ASKED = {"role": "user", "content": "Paris?"}


def output(**members: Any) -> list[dict[str, Any]]:
    return copy.deepcopy(whole({**MEMBERS, **members}, ANSWER)["output"])


def answers(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "18"}
        for item in items
        if item["type"] == "function_call"
    ]


def follow_up(items: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    return asks(**{**MEMBERS, "input": [ASKED, *items, *answers(items)], **members})


def test_items_go_back_verbatim():
    require_accepted(follow_up(output()), signer=SIGNER)
    require_accepted(follow_up(output(store=None), store=None), signer=SIGNER)


def test_ids_may_be_left_out():
    items = [{name: value for name, value in item.items() if name != "id"} for item in output()]
    require_accepted(follow_up(items), signer=SIGNER)


def test_a_thought_may_be_left_out_with_the_id_of_its_call():
    _, first, second = output()
    del first["id"]
    require_accepted(follow_up([first, second]), signer=SIGNER)


def test_a_call_that_followed_a_thought_does_not_come_back_without_it():
    thought, first, second = output()
    found = require_rejected(follow_up([first, second]), signer=SIGNER)
    assert found.rule == "responses.reasoning-kept"
    assert (
        found.message
        == f"Item '{first['id']}' of type 'function_call' was provided without its required 'reasoning' item: '{thought['id']}'."
    )


def test_a_thought_does_not_come_back_without_what_it_led_to():
    thought, *_ = output()
    assert (
        require_rejected(asks(**{**MEMBERS, "input": [ASKED, thought, ASKED]}), signer=SIGNER).rule
        == "responses.reasoning-followed"
    )


def alter(item: dict[str, Any]) -> None:
    token = item["encrypted_content"]
    item["encrypted_content"] = ("A" if token[30] != "A" else "B").join((token[:30], token[31:]))


def change_owner(item: dict[str, Any]) -> None:
    item["encrypted_content"] = SIGNER.issue("rs_other", "elsewhere")


def cut(item: dict[str, Any]) -> None:
    item["encrypted_content"] = item["encrypted_content"][:-12]


def foreign(item: dict[str, Any]) -> None:
    item["encrypted_content"] = "gAAAAABqb8Q5ZsWECJphzjqslFLg=="


@pytest.mark.parametrize("spoil", [alter, change_owner, cut, foreign])
def test_encrypted_content_that_is_not_as_it_was_is_refused(spoil):
    items = output()
    spoil(items[0])
    found = require_rejected(follow_up(items), signer=SIGNER)
    assert found.rule == "responses.encrypted-content"
    assert found.message.startswith(f"The encrypted content for item {items[0]['id']} could not be verified. Reason: ")


def test_encrypted_content_taken_from_an_item_that_was_only_begun_is_refused():
    items = output()
    added = next(event["item"] for event in events(MEMBERS, ANSWER) if event["type"] == "response.output_item.added")
    items[0]["encrypted_content"] = added["encrypted_content"]
    assert require_rejected(follow_up(items), signer=SIGNER).rule == "responses.encrypted-content"


def test_the_same_encrypted_content_does_not_come_twice():
    thought, *rest = output()
    bare = {"type": "reasoning", "summary": [], "encrypted_content": thought["encrypted_content"]}
    assert require_rejected(follow_up([bare, thought, *rest]), signer=SIGNER).rule == "responses.encrypted-content"


def test_a_thought_that_was_not_stored_needs_its_encrypted_content():
    items = output()
    del items[0]["encrypted_content"]
    found = require_rejected(follow_up(items), signer=SIGNER)
    assert (found.rule, found.status) == ("responses.item-stored", 404)
    items = output(store=None)
    assert "encrypted_content" not in items[0]
    require_accepted(follow_up(items, store=None), signer=SIGNER)


def test_an_item_that_was_not_stored_cannot_be_referred_to():
    reference = {"type": "item_reference", "id": output()[1]["id"]}
    assert (
        require_rejected(asks(**{**MEMBERS, "input": [ASKED, reference]}), signer=SIGNER).rule
        == "responses.item-stored"
    )


def test_another_simulators_content_is_foreign():
    from dragoman.simulator.apis.conversation import TokenSigner

    assert require_rejected(follow_up(output()), signer=TokenSigner(6)).rule == "responses.encrypted-content"


def test_a_request_that_continues_a_stored_reply_is_validated_as_a_whole():
    first = require_accepted(asks(tools=[WEATHER], input="Paris?"))
    reply = json.loads(API.render_reply(ANSWER, first, occasion()))
    stored = [ASKED, *reply["output"]]
    known = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "18"} for item in reply["output"][1:]
    ]

    def going_on(items: list[dict[str, Any]]) -> dict[str, Any]:
        return expand_input(asks(tools=[WEATHER], previous_response_id=reply["id"], input=deepcopy(items)), stored, {})

    again = require_accepted(going_on(known), signer=SIGNER)
    assert [result.name for result in again.model_request.turns[-1].results] == ["get_weather", "get_weather"]
    assert json.loads(API.render_reply(ANSWER, again, occasion()))["previous_response_id"] == reply["id"]
    assert require_rejected(going_on(known[:1]), signer=SIGNER).rule == "responses.call-answered"
    lost = {"type": "function_call_output", "call_id": "call_lost", "output": "?"}
    assert require_rejected(going_on([*known, lost]), signer=SIGNER).rule == "responses.answer-called"
    assert require_rejected(going_on([reply["output"][0], *known]), signer=SIGNER).rule == "responses.item-once"
