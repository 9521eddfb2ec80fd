"""The README's examples, run against a gateway whose upstream is the simulator."""

import re
from pathlib import Path

import httpx2
import pytest

from dragoman.config import Config, load
from dragoman.http.server import in_background
from dragoman.server.serving import running
from oracles.clients import genai

README = Path(__file__).parents[3] / "README.md"
BLOCKS = re.findall(r"^```python gateway\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def unconfigured(tmp_path, monkeypatch):
    """A gateway as a newcomer starts it: no file, no key."""
    monkeypatch.chdir(tmp_path)
    config: Config = load(environment={})
    with in_background(lambda: running(config, port=0, grace=0.2), "gateway") as gateway:
        yield gateway


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_calls_a_tool(unconfigured, block, capsys):
    assert genai is not None  # imported here, where its warning at import is expected
    exec(block.replace("http://127.0.0.1:8741", unconfigured.base_url), {})  # noqa: S102  our own words
    assert "Tokyo" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["nested", "flat"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_first_request_a_newcomer_tries_calls_a_tool(unconfigured, form, streamed):
    function = {
        "name": "get_weather",
        "description": "Get weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
    tool = {"type": "function", "function": function} if form == "nested" else {"type": "function", **function}
    asked = {
        "model": "gemini-3-flash",
        "input": "What is the weather in Tokyo?",
        "tools": [tool],
        "tool_choice": "auto",
    }
    told = httpx2.post(f"{unconfigured.base_url}/v1/responses", json={**asked, "stream": streamed})
    assert told.status_code == 200, told.text
    assert "get_weather" in told.text
    assert "Tokyo" in told.text
    assert "call_id" in told.text


def test_a_plain_question_is_answered_in_words(unconfigured):
    asked = {"model": "gemini-3-flash", "input": "What is 2+2?", "stream": False}
    told = httpx2.post(f"{unconfigured.base_url}/v1/responses", json=asked).json()
    assert [item["type"] for item in told["output"] if item["type"] != "reasoning"] == ["message"]
