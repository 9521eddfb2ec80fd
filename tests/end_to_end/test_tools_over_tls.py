"""Tools that a client with a fixed host never declared: put in and called over TLS, answered through /v1/responses."""

import json
import re
import subprocess
from collections.abc import Generator
from typing import Any

import openai
import pytest

from dragoman.simulator.runner import Running, in_thread
from end_to_end.interception import Site

pytestmark = pytest.mark.slow

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "name": "get_weather", "description": "Tell the weather in a city.", "parameters": CITY}
MODEL = "gemini-3-flash"
PROMPT = "(The tools have answered: go on.)"
STUDIO = """
import json, sys
from google import genai
client = genai.Client(api_key="any")
chat = client.chats.create(model="gemini-3-flash")
for line in sys.stdin:
    text = json.loads(line)
    if sys.argv[1] == "whole":
        said = chat.send_message(text).text
    else:
        said = "".join(chunk.text or "" for chunk in chat.send_message_stream(text))
    print(json.dumps(said), flush=True)
"""
ASSIST = """
import json, sys
from urllib.request import Request, urlopen
history = []
for line in sys.stdin:
    history.append({"role": "user", "parts": [{"text": json.loads(line)}]})
    verb = "generateContent" if sys.argv[1] == "whole" else "streamGenerateContent?alt=sse"
    body = {"model": "gemini-3-flash", "project": "p", "request": {"contents": history}}
    url = f"https://cloudcode-pa.googleapis.com/v1internal:{verb}"
    headers = {"authorization": "Bearer any", "content-type": "application/json"}
    told = urlopen(Request(url, json.dumps(body).encode(), headers)).read().decode()
    chunks = [told] if sys.argv[1] == "whole" else [at[6:] for at in told.splitlines() if at.startswith("data: ")]
    said = [json.loads(chunk)["response"]["candidates"][0].get("content", {}).get("parts", []) for chunk in chunks]
    parts = [part for each in said for part in each]
    history.append({"role": "model", "parts": parts})
    print(json.dumps("".join(part.get("text", "") for part in parts if not part.get("thought"))), flush=True)
"""


@pytest.fixture
def simulator() -> Generator[Running]:
    with in_thread() as one:
        yield one


class Client:
    """A program that sends the given prompts and prints the answers."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        assert found, process.communicate()
        self.gateway = found[0]

    def say(self, text: str) -> str:
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._process.communicate()
        return json.loads(answer)


def run_to_end(events: Any) -> Any:
    """The response that a stream comes to."""
    return [event.response for event in events if event.type == "response.completed"][-1]


def test_if_the_gateway_has_keys_the_program_is_matched_with_callers_of_its_key(tmp_path, mitmproxy, simulator):
    site = Site(tmp_path, mitmproxy, simulator.base_url, server='keys = ["callers", "others"]')
    with site.start(*site.script(STUDIO), "whole", stdin=subprocess.PIPE, DRAGOMAN_KEY="callers") as process:
        try:
            client = Client(process)
            asked: Any = {"model": MODEL, "conversation": "client", "tools": [TOOL], "stream": True}
            keys = [
                openai.OpenAI(base_url=f"{client.gateway}/v1", api_key=key, max_retries=0)
                for key in ("callers", "others")
            ]
            ours, theirs = [one.responses.create(**asked, input="What is the weather in Paris?") for one in keys]
            assert "Waiting for tools" in client.say("What is the weather in Paris?")
            assert [item.name for item in run_to_end(ours).output] == ["get_weather"]
            theirs.close()
            for one in keys:
                one.close()
        finally:
            process.kill()


def test_a_program_passes_a_gateway_with_keys_without_knowing_one(tmp_path, mitmproxy, simulator):
    site = Site(tmp_path, mitmproxy, simulator.base_url, server='keys = ["callers"]')
    code = "from google import genai\nclient = genai.Client(api_key='any')\n"
    code += f"print(client.models.generate_content(model='{MODEL}', contents='Hi').text)"
    done = site.run(*site.script(code))
    assert "You said: “Hi”" in done.stdout, done.stderr
    assert "x-dragoman-key" not in {name for name, _ in simulator.requests[-1].headers}


@pytest.mark.parametrize("form", ["whole", "streamed"])
@pytest.mark.parametrize("program", [STUDIO, ASSIST], ids=["google-genai", "code-assist"])
def test_a_tool_is_called_over_tls_and_both_sides_see_the_end(tmp_path, mitmproxy, simulator, program, form):
    site = Site(tmp_path, mitmproxy, simulator.base_url)
    with site.start(*site.script(program), form, stdin=subprocess.PIPE) as process:
        try:
            client = Client(process)
            caller = openai.OpenAI(base_url=f"{client.gateway}/v1", api_key="any", max_retries=0, timeout=30)
            asked: Any = {"model": MODEL, "conversation": "client", "tools": [TOOL], "stream": True}
            # The answer begins before there is one: from then on the session has its tools.
            waiting = caller.responses.create(**asked, input="What is the weather in Paris?")
            assert "Waiting for tools" in client.say("What is the weather in Paris?")
            (call,) = [item for item in run_to_end(waiting).output if item.type == "function_call"]
            assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris"})
            given: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees and sunny"}
            waiting = caller.responses.create(**asked, input=[given])
            last = client.say(PROMPT)
            assert "21 degrees" in last
            assert run_to_end(waiting).output_text == last
            caller.close()
            process.stdin.close()
            assert process.wait(30) == 0
        finally:
            process.kill()
    first, second = [json.loads(one.body) for one in simulator.requests]
    first, second = first.get("request", first), second.get("request", second)
    assert first["tools"][0]["functionDeclarations"][0]["name"] == "get_weather"
    assert next(part for part in second["contents"][1]["parts"] if "functionCall" in part)["thoughtSignature"]
    # The SDK's chat keeps each chunk of a stream as a turn of its own.
    assert {turn["role"] for turn in second["contents"][1:-1]} == {"model"}
    (given,) = second["contents"][-1]["parts"]
    assert given["functionResponse"]["name"] == "get_weather"
    assert "Waiting" not in json.dumps(second)
