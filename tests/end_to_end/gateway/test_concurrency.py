"""Requests in flight at once do not mix: every client gets the call of its own tool, by its own argument."""

import asyncio
import json
import re
from typing import Any

import httpx2
import pytest

MODELS = ["gem", "claude", "gpt", "resp"]
MANY = 200


def build_body(number: int, *, streamed: bool) -> dict[str, Any]:
    """A request that can only be answered by a call of this one tool."""
    schema = {"type": "object", "properties": {f"place_{number}": {"type": "string"}}, "required": [f"place_{number}"]}
    function = {"name": f"look_up_{number}", "description": f"Look up number {number}.", "parameters": schema}
    return {
        "model": MODELS[number % len(MODELS)],
        "messages": [{"role": "user", "content": f"Look up “City{number}”."}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": function["name"]}},
        "stream": streamed,
    }


def call_in(text: str, *, streamed: bool) -> tuple[str, str]:
    """Return the name and the arguments of the one call in a reply."""
    if not streamed:
        (call,) = json.loads(text)["choices"][0]["message"]["tool_calls"]
        return call["function"]["name"], call["function"]["arguments"]
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    pieces = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    return "".join(p.get("name", "") for p in pieces), "".join(p.get("arguments", "") for p in pieces)


def test_two_hundred_requests_at_once_each_get_their_own_call(serve):
    gateway = serve(simulate={"delay": 0.002})

    async def one(client: httpx2.AsyncClient, number: int) -> None:
        streamed = number % 8 < 4
        reply = await client.post(f"{gateway.base_url}/v1/chat/completions", json=build_body(number, streamed=streamed))
        assert reply.status_code == 200, reply.text
        name, arguments = call_in(reply.text, streamed=streamed)
        assert name == f"look_up_{number}"
        assert list(json.loads(arguments)) == [f"place_{number}"]

    async def steps() -> None:
        limits = httpx2.Limits(max_connections=MANY)
        async with httpx2.AsyncClient(limits=limits, timeout=60) as client:
            await asyncio.gather(*(one(client, number) for number in range(MANY)))

    asyncio.run(steps())
    assert len(gateway.simulator.requests) == MANY
    for seen in gateway.simulator.requests:
        assert len(set(re.findall(rb"(?:look_up_|place_|City)(\d+)", seen.body))) == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_two_conversations_with_different_tools_do_not_mix(gateway, streamed):
    async def talk(client: httpx2.AsyncClient, number: int) -> None:
        function = build_body(number, streamed=False)["tools"][0]["function"]
        first = {
            "model": "gem",
            "conversation": f"conv_mixed_{streamed}_{number}".lower(),
            "input": f"Look up “City{number}”.",
            "tools": [{"type": "function", **function}],
            "tool_choice": "required",
            "stream": streamed,
        }
        reply = await client.post(f"{gateway.base_url}/v1/responses", json=first)
        call = response_in(reply.text, streamed=streamed)["output"][-1]
        assert (call["type"], call["name"]) == ("function_call", f"look_up_{number}")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"number {number * 1111}"}
        second = {**first, "input": [result]}
        del second["tools"], second["tool_choice"]
        reply = await client.post(f"{gateway.base_url}/v1/responses", json=second)
        text = response_in(reply.text, streamed=streamed)["output"][-1]["content"][0]["text"]
        assert f"number {number * 1111}" in text

    async def steps() -> None:
        async with httpx2.AsyncClient(timeout=60) as client:
            await asyncio.gather(*(talk(client, number) for number in range(1, 9)))

    asyncio.run(steps())


def response_in(text: str, *, streamed: bool) -> dict[str, Any]:
    """Return the response object of a reply."""
    if not streamed:
        return json.loads(text)
    last = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")][-1]
    assert last["type"] == "response.completed", last
    return last["response"]
