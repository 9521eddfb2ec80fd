"""Conversations over Responses: what is kept, gone on from, shown and forgotten; with OpenAI's own SDK."""

import asyncio
import json
from uuid import uuid4

import openai
import pytest

from dragoman.config import KeyTable, SessionsTable
from server.responding import FLAT, MODELS, NESTED, OTHER, QUESTION, calls_of, create_response, result, send


@pytest.fixture
def client(gateway):
    return gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))


@pytest.fixture
def name():
    return f"c-{uuid4().hex}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("tool", [NESTED, FLAT], ids=["nested", "flat"])
def test_a_turn_may_send_only_the_result_of_a_call(client, name, model, stream, tool):
    body = {"model": model, "conversation": name}
    if tool is NESTED and stream:
        # The SDK's stream helper knows only its own form of tools.
        body["extra_body"] = {"tools": [tool]}
    else:
        body["tools"] = [tool]
    first = create_response(client, stream, **body, input=QUESTION, tool_choice="auto")
    (call,) = calls_of(first)
    assert call.name == "get_weather"
    assert json.loads(call.arguments) == {"city": "Tokyo"}
    assert first.conversation.id == name
    second = create_response(client, stream, model=model, conversation=name, input=[result(call)])
    assert "72" in second.output_text
    assert not calls_of(second)


@pytest.mark.parametrize("stream", [False, True])
def test_arguments_have_no_added_whitespace(client, stream):
    (call,) = calls_of(create_response(client, stream, model="gem", input=QUESTION, tools=[FLAT]))
    assert call.arguments == '{"city":"Tokyo"}'


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_gone_on_from_by_its_id(client, model, stream):
    first = create_response(client, stream, model=model, input=QUESTION, tools=[FLAT])
    (call,) = calls_of(first)
    second = create_response(client, stream, model=model, previous_response_id=first.id, input=[result(call)])
    assert "72" in second.output_text
    assert second.previous_response_id == first.id
    assert second.store is True


def test_two_branches_go_on_from_one_response(client):
    first = client.responses.create(model="gem", input=QUESTION, tools=[FLAT])
    (call,) = calls_of(first)
    warm, cold = (
        client.responses.create(
            model="gem", previous_response_id=first.id, input=[result(call, f'{{"temp":{degrees}}}')]
        )
        for degrees in (30, -5)
    )
    assert "30" in warm.output_text
    assert "-5" in cold.output_text
    assert "30" not in cold.output_text


def test_text_may_come_with_the_result(client, name):
    (call,) = calls_of(client.responses.create(model="gem", conversation=name, input=QUESTION, tools=[FLAT]))
    output = {"role": "user", "content": "And say it in Fahrenheit."}
    second = client.responses.create(model="gem", conversation=name, input=[result(call), output])
    assert second.output_text


def test_a_result_for_a_call_that_was_never_made_is_refused_by_its_id(client, name):
    client.responses.create(model="gem", conversation=name, input="Hello")
    with pytest.raises(openai.BadRequestError, match="call_nowhere") as caught:
        client.responses.create(
            model="gem",
            conversation=name,
            input=[{"type": "function_call_output", "call_id": "call_nowhere", "output": "1"}],
        )
    assert caught.value.param == "input[0]"


def test_signatures_of_calls_are_sent_back_to_their_issuer(gateway, client, name):
    (call,) = calls_of(client.responses.create(model="gem", conversation=name, input=QUESTION, tools=[FLAT]))
    client.responses.create(model="gem", conversation=name, input=[result(call)])
    output = send(gateway)["contents"][1]["parts"][0]
    assert output["functionCall"]["name"] == "get_weather"
    assert output["thoughtSignature"].startswith("ZHJhZ29tYW4tc2lt")


