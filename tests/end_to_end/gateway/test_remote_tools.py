"""Tools of configured MCP servers, requested with the dialect's own fields: Responses' `mcp`, Messages' `mcp_servers`."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import openai
import pytest

from dragoman.simulator.runner import in_thread
from end_to_end.gateway.test_agents import MODELS, list_seen_since, toolbox, write_script
from server.agents import WEATHER, Client
from server.conftest import run_server_gateway

BETAS = ["mcp-client-2025-11-20"]
MCP = {"type": "mcp", "server_label": "files", "server_url": "https://nobody.example/mcp", "require_approval": "never"}
SERVER = {"type": "url", "url": "https://nobody.example/mcp", "name": "files"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "files"}


@pytest.fixture(scope="module")
def gateway():
    with in_thread(script=write_script) as simulator, run_server_gateway(simulator, tools=toolbox()) as running:
        yield running


def responses(gateway, model, *, stream, **changed):
    client = Client(gateway, "responses", stream=stream, model=model)
    return client, {"tools": [{**MCP, **changed}]}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", MODELS)
def test_responses_reports_server_calls_as_openai_does(gateway, upstream, stream):
    client, asked = responses(gateway, upstream, stream=stream)
    reply = client.ask("own", **asked)
    listed, first, called, second = reply.raw.output
    assert (listed.type, listed.server_label, [tool.name for tool in listed.tools]) == (
        "mcp_list_tools",
        "files",
        ["read"],
    )
    assert (called.type, called.server_label, called.name) == ("mcp_call", "files", "read")
    assert json.loads(called.arguments) == {"path": "a"}
    assert (called.output, called.error, called.status) == ("<a>", None, "completed")
    assert [item.content[0].text for item in (first, second)] == ["I read.", "\n\nIt said: <a>"]
    assert reply.raw.tools[0].type == "mcp"

    before = len(gateway.simulator.requests)
    again = client.ask("and now?", **asked)
    assert [item.type for item in again.raw.output] == ["message"]
    (seen,) = list_seen_since(gateway, before)
    assert seen.status == 200
    assert "<a>" in seen.body.decode()


def test_a_responses_stream_reports_the_progress_of_a_call(gateway):
    client = Client(gateway, "responses", stream=True, model="gem")
    with client.sdk.responses.stream(model="gem", input="own", tools=[MCP], store=False) as events:
        result = [event for event in events if "mcp" in event.type or "output_item" in event.type]
    items = [event.type for event in result if event.output_index == 2]
    assert items == [
        "response.output_item.added",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
        "response.output_item.done",
    ]
    begun, *between, done = [event for event in result if event.output_index == 2]
    assert (begun.item.status, begun.item.output, done.item.status, done.item.output) == (
        "in_progress",
        None,
        "completed",
        "<a>",
    )
    assert {event.item_id for event in between} == {done.item.id}
    assert json.loads(between[1].delta) == {"path": "a"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", MODELS)
def test_messages_reports_server_calls_as_anthropic_does(gateway, upstream, stream):
    client = Client(gateway, "messages", stream=stream, model=upstream)
    asked = {"mcp_servers": [SERVER], "tools": [TOOLSET], "betas": BETAS}
    reply = client.ask("own", **asked)
    kinds = [block.type for block in reply.raw.content if block.type != "thinking"]
    assert kinds == ["text", "mcp_tool_use", "mcp_tool_result", "text"]
    called, result = (block for block in reply.raw.content if block.type.startswith("mcp_"))
    assert (called.name, called.server_name, called.input) == ("read", "files", {"path": "a"})
    assert (result.tool_use_id, result.is_error, result.content[0].text) == (called.id, False, "<a>")

    before = len(gateway.simulator.requests)
    client.ask("and now?", **asked)
    (seen,) = list_seen_since(gateway, before)
    assert seen.status == 200
    assert "<a>" in seen.body.decode()


def test_server_calls_in_a_history_are_parsed_even_if_nothing_is_stored(gateway):
    called = {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "files",
        "name": "read",
        "arguments": "{}",
        "output": "<z>",
    }
    client, asked = responses(gateway, "claude", stream=False)
    client.history = [{"role": "user", "content": "read"}, called]
    client.ask("and now?", **asked)
    messages = gateway.simulator.requests[-1].json()["messages"]
    assert messages[1]["content"][0]["name"] == "files__read"
    assert messages[2]["content"][0]["content"] == "<z>"


@pytest.mark.parametrize("stream", [False, True])
def test_client_calls_appear_next_to_server_calls(gateway, stream):
    client, asked = responses(gateway, "gem", stream=stream)
    reply = client.ask("late", schemas=WEATHER, **asked)
    assert [item.type for item in reply.raw.output if item.type != "reasoning"] == [
        "mcp_list_tools",
        "mcp_call",
        "function_call",
    ]
    client.answer(reply, {"get_weather": "sunny"})
    again = client.ask(schemas=WEATHER, **asked)
    assert again.text == "It said: sunny"
    contents = gateway.simulator.requests[-1].json()["contents"]
    parts = [part for turn in contents for part in turn["parts"]]
    assert [part["functionCall"]["name"] for part in parts if "functionCall" in part] == ["files__read", "get_weather"]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ({"type": "mcp", "server_label": "files", "name": "read"}, {"type": "tool", "name": "files__read"}),
        ({"type": "mcp", "server_label": "files"}, {"type": "any"}),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "mcp", "server_label": "files"}]},
            {"type": "any"},
        ),
    ],
)
def test_a_choice_of_a_servers_tool_forces_the_first_call_only(gateway, choice, sent):
    before = len(gateway.simulator.requests)
    client, asked = responses(gateway, "claude", stream=True)
    client.ask("own", tool_choice=choice, **asked)
    first, second = (seen.json().get("tool_choice") for seen in list_seen_since(gateway, before))
    assert first == sent
    assert second in (None, {"type": "auto"})


def test_only_the_tools_that_are_allowed_are_offered(gateway):
    client, asked = responses(gateway, "claude", stream=False, allowed_tools=[])
    client.ask("hello", **asked)
    assert "tools" not in gateway.simulator.requests[-1].json()
    client = Client(gateway, "messages", stream=False, model="claude")
    toolset = {**TOOLSET, "configs": {"read": {"enabled": False}}}
    client.ask("hello", mcp_servers=[SERVER], tools=[toolset], betas=BETAS)
    assert "tools" not in gateway.simulator.requests[-1].json()


def test_a_server_that_is_not_configured_is_the_vendors_own_affair(gateway):
    """We connect to nothing that a request names; the vendor may."""
    client, asked = responses(gateway, "resp", stream=False, server_label="others")
    client.ask("hello", **asked)
    assert gateway.simulator.requests[-1].json()["tools"][0]["server_label"] == "others"
    client, asked = responses(gateway, "claude", stream=False, server_label="others")
    raw = client.sdk.responses.with_raw_response.create(
        model="claude", input="hello", tools=asked["tools"], store=False
    )
    assert "dropped /tools: " in raw.headers["x-dragoman-losses"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("approve", [False, True])
def test_a_call_that_needs_approval_runs_after_the_client_approves_it(gateway, stream, approve):
    client, asked = responses(gateway, "gem", stream=stream, require_approval="always")
    reply = client.ask("own", **asked)
    expected = reply.raw.output[-1]
    assert (expected.type, expected.server_label, expected.name) == ("mcp_approval_request", "files", "read")
    assert json.loads(expected.arguments) == {"path": "a"}
    client.history.append({"type": "mcp_approval_response", "approval_request_id": expected.id, "approve": approve})
    again = client.ask(**asked)
    if approve:
        called, output = again.raw.output
        assert (called.type, called.approval_request_id, called.output) == ("mcp_call", expected.id, "<a>")
        assert output.content[0].text == "It said: <a>"
    else:
        assert "the user did not allow it" in again.text
    contents = gateway.simulator.requests[-1].json()["contents"]
    (call,) = [part for turn in contents for part in turn["parts"] if "functionCall" in part]
    assert call["thoughtSignature"] != "skip_thought_signature_validator"

    before = len(gateway.simulator.requests)
    client.ask("and now?", **asked)
    (seen,) = list_seen_since(gateway, before)
    assert seen.status == 200
    assert ("<a>" in seen.body.decode()) is approve


def test_an_approved_call_is_run_once_however_often_the_request_is_sent():
    from dragoman.tools import Registry

    run = []
    tools = Registry()

    def read(path: str) -> str:
        """Read a file."""
        run.append(path)
        return f"<{path}>"

    tools.register(read, namespace="files")
    with in_thread(script=write_script) as simulator, run_server_gateway(simulator, tools=tools) as gateway:
        client, asked = responses(gateway, "gpt", stream=False, require_approval={"never": {"tool_names": ["other"]}})
        expected = client.ask("own", **asked).raw.output[-1]
        assert run == []
        client.history.append({"type": "mcp_approval_response", "approval_request_id": expected.id, "approve": True})
        history = list(client.history)
        for _ in range(3):
            client.history = list(history)
            assert client.ask(**asked).text == "It said: <a>"
    assert run == ["a"]


def test_an_approval_finds_its_call_in_what_the_gateway_keeps(gateway):
    client, asked = responses(gateway, "claude", stream=False, require_approval="always")
    asked |= {"model": client.model, "store": True}
    first = client.sdk.responses.create(input="own", **asked)
    word = {"type": "mcp_approval_response", "approval_request_id": first.output[-1].id, "approve": True}
    again = client.sdk.responses.create(input=[word], previous_response_id=first.id, **asked)
    assert again.output_text == "It said: <a>"


@pytest.mark.parametrize("upstream", ["claude", "resp"])
def test_an_approval_that_nothing_waits_for_is_refused_by_its_name(gateway, upstream):
    client, asked = responses(gateway, upstream, stream=False)
    client.history.append({"type": "mcp_approval_response", "approval_request_id": "mcpr_none", "approve": True})
    before = len(gateway.simulator.requests)
    with pytest.raises(openai.BadRequestError, match="mcp_approval_request with the id 'mcpr_none'") as raised:
        client.ask("hello", **asked)
    assert raised.value.body["param"] == "input[0].approval_request_id"
    assert not list_seen_since(gateway, before)


def test_an_approval_for_a_server_of_the_vendor_is_forwarded(gateway):
    client, asked = responses(gateway, "claude", stream=False)
    theirs = {"id": "mcpr_1", "server_label": "elsewhere", "name": "look", "arguments": "{}"}
    client.history.append({"type": "mcp_approval_request", **theirs})
    client.history.append({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True})
    assert client.ask("hello", **asked).text.startswith("It said")


@pytest.mark.parametrize(
    "changed",
    [
        {"tools": [{"type": "mcp"}]},
        {"tools": [{"type": "mcp", "server_label": 7}]},
        {"tools": [{**MCP, "allowed_tools": 7}]},
        {"tools": [{**MCP, "require_approval": 7}]},
        {"tools": [MCP], "tool_choice": {"type": "mcp", "server_label": 7}},
        {"tools": [MCP], "input": [{"type": "mcp_call", "id": 7, "server_label": "files"}]},
        {"tools": [MCP], "input": [{"type": "mcp_approval_response", "approval_request_id": [], "approve": "x"}]},
        {"tools": [MCP], "input": [{"type": "mcp_approval_request", "server_label": "files"}]},
    ],
)
def test_invalid_responses_input_is_rejected_or_left_to_the_vendor_and_never_an_internal_error(gateway, changed):
    post_json(gateway, "/v1/responses", {"model": "resp", "input": "hello", "store": False, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"mcp_servers": 7},
        {"mcp_servers": [7]},
        {"mcp_servers": [{"type": "url"}]},
        {"mcp_servers": [SERVER], "tools": [{"type": "mcp_toolset"}]},
        {"mcp_servers": [SERVER], "tools": [{**TOOLSET, "configs": []}]},
        {"mcp_servers": [SERVER], "tools": [{**TOOLSET, "default_config": {"enabled": "x"}}]},
        {"mcp_servers": [{**SERVER, "tool_configuration": {"allowed_tools": 7}}]},
        {"mcp_servers": [SERVER], "messages": [{"role": "assistant", "content": [{"type": "mcp_tool_use", "id": 7}]}]},
    ],
)
def test_invalid_messages_input_is_rejected_or_left_to_the_vendor_and_never_an_internal_error(gateway, changed):
    body = {"model": "claude", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}], **changed}
    post_json(gateway, "/v1/messages", body)


def post_json(gateway, path, body):
    """Send a request without an SDK, which would reject it."""
    request = Request(  # noqa: S310  the gateway's own address
        gateway.base_url + path, json.dumps(body).encode(), {"x-api-key": "k", "content-type": "application/json"}
    )
    try:
        reply = urlopen(request)  # noqa: S310
    except HTTPError as error:
        reply = error
    with reply:
        result = json.loads(reply.read())
    assert reply.status == 200 or (reply.status == 400 and result["error"]["message"])
