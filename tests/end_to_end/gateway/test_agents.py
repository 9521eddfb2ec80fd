"""Tools that the gateway runs, mixed with those of its clients: the official SDKs, in all four dialects."""

from typing import Any

import anthropic
import openai
import pytest

from dragoman.gateway.agents.settings import AgentLimits, AgentTable
from dragoman.simulator import Answer, Call
from dragoman.tools import Registry
from server.agents import CLIENTS, WEATHER, Client

MODELS = {"gem": "gemini-3.8-flash", "claude": "claude-opus-4-8", "gpt": "gpt-5.2", "resp": "gpt-5.2"}


def ways(most: int) -> list[Any]:
    """Every dialect with every upstream, whole and streamed; one in `most` of them in the fast part."""
    every = [(dialect, upstream, stream) for dialect in CLIENTS for upstream in MODELS for stream in (False, True)]
    return [
        pytest.param(*way, id="-".join(map(str, way)), marks=() if (at + at // 8) % most == 0 else pytest.mark.slow)
        for at, way in enumerate(every)
    ]


WAYS, FEWER = ways(2), ways(5)


def toolbox():
    """Tools of two servers, and one without a server."""
    tools = Registry()

    def read(path: str) -> str:
        """Read a file."""
        return f"<{path}>"

    def add(one: int, other: int) -> int:
        """Add two numbers."""
        return one + other

    tools.register(read, namespace="files")
    tools.register(add)
    return tools


def calls(*expected):
    return tuple(Call(id=f"c{at}", name=name, arguments=arguments) for at, (name, arguments) in enumerate(expected))


def write_script(received):
    """Follow the last user message: call tools turn by turn, then report the results."""
    turns = received.request.turns
    asked = next((turn.text for turn in reversed(turns) if turn.role == "user" and turn.text), "")
    since = 0
    for turn in reversed(turns):
        if turn.role == "user" and turn.text:
            break
        since += turn.role == "assistant"
    results = [result.text for result in turns[-1].results]
    match asked, since:
        case "own", 0:
            return Answer(text="I read.", calls=calls(("files__read", {"path": "a"})), end="calls")
        case "mixed", 0:
            expected = calls(
                ("files__read", {"path": "a"}), ("get_weather", {"city": "Rome"}), ("add", {"one": 1, "other": 2})
            )
            return Answer(thought="All at once.", text="I look.", calls=expected, end="calls")
        case "theirs", 0:
            return Answer(calls=calls(("get_weather", {"city": "Oslo"})), end="calls")
        case "late", 0:
            return Answer(calls=calls(("files__read", {"path": "b"})), end="calls")
        case "late", 1:
            return Answer(calls=calls(("get_weather", {"city": "Rome"})), end="calls")
        case "shell", 0:
            return Answer(calls=calls(("files__read", {"path": "a"}), ("bash", {"command": "ls"})), end="calls")
        case "silence", 0:
            return Answer(calls=calls(("files__read", {"path": "a"})), end="calls")
        case "silence", _:
            return Answer(text="")
        case "round", _:
            return Answer(calls=calls(("add", {"one": since, "other": 1})), end="calls")
        case _:
            return Answer(text="It said: " + ", ".join(results))


@pytest.fixture(scope="module")
def gateway():
    from dragoman.simulator.runner import in_thread
    from server.conftest import run_server_gateway

    agents = {
        f"helper-{name}": AgentTable(model=name, tools=("files", "add"), system="You are a helper.") for name in MODELS
    }
    agents["brief"] = AgentTable(model="gpt", tools=("add",), limits=AgentLimits(turns=2))
    with (
        in_thread(script=write_script) as simulator,
        run_server_gateway(simulator, agents=agents, tools=toolbox()) as running,
    ):
        yield running


def list_seen_since(gateway, before):
    """What the simulator has received since then."""
    return list(gateway.simulator.requests)[before:]


def pieces(dialect, received):
    """The texts of a reply, each from what it has for itself in its dialect."""
    match dialect:
        case "chat":
            return [received.raw.choices[0].message.content]
        case "responses":
            return [part.text for item in received.raw.output if item.type == "message" for part in item.content]
        case "messages":
            return [block.text for block in received.raw.content if block.type == "text"]
        case _:
            parts = [part for chunk in received.raw for part in chunk.candidates[0].content.parts or ()]
            return [part.text for part in parts if part.text and not part.thought]


@pytest.mark.parametrize(("dialect", "upstream", "stream"), FEWER)
def test_an_agent_runs_its_own_tools_and_its_client_gets_one_answer(gateway, dialect, upstream, stream):
    before = len(gateway.simulator.requests)
    client = Client(gateway, dialect, stream=stream, model=f"helper-{upstream}")
    reply = client.ask("own")
    assert reply.calls == []
    assert reply.text == "I read.\n\nIt said: <a>"
    assert pieces(dialect, reply) == ([reply.text] if dialect == "chat" else ["I read.", "\n\nIt said: <a>"])
    seen = list_seen_since(gateway, before)
    assert [one.status for one in seen] == [200, 200]
    assert "You are a helper." in seen[0].body.decode()
    client.ask("again")
    assert gateway.simulator.requests[-1].status == 200


@pytest.mark.parametrize("dialect", ["chat", "gemini", "messages"])
def test_the_turns_of_an_agent_on_claude_have_automatic_cache_marks(gateway, dialect):
    before = len(gateway.simulator.requests)
    Client(gateway, dialect, stream=False, model="helper-claude").ask("own")
    seen = list_seen_since(gateway, before)
    assert [b'"cache_control"' in one.body for one in seen] == [True, True]


@pytest.mark.parametrize(("dialect", "upstream", "stream"), WAYS)
def test_calls_of_both_kinds_in_one_turn_are_run_where_they_belong(gateway, dialect, upstream, stream):
    before = len(gateway.simulator.requests)
    client = Client(gateway, dialect, stream=stream, model=f"helper-{upstream}")
    reply = client.ask("mixed", schemas=WEATHER)
    assert [(name, arguments) for _, name, arguments in reply.calls] == [("get_weather", {"city": "Rome"})]
    assert reply.text == "I look."
    client.answer(reply, {"get_weather": "sunny"})
    again = client.ask(schemas=WEATHER)
    sunny = '{"result": "sunny"}' if dialect == "gemini" else "sunny"
    assert again.text == f"It said: <a>, {sunny}, 3"
    statuses = [one.status for one in list_seen_since(gateway, before)]
    assert statuses == [200, 200], gateway.simulator.requests[-1].body


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_client_call_after_a_gateway_turn_continues_with_the_whole_history(gateway, dialect, stream):
    before = len(gateway.simulator.requests)
    client = Client(gateway, dialect, stream=stream, model="helper-gem")
    reply = client.ask("late", schemas=WEATHER)
    ((_, name, arguments),) = reply.calls
    assert (name, arguments) == ("get_weather", {"city": "Rome"})
    client.answer(reply, {"get_weather": "sunny"})
    client.ask(schemas=WEATHER)
    client.ask("and now?", schemas=WEATHER)
    contents = gateway.simulator.requests[-1].json()["contents"]
    parts = [part for turn in contents for part in turn["parts"]]
    called = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    assert called == ["files__read", "get_weather"]
    signatures = [part["thoughtSignature"] for part in parts if "functionCall" in part]
    assert "skip_thought_signature_validator" not in signatures
    assert {one.status for one in list_seen_since(gateway, before)} == {200}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", ["claude", "gpt", "gem"])
def test_a_vendors_own_tool_is_called_at_the_client_while_the_gateway_runs_its_tools(gateway, upstream, stream):
    before = len(gateway.simulator.requests)
    client = Client(gateway, "messages", stream=stream, model=upstream)
    asked = {"headers": {"x-dragoman-tools": "files"}, "tools": [{"type": "bash_20250124", "name": "bash"}]}
    reply = client.ask("shell", **asked)
    assert [(name, arguments) for _, name, arguments in reply.calls] == [("bash", {"command": "ls"})]
    client.answer(reply, {"bash": "README"})
    assert client.ask(**asked).text == "It said: <a>, README"
    assert [one.status for one in list_seen_since(gateway, before)] == [200, 200]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_header_brings_tools_to_any_model(gateway, dialect, stream):
    client = Client(gateway, dialect, stream=stream, model="claude")
    reply = client.ask("own", headers={"x-dragoman-tools": "files, add"})
    assert reply.text == "I read.\n\nIt said: <a>"
    names = {tool["name"] for tool in gateway.simulator.requests[-1].json()["tools"]}
    assert names == {"files__read", "add", "read_artifact"}


def test_a_client_can_force_a_call_of_a_gateway_tool(gateway):
    before = len(gateway.simulator.requests)
    client = Client(gateway, "chat", stream=False, model="gpt")
    choice = {"type": "function", "function": {"name": "files__read"}}
    client.ask("own", headers={"x-dragoman-tools": "files"}, tool_choice=choice)
    first, second = (seen.json().get("tool_choice") for seen in list_seen_since(gateway, before))
    assert (first, second) == (choice, "auto")


@pytest.mark.parametrize("dialect", CLIENTS)
def test_an_unknown_tool_is_rejected_in_the_clients_dialect(gateway, dialect):
    client = Client(gateway, dialect, stream=True, model="claude")
    with pytest.raises(Exception, match="unknown tool or server 'file'") as error:
        client.ask("own", headers={"x-dragoman-tools": "file"})
    assert getattr(error.value, "status_code", getattr(error.value, "code", 0)) == 400


def test_a_tool_name_of_both_sides_is_rejected_if_the_client_requests_the_gateways(gateway):
    client = Client(gateway, "chat", stream=False, model="claude")
    with pytest.raises(openai.BadRequestError, match="rename your own tool"):
        client.ask("own", headers={"x-dragoman-tools": "add"}, schemas={"add": {"type": "object"}})


def test_usage_is_of_all_turns_together(gateway):
    reply = Client(gateway, "chat", stream=False, model="helper-gem").ask("own")
    one = Client(gateway, "chat", stream=False, model="gem").ask("hello")
    assert reply.usage[0] > 2 * one.usage[0]
    assert reply.raw.usage.total_tokens == sum(reply.usage)


def test_a_run_that_repeats_itself_ends_at_its_limit_of_turns(gateway):
    before = len(gateway.simulator.requests)
    reply = Client(gateway, "messages", stream=True, model="brief").ask("round")
    seen = list_seen_since(gateway, before)
    assert len(seen) == 4
    assert [one.json()["tool_choice"] for one in seen[-2:]] == ["none", "none"]
    assert reply.calls == []


def test_agents_are_listed_among_the_models(gateway):
    client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any"))
    assert "helper-gem" in {model.id for model in client.models.list()}
    assert client.models.retrieve("helper-gem").id == "helper-gem"


def test_tokens_of_an_agents_request_are_counted_by_its_model(gateway):
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any"))
    counted = client.messages.count_tokens(model="helper-claude", messages=[{"role": "user", "content": "hello"}])
    assert counted.input_tokens > 0


@pytest.mark.parametrize(("dialect", "upstream", "stream"), FEWER)
def test_two_empty_replies_of_a_model_are_an_empty_answer(gateway, dialect, upstream, stream):
    before = len(gateway.simulator.requests)
    client = Client(gateway, dialect, stream=stream, model=f"helper-{upstream}")
    reply = client.ask("silence")
    assert (reply.text, reply.calls) == ("", [])
    assert [seen.status for seen in list_seen_since(gateway, before)] == [200] * 3


def without_ids(client):
    """Let a Gemini client send back calls as some do, without their ids."""
    for turn in client.history:
        for part in turn["parts"]:
            part.get("function_call", {}).pop("id", None)


@pytest.mark.parametrize("asked", ["mixed", "late", "theirs"])
def test_hidden_turns_of_calls_without_ids_are_reported_as_a_loss(gateway, asked):
    client = Client(gateway, "gemini", stream=False, model="helper-gem")
    reply = client.ask(asked, schemas=WEATHER)
    without_ids(client)
    client.answer(reply, {"get_weather": "sunny"})
    again = client.ask(schemas=WEATHER)
    assert "<a>" not in again.text
    losses = again.raw[0].sdk_http_response.headers.get("x-dragoman-losses", "")
    reported = "so the server-side calls of that reply cannot be restored" in losses
    assert reported is (asked != "theirs")
    if reported:
        from google.genai.errors import ClientError

        client.history.pop()
        with pytest.raises(ClientError, match="cannot be restored"):
            client.ask(schemas=WEATHER, headers={"x-dragoman-strict": "true"})
