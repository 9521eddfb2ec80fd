"""An OpenAI upstream with both APIs: what a model takes only on Responses is sent there, for clients of every dialect."""

import json
from collections.abc import Generator

import anthropic
import openai
import pytest

from dragoman.config import UpstreamTable
from dragoman.simulator import Answer, Call, Received
from dragoman.simulator.runner import in_thread
from oracles.clients import genai, genai_types
from server.conftest import Gateway, run_server_gateway

MODEL = "both/gpt-5.4"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
QUESTION = [{"role": "user", "content": 'What is the weather in "Tokyo"?'}]


@pytest.fixture(scope="module")
def gateway() -> Generator[Gateway]:
    """A gateway whose upstream `both` has both APIs, and `openai` only Chat."""
    with in_thread() as simulator:
        base_url = f"{simulator.base_url}/v1"
        both = UpstreamTable(kind="openai", base_url=base_url, api_key="k", apis=("chat", "responses"))
        with run_server_gateway(simulator, upstreams={"both": both}) as running:
            yield running


def open_chat(gateway: Gateway) -> openai.OpenAI:
    return gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))


def list_new(gateway: Gateway, seen: int) -> list[tuple[str, int]]:
    """Return the API and status of the requests after the first `seen`."""
    return [(each.api, each.status) for each in list(gateway.simulator.requests)[seen:]]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_tools_with_reasoning_are_sent_to_responses_and_their_calls_continue_there(gateway, streamed):
    chat, seen = open_chat(gateway).chat.completions, len(gateway.simulator.requests)
    options = {"model": MODEL, "tools": [TOOL], "reasoning_effort": "low"}
    messages = list(QUESTION)
    if streamed:
        with chat.stream(messages=messages, **options) as stream:
            message = stream.get_final_completion().choices[0].message
    else:
        message = chat.create(messages=messages, **options).choices[0].message
    (call,) = message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Tokyo"}
    answered = {"role": "assistant", "tool_calls": [call.model_dump(include={"id", "type", "function"})]}
    messages += [answered, {"role": "tool", "tool_call_id": call.id, "content": "22 degrees"}]
    reply = chat.create(messages=messages, **options)
    assert "22 degrees" in reply.choices[0].message.content
    assert list_new(gateway, seen) == [("responses", 200)] * 2
    sent = gateway.simulator.requests[-1].json()
    assert sent["reasoning"]["effort"] == "low"
    assert [item["call_id"] for item in sent["input"] if "call_id" in item] == [call.id, call.id]


def think_and_call(received: Received) -> Answer:
    """Think and call, then answer."""
    if any(turn.results for turn in received.request.turns):
        return Answer(text="It is mild.", thought="Mild, then.")
    made = Call(id="0123456789abcdef01234567", name="get_weather", arguments={"city": "Tokyo"})
    return Answer(text="I look it up.", thought="One city: one call.", calls=(made,), end="calls")


@pytest.mark.parametrize("keeps", [False, True], ids=["forgetful", "keeping"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_encrypted_reasoning_of_the_other_api_returns_there_for_a_chat_client(streamed, keeps):
    with in_thread(script=think_and_call) as simulator:
        base_url = f"{simulator.base_url}/v1"
        both = UpstreamTable(kind="openai", base_url=base_url, api_key="k", apis=("chat", "responses"))
        with run_server_gateway(simulator, upstreams={"both": both}) as gateway:
            chat = open_chat(gateway).chat.completions
            options = {"model": MODEL, "tools": [TOOL], "reasoning_effort": "low"}
            if streamed:
                with chat.stream(messages=QUESTION, **options) as stream:
                    message = stream.get_final_completion().choices[0].message
            else:
                message = chat.create(messages=QUESTION, **options).choices[0].message
            (call,) = message.tool_calls
            answered = {
                "role": "assistant",
                "content": message.content,
                "tool_calls": [call.model_dump(include={"id", "type", "function"})],
            }
            if keeps:
                answered["reasoning_details"] = message.model_dump()["reasoning_details"]
            result = {"role": "tool", "tool_call_id": call.id, "content": "22 degrees"}
            assert chat.create(messages=[*QUESTION, answered, result], **options).choices[0].message.content
            assert list_new(gateway, 0) == [("responses", 200)] * 2
            sent = gateway.simulator.requests[-1].json()
            (reasoning,) = [item for item in sent["input"] if item.get("type") == "reasoning"]
            assert reasoning["encrypted_content"]
            assert sent["input"].index(reasoning) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"tools": [TOOL]},
        {"tools": [TOOL], "reasoning_effort": "none"},
        {"reasoning_effort": "low"},
        {"model": "both/gpt-5.2", "tools": [TOOL], "reasoning_effort": "low"},
    ],
    ids=["no effort", "effort none", "no tools", "a model that takes both"],
)
def test_what_the_model_takes_on_chat_passes_there_unchanged(gateway, options):
    seen = len(gateway.simulator.requests)
    open_chat(gateway).chat.completions.create(**{"model": MODEL, "messages": QUESTION, **options})
    assert list_new(gateway, seen) == [("chat", 200)]


def test_a_model_that_takes_tools_only_on_responses_gets_them_there(gateway):
    seen = len(gateway.simulator.requests)
    reply = open_chat(gateway).chat.completions.create(model="both/gpt-6-astra", messages=QUESTION, tools=[TOOL])
    assert reply.choices[0].message.tool_calls
    assert list_new(gateway, seen) == [("responses", 200)]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["both/gpt-5.6", "both/gpt-6-luna"])
