"""Who carries runs: those that end with whoever watches them, and those that go on while nobody waits.

Rules for a run that goes on: it is started by an order, which says all that its work needs, so that the same work can
begin again elsewhere. What the work does goes through the steps and waits of its runtime; what happens between them
follows from the order and from their values. It emits bytes, which are one text in the order they come, and may come
twice after a recovery. A run is its owner's, and can be seen, spoken to and cancelled from every process.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from dragoman.agent.runtime import Runtime, WatchedRuntime

Status = Literal["running", "completed", "failed", "cancelled", "interrupted"]


class Order(Struct, frozen=True, kw_only=True):
    """A run that is to be carried."""

    owner: str
    run: str
    kind: str
    """Whose work it is."""
    document: bytes
    """What the work needs, in words of its own."""
    told: bytes = b""
    """What is told of it until it tells something itself."""


class State(Struct, frozen=True, kw_only=True):
    """What can be seen of a run."""

    status: Status
    """`interrupted` is one whose process is gone, or was stopped."""
    told: bytes
    """What it emitted last."""
    outcome: bytes = b""
    """What its work returned, once it is completed."""
    created: int = 0


Work = Callable[[Order, Runtime], Awaitable[bytes]]
"""Does what an order says on a runtime, and returns what came of it. What it raises is a failure nobody thought of."""


class Carrier(Protocol):
    """What carries runs. There is one in a process."""

    def runtime(self, run: str) -> WatchedRuntime:
        """Return what a run stands on that ends with whoever watches it."""
        ...

    def serve(self, kind: str, work: Work) -> None:
        """Say who does the work of a kind."""
        ...

    async def start(self, order: Order) -> None:
        """Start a run; when this returns, it is known to every process."""
        ...

    async def tell(self, owner: str, run: str, topic: str, value: Any) -> None:
        """Answer what a run waits for, wherever it is; the first answer holds. A value is anything JSON can say."""
        ...

    async def cancel(self, owner: str, run: str) -> None:
        """Stop a run, wherever it is; returns when it is over, or after a few seconds."""
        ...

    async def state(self, owner: str, run: str) -> State | None:
        """Tell how far a run is; None if there is none of that name."""
        ...

    def watch(self, owner: str, run: str) -> AsyncGenerator[bytes]:
        """Iterate what a run emitted and will emit, wherever it is, until it is over."""
        ...

    async def close(self) -> None:
        """Stop what is carried here."""
        ...