def test_sent_tools_replace_the_stored_ones_and_none_clear_them(gateway, client, name):
    client.responses.create(model="gpt", conversation=name, input="Hello", tools=[FLAT])
    client.responses.create(model="gpt", conversation=name, input="Hello again")
    assert [tool["function"]["name"] for tool in send(gateway)["tools"]] == ["get_weather"]
    client.responses.create(model="gpt", conversation=name, input="Hello again, then", tools=[OTHER])
    assert [tool["function"]["name"] for tool in send(gateway)["tools"]] == ["get_time"]
    client.responses.create(model="gpt", conversation=name, input="Hello for the third time", tools=[])
    assert not send(gateway).get("tools")
    client.responses.create(model="gpt", conversation=name, input="Hello for the fourth time")
    assert not send(gateway).get("tools")


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "get_weather"}], ids=["required", "named"])
def test_a_stored_choice_does_not_force_a_call_on_the_turn_with_its_result(gateway, client, name, choice):
    first = client.responses.create(model="gpt", conversation=name, input=QUESTION, tools=[FLAT], tool_choice=choice)
    (call,) = calls_of(first)
    second = client.responses.create(model="gpt", conversation=name, input=[result(call)])
    assert send(gateway).get("tool_choice", "auto") == "auto"
    assert "72" in second.output_text
    third = client.responses.create(model="gpt", conversation=name, input="And in Paris?")
    assert send(gateway)["tool_choice"] != "auto"
    assert calls_of(third)


def test_the_gateway_keeps_the_state_on_an_openai_upstream_too(gateway, client, name):
    first = client.responses.create(model="resp", conversation=name, input=QUESTION, tools=[FLAT])
    asked = send(gateway)
    assert asked["store"] is False
    assert "conversation" not in asked
    assert "reasoning.encrypted_content" in asked["include"]
    assert first.store is True


def test_an_identical_turn_that_is_sent_again_is_not_stored_twice(client, name):
    (call,) = calls_of(client.responses.create(model="gem", conversation=name, input=QUESTION, tools=[FLAT]))
    second = client.responses.create(model="gem", conversation=name, input=[result(call)])
    again = client.responses.create(model="gem", conversation=name, input=[result(call)])
    streamed = create_response(client, stream=True, model="gem", conversation=name, input=[result(call)])
    assert (again.id, again.output_text) == (second.id, second.output_text) == (streamed.id, streamed.output_text)
    items = list(client.conversations.items.list(name, order="asc"))
    assert [item.type for item in items if item.type != "reasoning"] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]


@pytest.mark.parametrize("header", ["idempotency-key", "x-stainless-retry-count"])
def test_a_client_that_marks_a_retry_gets_the_answer_it_missed(client, name, header):
    asked = {"model": "gem", "conversation": name, "input": "Hello", "extra_headers": {header: "1"}}
    first, second = client.responses.create(**asked), client.responses.create(**asked)
    assert first.id == second.id
    assert len(list(client.conversations.items.list(name))) == 2


def test_the_same_text_sent_twice_is_two_turns(client, name):
    first, second = (client.responses.create(model="gem", conversation=name, input="Go on.") for _ in range(2))
    assert first.id != second.id
    assert len([item for item in client.conversations.items.list(name) if item.type == "message"]) == 4


def test_what_is_not_to_be_stored_is_not(client):
    response = client.responses.create(model="gem", input="Hello", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)
    assert response.store is False


def test_a_response_is_shown_listed_and_deleted_by_its_id(client):
    response = client.responses.create(model="gem", input=QUESTION, tools=[FLAT])
    assert client.responses.retrieve(response.id) == response
    (item,) = client.responses.input_items.list(response.id)
    assert item.content[0].text == QUESTION
    with client.responses.retrieve(response.id, stream=True) as events:
        (last,) = [event for event in events if event.type == "response.completed"]
    assert last.response.output == response.output
    with pytest.raises(openai.BadRequestError, match="synchronous"):
        client.responses.cancel(response.id)
    client.responses.delete(response.id)
    for look in (client.responses.retrieve, client.responses.input_items.list, client.responses.delete):
        with pytest.raises(openai.NotFoundError):
            look(response.id)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="gem", previous_response_id=response.id, input="Hello")
    assert caught.value.code == "previous_response_not_found"


def test_a_streamed_response_is_kept_as_it_was_streamed(client):
    streamed = create_response(client, stream=True, model="gem", input=QUESTION, tools=[FLAT])
    kept = client.responses.retrieve(streamed.id)
    assert [item.model_dump() for item in kept.output] == [
        item.model_dump(exclude={"parsed_arguments"}) for item in streamed.output
    ]
    assert kept.usage == streamed.usage


