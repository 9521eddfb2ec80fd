"""The README's examples, run against a gateway whose upstream is the simulator."""

import json
import re
import shlex
from pathlib import Path

import httpx2
import pytest

from dragoman.config import Config, load
from dragoman.http.server import run_in_thread
from dragoman.server.runner import running
from oracles.clients import genai

README = Path(__file__).parents[3] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BASE_URL = "http://127.0.0.1:8741"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "What is the weather in Tokyo?"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def unconfigured(tmp_path, monkeypatch):
    """A gateway as a newcomer starts it: no file, no key."""
    monkeypatch.chdir(tmp_path)
    config: Config = load(environment={})
    with run_in_thread(lambda: running(config, port=0, grace=0.2), "gateway") as gateway:
        yield gateway


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) < 250


def test_every_dialect_has_a_curl_example():
    paths = [shlex.split(block)[1].removeprefix(BASE_URL) for block in blocks("sh curl")]
    assert paths == [
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1beta/models/claude-opus-4-8:generateContent",
    ]


@pytest.mark.parametrize("block", blocks("sh curl"))
def test_a_curl_example_calls_a_tool(unconfigured, block):
    curl, url, header_option, header, data_option, body = shlex.split(block)
    assert (curl, header_option, data_option) == ("curl", "-H", "-d")
    name, value = header.split(": ")
    reply = httpx2.post(url.replace(BASE_URL, unconfigured.base_url), headers={name: value}, content=body.encode())
    assert reply.status_code == 200, reply.text
    assert "get_weather" in reply.text
    assert "Tokyo" in reply.text
    assert "material=0" in reply.headers.get("x-dragoman-losses", "0; material=0")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_sdk_clients_call_a_tool(unconfigured):
    assert genai is not None  # imported here, where its warning at import is expected
    (block,) = blocks("python sdk")
    names: dict = {}
    exec(block.replace(BASE_URL, unconfigured.base_url), names)  # noqa: S102  our own words
    function = {"name": "get_weather", "description": "Get the weather", "parameters": CITY}
    messages = [{"role": "user", "content": QUESTION}]
    chat = names["openai"].chat.completions.create(
        model="gemini-3-flash", messages=messages, tools=[{"type": "function", "function": function}]
    )
    assert json.loads(chat.choices[0].message.tool_calls[0].function.arguments) == {"city": "Tokyo"}
    response = names["openai"].responses.create(
        model="gemini-3-flash", input=messages, tools=[{"type": "function", **function}], store=False
    )
    (call,) = [item for item in response.output if item.type == "function_call"]
    assert json.loads(call.arguments) == {"city": "Tokyo"}
    message = names["anthropic"].messages.create(
        model="gemini-3-flash",
        max_tokens=1000,
        messages=messages,
        tools=[{"name": "get_weather", "description": "Get the weather", "input_schema": CITY}],
    )
    assert [block.input for block in message.content if block.type == "tool_use"] == [{"city": "Tokyo"}]
    declaration = {"name": "get_weather", "description": "Get the weather", "parameters_json_schema": CITY}
    reply = names["gemini"].models.generate_content(
        model="claude-opus-4-8",
        contents=QUESTION,
        config={"tools": [{"function_declarations": [declaration]}]},
    )
    assert [call.args for call in reply.function_calls] == [{"city": "Tokyo"}]


@pytest.mark.parametrize("form", ["nested", "flat"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_first_request_a_newcomer_tries_calls_a_tool(unconfigured, form, streamed):
    function = {"name": "get_weather", "description": "Get weather", "parameters": CITY}
    tool = {"type": "function", "function": function} if form == "nested" else {"type": "function", **function}
    request = {"model": "gemini-3-flash", "input": QUESTION, "tools": [tool], "tool_choice": "auto"}
    reply = httpx2.post(f"{unconfigured.base_url}/v1/responses", json={**request, "stream": streamed})
    assert reply.status_code == 200, reply.text
    assert "get_weather" in reply.text
    assert "Tokyo" in reply.text
    assert "call_id" in reply.text


def test_a_prompt_without_tools_is_answered_with_text(unconfigured):
    request = {"model": "gemini-3-flash", "input": "What is 2+2?", "stream": False}
    reply = httpx2.post(f"{unconfigured.base_url}/v1/responses", json=request).json()
    assert [item["type"] for item in reply["output"] if item["type"] != "reasoning"] == ["message"]
