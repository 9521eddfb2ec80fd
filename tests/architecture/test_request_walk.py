"""To follow one streamed tool call through the gateway, a reader opens few files."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import pytest

from architecture.tree import PACKAGE

MOST_FILES = 55
MOST_LINES = 11_000
MOST_CHANGES = 115
"""How often a call leads from one package to another."""

TRACED = """
import json, sys, threading, time

root, out, *sys.argv = sys.argv[1:]
calls = []

def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(root) and not is_resumed(frame):
        calls.append((time.time(), threading.get_ident(), frame.f_code.co_filename[len(root) + 1:]))

def is_resumed(frame):
    # How often a coroutine waits depends on the machine's load; the argument of RESUME is 0 at the start of a function.
    return frame.f_code.co_code[frame.f_lasti + 1] & 3 != 0

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


GEMINI_BODY = {
    "contents": [{"role": "user", "parts": [{"text": "What is the weather in Tokyo?"}]}],
    "tools": [
        {"functionDeclarations": [{"name": TOOL["name"], "parametersJsonSchema": TOOL["parameters"]}]},
    ],
}


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> dict[int, list[str]]:
    """The files of the calls of each thread, in order, while a Chat request is answered by a Gemini upstream for the first time."""
    folder = tmp_path_factory.mktemp("walk")
    port, calls, config = free_port(), folder / "calls.json", folder / "dragoman.toml"
    with ExitStack() as stack:
        upstream = stack.enter_context(replay(simulate_reply(stack)))
        config.write_text(
            f'[server]\nlisten = "127.0.0.1:{port}"\n[upstreams.g]\nkind = "gemini"\napi_key = "k"\n'
            f'base_url = "http://127.0.0.1:{upstream}"\n[models]\n"*" = "g/*"\n'
            f'[sessions]\nurl = "sqlite:///{folder}/s.db"\n',
            encoding="utf-8",
        )
        start_process(stack, TRACED, str(PACKAGE), str(calls), "dragoman", "serve", "--config", str(config))
        wait_for(f"http://127.0.0.1:{port}/health")
        time.sleep(0.2)  # The check of the health ends a moment later, too.
        start = time.time()
        answer = ask(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(BODY).encode())
        assert b"get_weather" in answer
        time.sleep(0.2)  # The log line is written a moment later.
        end = time.time()
    threads: dict[int, list[str]] = {}
    for at, thread, file in json.loads(calls.read_bytes()):
        if start <= at <= end:
            threads.setdefault(thread, []).append(file)
    return threads


def start_process(stack: ExitStack, program: str, *arguments: str) -> None:
    command = [sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    stack.callback(process.wait, 20)
    stack.callback(process.terminate)


def simulate_reply(stack: ExitStack) -> bytes:
    """Return the simulator's streamed reply with a call of the tool."""
    port = free_port()
    start_process(stack, "from dragoman.cli import main; main()", "simulate", "--port", str(port))
    wait_for(f"http://127.0.0.1:{port}/health")
    url = f"http://127.0.0.1:{port}/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse&key=k"
    return ask(url, json.dumps(GEMINI_BODY).encode())


@contextmanager
def replay(body: bytes) -> Iterator[int]:
    """Serve a streamed reply in one piece: each further piece would repeat the same calls, as many as time allows."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n".encode()

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            length = 0
            while (line := self.rfile.readline()) not in {b"\r\n", b""}:
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if self.rfile.read(length):
                self.wfile.write(head + body)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


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
    files = {file for calls in walk.values() for file in calls}
    lines = sum((PACKAGE / file).read_text(encoding="utf-8").count("\n") for file in files)
    assert (len(files) <= MOST_FILES, lines <= MOST_LINES) == (True, True), f"{len(files)} files, {lines} lines"


def count_changes(walk: list[str]) -> int:
    packages = [file.partition("/")[0] for file in walk]
    return sum(one != other for one, other in pairwise(packages))


def test_a_request_changes_packages_seldom(walk):
    # Where the calls of two threads meet depends on the machine's load.
    assert sum(map(count_changes, walk.values())) <= MOST_CHANGES
