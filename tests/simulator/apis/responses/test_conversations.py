"""Stored conversations, through the official SDK: create, continue, list, update and delete."""

from collections.abc import Generator

import openai
import pytest

from simulator.apis.responses.answers import extras
from simulator.apis.responses.bodies import WEATHER

MODEL = "gpt-5.6-terra"
HELLO = {"role": "user", "content": "Hello"}


@pytest.fixture(scope="module")
def sdk(simulator) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="sk-test", max_retries=0) as client:
        yield client


def test_a_conversation_is_made_changed_and_deleted(sdk):
    made = sdk.conversations.create(metadata={"topic": "demo"})
    assert (made.object, made.metadata, made.id[:5]) == ("conversation", {"topic": "demo"}, "conv_")
    assert sdk.conversations.retrieve(made.id) == made
    assert sdk.conversations.update(made.id, metadata={"topic": "other"}).metadata == {"topic": "other"}
    gone = sdk.conversations.delete(made.id)
    assert (gone.id, gone.object, gone.deleted) == (made.id, "conversation.deleted", True)
    assert [name for result in (made, gone) for name in extras(result)] == []
    with pytest.raises(openai.NotFoundError, match="Conversation with id"):
        sdk.conversations.retrieve(made.id)


def test_a_tool_flow_continues_in_a_conversation(sdk):
    talk = sdk.conversations.create(items=[{"role": "developer", "content": "Be brief."}])
    asked = {"model": MODEL, "conversation": talk.id, "tools": [WEATHER]}
    first = sdk.responses.create(**asked, input="What is the weather in Paris?")
    assert first.conversation.id == talk.id
    call = first.output[-1]
    assert (call.type, call.name) == ("function_call", "get_weather")
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(**asked, input="Never mind.")
    assert caught.value.response.headers["x-dragoman-rule"] == "responses.call-answered"
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}
    with sdk.responses.stream(**asked, input=[result]) as stream:
        second = stream.get_final_response()
    assert "18 degrees" in second.output_text
    items = list(sdk.conversations.items.list(talk.id, order="asc"))
    kinds = [item.type for item in items if item.type != "reasoning"]
    assert kinds == ["message", "message", "function_call", "function_call_output", "message"]
    assert [name for item in items for name in extras(item)] == []
    assert len({item.id for item in items}) == len(items)


def test_a_reply_that_is_not_stored_still_belongs_to_its_conversation(sdk):
    talk = sdk.conversations.create()
    reply = sdk.responses.create(model=MODEL, conversation={"id": talk.id}, input="Hello", store=False)
    assert sdk.conversations.items.list(talk.id).data[0].id == reply.output[-1].id
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(reply.id)


def test_items_are_added_looked_at_and_removed(sdk):
    talk = sdk.conversations.create(items=[HELLO])
    added = sdk.conversations.items.create(talk.id, items=[{"role": "user", "content": "And?"}])
    assert [item.content[0].text for item in added.data] == ["And?"]
    (name,) = (item.id for item in added.data)
    assert sdk.conversations.items.retrieve(name, conversation_id=talk.id) == added.data[0]
    assert sdk.conversations.items.delete(name, conversation_id=talk.id).id == talk.id
    assert [item.content[0].text for item in sdk.conversations.items.list(talk.id).data] == ["Hello"]
    with pytest.raises(openai.NotFoundError):
        sdk.conversations.items.retrieve(name, conversation_id=talk.id)


def test_an_item_of_a_conversation_can_be_referred_to_within_it(sdk):
    talk = sdk.conversations.create(items=[{"role": "user", "content": "My dog is called Rex."}])
    (item,) = sdk.conversations.items.list(talk.id).data
    reply = sdk.responses.create(
        model=MODEL, conversation=talk.id, input=[{"type": "item_reference", "id": item.id}], tools=[]
    )
    assert "Rex" in reply.output_text


REFUSED = [
    ({"items": [{"role": "user"}]}, "items[0].content", "missing_required_parameter"),
    ({"items": [{"type": "no_item"}]}, "items[0].type", "invalid_value"),
    ({"items": [HELLO] * 21}, "items", "array_above_max_length"),
    ({"items": "Hello"}, "items", "invalid_type"),
    ({"metadata": {f"k{number}": "v" for number in range(17)}}, "metadata", "object_above_max_properties"),
    ({"extra_body": {"model": MODEL}}, "model", "unknown_parameter"),
]


@pytest.mark.parametrize(("members", "param", "code"), REFUSED, ids=str)
def test_a_conversation_that_cannot_be_is_refused(sdk, members, param, code):
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.conversations.create(**members)
    assert (caught.value.param, caught.value.code) == (param, code)


def test_nothing_cannot_be_added(sdk):
    talk = sdk.conversations.create()
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.conversations.items.create(talk.id, items=[])
    assert caught.value.code == "missing_required_parameter"


def test_an_unknown_conversation_cannot_be_continued(sdk):
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.responses.create(model=MODEL, conversation="conv_unknown", input="Hello")
    assert caught.value.response.headers["x-dragoman-rule"] == "stored"


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"conversation": "conv_1", "previous_response_id": "resp_1"}, "responses.one-state"),
        ({"conversation": "thread_1"}, "responses.state-id"),
        ({"previous_response_id": "chatcmpl-1"}, "responses.state-id"),
    ],
)
def test_a_state_that_cannot_be_is_refused_by_its_rule_before_it_is_looked_for(sdk, members, rule):
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model=MODEL, input="Hello", **members)
    assert caught.value.response.headers["x-dragoman-rule"] == rule
