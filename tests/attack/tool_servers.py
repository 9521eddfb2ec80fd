"""MCP servers that flood: each is stopped and started again with a growing delay, and the gateway stays responsive."""

import http.client
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from attack.gateway import KEY, Gateway, Measure, percentile, run_gateway

_PEER = Path(__file__).parents[1] / "mcp" / "peers" / "plain.py"
_KINDS = ("line", "nonsense", "empty-lines", "notifications", "questions", "false-answers", "stderr")
_LONGEST_SECONDS = 120.0
_MAX_STARTS = 9
"""After delays of 0.25, 0.5, 1, 2 and 4 seconds, each up to a quarter shorter."""


def attack(scale: int) -> list[Measure]:
    """Run servers that flood as soon as their tools are listed, and one that behaves."""
    with TemporaryDirectory() as directory:
        tables = [_render_table("good", "", directory)]
        tables += [_render_table(kind, f"floods-at-once-{kind}", directory) for kind in _KINDS]
        with run_gateway(tables="\n".join(tables)) as gateway:
            failed = _watch(gateway, 3)  # the first starts
            cpu, start = gateway.cpu_seconds, time.monotonic()
            with gateway.probe_health(0.05) as times, gateway.watch_memory() as memory:
                failed |= _watch(gateway, 4 + 2 * scale)
            busy = (gateway.cpu_seconds - cpu) / (time.monotonic() - start) * 100
            # On a busy machine a server may need longer to start than the attack lasts.
            most, end = max(_count_starts(directory)), time.monotonic() + _LONGEST_SECONDS
            while time.monotonic() < end and (set(_KINDS) - failed or min(_count_starts(directory)) < 2):
                failed |= _watch(gateway, 0.5)
        starts = _count_starts(directory)
    return [
        Measure("servers that flood and are never shown as failed", len(set(_KINDS) - failed), 0, "servers"),
        Measure("servers that behave and are shown as failed", len({"good"} & failed), 0, "servers"),
        Measure("servers that flood and are not started again", sum(each < 2 for each in starts), 0, "servers"),
        Measure("starts of a server that floods", most, _MAX_STARTS, "starts"),
        Measure("memory while servers flood", memory[0], 200, "MB"),
        Measure("CPU of the gateway while servers flood", busy, 60, "%"),
        Measure("p99 of /health while servers flood", percentile(times, 0.99), 250, "ms"),
    ]


def _count_starts(directory: str) -> list[int]:
    """Return how often each server that floods was started."""
    files = [Path(directory) / name for name in _KINDS]
    return [len(file.read_text().splitlines()) if file.exists() else 0 for file in files]


def _render_table(name: str, manner: str, directory: str) -> str:
    arguments = json.dumps([str(_PEER), manner])
    starts = json.dumps(str(Path(directory) / name))
    command = json.dumps(sys.executable)
    return f"[tools.{name}]\ncommand = {command}\nargs = {arguments}\nenv = {{ PLAIN_STARTS = {starts} }}"


def _watch(gateway: Gateway, seconds: float) -> set[str]:
    """Return the servers that `/health` shows as failed, now or later."""
    failed, end = set[str](), time.monotonic() + seconds
    while time.monotonic() < end:
        connection = http.client.HTTPConnection(*gateway.address, timeout=30)
        connection.request("GET", "/health", headers={"authorization": f"Bearer {KEY}"})
        servers = json.loads(connection.getresponse().read())["tool_servers"]["servers"]
        connection.close()
        failed |= {each["name"] for each in servers if each.get("failures")}
        time.sleep(0.1)
    return failed
