"""`dragoman simulate`: a server until it is interrupted."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.cli import main

PROGRAM = "from dragoman.cli import main; raise SystemExit(main())"
HELLO = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Say hello."}]}
KEY = {"authorization": "Bearer k"}


@contextlib.contextmanager
def simulate(*options: str, **environment: str) -> Generator[tuple[str, Any]]:
    """Run the command; yields where it listens, and the process."""
    command = [sys.executable, "-c", PROGRAM, "simulate", "--port", "0", *options]
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            yield re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())[0], process
        finally:
            process.kill()


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_stop_signal(name):
    with simulate("--seed", "4") as (url, process):
        assert httpx2.get(url + "/health").json()["simulator"] is True
        process.send_signal(name)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def test_clients_that_leave_in_the_middle_leave_nothing_behind():
    with simulate("--delay", "0.01", "--chunk", "1") as (url, process):
        for _ in range(5):
            stream = httpx2.stream("POST", url + "/v1/chat/completions", json=HELLO | {"stream": True}, headers=KEY)
            with stream as reply:
                next(reply.iter_bytes())
        assert httpx2.get(url + "/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""


def test_answers_come_from_a_script_in_toml_or_python(tmp_path):
    toml, python = tmp_path / "a.toml", tmp_path / "b.py"
    toml.write_text('[[step]]\ntext = "from toml"\n')
    python.write_text(
        "from dragoman.simulator import Answer\ndef script(received):\n return Answer(text='from python')\n"
    )
    for path, words in ((toml, "from toml"), (python, "from python")):
        with simulate("--script", str(path)) as (url, _):
            reply = httpx2.post(url + "/v1/chat/completions", json=HELLO, headers=KEY).json()
            assert reply["choices"][0]["message"]["content"] == words


def test_it_answers_within_half_a_second_of_work(tmp_path):
    def work() -> float:
        with simulate(PYTHONPYCACHEPREFIX=str(tmp_path), PYTHONDONTWRITEBYTECODE="") as (url, process):
            assert httpx2.post(url + "/v1/chat/completions", json=HELLO, headers=KEY).status_code == 200
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    if not Path("/proc/self/stat").exists():
        pytest.skip("what a process has worked is not told here")
    work()  # compiles
    assert min(work() for _ in range(3)) < 0.5


def test_the_command_loads_nothing_for_other_subcommands():
    script = "import sys, dragoman.cli; print(*sys.modules)"
    captured = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)  # noqa: S603
    loaded = set(captured.stdout.split())
    assert "dragoman.cli.simulate" in loaded
    heavy = (
        "asyncio",
        "httptools",
        "uvloop",
        "msgspec",
        "dragoman.dialects",
        "dragoman.interpreter",
        "dragoman.simulator",
    )
    assert not loaded & set(heavy)


def test_the_dialects_named_by_the_command_are_those_there_are():
    choices, registry = (import_module(f"dragoman.{name}") for name in ("cli.choices", "dialects.registry"))
    assert tuple(registry.DIALECTS) == choices.sources(plugins=False)


def test_faults_are_listed(capsys):
    assert main(["simulate", "--fault", "list"]) == 0
    assert "stream-error: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--fault", "burn"), "not a fault"),
        (("--script", "no/such/file.toml"), "No such file"),
        (("--script", "no/such/file.py"), "No such file"),
        (("--recording", "no/such/file.jsonl"), "No such file"),
        (("--chunk", "-1"), "chunk must be 0 or a positive finite number"),
        (("--delay", "nan"), "delay must be 0 or a positive finite number"),
        (("--split", "-1"), "split must be 0 or a positive finite number"),
        (("--port", "99999"), "port must be a number from 0 to 65535"),
    ],
)
def test_invalid_options_are_reported(arguments, words, capsys):
    assert main(["simulate", *arguments]) == 2
    captured = capsys.readouterr().err
    assert captured.startswith("dragoman: ")
    assert words in captured


def test_a_port_in_use_is_reported(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["simulate", "--port", str(port)]) == 2
    assert capsys.readouterr().err == f"dragoman: port {port} is in use; choose another with --port\n"
