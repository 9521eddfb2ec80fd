"""docs/reference/simulator.md is true: its commands, scripts, recordings and tests run, and nothing that exists is left out."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import msgspec
import pytest

from dragoman.simulator.apis.conversation import AnswerEnd
from dragoman.simulator.faults import _OPTIONS, NAMES
from dragoman.simulator.recordings import Recordings
from dragoman.simulator.script import Step, TomlScript, When, read_script
from dragoman.simulator.state import Settings

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "simulator.md").read_text(encoding="utf-8")
KEY = {"authorization": "Bearer any"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_every_command_runs(simulator):
    if shutil.which("curl") is None or shutil.which("sh") is None:
        pytest.skip("there is no curl here")
    for block in blocks("sh"):
        commands = block.replace("http://127.0.0.1:8742", simulator.base_url).replace("\ncurl ", "\necho; curl ")
        captured = subprocess.run(["sh", "-ec", commands], capture_output=True, check=True, text=True)  # noqa: S603, S607
        values = [json.loads(line) for line in captured.stdout.splitlines()]
        assert len(values) == block.count("curl ")
    assert any(seen.status == 200 and b"get_weather" in seen.body for seen in simulator.requests)


def test_every_script_in_toml_is_read(tmp_path):
    for block in blocks("toml"):
        path = tmp_path / "script.toml"
        path.write_text(block, encoding="utf-8")
        TomlScript.read(path)
    assert len(blocks("toml")) == 1


def test_the_documented_python_script_works(tmp_path, simulate):
    path = tmp_path / "script.py"
    path.write_text(blocks("python script")[0], encoding="utf-8")
    running = simulate(script=read_script(path))

    def ask(output: str, **more: object) -> httpx2.Response:
        body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": output}], **more}
        return httpx2.post(running.base_url + "/v1/chat/completions", json=body, headers=KEY)

    assert "too hot" in ask("hello", temperature=2).json()["error"]["message"]
    assert ask("fail").status_code == 503
    assert ask("go", tools=[TOOL]).json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "f"
    assert "simulator" in ask("hello").text


def test_every_recording_is_read(tmp_path):
    path = tmp_path / "recorded.jsonl"
    path.write_text(blocks("json")[0], encoding="utf-8")
    assert Recordings.read(path).find("/v1/chat/completions", b'{"model": "gpt-5.4"}') is not None


@pytest.mark.slow
def test_the_tests_of_the_guide_pass(tmp_path):
    guide = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "test-with-the-simulator.md").read_text("utf-8")
    tests = re.findall(r"^```python pytest\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "test_agent.py").write_text("".join(tests), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)  # noqa: S603
    assert done.returncode == 0, done.stdout
    assert f"{len(tests)} passed" in done.stdout


@pytest.mark.slow
def test_the_documented_pytest_example_passes(tmp_path):
    (tmp_path / "test_agent.py").write_text(blocks("python pytest")[0], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(tmp_path)]
    captured = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)  # noqa: S603
    assert captured.returncode == 0, captured.stdout
    assert "1 passed" in captured.stdout


def test_every_option_is_described(capsys):
    with pytest.raises(SystemExit):
        importlib.import_module("dragoman.cli").main(["simulate", "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert not {option for option in options if not re.search(rf"^\| .*`{option}\b.* \|", TEXT, re.MULTILINE)}
    assert not {name for name in Settings.__struct_fields__ if f"| `{name}` |" not in TEXT}


def test_every_fault_is_described_with_its_options():
    rows = dict.fromkeys(NAMES, "") | dict(re.findall(r"^\| `([a-z-]+)` \| (.*?) ?\| ", TEXT, re.MULTILINE))
    for name in NAMES.keys() - {"status"}:
        assert f"| `{name}` |" in TEXT
        assert set(re.findall(r"`([a-z-]+)`", rows[name])) == _OPTIONS.get(name, set()), name


def test_every_key_of_a_script_is_described():
    keys = {*Step.__struct_fields__, *When.__struct_fields__, *msgspec.inspect.type_info(AnswerEnd).values}
    assert not {key for key in keys if f"`{key}`" not in TEXT}
