"""google-genai, unmodified, by its base URL: tools it never declared are called, and answered by a caller elsewhere."""

from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from dragoman.simulator.runner import in_thread
from intercept.surroundings import between, is_awaited, until
from oracles.clients import genai

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "name": "get_weather", "description": "Tell the weather in a city.", "parameters": SCHEMA}
MODEL = "gemini-3-flash"


@pytest.fixture(scope="module")
def simulator():
    with in_thread() as one:
        yield one


@pytest.fixture
def middle(simulator, tmp_path):
    with between(simulator.base_url, tmp_path, intercept={"me": {"upstream": "google"}}) as one:
        yield one


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as one:
        yield one


def client_at(middle, name="me"):
    return genai.Client(api_key="the-clients", http_options={"base_url": f"{middle.base_url}/intercept/{name}"})


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_call_is_captured_answered_through_responses_and_both_sides_see_the_end(middle, pool, simulator, streamed):
    caller = openai.OpenAI(base_url=f"{middle.base_url}/v1", api_key="any", max_retries=0)
    sdk = client_at(middle)
    chat = sdk.chats.create(model=MODEL)

    def say(text):
        if not streamed:
            return chat.send_message(text).text
        return "".join(chunk.text or "" for chunk in chat.send_message_stream(text))

    asking = pool.submit(
        caller.responses.create, model=MODEL, conversation="me", input="What is the weather in Paris?", tools=[TOOL]
    )
    until(lambda: is_awaited(middle, "me"))
    first = say("What is the weather in Paris?")
    assert "Waiting for tools" in first
    asked = asking.result(10)
    call = next(item for item in asked.output if item.type == "function_call")
    assert (call.name, "Paris" in call.arguments) == ("get_weather", True)
    answer = {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees and sunny"}
    telling = pool.submit(caller.responses.create, model=MODEL, conversation="me", input=[answer], tools=[TOOL])
    until(lambda: is_awaited(middle, "me"))
    last = say("(The tools have answered: go on.)")
    result = telling.result(10)
    assert "21 degrees" in last
    assert result.output_text == last
    until(lambda: middle.passed and middle.passed[-1].rules)