def test_tools_without_an_effort_go_to_responses_if_the_model_reasons_by_default(gateway, model, streamed):
    chat, seen = open_chat(gateway).chat.completions, len(gateway.simulator.requests)
    if streamed:
        with chat.stream(model=model, messages=QUESTION, tools=[TOOL]) as stream:
            message = stream.get_final_completion().choices[0].message
    else:
        message = chat.create(model=model, messages=QUESTION, tools=[TOOL]).choices[0].message
    assert message.tool_calls
    assert list_new(gateway, seen) == [("responses", 200)]
    assert "reasoning" not in gateway.simulator.requests[-1].json()


def test_the_other_api_is_reported_as_an_informational_loss(gateway):
    raw = open_chat(gateway).chat.completions.with_raw_response.create(
        model=MODEL,
        messages=QUESTION,
        tools=[TOOL],
        reasoning_effort="low",
        extra_headers={"x-dragoman-strict": "true"},
    )
    losses = raw.headers["x-dragoman-losses"]
    assert "material=0; approximated /reasoning_effort: sent in the upstream's responses API" in losses


@pytest.mark.parametrize("run_by", ["client", "gateway"])
def test_strict_mode_for_all_losses_rejects_a_request_for_the_other_api(gateway, run_by):
    tools = {"tools": [TOOL]} if run_by == "client" else {}
    server_side = {"x-dragoman-tools": "web_fetch"} if run_by == "gateway" else {}
    with pytest.raises(openai.BadRequestError) as error:
        open_chat(gateway).chat.completions.create(
            model=MODEL,
            messages=QUESTION,
            reasoning_effort="low",
            extra_headers={"x-dragoman-strict": "all", **server_side},
            **tools,
        )
    assert error.value.param == "reasoning_effort"


def test_an_upstream_with_only_chat_returns_the_vendors_error(gateway):
    simulated = gateway.simulator
    table = UpstreamTable(kind="openai", base_url=f"{simulated.base_url}/v1", api_key="k")
    models = {"gpt-5.4": ("chat-only/gpt-5.4",)}
    with run_server_gateway(simulated, upstreams={"chat-only": table}, models=models) as other:
        with pytest.raises(openai.BadRequestError) as error:
            open_chat(other).chat.completions.create(
                model="gpt-5.4", messages=QUESTION, tools=[TOOL], reasoning_effort="low"
            )
        assert error.value.param == "reasoning_effort"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_several_choices_of_tools_with_reasoning_are_one_responses_request_each(gateway, stream):
    seen = len(gateway.simulator.requests)
    reply = open_chat(gateway).chat.completions.create(
        model=MODEL, messages=QUESTION, tools=[TOOL], reasoning_effort="low", n=2, stream=stream
    )
    indexes = {choice.index for chunk in reply for choice in chunk.choices} if stream else {0, 1}
    assert indexes == {0, 1}
    assert stream or len(reply.choices) == 2
    assert list_new(gateway, seen) == [("responses", 200)] * 2


def test_a_claude_client_that_thinks_with_tools_is_served_over_responses(gateway):
    seen = len(gateway.simulator.requests)
    client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
    function = TOOL["function"]
    reply = client.messages.create(
        model=MODEL,
        max_tokens=4000,
        messages=QUESTION,
        thinking={"type": "enabled", "budget_tokens": 2000},
        tools=[{"name": function["name"], "input_schema": function["parameters"]}],
    )
    assert [block.name for block in reply.content if block.type == "tool_use"] == ["get_weather"]
    assert list_new(gateway, seen) == [("responses", 200)]


def test_a_gemini_client_that_thinks_with_tools_is_served_over_responses(gateway):
    seen = len(gateway.simulator.requests)
    client = gateway.open(genai.Client(api_key="any", http_options={"base_url": gateway.base_url}))
    function = TOOL["function"]
    declared = genai_types.FunctionDeclaration(
        name=function["name"], description="Weather", parameters_json_schema=function["parameters"]
    )
    config = genai_types.GenerateContentConfig(
        tools=[genai_types.Tool(function_declarations=[declared])],
        thinking_config=genai_types.ThinkingConfig(thinking_level="low"),
        automatic_function_calling=genai_types.AutomaticFunctionCallingConfig(disable=True),
    )
    reply = client.models.generate_content(model=MODEL, contents='What is the weather in "Tokyo"?', config=config)
    assert [call.name for call in reply.function_calls] == ["get_weather"]
    assert list_new(gateway, seen) == [("responses", 200)]


def test_a_run_with_server_side_tools_and_reasoning_uses_responses_too(gateway):
    seen = len(gateway.simulator.requests)
    open_chat(gateway).chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "hello"}],
        reasoning_effort="low",
        extra_headers={"x-dragoman-tools": "web_fetch"},
    )
    assert {api for api, _ in list_new(gateway, seen)} == {"responses"}


def test_an_invalid_request_gets_its_usual_error(gateway):
    with pytest.raises(openai.BadRequestError) as error:
        open_chat(gateway).chat.completions.create(
            model=MODEL, messages=QUESTION, tools=[{"type": "function"}], reasoning_effort="low"
        )
    assert "tools" in error.value.message
