"""Chat-compatible servers behind a running gateway: their streams reach every client, and they get their own form."""

import json
from typing import Any

import httpx2
import pytest

from conformance.recordings import DIALECTS, Recording
from conformance.test_local_servers import GOOD, check, name_params, stream
from dragoman.config import Config, ServerTable, UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.server.runner import running
from end_to_end.replaying import run_replay
from oracles import read_stream


@pytest.fixture(scope="module")
def replay():
    with run_replay() as found:
        yield found


@pytest.mark.parametrize("client", [dialect for dialect in DIALECTS if dialect != "chat"])
@pytest.mark.parametrize("reply", name_params(GOOD))
def test_the_streams_of_local_servers_reach_every_client_whole(replay, reply, client):
    answer = replay.ask(Recording(reply["name"], stream(reply), streamed=True), "chat", client)
    assert answer.status_code == 200
    check(read_stream(client, answer.content), reply, client=client)


REASONED = {"role": "assistant", "content": "a", "reasoning": "Hm."}
REPLY = {"id": "c", "model": "m", "choices": [{"index": 0, "message": REASONED, "finish_reason": "stop"}]}


def test_a_configured_server_gets_thinking_and_earlier_reasoning_in_its_own_form():
    requests: list[dict[str, Any]] = []

    async def answer(exchange: Exchange) -> None:
        requests.append(json.loads(exchange.request.body))
        await exchange.send(200, {"content-type": "application/json"}, json.dumps(REPLY).encode())

    with run_in_thread(lambda: listen(answer, grace=0.1), "upstream") as upstream:
        tables = {
            name: UpstreamTable(kind="openai", base_url=f"{upstream.base_url}/v1", server=name)
            for name in ("vllm", "ollama", "qwen")
        }
        config = Config(server=ServerTable(listen="127.0.0.1:0"), keys=(), upstreams=tables, models={})
        with run_in_thread(lambda: running(config, grace=0.5), "gateway") as gateway, httpx2.Client(timeout=30) as http:
            for server in tables:
                body = {"model": f"{server}/m", "max_tokens": 9, "thinking": {"type": "disabled"}}
                turns: list[dict[str, Any]] = [{"role": "user", "content": "q"}]
                first = http.post(f"{gateway.base_url}/v1/messages", json={**body, "messages": turns})
                assert first.status_code == 200
                turns += [{"role": "assistant", "content": first.json()["content"]}, {"role": "user", "content": "q"}]
                assert http.post(f"{gateway.base_url}/v1/messages", json={**body, "messages": turns}).status_code == 200
    bodies = dict(zip(tables, requests[1::2], strict=True))
    assert bodies["vllm"]["chat_template_kwargs"]["enable_thinking"] is False
    assert bodies["ollama"]["reasoning_effort"] == "none"
    assert bodies["qwen"]["enable_thinking"] is False
    assert [body["messages"][1]["reasoning"] for body in bodies.values()] == ["Hm.", "Hm.", "Hm."]
