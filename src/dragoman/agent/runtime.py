"""The runtime of a run: steps and waits, in this process or in a durable engine; and the interface of job runners.

A step has a key that is unique in its run ("model:3", "tool:call_7"). A completed step is never run again: its stored
value is returned. Parallel steps are separate steps, and nothing else runs at the same time, so an engine that matches
steps by order finds them again. A step returns a value of the core or of `tools`, without functions in it. Code outside
steps must depend only on their values, because it may run again. After a recovery some events may be emitted twice.

A run in the background is started with a `Job`, which contains all that its work needs, so that the same work
can be restarted in another process. It emits bytes, which form one stream in their order. A run belongs to its owner,
and can be watched, messaged and cancelled from every process.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")
MAX_PENDING = 64
"""The number of unread events at which the run waits for its reader."""


class Runtime(Protocol):
    """What a run needs: steps, waits, events and timers."""

    @property
    def run(self) -> str:
        """The id of the run."""
        ...

    async def step(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` and store its result under `key`; return the stored result if the key is known."""
        ...

    async def wait(self, topic: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109  a durable engine measures the timeout
        """Return the answer sent for a topic, also if it was sent earlier; raise `TimeoutError` if there is none."""
        ...

    async def emit(self, event: Any) -> None:
        """Send an event to the reader; the agent loop emits its steps."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep for some seconds."""
        ...


class WatchedRuntime(Runtime, Protocol):
    """A runtime that can be watched and messaged from where the run was started."""

    def tell(self, topic: str, value: Any) -> None:
        """Send the answer for a topic that the run waits for."""
        ...

    def close(self) -> None:
        """Stop emitting: the run has ended, or its reader is gone; later events are dropped at once."""
        ...

    def watch(self) -> AsyncGenerator[Any]:
        """Yield the emitted events until the runtime is closed."""
        ...


class InProcess:
    """Runs one run in this process; its state is lost with the process."""

    def __init__(self, run: str, max_pending: int = MAX_PENDING) -> None:
        self.run = run
        self._max_pending = max_pending
        self._emitted: deque[Any] = deque()
        self._readable, self._writable = asyncio.Event(), asyncio.Event()
        self._closed = False
        self._keys: set[str] = set()
        self._topics: dict[str, asyncio.Future[Any]] = {}

    async def step(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work`."""
        if key in self._keys:
            raise ValueError(f"the run {self.run!r} already has a step {key!r}; step keys must be unique")
        self._keys.add(key)
        return await work()

    async def wait(self, topic: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109  part of the protocol
        """Wait for an answer to the topic."""
        async with asyncio.timeout(timeout):
            return await asyncio.shield(self._answer_future(topic))

    def tell(self, topic: str, value: Any) -> None:
        """Send the answer for a topic, also before the run waits for it; the first answer counts."""
        answer = self._answer_future(topic)
        if not answer.done():
            answer.set_result(value)

    def _answer_future(self, topic: str) -> asyncio.Future[Any]:
        if topic not in self._topics:
            self._topics[topic] = asyncio.get_running_loop().create_future()
        return self._topics[topic]

    async def emit(self, event: Any) -> None:
        """Send an event to the reader; block while too many are unread."""
        while len(self._emitted) >= self._max_pending and not self._closed:
            self._writable.clear()
            await self._writable.wait()
        if self._closed:
            return
        self._emitted.append(event)
        self._readable.set()

    async def sleep(self, seconds: float) -> None:
        """Sleep for some seconds."""
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Stop emitting: the run has ended, or its reader is gone."""
        self._closed = True
        self._readable.set()
        self._writable.set()

    async def watch(self) -> AsyncGenerator[Any]:
        """Yield the emitted events until the runtime is closed."""
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
    """Runs a run inside another: it uses the steps and waits of the outer run, and emits to its own reader."""

    def __init__(self, run: str, outer: Runtime) -> None:
        super().__init__(run)
        self._outer = outer

    async def step(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work` as a step of the outer run."""
        return await self._outer.step(key, work)

    async def wait(self, topic: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109  part of the protocol
        """Wait for an answer to the outer run."""
        return await self._outer.wait(topic, timeout)

    async def sleep(self, seconds: float) -> None:
        """Sleep as the outer run does."""
        await self._outer.sleep(seconds)


Status = Literal["running", "completed", "failed", "cancelled", "interrupted"]


class Job(Struct, frozen=True, kw_only=True):
    """A job: a run to be started in the background."""

    owner: str
    run: str
    kind: str
    """Selects the work function that runs it."""
    document: bytes
    """The input of the work function, in its own format."""
    first_output: bytes = b""
    """The output of the run until it emits something itself."""


class RunState(Struct, frozen=True, kw_only=True):
    """The visible state of a run."""

    status: Status
    """`interrupted`: the process of the run is gone or was stopped."""
    last_output: bytes
    """The last output that it emitted."""
    outcome: bytes = b""
    """The return value of its work, once it is completed."""
    created: int = 0


Work = Callable[[Job, Runtime], Awaitable[bytes]]
"""Runs a job on a runtime and returns its outcome; any exception is an unexpected failure."""


class JobRunner(Protocol):
    """Runs jobs; there is one job runner in a process."""

    def runtime(self, run: str) -> WatchedRuntime:
        """Return a runtime for a run that ends when its reader goes away."""
        ...

    def serve(self, kind: str, work: Work) -> None:
        """Register the work function for a kind of job."""
        ...

    async def start(self, job: Job) -> None:
        """Start a run; when this returns, every process can find it."""
        ...

    async def tell(self, owner: str, run: str, topic: str, value: Any) -> None:
        """Answer a question of a run in any process; the first answer counts. The value must be JSON-serialisable."""
        ...

    async def cancel(self, owner: str, run: str) -> None:
        """Cancel a run in any process; return when it has ended, or after a few seconds."""
        ...

    async def state(self, owner: str, run: str) -> RunState | None:
        """Return the state of a run; None if there is none with this id."""
        ...

    def watch(self, owner: str, run: str) -> AsyncGenerator[bytes]:
        """Yield the past and future output of a run in any process, until it ends."""
        ...

    async def close(self) -> None:
        """Stop the jobs that run in this process."""
        ...
