"""A plain pipe is answered, a host that greets is served, and what was asked is finished."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any
from unittest.mock import Mock

import anyio
import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from dragoman.mcp.server.server import build_server, configure_low_level
from dragoman.mcp.server.tasks import Tasks
from dragoman.mcp.server.transports import serve_streams

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def offer(server: MCPServer[Any]) -> None:
    async def echo(words: str, ctx: Context[Any, Any]) -> str:
        """Say it again, a little later."""
        await ctx.report_progress(1, 2, "halfway")
        await asyncio.sleep(0.02)
        return words

    server.add_tool(echo)


def ask(method: str, name: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "method": method, "params": params}


def pipe(lines: Iterable[Any]) -> list[dict[str, Any]]:
    """Send all lines at once, close the input, and return everything that was written."""

    async def run() -> list[dict[str, Any]]:
        lower = configure_low_level(build_server([offer], Tasks(Mock(), {})), max_body=1 << 20)
        to_server, from_client = anyio.create_memory_object_stream[Any](100)
        to_client, from_server = anyio.create_memory_object_stream[Any](100)
        for line in lines:
            text = line if isinstance(line, str) else json.dumps(line)
            try:
                await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False)))
            except ValueError as error:
                await to_server.send(error)
        to_server.close()
        async with from_client, to_client, from_server:
            await serve_streams(lower, from_client, to_client)
            written = [from_server.receive_nowait() for _ in range(from_server.statistics().current_buffer_used)]
        return [json.loads(item.message.model_dump_json(by_alias=True, exclude_unset=True)) for item in written]

    return asyncio.run(run())


def call(tool: str, arguments: Any, name: Any = 1, **beside: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments, **beside}
    return {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}


def test_a_call_without_a_greeting_is_answered_after_the_end_of_the_input():
    (answer,) = pipe([call("echo", {"words": "hello"})])
    assert answer["id"] == 1
    assert answer["result"]["content"] == [{"type": "text", "text": "hello"}]
    assert answer["result"]["structuredContent"] == {"result": "hello"}


def test_every_call_that_is_in_flight_is_finished():
    answers = pipe(call("echo", {"words": str(name)}, name) for name in range(20))
    assert {answer["id"]: answer["result"]["content"][0]["text"] for answer in answers} == {
        name: str(name) for name in range(20)
    }


def test_progress_is_sent_over_stdio():
    progress, _ = pipe([call("echo", {"words": "x"}, _meta={"progressToken": "p"})])
    assert progress["method"] == "notifications/progress"
    assert progress["params"] == {"progressToken": "p", "progress": 1.0, "total": 2.0, "message": "halfway"}


def test_a_host_that_greets_is_served_in_its_era():
    first, listed, answer = pipe(
        [
            ask("initialize", "a", **GREETING),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            ask("tools/list", "b"),
            call("echo", {"words": "x"}, "c"),
        ]
    )
    assert first["result"]["protocolVersion"] == "2025-11-25"
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["echo"]
    assert answer["result"]["isError"] is False


def test_a_request_in_its_envelope_is_served_in_the_newer_era():
    discovered, answer = pipe(
        [
            ask("server/discover", 1, _meta=META),
            call("echo", {"words": "x"}, 2, _meta=META),
        ]
    )
    assert "2026-07-28" in discovered["result"]["supportedVersions"]
    assert answer["result"]["resultType"] == "complete"


def test_a_tool_that_is_not_there_is_an_error_and_arguments_that_do_not_fit_are_a_failed_result():
    unknown, misfit = sorted(pipe([call("nope", {}, 1), call("echo", {"word": "x"}, 2)]), key=lambda each: each["id"])
    assert unknown["error"]["code"] == -32602
    assert "available tools: echo" in unknown["error"]["message"]
    assert misfit["result"]["isError"] is True
    assert misfit["result"]["content"][0]["text"] == (
        "echo was not run: 1 error in the arguments:\n- /words: Field required"
    )


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"name": "echo", "arguments": "x"}, "params.arguments must be an object"),
        ({"name": 7}, "params.name must be the name of a tool; available tools: echo"),
        ({}, "params.name must be the name of a tool"),
    ],
)
def test_an_invalid_call_gets_an_error_with_the_required_fields(params, words):
    (answer,) = pipe([{**ask("tools/call"), "params": params}])
    assert answer["error"]["code"] == -32602
    assert words in answer["error"]["message"]


@pytest.mark.parametrize("identity", [None, 1.5, True, {"a": 1}, []])
def test_a_request_whose_id_is_none_is_answered(identity):
    refused, answer = pipe([ask("tools/list", identity), call("echo", {"words": "x"}, "b")])
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert "a request needs an id" in refused["error"]["message"]
    assert answer["id"] == "b"


@pytest.mark.parametrize(("line", "code"), [("{", -32700), ("[]", -32600), ('{"id": 1}', -32600)])
def test_a_line_that_is_no_message_is_answered_and_the_next_one_too(line, code):
    refused, answer = pipe(["", line, call("echo", {"words": "x"})])
    assert (refused["id"], refused["error"]["code"]) == (None, code)
    assert answer["result"]["isError"] is False


def test_a_call_that_its_client_gave_up_is_not_waited_for():
    given_up = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert pipe([call("echo", {"words": "x"}), given_up]) == []


def test_a_subscription_does_not_hold_up_the_end():
    listen = ask("subscriptions/listen", 1, _meta=META, notifications={"toolsListChanged": True})
    answers = pipe([listen, call("echo", {"words": "x"}, 2, _meta=META)])
    assert 2 in [answer.get("id") for answer in answers]
    assert "notifications/subscriptions/acknowledged" in [answer.get("method") for answer in answers]


def test_an_empty_input_is_no_mistake():
    assert pipe([]) == []
