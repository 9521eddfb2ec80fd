"""What the servers are asked, and how many times as dear, or as cheap, our gateway may be."""

from msgspec import Struct

from benchmarks.bodies import request
from benchmarks.gateway.upstream import EVENTS

_CALLED = b'"tool_calls"'


class Case(Struct, frozen=True, kw_only=True):
    """One row; costs are per unit, of which an answer has `units`."""

    name: str
    body: bytes
    connections: int
    marker: bytes = _CALLED
    stream: bool = False
    pace: float = 0.0
    """Seconds between two events of the upstream."""
    units: int = 1
    most: float | None = None
    """How often our cost may hold the forwarder's."""
    least: float | None = None
    """How often LiteLLM's cost must hold ours."""


def cases() -> tuple[Case, ...]:
    """Return all rows."""
    streamed = request("chat", "small", stream=True)
    return (
        Case(name="request of 2 KB", body=request("chat", "small"), connections=16, most=2.5, least=60),
        Case(name="request of 30 KB, 20 tools", body=request("chat", "medium"), connections=8),
        Case(name="request of 300 KB", body=request("chat", "large"), connections=4, least=15),
        Case(
            name="streamed event, every 5 ms",
            body=streamed,
            connections=32,
            stream=True,
            pace=0.005,
            units=EVENTS,
            most=2.5,
            least=25,
        ),
        Case(name="streamed event, at once", body=streamed, connections=16, stream=True, units=EVENTS, most=2.5),
    )
