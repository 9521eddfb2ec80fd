"""What a run stands on: steps and waits, in this process or in an engine that outlives it; and the runners of runs.

A step has a key that is unique in its run ("model:3", "tool:call_7"). A step that has ended is never run again: its
value is returned. Parallel steps are single steps, and nothing else happens beside them, so an engine that matches
steps by their order finds them again. A step returns a value of the core or of `tools`, without functions in it. What
happens outside steps follows from their values alone, and may happen again. After a recovery some events may come
twice.

A run that goes on in the background is started by an order, which holds all that its work needs, so that the same work
can begin again elsewhere. It emits bytes, which are one text in their order. A run belongs to its owner, and can be
watched, messaged and cancelled from every process.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")
MAX_PENDING = 64
"""Steps that may wait for whoever watches before the run waits for them."""


class Runtime(Protocol):
    """What a run stands on."""

    @property
    def run(self) -> str:
        """The name of the run."""
        ...

    async def step(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work` and keep what it returns under `key`; give back what is kept, if the key is known."""
        ...

    async def wait(self, topic: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109  an engine keeps the time
        """Return what somebody says about a topic, also if it was said before; `TimeoutError` if nobody does."""
        ...

    async def emit(self, event: Any) -> None:
        """Tell whoever watches: a loop tells its steps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...


class WatchedRuntime(Runtime, Protocol):
    """A runtime that can be watched, and spoken to, from where the run was begun."""

    def tell(self, topic: str, value: Any) -> None:
        """Answer a `wait`."""
        ...

    def close(self) -> None:
        """Nothing more will be emitted, or nobody watches any more: what is emitted goes nowhere, at once."""
        ...

    def watch(self) -> AsyncGenerator[Any]:
        """Iterate what is emitted, until the runtime is closed."""
        ...


class InProcess:
    """Carries one run in this process: what it did is lost with the process."""

    def __init__(self, run: str, max_pending: int = MAX_PENDING) -> None:
        self.run = run
        self._max_pending = max_pending
        self._emitted: deque[Any] = deque()
        self._readable, self._writable = asyncio.Event(), asyncio.Event()
        self._closed = False
        self._keys: set[str] = set()
        self._topics: dict[str, asyncio.Future[Any]] = {}

    async def step(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work`."""
        if key in self._keys:
            raise ValueError(f"the run {self.run!r} has a second step {key!r}")
        self._keys.add(key)
        return await work()

    async def wait(self, topic: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109  part of the seam
        """Wait for `tell`."""
        async with asyncio.timeout(timeout):
            return await asyncio.shield(self._answer_future(topic))

    def tell(self, topic: str, value: Any) -> None:
        """Answer a `wait`, also one that is yet to come; the first answer holds."""
        answer = self._answer_future(topic)
        if not answer.done():
            answer.set_result(value)

    def _answer_future(self, topic: str) -> asyncio.Future[Any]:
        if topic not in self._topics:
            self._topics[topic] = asyncio.get_running_loop().create_future()
        return self._topics[topic]

    async def emit(self, event: Any) -> None:
        """Tell whoever watches; wait while much has not been read."""
        while len(self._emitted) >= self._max_pending and not self._closed:
            self._writable.clear()
            await self._writable.wait()
        if self._closed:
            return
        self._emitted.append(event)
        self._readable.set()

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Nothing more will be emitted, or nobody watches any more."""
        self._closed = True
        self._readable.set()
        self._writable.set()

    async def watch(self) -> AsyncGenerator[Any]:
        """Iterate what is emitted, until the runtime is closed."""
        while True:
            while self._emitted:
                event = self._emitted.popleft()
                self._writable.set()
                yield event
            if self._closed:
                return
            self._readable.clear()
            await self._readable.wait()


class Within(InProcess):
    """Carries a run inside another: its steps and waits are the other's; what it emits is told to its own watcher."""

    def __init__(self, run: str, outer: Runtime) -> None:
        super().__init__(run)
        self._outer = outer

    async def step(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work` as a step of the other run."""
        return await self._outer.step(key, work)

    async def wait(self, topic: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109  part of the seam
        """Wait for what is said to the other run."""
        return await self._outer.wait(topic, timeout)

    async def sleep(self, seconds: float) -> None:
        """Let time pass, as the other run does."""
        await self._outer.sleep(seconds)


Status = Literal["running", "completed", "failed", "cancelled", "interrupted"]


class Order(Struct, frozen=True, kw_only=True):
    """A run that is to be carried."""

    owner: str
    run: str
    kind: str
    """Whose work it is."""
    document: bytes
    """What the work needs, in words of its own."""
    first_output: bytes = b""
    """What is told of it until it tells something itself."""


class RunState(Struct, frozen=True, kw_only=True):
    """What can be seen of a run."""

    status: Status
    """`interrupted` is one whose process is gone, or was stopped."""
    last_output: bytes
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

    async def state(self, owner: str, run: str) -> RunState | None:
        """Tell how far a run is; None if there is none of that name."""
        ...

    def watch(self, owner: str, run: str) -> AsyncGenerator[bytes]:
        """Iterate what a run emitted and will emit, wherever it is, until it is over."""
        ...

    async def close(self) -> None:
        """Stop what is carried here."""
        ...
