"""Every client on each simulated Chat-compatible server, which rejects what the real one does."""

import json
from base64 import b64encode
from collections.abc import Generator, Iterator
from typing import Any

import httpx2
import pytest

from dragoman.config import UpstreamTable
from dragoman.simulator.apis import SERVERS
from dragoman.simulator.runner import in_thread
from end_to_end.matrix import CLIENTS, MANNERS
from end_to_end.scenarios import IMAGE, SCENARIOS, THOUGHT, Scenario, script
from server.conftest import Gateway, run_server_gateway

MODELS = {
    "deepseek": "deepseek-v4-flash",
    "kimi": "kimi-k2.6",
    "glm": "glm-5.2",
    "qwen": "qwen3-max",
    "vllm": "Qwen/Qwen3-32B",
    "openrouter": "anthropic/claude-haiku-4.5",
}
ALWAYS_THINK = {"kimi": "kimi-k3", "glm": "glm-5.3"}
"""Models of the same servers with rules of their own."""
UNFORCED = {"deepseek", "kimi", "glm"}
"""Servers where no tool can be forced (DeepSeek takes it while it does not think), and which take no output schema."""
TARGETS = [*MODELS.items(), *ALWAYS_THINK.items()]
PLAYED = {
    name: next(one for one in SCENARIOS if one.name == name)
    for name in (
        "text",
        "parallel calls",
        "call with no arguments",
        "failed result",
        "reasoning + call",
        "reasoning across tool calls",
        "prompt caching",
        "named tool_choice",
        "none",
    )
}
MEMBERS = {"vllm": "reasoning", "openrouter": "reasoning"}
"""Where the thinking of a message is, unless in `reasoning_content`."""


@pytest.fixture(scope="module")
def gateway() -> Generator[Gateway]:
    with in_thread(script=script) as simulator:
        tables = {
            name: UpstreamTable(kind="openai", base_url=f"{simulator.base_url}/{name}/v1", server=name)
            for name in SERVERS
        }
        models = {f"alias-{model}": (f"{server}/{model}",) for server, model in TARGETS}
        with run_server_gateway(simulator, upstreams=tables, models=models) as found:
            yield found


PIXEL = f"data:image/png;base64,{b64encode(IMAGE).decode()}"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "name": "ada", "content": [{"type": "text", "text": "Look at it: json."}]},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}],
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "max_completion_tokens": 100,
            "seed": 7,
            "presence_penalty": 0.5,
            "frequency_penalty": 0.5,
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA, "strict": True}},
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "input": [
                {"role": "developer", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": PIXEL}],
                },
            ],
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}],
            "tool_choice": {"type": "function", "name": "f"},
            "parallel_tool_calls": False,
            "reasoning": {"effort": "xhigh"},
            "text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True}},
            "max_output_tokens": 100,
            "store": False,
        },
    ),
    "messages": (
        "/v1/messages",
        {
            "max_tokens": 3000,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Look."},
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": b64encode(IMAGE).decode(),
                            },
                        },
                    ],
                }
            ],
            "tools": [{"name": "f", "input_schema": SCHEMA, "strict": True}],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "thinking": {"type": "disabled"},
            "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
            "top_k": 3,
        },
    ),
    "gemini": (
        "/v1beta/models/{model}:generateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "Look."}]}],
            "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
            "generationConfig": {
                "thinkingConfig": {"thinkingBudget": 2000},
                "responseMimeType": "application/json",
                "responseJsonSchema": SCHEMA,
                "seed": 7,
                "topK": 3,
                "presencePenalty": 0.5,
                "maxOutputTokens": 3000,
            },
        },
    ),
}
"""Requests with everything that one of the servers refuses."""


@pytest.mark.parametrize("client", BODIES)
@pytest.mark.parametrize(("server", "model"), TARGETS, ids=[model for _, model in TARGETS])
def test_what_a_server_refuses_is_adapted_and_reported(gateway, server, model, client):
    path, body = BODIES[client]
    name = f"alias-{model}"
    if client != "gemini":
        body = {**body, "model": name}
    result = httpx2.post(gateway.base_url + path.format(model=name), json=body)
    assert result.status_code == 200, result.text
    received = gateway.simulator.requests[-1]
    assert (received.api, received.status) == (server, 200)
    losses = result.headers.get("x-dragoman-losses", "")
    assert ("/tool_choice" in losses or "/toolConfig" in losses) is (
        server in UNFORCED and (server, client) != ("deepseek", "messages")
    )

    prompt = json.dumps(received.json()["messages"])
    assert ("JSON Schema" in prompt) is (server in UNFORCED), "these servers take no output schema either"


def play(gateway: Gateway, client: str, target: str, scenario: Scenario, *, streamed: bool) -> Iterator[Any]:
    """Play a scenario, and yield each reply."""
    with httpx2.Client() as http:
        talk = CLIENTS[client].Client(gateway.base_url, http, target, scenario)
        reply = talk.turn(streamed=streamed)
        yield reply
        if scenario.results:
            if scenario.forgets:
                talk.forget()
            talk.answer(reply.calls, scenario.results)
            yield talk.turn(streamed=streamed)


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("target", TARGETS, ids=[model for _, model in TARGETS])
def test_a_server_accepts_what_a_client_sends(gateway, target, name, client, manner):
    server, model = target
    scenario, before = PLAYED[name], len(gateway.simulator.requests)
    first, *later = play(gateway, client, f"{server}/{model}", scenario, streamed=MANNERS[manner])
    assert first.text == scenario.answer.text
    assert [(call.name, call.arguments) for call in first.calls] == [
        (call.name, call.arguments) for call in scenario.answer.calls
    ]
    assert len({call.id for call in first.calls}) == len(first.calls)
    # vLLM says `stop` if the call was forced; a client of the same API gets its bytes.
    is_forced = (server, client, name) == ("vllm", "chat", "named tool_choice")
    assert first.finish == ("calls" if first.calls and not is_forced else "stop")
    assert min(first.tokens) > 0
    assert all(scenario.quoted in reply.text and reply.finish == "stop" for reply in later)
    received = list(gateway.simulator.requests)[before:]
    assert [(one.api, one.status, one.rule) for one in received] == [(server, 200, "")] * (1 + len(later))
    if not scenario.results:
        return
    (turn,) = (one for one in received[1].json()["messages"] if one["role"] == "assistant")
    if scenario.thinks and not scenario.forgets:
        assert turn[MEMBERS.get(server, "reasoning_content")] == THOUGHT
    if scenario.is_cached:
        assert later[0].cached > 1000
