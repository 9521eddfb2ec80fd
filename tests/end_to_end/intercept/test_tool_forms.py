"""Tools and results of other forms: free-form tools, images and failures in results, a client of Vertex."""

import json

import anthropic
import httpx2
import openai
import pytest

from intercept.clients import CITY, MODEL, PROMPT, Caller, Client, last_request
from intercept.surroundings import between, is_awaited, until

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def wait(pool, middle, session, work, **asked):
    waiting = pool.submit(work, **asked)
    until(lambda: is_awaited(middle, "me", session) or waiting.done())
    return waiting


def test_a_free_form_tool_is_called_with_a_text_and_answered_as_such(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@free")
    sdk = middle.client(openai.OpenAI, "/v1")
    asked = {"model": MODEL, "conversation": "me:free", "tools": [{"type": "custom", "name": "shell"}]}
    waiting = wait(pool, middle, "free", sdk.responses.create, input="go", **asked)
    client.say("call shell")
    call = waiting.result(10).output[-1]
    assert (call.type, call.name) == ("custom_tool_call", "shell")
    result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "done"}
    waiting = wait(pool, middle, "free", sdk.responses.create, input=[result], **asked)
    assert "done" in client.say(PROMPT)
    assert "done" in waiting.result(10).output_text
    assert last_request(simulator)["contents"][-1]["parts"][0]["functionResponse"]["name"] == "shell"


def test_images_and_failures_are_in_the_results_they_belong_to(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@seen")
    tools = [{"name": name, "input_schema": CITY} for name in ("one", "two")]
    sdk = middle.client(anthropic.Anthropic)
    asked = {"model": MODEL, "max_tokens": 500, "tools": tools}
    asked["extra_headers"] = {"x-dragoman-conversation": "me:seen"}
    begun = [{"role": "user", "content": "go"}]
    waiting = wait(pool, middle, "seen", sdk.messages.create, messages=begun, **asked)
    client.say("call one, two")
    output = waiting.result(10).content
    calls = [block for block in output if block.type == "tool_use"]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    results = [
        {"type": "tool_result", "tool_use_id": calls[0].id, "content": [{"type": "text", "text": "look"}, image]},
        {"type": "tool_result", "tool_use_id": calls[1].id, "content": "no luck", "is_error": True},
    ]
    history = [*begun, {"role": "assistant", "content": output}, {"role": "user", "content": results}]
    waiting = wait(pool, middle, "seen", sdk.messages.create, messages=history, **asked)
    client.say(PROMPT)
    waiting.result(10)
    result = last_request(simulator)["contents"][-1]["parts"]
    assert [part["functionResponse"]["name"] for part in result] == ["one", "two"]
    assert PIXEL in json.dumps(result[0])
    assert "no luck" in json.dumps(result[1])


def test_a_client_of_vertex_is_served_by_the_same_rules(middle, pool, simulator, monkeypatch):
    place = f"/v1beta1/projects/p/locations/global/publishers/google/models/{MODEL}"
    monkeypatch.setattr(Client, "path", property(lambda _: f"{place}:streamGenerateContent?alt=sse"))
    client = Client(f"{middle.base_url}/intercept/me@vertex", "events")
    monkeypatch.setattr(client, "bearer", True)
    caller = Caller(middle, "chat", "me:vertex", {"look": CITY}, streamed=True)
    waiting = wait(pool, middle, "vertex", caller.ask, prompt="go")
    client.say("call look")
    _, calls = waiting.result(10)
    assert [one["name"] for one in calls] == ["look"]
    waiting = wait(pool, middle, "vertex", caller.answer, results=[(calls[0], "rain")])
    assert "rain" in client.say(PROMPT)
    assert "rain" in waiting.result(10)[0]
    assert "functionResponse" in last_request(simulator)["contents"][-1]["parts"][0]


ARGUMENTS = r'{ "city" : "Z\u00fcrich", "n":1.0 , "big": 12345678901234567890123, "e":1e2}'
PART = '{"functionCall":{"name":"look","args":ARGUMENTS}}'.replace("ARGUMENTS", ARGUMENTS)
REPLY = f'{{"candidates":[{{"content":{{"role":"model","parts":[{PART}]}},"finishReason":"STOP"}}]}}'
PROMPTED, FUNCTION = {"role": "user", "content": "go"}, {"name": "look", "parameters": CITY}
ASKED = {
    "/v1/chat/completions": {"messages": [PROMPTED], "tools": [{"type": "function", "function": FUNCTION}]},
    "/v1/responses": {"input": "go", "tools": [{"type": "function", **FUNCTION}]},
    "/v1/messages": {"max_tokens": 9, "messages": [PROMPTED], "tools": [{"name": "look", "input_schema": CITY}]},
}


@pytest.fixture(scope="module")
def raw_middle(server, tmp_path_factory):
    entries = {"me": {"upstream": "google"}}
    with between(server.base_url, tmp_path_factory.mktemp("raw"), intercept=entries) as one:
        yield one


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", ASKED)
def test_the_arguments_of_a_call_reach_the_caller_in_the_models_own_bytes(server, raw_middle, pool, path, streamed):
    async def answer(exchange):
        await exchange.send(200, {"content-type": "application/json"}, REPLY.encode())

    server.answer = answer
    session = f"{path.rpartition('/')[2]}-{streamed}"
    body = {"model": MODEL, **ASKED[path], "stream": streamed}
    headers = {"x-dragoman-conversation": f"me:{session}"}
    waiting = pool.submit(httpx2.post, raw_middle.base_url + path, json=body, headers=headers, timeout=20)
    until(lambda: is_awaited(raw_middle, "me", session) or waiting.done())
    client = Client(f"{raw_middle.base_url}/intercept/me@{session}")
    client.send(client.request("hi"))
    received = waiting.result(10).text
    quoted = json.dumps(ARGUMENTS)[1:-1]
    assert ARGUMENTS in received or quoted in received, received