def test_a_conversation_is_made_filled_changed_and_deleted(client):
    made = client.conversations.create(
        metadata={"topic": "weather"}, items=[{"type": "message", "role": "user", "content": "My name is Ada."}]
    )
    assert client.conversations.retrieve(made.id) == made
    client.conversations.update(made.id, metadata={"topic": "names"})
    assert client.conversations.retrieve(made.id).metadata == {"topic": "names"}
    added = client.conversations.items.create(made.id, items=[{"type": "message", "role": "user", "content": "Hi"}])
    response = client.responses.create(model="gem", conversation=made.id, input="Who am I?")
    items = list(client.conversations.items.list(made.id, order="asc", limit=1))
    texts = [item.content[0].text for item in items]
    assert texts[:3] == ["My name is Ada.", "Hi", "Who am I?"]
    assert items[-1].id == response.output[-1].id
    assert client.conversations.items.retrieve(added.data[0].id, conversation_id=made.id).content[0].text == "Hi"
    client.conversations.items.delete(added.data[0].id, conversation_id=made.id)
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(added.data[0].id, conversation_id=made.id)
    assert client.conversations.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(made.id)


def test_an_item_that_is_only_referred_to_is_found(gateway, client):
    first = client.responses.create(model="gpt", input=QUESTION, tools=[FLAT])
    (call,) = calls_of(first)
    referred = [{"type": "item_reference", "id": item.id} for item in first.output]
    output = {"role": "user", "content": QUESTION}
    second = client.responses.create(model="gpt", input=[output, *referred, result(call)], tools=[FLAT])
    assert "72" in second.output_text
    assert send(gateway)["messages"][1]["tool_calls"][0]["id"] == call.call_id
    with pytest.raises(openai.NotFoundError, match="rs_nowhere"):
        client.responses.create(model="gpt", input=[{"type": "item_reference", "id": "rs_nowhere"}])


def test_a_conversation_and_a_previous_response_exclude_each_other(client, name):
    first = client.responses.create(model="gem", input="Hello")
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="gem", conversation=name, previous_response_id=first.id, input="Hello")


def test_two_conversations_with_different_tools_in_flight_never_mix(gateway):
    async def turn(client, number, stream):
        tool = {**FLAT, "name": f"get_weather_{number}"}
        body = {"model": "gem", "conversation": f"mix-{uuid4().hex}", "tools": [tool]}
        if stream:
            async with client.responses.stream(**body, input=QUESTION) as events:
                first = await events.get_final_response()
        else:
            first = await client.responses.create(**body, input=QUESTION)
        (call,) = calls_of(first)
        assert call.name == tool["name"]
        second = await client.responses.create(
            model="gem", conversation=body["conversation"], input=[result(call, f'{{"temp":{1000 + number}}}')]
        )
        assert str(1000 + number) in second.output_text

    async def all_at_once():
        async with openai.AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0) as client:
            await asyncio.gather(*(turn(client, number, number % 2) for number in range(30)))

    asyncio.run(all_at_once())


def test_of_two_concurrent_turns_in_one_conversation_one_gets_a_conflict(gateway, name):
    async def turns():
        async with openai.AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0) as client:
            body = {"model": "gem", "conversation": name}
            asked = (client.responses.create(**body, input=f"Hello {number}") for number in range(8))
            answers = await asyncio.gather(*asked, return_exceptions=True)
            return answers, [item async for item in client.conversations.items.list(name)]

    answers, items = asyncio.run(turns())
    failed = [answer for answer in answers if isinstance(answer, BaseException)]
    assert len(failed) < len(answers)
    assert all(isinstance(answer, openai.ConflictError) for answer in failed)
    assert len([item for item in items if item.type == "message"]) == 2 * (len(answers) - len(failed))


def test_what_one_key_keeps_another_cannot_see(serve):
    gateway = serve(keys=(KeyTable(key="a", name="ann"), KeyTable(key="b", name="bob")))
    ann, bob = (
        gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key=key, max_retries=0)) for key in "ab"
    )
    response = ann.responses.create(model="gem", input="Hello", conversation="shared-name")
    with pytest.raises(openai.NotFoundError):
        bob.responses.retrieve(response.id)
    with pytest.raises(openai.NotFoundError):
        bob.conversations.retrieve("shared-name")
    bob.responses.create(model="gem", input="Good day", conversation="shared-name")
    assert len(list(ann.conversations.items.list("shared-name"))) == 2


def test_the_state_is_left_to_the_upstream_where_that_is_configured(serve, tmp_path):
    gateway = serve(sessions=SessionsTable(url=f"sqlite:///{tmp_path}/s.db", state="upstream"))
    client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))
    first = client.responses.create(model="resp", input="Hello")
    client.responses.create(model="resp", input="Hello again", previous_response_id=first.id)
    assert send(gateway)["previous_response_id"] == first.id
