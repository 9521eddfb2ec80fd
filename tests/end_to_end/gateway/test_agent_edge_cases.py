"""Mixed turns at their edges: thoughts, several calls of each kind, results that are missing, another upstream midway."""

import json

import pytest

from dragoman.gateway.agents.settings import AgentTable
from dragoman.simulator import Answer, Call, read_fault
from dragoman.simulator.runner import in_thread
from end_to_end.gateway.test_agents import toolbox
from server.agents import CLIENTS, Client
from server.conftest import run_server_gateway

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BOTH = {"get_weather": CITY, "get_time": CITY}
WANTED = [
    ("get_weather", {"city": "Rome"}),
    ("files__read", {"path": "a"}),
    ("get_time", {"city": "Rome"}),
    ("add", {"one": 1, "other": 2}),
    ("files__read", {"path": "b"}),
]


def write_script(received):
    """Call all tools in parallel, then one of each kind again, then report the results."""
    turns = received.request.turns
    made = sum(1 for turn in turns if turn.calls)
    if made == 0:
        calls = tuple(Call(id=f"c{at}", name=name, arguments=given) for at, (name, given) in enumerate(WANTED))
        return Answer(thought="Everything at once.", text="I begin.", calls=calls, end="calls")
    if made == 1 and received.request.turns[0].text == "twice":
        calls = tuple(Call(id=f"d{at}", name=name, arguments=given) for at, (name, given) in enumerate(WANTED[:2]))
        return Answer(thought="And more.", calls=calls, end="calls")
    return Answer(text=" ".join(result.text for turn in turns for result in turn.results))


@pytest.fixture(scope="module")
def gateway():
    agents = {
        name: AgentTable(model=name.removeprefix("my-"), tools=("files", "add"))
        for name in ("my-gem", "my-claude", "my-resp")
    }
    with (
        in_thread(script=write_script) as simulator,
        run_server_gateway(simulator, agents=agents, tools=toolbox()) as running,
    ):
        yield running


def results_in(gateway):
    """The results that the upstream was sent last, in their order, by turn."""
    return [tuple(result["text"] for result in turn) for turn in _turns(gateway.simulator.requests[-1].json())]


def _turns(body):
    if "contents" in body:
        for turn in body["contents"]:
            found = [part["functionResponse"] for part in turn["parts"] if "functionResponse" in part]
            if found:
                yield [{"text": str(next(iter(one["response"].values())))} for one in found]
    else:
        for message in body["messages"]:
            if isinstance(message["content"], list):
                found = [block for block in message["content"] if block["type"] == "tool_result"]
                if found:
                    yield [{"text": _result_text(block["content"])} for block in found]


def _result_text(content):
    text = content if isinstance(content, str) else "".join(block["text"] for block in content)
    # A Gemini client's result is an object.
    return json.loads(text)["result"] if text.startswith("{") else text


@pytest.mark.parametrize("model", ["my-gem", "my-claude"])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_results_of_client_and_gateway_are_in_the_order_of_the_calls_on_every_turn(gateway, dialect, model):
    client = Client(gateway, dialect, stream=True, model=model)
    reply = client.ask("twice", schemas=BOTH)
    assert [name for _, name, _ in reply.calls] == ["get_weather", "get_time"]
    client.answer(reply, {"get_weather": "sunny", "get_time": "noon"})
    reply = client.ask(schemas=BOTH)
    assert [name for _, name, _ in reply.calls] == ["get_weather"]
    client.answer(reply, {"get_weather": "rainy"})
    client.ask(schemas=BOTH)
    result = results_in(gateway)
    assert result == [("sunny", "<a>", "noon", "3", "<b>"), ("rainy", "<a>")]
    client.ask("and now?", schemas=BOTH)
    assert results_in(gateway) == result
    assert gateway.simulator.requests[-1].status == 200


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_come_back_where_the_model_had_them(gateway, stream):
    client = Client(gateway, "messages", stream=stream, model="my-claude")
    more = {"schemas": BOTH, "thinking": {"type": "adaptive"}}
    reply = client.ask("think", **more)
    client.answer(reply, {"get_weather": "sunny", "get_time": "noon"})
    assert "sunny" in client.ask(**more).text
    assistant = gateway.simulator.requests[-1].json()["messages"][1]["content"]
    assert [block["type"] for block in assistant] == ["thinking", "text", *["tool_use"] * 5]


def test_results_in_another_order_are_put_in_that_of_the_calls(gateway):
    client = Client(gateway, "chat", stream=False, model="my-gem")
    reply = client.ask("go", schemas=BOTH)
    client.answer(reply, {"get_weather": "sunny", "get_time": "noon"})
    client.history[-2:] = reversed(client.history[-2:])
    client.ask(schemas=BOTH)
    assert results_in(gateway) == [("sunny", "<a>", "noon", "3", "<b>")]


def test_a_result_that_the_client_does_not_send_is_marked_as_missing(gateway):
    client = Client(gateway, "chat", stream=False, model="my-gem")
    reply = client.ask("go", schemas=BOTH)
    client.answer(reply, {"get_weather": "sunny", "get_time": "noon"})
    client.history.pop()
    client.ask("never mind the time", schemas=BOTH)
    (result,) = results_in(gateway)
    assert result[:2] == ("sunny", "<a>")
    assert "no result" in result[2]
    assert result[3:] == ("3", "<b>")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", CLIENTS)
def test_another_upstream_continues_a_run_when_one_fails_midway(dialect, stream):
    def fail(received):
        if received.api == "chat" and received.request.turns[-1].results:
            return read_fault("503")
        if received.request.turns[-1].results:
            return Answer(thought="Mine now.", text="It said " + received.request.turns[-1].results[0].text)
        return Answer(text="I read.", calls=(Call(id="c", name="files__read", arguments={"path": "a"}),), end="calls")

    models = {"either": ("openai/gpt-5.2", "anthropic/claude-opus-4-8", "gemini/gemini-3.8-flash")}
    agents = {"helper": AgentTable(model="either", tools=("files",))}
    with (
        in_thread(script=fail) as simulator,
        run_server_gateway(simulator, agents=agents, tools=toolbox(), models=models) as gateway,
    ):
        reply = Client(gateway, dialect, stream=stream, model="helper").ask("go")
        assert reply.text == "I read.\n\nIt said <a>"
        assert [seen.api for seen in simulator.requests] == ["chat", "chat", "messages"]
