"""Undocumented behaviour of real clients, as captured, against the running gateway."""

import asyncio
import json
import time
import warnings

import anthropic
import httpx2
import openai
import pytest
from anthropic import beta_tool

from oracles.clients import genai

ALL = ["gem", "claude", "gpt", "resp", "vgem", "vclaude", "assist"]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def post(gateway, path, body, headers=None):
    return httpx2.post(gateway.base_url + path, json=body, headers=headers or {})


def generation_requests(gateway, since=0):
    """The requests for generation that the simulator received."""
    return [seen.json() for seen in list(gateway.simulator.requests)[since:] if seen.method == "POST"]


def test_claude_codes_first_steps_are_answered(gateway):
    assert httpx2.head(f"{gateway.base_url}/api/hello").status_code == 200
    asked = {"model": "gem", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
    beta = {"anthropic-version": "2023-06-01", "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14"}
    assert post(gateway, "/v1/messages?beta=true", asked, beta).status_code == 200
    del asked["max_tokens"]
    assert post(gateway, "/v1/messages/count_tokens?beta=true", asked, beta).json()["input_tokens"] > 0


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_tool_runner_continues_without_a_thread_if_none_is_stored(gateway, model, streamed):
    calls = []

    @beta_tool
    def get_weather(city: str) -> str:
        """Get the weather.

        Args:
            city: the city
        """
        calls.append(city)
        return '{"temperature":72,"unit":"F"}'

    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
    asked = [{"role": "user", "content": "What is the weather in Tokyo?"}]
    runner = client.beta.messages.tool_runner(
        model=model, max_tokens=1000, messages=asked, tools=[get_weather], stream=streamed
    )
    last = runner.until_done()
    assert calls == ["Tokyo"]
    assert "72" in "".join(block.text for block in last.content if block.type == "text")


def test_a_continued_thread_is_rejected_with_the_error_from_which_the_sdks_recover(gateway):
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    asked = {"model": "gem", "max_tokens": 100, "thread": thread, "messages": [{"role": "user", "content": "go on"}]}
    result = post(gateway, "/v1/messages?beta=true", asked)
    assert result.status_code == 400
    assert result.json()["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_two_user_agents_are_no_reason_to_refuse(gateway):
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}).encode()
    head = (
        "POST /v1beta/models/gem:generateContent HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: a\r\nuser-agent: b\r\n"
        f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )

    async def steps():
        host, _, port = gateway.base_url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + body)
        result = await reader.read()
        writer.close()
        return result

    assert asyncio.run(steps()).startswith(b"HTTP/1.1 200")


def test_a_new_anthropic_sdk_shows_its_key_as_a_bearer(serve):
    from dragoman.config import KeyTable

    gateway = serve(keys=(KeyTable(key="secret", name="one"),))
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="secret", max_retries=0))
    client.messages.create(model="gem", max_tokens=100, messages=[{"role": "user", "content": "hello"}])
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, auth_token="secret", max_retries=0))  # noqa: S106
    client.messages.create(model="gem", max_tokens=100, messages=[{"role": "user", "content": "hello"}])


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("as_list", [False, True], ids=["one object", "a list"])
@pytest.mark.parametrize("member", ["parametersJsonSchema", "parameters_json_schema", "parameters"])
def test_gemini_tools_are_read_in_every_form_clients_write_them(gateway, model, as_list, member):
    tools = {"functionDeclarations": [{"name": "get_weather", "description": "Get it", member: WEATHER}]}
    asked = {
        "contents": [{"role": "user", "parts": [{"text": "What is the weather in Tokyo?"}]}],
        "tools": [tools] if as_list else tools,
    }
    result = post(gateway, f"/v1beta/models/{model}:generateContent", asked)
    assert result.status_code == 200, result.text
    parts = result.json()["candidates"][0]["content"]["parts"]
    assert [part["functionCall"]["args"] for part in parts if "functionCall" in part] == [{"city": "Tokyo"}]


@pytest.mark.parametrize("model", ALL)
def test_results_without_ids_belong_to_the_calls_in_their_order(gateway, model):
    call = {"name": "get_weather", "args": {"city": "Tokyo"}}
    asked = {
        "contents": [
            {"role": "user", "parts": [{"text": "What is the weather in Tokyo and Paris?"}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": call, "thoughtSignature": "skip_thought_signature_validator"},
                    {"functionCall": {**call, "args": {"city": "Paris"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "get_weather", "response": {"output": "71 degrees"}}},
                    {"functionResponse": {"name": "get_weather", "response": {"result": "64 degrees"}}},
                ],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "get_weather", "description": "Get it", "parameters": WEATHER}]}],
        "generationConfig": {"thinkingConfig": {"include_thoughts": True}},
    }
    before = len(gateway.simulator.requests)
    result = post(gateway, f"/v1beta/models/{model}:generateContent", asked)
    assert result.status_code == 200, result.text
    received = json.dumps(generation_requests(gateway, before)[-1])
    assert (
        received.index("Tokyo") < received.index("Paris") < received.index("71 degrees") < received.index("64 degrees")
    )


