"""The gateway under attack: a process with the simulator as its upstream, its memory, and a prober of its health."""

import contextlib
import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from server import processes

KEY = "a-key-of-the-attack-run"
CONFIG = """
[server]
listen = "127.0.0.1:0"
keys = ["{key}"]
log = "off"
{server}

[server.limits]
{limits}

[upstreams.simulator]
kind = "simulator"
{upstream}

[models]
{models}
"*" = "simulator/*"

[sessions]
url = "sqlite:///{directory}/sessions.db"
{tables}
"""


@dataclass(frozen=True)
class Measure:
    """A measured value and the most it may be."""

    name: str
    value: float
    most: float
    unit: str = ""
    detail: str = ""

    @property
    def is_time(self) -> bool:
        """Whether the value depends on the speed of the machine; the tests do not assert it."""
        return self.unit in {"ms", "s", "%"}

    @property
    def is_met(self) -> bool:
        return self.value <= self.most

    def __str__(self) -> str:
        verdict = "holds" if self.is_met else f"MISSED {self.detail}"
        return f"{self.name}: {self.value:,.0f} {self.unit} (at most {self.most:,.0f}): {verdict}"


class Gateway:
    """A running gateway."""

    def __init__(self, command: processes.Command) -> None:
        self.command = command
        self.base_url = command.base_url
        parts = urlsplit(command.base_url)
        self.address = (parts.hostname or "", parts.port or 0)

    def connect(self, timeout: float = 30) -> socket.socket:
        return socket.create_connection(self.address, timeout=timeout)

    @property
    def memory(self) -> int:
        """The resident memory of the process in bytes."""
        status = Path(f"/proc/{self.command.process.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))

    @property
    def cpu_seconds(self) -> float:
        """The CPU time that the process has used."""
        return time.clock_gettime((~self.command.process.pid << 3) | 2)

    @contextlib.contextmanager
    def watch_memory(self) -> Generator[list[float]]:
        """Yield a list whose only item is the most that the memory has grown, in MB."""
        before, stopped, most = self.memory, threading.Event(), [0.0]

        def watch() -> None:
            while not stopped.wait(0.02):
                most[0] = max(most[0], (self.memory - before) / 1e6)

        with run_thread(watch, stopped):
            yield most

    @contextlib.contextmanager
    def probe_health(self, interval: float = 0.01) -> Generator[list[float]]:
        """Yield the response times of `/health` in ms, requested every `interval` seconds."""
        stopped, times = threading.Event(), list[float]()

        def probe() -> None:
            connection = http.client.HTTPConnection(*self.address, timeout=60)
            while not stopped.wait(interval):
                start = time.perf_counter()
                connection.request("GET", "/health")
                reply = connection.getresponse()
                reply.read()
                times.append((time.perf_counter() - start) * 1e3 if reply.status == 200 else float("inf"))
            connection.close()

        with run_thread(probe, stopped):
            yield times


@contextlib.contextmanager
def run_thread(work, stopped: threading.Event) -> Generator[None]:
    """Run a function in a thread while the block runs, and set `stopped` at its end."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@contextlib.contextmanager
def run_gateway(
    limits: str = "", server: str = "", tables: str = "", *options: str, upstream: str = "", models: str = ""
) -> Generator[Gateway]:
    """Run `dragoman serve` while the block runs, with more lines of configuration."""
    with TemporaryDirectory() as directory:
        config = Path(directory) / "dragoman.toml"
        texts = {"limits": limits, "server": server, "tables": tables, "upstream": upstream, "models": models}
        config.write_text(CONFIG.format(key=KEY, directory=directory, **texts))
        with processes.serve(Path(directory), "--config", str(config), *options) as command:
            yield Gateway(command)


@contextlib.contextmanager
def run_simulator() -> Generator[str]:
    """Run the simulator in a process of its own while the block runs; yield its URL."""
    command = [sys.executable, "-c", processes.PROGRAM, "simulate", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            found = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
            assert found
            yield found[0]
        finally:
            process.kill()


def percentile(values: list[float], share: float) -> float:
    """The value that a share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("inf")


def render_head(gateway: Gateway, length: int, path: str = "/v1/chat/completions", key: str = KEY) -> bytes:
    """The head of a POST request with a body of a length."""
    authorization = f"authorization: Bearer {key}\r\n" if key else ""
    host = f"{gateway.address[0]}:{gateway.address[1]}"
    return (
        f"POST {path} HTTP/1.1\r\nhost: {host}\r\n{authorization}content-type: application/json\r\n"
        f"content-length: {length}\r\n\r\n"
    ).encode()
