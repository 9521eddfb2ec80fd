"""One long run of a tool: what is known of it, and the questions it waits for.

Rules: a call becomes a job when its tool says `begin`; until then it is an ordinary call, so that what can be said at
once is said at once. A job ends once. What it asks is answered key by key, and it goes on when the last one is there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Literal
from uuid import uuid4

from msgspec import Struct

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
ENDED = frozenset({"completed", "failed", "cancelled"})
POLL = 1000
"""Milliseconds after which it is worth asking again."""


def now() -> str:
    """Return this moment as the protocol writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Told(Struct, kw_only=True, rename="camel", omit_defaults=True):
    """What a client is told of a job, in the protocol's words."""

    task_id: str
    status: Status
    created_at: str
    last_updated_at: str
    ttl_ms: int
    poll_interval_ms: int
    status_message: str = ""
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, Any] | None = None


class Job:
    """A run that somebody may ask about."""

    def __init__(self, owner: str, ttl: float, keep: Callable[["Job"], Awaitable[None]]) -> None:
        self.id = uuid4().hex
        self.owner = owner
        self.begun = asyncio.Event()
        self.task: asyncio.Task[Any] | None = None
        self.status: Status = "working"
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self._keep = keep
        self._ttl = ttl
        self._created = self._updated = now()
        self._since = monotonic()
        self._message = ""
        self._questions: dict[str, Any] = {}
        self._answers: dict[str, Any] = {}
        self._answered = asyncio.Event()

    @property
    def has_ended(self) -> bool:
        """Tell whether nothing more will happen."""
        return self.status in ENDED

    @property
    def age(self) -> float:
        """Seconds since the call came."""
        return monotonic() - self._since

    @property
    def told(self) -> Told:
        """What a client is told of it now."""
        return Told(
            task_id=self.id,
            status=self.status,
            created_at=self._created,
            last_updated_at=self._updated,
            ttl_ms=int(self._ttl * 1000),
            poll_interval_ms=POLL,
            status_message=self._message,
            result=self.result,
            error=self.error,
            input_requests=dict(self._questions) if self._questions else None,
        )

    async def begin(self) -> None:
        """Become a job: from here on the client asks for the result."""
        if not self.begun.is_set():
            await self._keep(self)
            self.begun.set()

    def say(self, message: str) -> None:
        """Tell how far it is."""
        self._message = message
        self._updated = now()

    async def ask(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the client has answered every question, each under its key."""
        self._questions.update(questions)
        self._answered.clear()
        self._change("input_required")
        await self._answered.wait()
        return {key: self._answers.pop(key) for key in questions}

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Take what the client answers; what nobody asked is let go."""
        for key in answers.keys() & self._questions.keys():
            self._answers[key] = answers[key]
            del self._questions[key]
        if not self._questions and self.status == "input_required":
            self._change("working")
            self._answered.set()

    def end(self, status: Status, *, result: dict[str, Any] | None = None, error: dict[str, Any] | None = None) -> None:
        """End it, if it has not ended before."""
        if not self.has_ended:
            self.result, self.error = result, error
            self._questions.clear()
            self._change(status)

    def _change(self, status: Status) -> None:
        self.status = status
        self._updated = now()


_JOB: ContextVar[Job | None] = ContextVar("dragoman_mcp_job", default=None)


def current_job() -> Job | None:
    """Return the job this call may become; None where the client knows no tasks."""
    return _JOB.get()


def enter(job: Job) -> None:
    """Mark the context of a task as working for a job."""
    _JOB.set(job)
