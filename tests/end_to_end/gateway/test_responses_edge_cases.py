"""Conversations over Responses that take an unusual way: open calls, repeated questions, odd names, blocked prompts."""

import asyncio
import contextlib
import json
from uuid import uuid4

import openai
import pytest

from dragoman.config import SessionsTable, UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from server.responding import FLAT, MODELS, QUESTION, calls_of, create_response, result


@pytest.fixture
def client(gateway):
    return gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))


@pytest.fixture
def name():
    return f"c-{uuid4().hex}"


@pytest.mark.parametrize("model", MODELS)
def test_a_call_without_a_result_does_not_end_its_conversation(client, name, model):
    client.responses.create(model=model, conversation=name, input=QUESTION, tools=[FLAT])
    assert client.responses.create(model=model, conversation=name, input="Never mind. Hello!").output_text
    assert client.responses.create(model=model, conversation=name, input="Hello again!").output_text


@pytest.mark.parametrize("model", MODELS)
def test_results_of_parallel_calls_may_come_in_two_turns(client, name, model):
    asked = "What is the weather in Tokyo and in Paris?"
    calls = calls_of(client.responses.create(model=model, conversation=name, input=asked, tools=[FLAT]))
    for call in calls:
        answer = client.responses.create(model=model, conversation=name, input=[result(call)])
    assert answer.output_text


@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_while_a_call_is_open_does_not_create_a_second_turn(client, name, stream):
    body = {"model": "gem", "conversation": name, "input": QUESTION, "tools": [FLAT]}
    first, second, third = (create_response(client, stream, **body) for _ in range(3))
    assert calls_of(first)[0].call_id == calls_of(second)[0].call_id == calls_of(third)[0].call_id
    assert len([item for item in client.conversations.items.list(name) if item.type == "message"]) == 1


def test_a_prompt_with_other_options_is_another_turn(client, name):
    (call,) = calls_of(client.responses.create(model="gem", conversation=name, input=QUESTION, tools=[FLAT]))
    body = {"model": "gem", "conversation": name, "input": [result(call)]}
    short = client.responses.create(**body, max_output_tokens=20)
    long = client.responses.create(**body, max_output_tokens=2000)
    assert short.id != long.id


def test_a_history_that_is_sent_again_to_a_conversation_is_known(client, name):
    output = [{"role": "user", "content": QUESTION}]
    first = client.responses.create(model="gem", conversation=name, input=output, tools=[FLAT])
    output += [item.model_dump(exclude_none=True) for item in first.output]
    output.append(result(calls_of(first)[0]))
    assert "72" in client.responses.create(model="gem", conversation=name, input=output).output_text
    assert len([item for item in client.conversations.items.list(name) if item.type == "function_call"]) == 1


@pytest.mark.parametrize("odd", ["a/b", "caf\u00e9 42", "50%", "x?y=1"])
def test_a_conversation_may_have_any_name(client, odd):
    named = f"{odd} {uuid4().hex}"
    client.responses.create(model="gem", conversation=named, input="Hello")
    assert client.conversations.retrieve(named).id == named
    assert len(list(client.conversations.items.list(named))) == 2
    assert client.conversations.delete(named).deleted


@pytest.mark.parametrize("output", [5, True])
def test_an_input_that_is_none_is_refused(client, output):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="gem", input=output)
    assert caught.value.param == "input"


def test_a_prompt_that_was_blocked_leaves_nothing_in_its_conversation(client, name):
    client.responses.create(model="gem", conversation=name, input="Hello")
    for stream in (False, True):
        with contextlib.suppress(openai.APIError):
            create_response(
                client, stream, model="gemini/gemini-3.8-flash~blocked", conversation=name, input="Bad words"
            )
    assert len(list(client.conversations.items.list(name))) == 2


def test_the_sdk_may_retry_after_a_conflict(gateway, name):
    async def turns():
        async with openai.AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=20) as client:
            body = {"model": "gem", "conversation": name}
            asked = (client.responses.create(**body, input=f"Hello {number}") for number in range(4))
            await asyncio.gather(*asked)
            return [item async for item in client.conversations.items.list(name)]

    assert len([item for item in asyncio.run(turns()) if item.type == "message"]) == 8


async def repeat_ids(exchange: Exchange) -> None:
    """An upstream whose replies all have the same ids."""
    text = {"type": "output_text", "text": "Hm.", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    reply = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": [message],
    }
    await exchange.send(200, {"content-type": "application/json"}, json.dumps(reply).encode())


def test_items_have_unique_ids_though_the_upstream_repeats_its_own(serve, name, tmp_path):
    with run_in_thread(lambda: listen(repeat_ids), "upstream") as upstream:
        table = UpstreamTable(kind="openai-responses", base_url=f"{upstream.base_url}/v1")
        sessions = SessionsTable(url=f"sqlite:///{tmp_path}/sessions.db")
        gateway = serve(upstreams={"same": table}, models={"m": ("same/gpt-5.2",)}, sessions=sessions)
        with openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0) as client:
            for number in range(4):
                client.responses.create(model="m", conversation=name, input=f"Hello {number}")
            items = list(client.conversations.items.list(name, limit=2))
            assert len({item.id for item in items}) == len(items) == 8
            last = client.conversations.items.retrieve(items[0].id, conversation_id=name)
            assert (last.role, last.content[0].text) == ("assistant", "Hm.")
