"""To follow one streamed tool call through the gateway, a reader opens few files."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from architecture.tree import PACKAGE

MOST_FILES = 55
MOST_LINES = 10_000
MOST_CHANGES = 120
"""How often a call leads from one package to another."""

TRACED = """
import json, sys, threading, time

root, out, *sys.argv = sys.argv[1:]
calls = []

def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        calls.append((time.time(), frame.f_code.co_filename[len(root) + 1:]))

from dragoman.cli import main

threading.setprofile(note)
sys.setprofile(note)
try:
    main()
finally:
    sys.setprofile(None)
    with open(out, "w") as file:
        json.dump(calls, file)
"""

TOOL = {
    "name": "get_weather",
    "description": "Get the weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
BODY = {
    "model": "gemini-3-flash",
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": TOOL}],
    "messages": [{"role": "user", "content": "What is the weather in Tokyo?"}],
}


_RUNS = 3
"""On a busy machine the reply arrives in more pieces, each with its own calls: the run with the fewest counts."""


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> list[str]:
    """The file of each call, in order, while a Chat request is answered by a Gemini upstream for the first time."""
    walks: list[list[str]] = []
    while len(walks) < _RUNS and (not walks or count_changes(walks[-1]) > MOST_CHANGES):
        walks.append(trace(tmp_path_factory.mktemp("walk")))
    return min(walks, key=count_changes)


def trace(folder: Path) -> list[str]:
    """Return the file of each call while one request is answered by a gateway that has just started."""
    upstream, port, calls = free_port(), free_port(), folder / "calls.json"
    config = folder / "dragoman.toml"
    config.write_text(
        f'[server]\nlisten = "127.0.0.1:{port}"\n[upstreams.g]\nkind = "gemini"\napi_key = "k"\n'
        f'base_url = "http://127.0.0.1:{upstream}"\n[models]\n"*" = "g/*"\n[sessions]\nurl = "sqlite:///{folder}/s.db"\n',
        encoding="utf-8",
    )
    simulate = [sys.executable, "-c", "from dragoman.cli import main; main()", "simulate", "--port", str(upstream)]
    serve = [sys.executable, "-c", TRACED, str(PACKAGE), str(calls), "dragoman", "serve", "--config", str(config)]
    with ExitStack() as stack:
        for command, at in ((simulate, upstream), (serve, port)):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
            stack.callback(process.wait, 20)
            stack.callback(process.terminate)
            wait_for(f"http://127.0.0.1:{at}/health")
        start = time.time()
        answer = ask(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(BODY).encode())
        assert b"get_weather" in answer
        time.sleep(0.2)  # The log line is written a moment later.
        end = time.time()
    return [file for at, file in json.loads(calls.read_bytes()) if start <= at <= end]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def ask(url: str, body: bytes | None = None) -> bytes:
    request = urllib.request.Request(url, body, {"content-type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=20) as reply:  # noqa: S310
        found: Any = reply.read()
        return found


def wait_for(url: str) -> None:
    for _ in range(400):
        try:
            ask(url)
        except urllib.request.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"nothing answers at {url}")


def test_a_request_is_followed_in_few_files(walk):
    files = dict.fromkeys(walk)
    lines = sum((PACKAGE / file).read_text(encoding="utf-8").count("\n") for file in files)
    assert (len(files) <= MOST_FILES, lines <= MOST_LINES) == (True, True), f"{len(files)} files, {lines} lines"


def count_changes(walk: list[str]) -> int:
    packages = [file.partition("/")[0] for file in walk]
    return sum(one != other for one, other in pairwise(packages))


def test_a_request_changes_packages_seldom(walk):
    assert count_changes(walk) <= MOST_CHANGES
