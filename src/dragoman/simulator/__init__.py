"""Strict offline stand-ins for the four vendor APIs: what the vendor would refuse, they refuse.

For tests of programs that speak to an LLM:

    async with dragoman.simulator.running() as sim:
        client = AsyncOpenAI(base_url=sim.base_url + "/v1", api_key="any")
        ...
        assert sim.requests[0].json()["tools"]

`in_thread` is the same for programs that do not use asyncio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.simulator.app import Seen, Settings, Simulator
    from dragoman.simulator.faults import Fault, read_fault
    from dragoman.simulator.recordings import Recordings
    from dragoman.simulator.script import Received, TomlScript, Unmet, read_script
    from dragoman.simulator.serving import Running, in_thread, running
    from dragoman.simulator.talk import Answer, Ask, Call

_HOMES = {
    "Answer": "talk",
    "Ask": "talk",
    "Call": "talk",
    "Fault": "faults",
    "Received": "script",
    "Recordings": "recordings",
    "Running": "serving",
    "Seen": "app",
    "Settings": "app",
    "Simulator": "app",
    "TomlScript": "script",
    "Unmet": "script",
    "in_thread": "serving",
    "read_fault": "faults",
    "read_script": "script",
    "running": "serving",
}

__all__ = [
    "Answer",
    "Ask",
    "Call",
    "Fault",
    "Received",
    "Recordings",
    "Running",
    "Seen",
    "Settings",
    "Simulator",
    "TomlScript",
    "Unmet",
    "in_thread",
    "read_fault",
    "read_script",
    "running",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
