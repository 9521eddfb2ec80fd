"""`dragoman mcp` starts with little more CPU time than the smallest server of the SDK needs."""

import json
import resource
import subprocess
import sys
from statistics import median
from subprocess import DEVNULL, PIPE

import pytest

ROUNDS = 5
MOST = 1.3
SMALLEST = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("smallest")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


server.run()
"""
OURS = "import sys; from dragoman.cli import main; sys.argv = ['dragoman', 'mcp']; sys.exit(main())"
GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
LINES = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": GREETING},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]


def measure(program, folder):
    """The CPU seconds of a server that is greeted, lists its tools and ends."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {"HOME": str(folder), "GEMINI_API_KEY": "k" * 20}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, cwd=folder) as server:  # noqa: S603
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{json.dumps(line)}\n" for line in LINES).encode())
        server.stdin.flush()
        answers = {line.get("id"): line for line in (json.loads(server.stdout.readline()) for _ in range(2))}
        server.stdin.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert answers[2]["result"]["tools"]
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
def test_it_starts_with_at_most_a_third_more_cpu_time_than_the_smallest_server_of_the_sdk(tmp_path):
    for program in (SMALLEST, OURS):  # the first run of each compiles its modules
        measure(program, tmp_path)
    pairs = [(measure(SMALLEST, tmp_path), measure(OURS, tmp_path)) for _ in range(ROUNDS)]
    smallest, ours = (median(times) for times in zip(*pairs, strict=True))
    assert ours <= MOST * smallest, pairs
