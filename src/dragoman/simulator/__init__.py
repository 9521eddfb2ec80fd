"""Strict offline simulators of the four vendor APIs: they reject what the vendor would reject.

For tests of programs that call an LLM:

    async with dragoman.simulator.running() as sim:
        client = AsyncOpenAI(base_url=sim.base_url + "/v1", api_key="any")
        ...
        assert sim.requests[0].json()["tools"]

`in_thread` is the same for programs that do not use asyncio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.simulator.apis.conversation import Answer, Ask, Call, ModelRequest
    from dragoman.simulator.app import Simulator
    from dragoman.simulator.faults import Fault, read_fault
    from dragoman.simulator.recordings import Recordings
    from dragoman.simulator.runner import Running, in_thread, running
    from dragoman.simulator.script import Received, TomlScript, Unmet, read_script
    from dragoman.simulator.state import Seen, Settings

_MODULES = {
    "app": ("Simulator",),
    "faults": ("Fault", "read_fault"),
    "recordings": ("Recordings",),
    "script": ("Received", "TomlScript", "Unmet", "read_script"),
    "runner": ("Running", "in_thread", "running"),
    "state": ("Seen", "Settings"),
    "apis.conversation": ("Answer", "Ask", "Call", "ModelRequest"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Answer",
    "Ask",
    "Call",
    "Fault",
    "ModelRequest",
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
