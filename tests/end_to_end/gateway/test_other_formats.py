"""A body of Responses at Chat's path, a body of Chat at that of Responses, and tools in the other format."""

import json

import httpx2
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from dragoman.simulator import Answer, Call, Received

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FLAT = {"type": "function", "name": "get_weather", "description": "Weather.", "parameters": SCHEMA, "strict": False}
NESTED = {"type": "function", "function": {name: value for name, value in FLAT.items() if name != "type"}}
CUSTOM = {
    "type": "custom",
    "name": "patch",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"},
}
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
HISTORY = [
    {"role": "user", "content": "Weather?"},
    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Bern"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
]
MESSAGES = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Bern"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
]
MODELS = ["gpt", "resp", "claude", "gem"]


def script(received: Received) -> Answer:
    if any(turn.results for turn in received.request.turns):
        return Answer(text="It rains.")
    call = Call(id="call_" + "0" * 20, name="get_weather", arguments={"city": "Oslo"})
    return Answer(calls=(call,), end="calls")


@pytest.fixture(scope="module")
def served():
    from dragoman.simulator.runner import in_thread
    from server.conftest import run_server_gateway

    with in_thread(script=script) as simulator, run_server_gateway(simulator) as gateway:
        yield gateway


def post(gateway, path, **body):
    return httpx2.post(gateway.base_url + path, json=body)


def events(reply):
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("model", MODELS)
def test_a_body_of_responses_at_chats_path_gets_a_chat_reply(served, model):
    body = {"model": model, "input": "Weather?", "instructions": "Be brief.", "tools": [FLAT], "tool_choice": "auto"}
    reply = post(served, CHAT, **body)
    assert reply.status_code == 200, reply.text
    message = ChatCompletion.model_validate(reply.json()).choices[0].message
    assert [call.function.name for call in message.tool_calls] == ["get_weather"]
    assert json.loads(message.tool_calls[0].function.arguments) == {"city": "Oslo"}
    second = post(served, CHAT, model=model, input=HISTORY, tools=[FLAT])
    assert ChatCompletion.model_validate(second.json()).choices[0].message.content == "It rains."


@pytest.mark.parametrize("model", MODELS)
def test_a_body_of_responses_at_chats_path_gets_a_chat_stream(served, model):
    reply = post(served, CHAT, model=model, input=HISTORY, tools=[FLAT], stream=True)
    chunks = [ChatCompletionChunk.model_validate(event) for event in events(reply)]
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "It rains."
    assert reply.text.rstrip().endswith("data: [DONE]")


@pytest.mark.parametrize("model", MODELS)
def test_a_body_of_chat_at_the_path_of_responses_gets_its_reply(served, model):
    reply = post(served, RESPONSES, model=model, messages=MESSAGES[:1], tools=[NESTED])
    assert reply.status_code == 200, reply.text
    (call,) = [item for item in Response.model_validate(reply.json()).output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Oslo"})
    second = post(served, RESPONSES, model=model, messages=MESSAGES, tools=[NESTED])
    assert Response.model_validate(second.json()).output_text == "It rains."


@pytest.mark.parametrize("model", MODELS)
def test_a_body_of_chat_at_the_path_of_responses_gets_its_stream(served, model):
    reply = post(served, RESPONSES, model=model, messages=MESSAGES, tools=[NESTED], stream=True)
    found = events(reply)
    assert found[0]["type"] == "response.created"
    assert Response.model_validate(found[-1]["response"]).output_text == "It rains."


def test_errors_have_the_form_of_the_path_and_pointers_into_the_body(served):
    wrong = post(served, CHAT, model="claude", input=[{"type": "function_call_output", "output": "x"}])
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "call_id" in wrong.json()["error"]["message"]
    stored = post(served, CHAT, model="claude", input="Go.", previous_response_id="resp_1")
    assert stored.status_code == 400
    wrong = post(served, RESPONSES, model="claude", messages=[{"role": "tool", "content": 5}])
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "invalid_request_error")


def test_what_the_other_format_cannot_express_is_reported_and_refused_in_strict_mode(served):
    search = {"type": "file_search", "vector_store_ids": ["v"]}
    reply = post(served, CHAT, model="claude", input=HISTORY, tools=[FLAT, search])
    assert reply.status_code == 200
    assert "/tools/1" in reply.headers["x-dragoman-losses"]
    url = served.base_url + CHAT
    strict = {"x-dragoman-strict": "true"}
    body = {"model": "claude", "input": "Go.", "tools": [search]}
    assert httpx2.post(url, json=body, headers=strict).status_code == 400


@pytest.mark.parametrize("model", MODELS)
def test_flat_tools_in_a_chat_body_are_read_as_tools(served, model):
    choice = {"type": "function", "name": "get_weather"}
    body = {"model": model, "messages": MESSAGES[:1], "tools": [FLAT], "tool_choice": choice}
    reply = post(served, CHAT, **body)
    assert reply.status_code == 200, reply.text
    message = ChatCompletion.model_validate(reply.json()).choices[0].message
    assert [call.function.name for call in message.tool_calls] == ["get_weather"]


def test_flat_free_form_tools_and_allowed_tools_are_read_too(served):
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}
    body = {"model": "gpt", "messages": MESSAGES[:1], "tools": [CUSTOM, FLAT], "tool_choice": allowed}
    assert post(served, CHAT, **body).status_code == 200
    sent = json.loads(served.simulator.requests[-1].body)
    grammar = {"syntax": "lark", "definition": "start: /a/"}
    assert sent["tools"][0]["custom"] == {"name": "patch", "format": {"type": "grammar", "grammar": grammar}}
    assert sent["tool_choice"]["allowed_tools"]["tools"] == [{"type": "function", "function": {"name": "get_weather"}}]


def test_a_body_with_the_history_of_another_vendor_or_with_none_is_not_converted(served):
    for path, body in ((CHAT, {"contents": []}), (CHAT, {}), (RESPONSES, {"contents": []})):
        before = len(served.simulator.requests)
        reply = post(served, path, model="claude", **body)
        assert reply.status_code in (200, 400)
        assert b"contents" not in b"".join(request.body for request in list(served.simulator.requests)[before:])
