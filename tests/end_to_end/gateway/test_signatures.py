"""Clients that do not bring signatures back: the gateway keeps them, for each owner, also over a restart."""

import json

import anthropic
import openai
import pytest

from dragoman.config import KeyTable, SessionsTable

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Get it", "parameters": SCHEMA}}
QUESTION = {"role": "user", "content": "What is the weather in Tokyo and in Paris?"}
SKIPPED = "skip_thought_signature_validator"
KEYS = (KeyTable(key="a", name="ann"), KeyTable(key="b", name="bob"))


def chat(gateway, key="k"):
    return gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key=key, max_retries=0))


def request_call(client, model="gem", *, stream=False):
    if not stream:
        return client.chat.completions.create(model=model, messages=[QUESTION], tools=[CHAT_TOOL]).choices[0].message
    with client.chat.completions.stream(model=model, messages=[QUESTION], tools=[CHAT_TOOL]) as events:
        return events.get_final_completion().choices[0].message


def forgetful(message):
    """Render a reply as a client that keeps only known fields and reformats arguments."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": call.function.name,
                "arguments": json.dumps(json.loads(call.function.arguments), indent=1),
            },
        }
        for call in message.tool_calls
    ]
    results = [{"role": "tool", "tool_call_id": call.id, "content": '{"temp":72}'} for call in message.tool_calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def go_on(client, message, model="gem"):
    return client.chat.completions.create(model=model, messages=[QUESTION, *forgetful(message)], tools=[CHAT_TOOL])


def signatures(gateway):
    """The signatures of the calls that the simulator was sent last."""
    body = json.loads(gateway.simulator.requests[-1].body)
    contents = body.get("contents") or body["request"]["contents"]
    return [part.get("thoughtSignature") for turn in contents for part in turn["parts"] if "functionCall" in part]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["gem", "vgem", "assist"])
def test_a_chat_client_that_drops_signatures_gets_them_back_on_its_calls(gateway, model, stream):
    client = chat(gateway)
    message = request_call(client, model, stream=stream)
    given = [
        call.extra_content["google"]["thought_signature"]
        for call in message.tool_calls
        if hasattr(call, "extra_content")
    ]
    result = go_on(client, message, model)
    assert "72" in result.choices[0].message.content
    assert signatures(gateway)[0] == given[0] != SKIPPED
    assert [one for one in signatures(gateway) if one is not None] == given


@pytest.mark.parametrize("stream", [False, True])
def test_a_messages_client_that_drops_thoughts_gets_signatures_back_on_its_calls(gateway, stream):
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="k", max_retries=0))
    tool = {"name": "get_weather", "description": "Get it", "input_schema": SCHEMA}
    body = {"model": "gem", "max_tokens": 1000, "tools": [tool]}
    if stream:
        with client.messages.stream(**body, messages=[QUESTION]) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**body, messages=[QUESTION])
    calls = [block for block in message.content if block.type == "tool_use"]
    kept = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in calls]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": '{"temp":72}'} for call in calls]
    history = [QUESTION, {"role": "assistant", "content": kept}, {"role": "user", "content": results}]
    client.messages.create(**body, messages=history)
    assert signatures(gateway)[0] not in {None, SKIPPED}


def test_signatures_outlive_the_gateway_that_kept_them(serve, tmp_path):
    sessions = SessionsTable(url=f"sqlite:///{tmp_path}/s.db")
    first, second = serve(sessions=sessions), serve(sessions=sessions)
    message = request_call(chat(first))
    go_on(chat(second), message)
    assert signatures(second)[0] not in {None, SKIPPED}


def test_another_owner_gets_none_of_them(serve):
    gateway = serve(keys=KEYS)
    message = request_call(chat(gateway, "a"))
    go_on(chat(gateway, "b"), message)
    assert signatures(gateway)[0] == SKIPPED
    go_on(chat(gateway, "a"), message)
    assert signatures(gateway)[0] not in {None, SKIPPED}


def test_a_different_call_with_the_same_id_gets_no_signature(gateway):
    client = chat(gateway)
    message = request_call(client)
    history = forgetful(message)
    history[0]["tool_calls"][0]["function"]["arguments"] = '{"city":"Oslo"}'
    client.chat.completions.create(model="gem", messages=[QUESTION, *history], tools=[CHAT_TOOL])
    assert signatures(gateway)[0] == SKIPPED


def test_a_long_history_keeps_its_signatures_turn_after_turn(gateway):
    client = chat(gateway)
    history = [QUESTION]
    for number in range(4):
        message = client.chat.completions.create(model="gem", messages=history, tools=[CHAT_TOOL]).choices[0].message
        history += forgetful(message)
        history[-1]["content"] = json.dumps({"temp": 72, "notes": "x" * 40_000})
        answer = client.chat.completions.create(model="gem", messages=history, tools=[CHAT_TOOL]).choices[0].message
        assert SKIPPED not in signatures(gateway)
        assert len([one for one in signatures(gateway) if one]) == number + 1
        history += [{"role": "assistant", "content": answer.content}, QUESTION]


def br_back(message):
    """Write a reply as a client does that sends all it was given."""
    results = [{"role": "tool", "tool_call_id": call.id, "content": '{"temp":72}'} for call in message.tool_calls]
    return [QUESTION, message.to_dict(), *results]


def test_googles_signatures_are_removed_and_reported_if_a_chat_upstream_does_not_know_them(gateway):
    client = chat(gateway)
    history = br_back(request_call(client))
    assert "thought_signature" in json.dumps(history)
    reply = client.chat.completions.with_raw_response.create(model="gpt", messages=history, tools=[CHAT_TOOL])
    sent = json.loads(gateway.simulator.requests[-1].body)
    assert "extra_content" not in json.dumps(sent)
    assert sent["messages"][1]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert "/messages/1/tool_calls/0/extra_content: " in reply.headers["x-dragoman-losses"]
