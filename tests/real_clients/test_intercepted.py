"""Unmodified Gemini CLI is intercepted: it calls tools that a caller added and answers."""

import json
import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from dragoman.simulator import Answer, Call, Received
from dragoman.simulator.runner import in_thread
from intercept.surroundings import Between, between, is_awaited, until
from npm import NODE
from real_clients.dead_end import dead_end
from real_clients.launch import SELECTED
from real_clients.settings import shell
from real_clients.stage import Stage

pytestmark = pytest.mark.slow
MODEL = "gemini-3-flash"
TOOL: Any = {
    "type": "function",
    "name": "open_safe",
    "description": "Open the safe and tell what is in it.",
    "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
}
ENTRIES = {"gemini-cli": "google", "gemini-cli-code-assist": "assist"}


def script(received: Received) -> Answer | None:
    """Call the safe tool if it exists, and report its result."""
    last = received.request.turns[-1]
    if last.results:
        return Answer(text=f"In the safe is {last.results[0].text}")
    if any(tool.name == "open_safe" for tool in received.request.tools) and "safe" in last.text:
        return Answer(calls=(Call(id="c1", name="open_safe", arguments={"code": "1234"}),), end="calls")
    return None


class Placed:
    """A gateway with one entry, and how Gemini CLI is started."""

    def __init__(self, middle: Between, folder: Path, simulator: Any) -> None:
        self.middle = middle
        self.folder = folder
        self.simulator = simulator
        self.caller = openai.OpenAI(base_url=f"{middle.base_url}/v1", api_key="any", max_retries=0, timeout=120)

    def ask(self, output: Any) -> Any:
        return self.caller.responses.create(model=MODEL, conversation="cli", input=output, tools=[TOOL])

    def read_history(self) -> list[Any]:
        """Return the last history with results that the model was sent."""
        bodies = [json.loads(seen.body) for seen in self.simulator.requests if b"functionResponse" in seen.body]
        return bodies[-1].get("request", bodies[-1])["contents"]


@contextmanager
def run_intercepted(tmp_path: Path, mode: str, command: list[str], variables: dict[str, str]) -> Generator[Placed]:
    folder = tmp_path / "work"
    entry = {"upstream": ENTRIES[mode], "command": command, "env": variables, "cwd": str(folder), "timeout": 90.0}
    entries = {"cli": entry}
    with in_thread(script=script) as simulator, between(simulator.base_url, tmp_path, intercept=entries) as middle:
        yield Placed(middle, folder, simulator)


def home_of(tmp_path: Path, mode: str) -> Path:
    home = tmp_path / "home"
    (home / ".gemini").mkdir(parents=True)
    settings = {"security": {"auth": {"selectedType": SELECTED[mode]}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (tmp_path / "work").mkdir()
    return home


@pytest.mark.parametrize("mode", ENTRIES)
def test_gemini_cli_that_is_started_for_each_turn(programs, tmp_path, mode):
    home = home_of(tmp_path, mode)
    variables, _ = shell(mode, "{url}")
    words = [str(word) for word in programs["gemini"]]
    printed = tmp_path / "printed"
    command = ["sh", "-c", f'exec "$@" >> {printed}', "sh", *words, "-m", MODEL, "-p", "{prompt}"]
    with dead_end() as outside:
        path = os.pathsep.join([str(NODE.parent), os.environ["PATH"]])
        environment = {"HOME": str(home), "PATH": path, "GEMINI_CLI_TRUST_WORKSPACE": "true", **outside.environment}
        with run_intercepted(tmp_path, mode, command, {**environment, **variables}) as sandbox:
            asked = sandbox.ask("Please open the safe.")
            call = next(item for item in asked.output if item.type == "function_call")
            assert (call.name, json.loads(call.arguments)) == ("open_safe", {"code": "1234"})
            answer = {"type": "function_call_output", "call_id": call.call_id, "output": "a golden spoon"}
            reply = sandbox.ask([answer])
            assert reply.output_text == "In the safe is a golden spoon"
            until(lambda: "a golden spoon" in printed.read_text(), 60)
            assert "Waiting for tools" in printed.read_text()
            contents = sandbox.read_history()
    assert [part["functionResponse"]["name"] for part in contents[-1]["parts"]] == ["open_safe"]
    assert contents[-2]["parts"][0]["thoughtSignature"]


def test_gemini_cli_that_takes_up_its_own_conversation(programs, tmp_path):
    home = home_of(tmp_path, "gemini-cli")
    words = [*programs["gemini"], "-m", MODEL]
    with (
        dead_end() as outside,
        run_intercepted(tmp_path, "gemini-cli", [], {}) as sandbox,
        ThreadPoolExecutor(2) as pool,
    ):
        variables, _ = shell("gemini-cli", f"{sandbox.middle.base_url}/intercept/cli")
        variables["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        stage = Stage(sandbox.middle.base_url, sandbox.simulator, outside, sandbox.folder, home)
        waiting = pool.submit(sandbox.ask, "(it asks by itself)")
        until(lambda: is_awaited(sandbox.middle, "cli"))
        assert "Waiting for tools" in stage.run([*words, "-p", "Please open the safe."], variables)
        call = next(item for item in waiting.result(60).output if item.type == "function_call")
        answer = {"type": "function_call_output", "call_id": call.call_id, "output": "a golden spoon"}
        waiting = pool.submit(sandbox.ask, [answer])
        until(lambda: is_awaited(sandbox.middle, "cli"))
        go_on = ["--resume", "latest", "-p", "(The tools have answered: go on.)"]
        assert "a golden spoon" in stage.run([*words, *go_on], variables)
        assert waiting.result(60).output_text == "In the safe is a golden spoon"
        assert "calls and results inserted" in [rule for one in sandbox.middle.passed for rule in one.rules]
        assert "Waiting" not in json.dumps(sandbox.read_history())