CALLS = {
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "user", "content": "What is the weather in Tokyo?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "72"},
                {"role": "user", "content": "Summarize"},
            ],
            "tools": [],
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "store": False,
            "tools": [],
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be short"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "weather?"}]},
                {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'},
                {"type": "function_call_output", "call_id": "call_1", "output": "72"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Summarize"}]},
            ],
        },
    ),
    "messages": (
        "/v1/messages",
        {
            "max_tokens": 100,
            "tools": [],
            "messages": [
                {"role": "user", "content": "weather?"},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "72"}]},
                {"role": "user", "content": "Summarize"},
            ],
        },
    ),
}


# What the vendor itself refuses is passed on untouched: Chat's an empty list.
@pytest.mark.parametrize(("client", "model"), [(c, m) for c in CALLS for m in ALL if (c, m) != ("chat", "gpt")])
def test_a_history_of_calls_needs_no_tools(gateway, client, model):
    path, body = CALLS[client]
    result = post(gateway, path, {**body, "model": model})
    assert result.status_code == 200, result.text


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("content", ["Note this", [{"type": "text", "text": "Note this"}]], ids=["words", "parts"])
def test_a_system_turn_inside_messages_is_accepted(gateway, model, content):
    asked = {
        "model": model,
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "and now?"},
            {"role": "system", "content": content},
        ],
    }
    before = len(gateway.simulator.requests)
    beta = {"anthropic-beta": "mid-conversation-tool-changes-2026-07-01,mid-conversation-system-2026-07-01"}
    result = post(gateway, "/v1/messages?beta=true", asked, beta)
    assert result.status_code == 200, result.text
    assert "Note this" in json.dumps(generation_requests(gateway, before)[-1])


def test_a_client_that_closes_right_after_the_last_event_has_not_left(gateway):
    asked = {"model": "gem", "input": "hello", "stream": True, "store": False}
    for _ in range(10):
        with httpx2.stream("POST", f"{gateway.base_url}/v1/responses", json=asked) as stream:
            for line in stream.iter_lines():
                if line == "event: response.completed":
                    break
        name = stream.headers["x-dragoman-exchange"]
        assert is_recorded(gateway, name)
        assert [record.outcome for record in gateway.records if record.id == name] == ["answered"]


def test_a_stream_that_is_slow_has_no_comments_for_gemini_clients(serve):
    gateway = serve(hold=0.05, heartbeat=0.05)
    model = "gemini/gemini-3.8-flash~slow-headers,delay=0.3"
    asked = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    result = post(gateway, f"/v1beta/models/{model}:streamGenerateContent?alt=sse", asked)
    assert result.status_code == 200
    assert not [line for line in result.text.splitlines() if line.startswith(":")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = gateway.open(genai.Client(api_key="any", http_options={"base_url": gateway.base_url}))
        assert "".join(chunk.text or "" for chunk in client.models.generate_content_stream(model=model, contents="hi"))


@pytest.mark.parametrize("model", ["gem", "vgem", "assist"])
def test_native_search_next_to_functions_is_sent_in_the_format_of_each_google_service(gateway, model):
    function = {"type": "function", "name": "get_weather", "parameters": WEATHER}
    asked = {"model": model, "input": "hello", "store": False, "tools": [{"type": "web_search"}, function]}
    before = len(gateway.simulator.requests)
    result = post(gateway, "/v1/responses", asked)
    assert result.status_code == 200, result.text
    assert "googleSearch" in json.dumps(generation_requests(gateway, before)[-1])


def test_unconfigured_model_names_reach_the_upstream_of_their_family(gateway):
    asked = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    assert post(gateway, "/v1/models/gemini-3.5-flash-lite:generateContent", asked).status_code == 200


def is_recorded(gateway, name):
    """Return whether there is a record with this id; the last may arrive a moment after its response."""
    deadline = time.monotonic() + 20
    while name not in [record.id for record in gateway.records] and time.monotonic() < deadline:
        time.sleep(0.01)
    return name in [record.id for record in gateway.records]


def test_responses_have_their_id_in_the_clients_format(gateway):
    client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))
    reply = client.chat.completions.create(model="gem", messages=[{"role": "user", "content": "hello"}])
    assert is_recorded(gateway, reply._request_id)
    reply = client.responses.create(model="gem", input="hello", store=False)
    assert is_recorded(gateway, reply._request_id)
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="unknown", messages=[{"role": "user", "content": "hello"}])
    assert is_recorded(gateway, refused.value.request_id)
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
    reply = client.messages.create(model="gem", max_tokens=100, messages=[{"role": "user", "content": "hello"}])
    assert is_recorded(gateway, reply._request_id)
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.messages.create(model="unknown", max_tokens=100, messages=[{"role": "user", "content": "hello"}])
    assert is_recorded(gateway, missing.value.request_id)
    assert is_recorded(gateway, missing.value.body["request_id"])
    with client.messages.stream(model="gem", max_tokens=100, messages=[{"role": "user", "content": "hello"}]) as stream:
        stream.until_done()
    assert is_recorded(gateway, stream.request_id)
