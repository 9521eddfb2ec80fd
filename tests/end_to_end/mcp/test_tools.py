"""`query`, `search` and `fetch` of a running gateway, called by the official client, with the simulator as the model."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from msgspec import structs

import dragoman.simulator
from dragoman.config import Config, KeyTable, ServerTable, SessionsTable, UpstreamTable
from dragoman.gateway.agents.settings import AgentLimits, AgentTable
from dragoman.mcp.settings import McpTable, ToolServer
from dragoman.server.runner import running
from dragoman.simulator import Answer
from mcp_peers import PEERS

TASKS = "io.modelcontextprotocol/tasks"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
KEYS = (
    KeyTable(key="ann-secret", name="ann"),
    KeyTable(key="bob-secret", name="bob", models=("gpt*",)),
)
MODELS = {
    "gem": ("gemini/gemini-3.8-flash",),
    "gpt": ("openai/gpt-5.2",),
    "resp": ("responses/gpt-5.2",),
    "claude": ("anthropic/claude-opus-4-8",),
}


class Stage:
    """A gateway with a simulator behind it."""

    def __init__(self, url: str, simulator: Any) -> None:
        self.url = url
        self.simulator = simulator

    def asked(self) -> list[Any]:
        """The requests that the simulator received, oldest first."""
        return [seen.json() for seen in self.simulator.requests]

    @asynccontextmanager
    async def client(self, key: str = "ann-secret", era: str = "auto") -> AsyncGenerator[Client]:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}, timeout=30) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=era) as client,
        ):
            yield client

    async def post(self, method: str, target: str = "", key: str = "ann-secret", **params: Any) -> dict[str, Any]:
        """Send one request of the newer protocol revision by hand, as a client that supports tasks."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
        }
        headers = {
            "authorization": f"Bearer {key}",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
            "mcp-name": target,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        async with httpx2.AsyncClient(timeout=30) as http:
            return (await http.post(self.url, json=body, headers=headers)).json()

    async def ended(self, task: str) -> dict[str, Any]:
        """Ask for a task as its client would, until it has ended."""
        for _ in range(500):
            reply = (await self.post("tasks/get", task, taskId=task))["result"]
            if reply["status"] != "working":
                return reply
            await asyncio.sleep(0.02)
        raise TimeoutError(task)


@asynccontextmanager
async def open_stage(tmp_path: Any, script: Any = None, tools: Any = None, **mcp: Any) -> AsyncGenerator[Stage]:
    async with dragoman.simulator.running(script=script) as simulator:
        base = simulator.base_url
        config = Config(
            server=ServerTable(log="off"),
            keys=KEYS,
            upstreams={
                "gemini": UpstreamTable(kind="gemini", base_url=base, api_key="k"),
                "anthropic": UpstreamTable(kind="anthropic", base_url=base, api_key="k"),
                "openai": UpstreamTable(kind="openai", base_url=f"{base}/v1", api_key="k"),
                "responses": UpstreamTable(kind="openai-responses", base_url=f"{base}/v1", api_key="k"),
            },
            models=MODELS,
            sessions=SessionsTable(url=f"sqlite:///{tmp_path}/sessions.db"),
            mcp=McpTable(**mcp),
            tools=tools or {},
            agents={
                "clerk": AgentTable(model="gem", system="Be a clerk."),
                "fetcher": AgentTable(model="gem", tools=("web_fetch",), limits=AgentLimits(turns=2)),
            },
        )
        async with running(config, port=0, grace=1.0) as gateway:
            yield Stage(f"{gateway.base_url}/mcp", simulator)


def fail(fault: str) -> Any:
    return lambda _received: dragoman.simulator.read_fault(fault)


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_query_is_answered_by_any_model_in_either_era(tmp_path, model, era):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage, stage.client(era=era) as client:
            result = await client.call_tool("query", {"prompt": "Who are you?", "model": model})
            output = result.structured_content
            assert "simulator" in output["answer"]
            assert output["answer"] == text_of(result)
            assert (output["model"], output["stop_reason"]) == (model, "finished")
            assert output["session_id"]
            numbers = output["statistics"]
            assert (numbers["turns"], numbers["calls"]) == (1, 0)
            assert numbers["total_tokens"] == numbers["input_tokens"] + numbers["output_tokens"] > 0

    asyncio.run(scene())


def test_a_session_continues_and_is_not_visible_to_another_key(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage:
            async with stage.client() as client:
                first = await client.call_tool("query", {"prompt": "My name is Ann.", "model": "gpt"})
                name = first.structured_content["session_id"]
                again = await client.call_tool("query", {"prompt": "And?", "session_id": name, "model": "gpt"})
                assert again.structured_content["session_id"] == name
            async with stage.client("bob-secret") as client:
                await client.call_tool("query", {"prompt": "Who?", "session_id": name, "model": "gpt"})
            asked = [[message["content"] for message in body["messages"]] for body in stage.asked()]
            assert asked == [
                ["My name is Ann."],
                ["My name is Ann.", first.structured_content["answer"], "And?"],
                ["Who?"],
            ]

    asyncio.run(scene())


def test_a_session_started_with_one_model_continues_with_another(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage, stage.client() as client:
            for model in ("gem", "claude", "resp", "gpt"):
                result = await client.call_tool("query", {"prompt": "Go on.", "session_id": "trip", "model": model})
                assert not result.is_error, text_of(result)
            assert len(stage.asked()[-1]["messages"]) == 7

    asyncio.run(scene())


def test_the_system_prompt_and_the_thinking_level_and_images_reach_the_model(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path, system_prompt="Be brief.", model="gem") as stage, stage.client() as client:
            parts = [
                {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
                {"text": "and"},
                {"fileData": {"fileUri": f"data:image/png;base64,{PIXEL}"}},
            ]
            asked = {"prompt": "What is it?", "parts": parts, "thinking": "low"}
            assert not (await client.call_tool("query", asked)).is_error
            (body,) = stage.asked()
            assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
            assert body["generationConfig"]["thinkingConfig"]["thinkingLevel"].lower() == "low"
            image = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
            assert body["contents"][0]["parts"] == [image, {"text": "and"}, image, {"text": "What is it?"}]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({}, "/parts/0: pass exactly one of"),
        ({"text": "a", "fileData": {"fileUri": "https://x.example/a"}}, "/parts/0: pass exactly one of"),
        ({"fileData": {"fileUri": "file:///etc/passwd"}}, "the URI must start with one of"),
        ({"fileData": {"fileUri": "data:image/png,abc"}}, "base64"),
        ({"inlineData": {"data": "AA"}}, "mimeType"),
    ],
)
def test_an_unsupported_part_is_an_error_and_no_model_is_called(tmp_path, part, words):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage, stage.client() as client:
            result = await client.call_tool("query", {"prompt": "x", "parts": [part]})
            assert result.is_error
            assert words in text_of(result)
            assert stage.asked() == []

    asyncio.run(scene())


def test_a_key_can_use_only_its_models(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage, stage.client("bob-secret") as client:
            for arguments in ({"prompt": "x", "model": "gem"}, {"prompt": "x"}):
                result = await client.call_tool("query", arguments)
                assert result.is_error
                assert "this API key is not allowed to use the model 'gem'" in text_of(result)
            assert not (await client.call_tool("query", {"prompt": "x", "model": "gpt"})).is_error
            assert "not allowed to use the search model" in text_of(await client.call_tool("search", {"query": "x"}))

    asyncio.run(scene())


def test_what_the_model_refuses_is_a_failed_result(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path, script=fail("404")) as stage, stage.client() as client:
            result = await client.call_tool("query", {"prompt": "x", "session_id": "s"})
            assert result.is_error
            assert "404" in text_of(result)
            assert len(stage.asked()) == 1

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [({}, (0.25, 900)), ({"temperature": 0, "max_output_tokens": 40}, (0, 40))],
    ids=["configured", "of the call"],
)
def test_a_query_has_a_temperature_and_a_limit_of_output(tmp_path, arguments, sent):
    async def scene() -> None:
        settings = {"temperature": 0.25, "max_output_tokens": 900}
        async with open_stage(tmp_path, **settings) as stage, stage.client() as client:
            await client.call_tool("query", {"prompt": "Who?", "model": "gemini/gemini-2.5-flash", **arguments})
            config = stage.asked()[0]["generationConfig"]
            assert (config["temperature"], config["maxOutputTokens"]) == sent
            wrong = await client.call_tool("query", {"prompt": "Who?", "temperature": -1, "max_output_tokens": 0})
            assert "/temperature" in text_of(wrong)
            assert "/max_output_tokens" in text_of(wrong)
            assert len(stage.asked()) == 1

    asyncio.run(scene())


def test_an_answer_that_is_cut_off_says_so(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage, stage.client() as client:
            cut = {"prompt": "Tell me all about Oslo", "model": "gemini/gemini-2.5-flash", "max_output_tokens": 5}
            assert "cut off" in text_of(await client.call_tool("query", cut))
            whole = await client.call_tool("query", {**cut, "max_output_tokens": 900})
            assert "cut off" not in text_of(whole)

    asyncio.run(scene())


def test_a_query_of_a_client_that_supports_tasks_is_a_task(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage:
            arguments = {"prompt": "Who are you?", "model": "gpt"}
            created = await stage.post("tools/call", "query", name="query", arguments=arguments)
            created = created["result"]
            assert (created["resultType"], created["status"]) == ("task", "working")
            name = created["taskId"]
            other = await stage.post("tasks/get", name, key="bob-secret", taskId=name)
            assert other["error"]["code"] == -32602
            result = await stage.ended(name)
            assert result["status"] == "completed"
            assert "simulator" in result["result"]["structuredContent"]["answer"]

    asyncio.run(scene())


def test_a_task_can_be_cancelled_and_arguments_that_do_not_fit_make_none(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path, script=fail("hang")) as stage:
            refused = await stage.post("tools/call", "query", name="query", arguments={})
            assert refused["result"]["isError"] is True
            created = await stage.post("tools/call", "query", name="query", arguments={"prompt": "x"})
            name = created["result"]["taskId"]
            await stage.post("tasks/cancel", name, taskId=name)
            assert (await stage.post("tasks/get", name, taskId=name))["result"]["status"] == "cancelled"

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer ann-secret", "origin": "https://evil.example"}, 403),
        ({"authorization": "Bearer ann-secret", "host": "evil.example"}, 403),
    ],
)
def test_an_unauthorized_client_gets_a_json_rpc_error(tmp_path, headers, status):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage, httpx2.AsyncClient() as http:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            reply = await http.post(stage.url, json=body, headers=headers)
            assert reply.status_code == status
            assert reply.json()["id"] is None
            assert reply.json()["error"]["code"] == -32000
            assert (reply.headers.get("www-authenticate") == "Bearer") is (status == 401)

    asyncio.run(scene())


def test_the_host_gets_notifications_of_calls_and_of_the_progress_of_external_tools(tmp_path):
    def script(received: Any) -> Any:
        if received.request.turns[-1].results:
            return Answer(text="done")
        return Answer(calls=(dragoman.simulator.Call(id="1", name="peer__steps", arguments={}),), end="calls")

    collected: list[str] = []

    async def hear(_done: float, _total: float | None, message: str | None) -> None:
        collected.append(message or "")

    async def scene() -> None:
        peer = ToolServer(command=sys.executable, args=(str(PEERS / "peer.py"), "stdio"))
        async with open_stage(tmp_path, script=script, tools={"peer": peer}) as stage, stage.client() as client:
            await client.call_tool("query", {"prompt": "go"}, progress_callback=hear)

    asyncio.run(scene())
    # What was overtaken before it was told is left out.
    assert "peer__steps: 2 of 2 two" in collected
    assert collected[0] == "peer__steps()"
    assert collected[-1] == "turn 2 of at most 11"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_a_post_is_answered_for_no_request_needs_another(tmp_path, method):
    async def scene() -> None:
        headers = {"authorization": "Bearer ann-secret", "accept": "text/event-stream"}
        async with open_stage(tmp_path) as stage, httpx2.AsyncClient(headers=headers, timeout=10) as http:
            assert (await http.request(method, stage.url)).status_code == 405

    asyncio.run(scene())


def test_the_fixtures_of_the_suite_are_not_offered(tmp_path):
    async def scene() -> None:
        async with open_stage(tmp_path) as stage, stage.client() as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["query", "search", "fetch"]
            assert all(tool.output_schema for tool in tools)
            assert (await client.list_prompts()).prompts == []
            assert (await client.list_resources()).resources == []

    asyncio.run(scene())


def test_the_log_has_each_question_to_a_model(tmp_path):
    lines: list[Any] = []

    async def scene() -> None:
        async with dragoman.simulator.running() as simulator:
            config = Config(
                server=ServerTable(log="off"),
                upstreams={"gemini": UpstreamTable(kind="gemini", base_url=simulator.base_url, api_key="k")},
                sessions=SessionsTable(url=f"sqlite:///{tmp_path}/sessions.db"),
            )
            observers = [lambda record: lines.append(structs.replace(record))]
            async with (
                running(config, port=0, observers=observers) as gateway,
                Client(f"{gateway.base_url}/mcp") as client,
            ):
                await client.call_tool("query", {"prompt": "Who are you?"})

    asyncio.run(scene())
    (asked,) = [record for record in lines if record.operation == "generate"]
    assert (asked.dialect, asked.model, asked.upstream, asked.outcome) == (
        "mcp",
        "gemini/gemini-3-flash",
        "gemini",
        "answered",
    )
    assert asked.usage is not None
