"""Who hears how far a `query` is, and is asked for a word: a host that waits for its call, or one that has a task.

Rules: a task asks by its status, and a host of the older era that waits for its call is asked in the middle of it, if
it can ask its user. Everybody else cannot be asked, and the model is told so. What the loop of a task does is done in
steps of the task's run.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from dragoman.agent import Agent, ApprovalAsked, Carrier, WatchedRuntime, Within
from dragoman.mcp.server.approving import WAIT, Approval, form_of, is_approved, words_of
from dragoman.mcp.server.job import Job


class Host(Protocol):
    """Whoever asked."""

    seconds: float
    """How long its user is waited for; 0 where nobody can be asked."""

    def runtime(self, run: str) -> WatchedRuntime:
        """Return what the loop stands on."""
        ...

    async def step(self, key: str, work: Callable[[], Awaitable[str]], /) -> str:
        """Do something around the loop, once."""
        ...

    async def say(self, words: str, /) -> None:
        """Tell how far it is."""
        ...

    async def ask(self, agent: Agent, asked: ApprovalAsked, /) -> None:
        """Ask the user; the loop waits for the answer, and whoever hears of its steps does not."""
        ...

    def close(self) -> None:
        """It is over: nobody is asked any more."""
        ...


class Waiting:
    """A host that waits for its call."""

    def __init__(self, ctx: Context[Any, Any], carrier: Carrier) -> None:
        self._ctx = ctx
        self.runtime = carrier.runtime
        older = ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and ctx.request_context.request is None
        self.seconds = WAIT if elicits(ctx) and older else 0.0
        self._told = 0
        self._asking: list[asyncio.Task[None]] = []

    async def step(self, _key: str, work: Callable[[], Awaitable[str]]) -> str:
        """Do it: what is lost with the call is not done again."""
        return await work()

    async def say(self, words: str) -> None:
        """Tell progress. Its number only grows, and is no share of a whole: nobody knows how far it is."""
        self._told += 1
        await self._ctx.report_progress(self._told, None, words)

    async def ask(self, agent: Agent, asked: ApprovalAsked) -> None:
        """Ask in the middle of the call."""

        async def answer() -> None:
            try:
                said = await self._ctx.elicit(words_of(asked), Approval)
            except MCPError:
                agent.answer(asked.run, asked.topic, value=False)
            else:
                agent.answer(asked.run, asked.topic, said.action == "accept" and said.data.approve)

        self._asking.append(asyncio.create_task(answer()))

    def close(self) -> None:
        """Ask nobody any more."""
        for task in self._asking:
            task.cancel()


class Behind:
    """A host that asks for its task."""

    def __init__(self, job: Job, seconds: float) -> None:
        self._job = job
        self.seconds = seconds
        self.step = job.runtime.step
        self.say = job.say

    def runtime(self, run: str) -> WatchedRuntime:
        """Return the run of the task, as the loop sees it."""
        return _Asking(run, self._job)

    async def ask(self, _agent: Agent, asked: ApprovalAsked) -> None:
        """Ask by the status of the task."""
        await self._job.question(asked.topic, form_of(asked))

    def close(self) -> None:
        """A task that is over asks nothing."""


class _Asking(Within):
    def __init__(self, run: str, job: Job) -> None:
        super().__init__(run, job.runtime)
        self._job = job

    async def wait(self, topic: str, timeout: float | None = None) -> bool:  # noqa: ASYNC109  part of the seam
        """Wait for the user's word."""
        return is_approved(await self._job.wait(topic, timeout))


def elicits(ctx: Context[Any, Any]) -> bool:
    """Tell whether a host can ask its user."""
    capabilities = ctx.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None
