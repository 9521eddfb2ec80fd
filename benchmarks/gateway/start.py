"""How long a server takes from its start to its first right answer, and how much memory it holds then."""

import time
import urllib.error
import urllib.request
from pathlib import Path

from msgspec import Struct

from benchmarks.bodies import request
from benchmarks.gateway import peers
from benchmarks.gateway.program import Program

_PATH = "/v1/chat/completions"
_SETTLED = 0.5
_LONGEST = 20.0


class Start(Struct, frozen=True):
    """One start."""

    seconds: float
    megabytes: float


def start(folder: Path) -> Start:
    """Start the gateway, ask it once, and stop it."""
    with peers.upstream() as upstream, peers.gateway(upstream.address(), folder) as gateway:
        wait_for_answer(gateway, gateway.address(), "", _LONGEST)
        seconds = time.perf_counter() - gateway.began
        time.sleep(_SETTLED)
        return Start(seconds, gateway.resident_megabytes())


def wait_for_answer(program: Program, address: str, header: str, longest: float) -> None:
    """Ask until a right answer comes."""
    headers = dict([header.strip().split(": ", 1)]) if header else {}
    asked = urllib.request.Request(  # noqa: S310  on loopback
        address + _PATH, request("chat", "small", model="gemini"), {"content-type": "application/json", **headers}
    )
    until = time.perf_counter() + longest
    while time.perf_counter() < until and program.runs:
        try:
            with urllib.request.urlopen(asked, timeout=longest) as answer:  # noqa: S310
                if b'"tool_calls"' in answer.read():
                    return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.02)
    raise RuntimeError(f"{address} did not answer")
