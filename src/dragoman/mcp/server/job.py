"""One long run of a tool, as its work sees it: what a client is told of it, and what it is asked.

Rules: every change is emitted as a whole, so that what was emitted last is what is true now. A question is open until
it is answered, or nobody waits for it any more. A job ends once.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct, field, structs

from dragoman.agent import Runtime

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
POLL = 1000
"""Milliseconds after which it is worth asking again."""


def now() -> str:
    """Return this moment as the protocol writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Told(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
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
    meta: dict[str, Any] | None = field(default=None, name="_meta")


def fresh(name: str, ttl: float, meta: Mapping[str, Any]) -> Told:
    """Return what is told of a job that begins."""
    return Told(
        task_id=name,
        status="working",
        created_at=(begun := now()),
        last_updated_at=begun,
        ttl_ms=int(ttl * 1000),
        poll_interval_ms=POLL,
        meta=dict(meta) or None,
    )


def changed(told: Told, status: Status, **more: Any) -> Told:
    """Return what is told after a change."""
    return structs.replace(told, status=status, last_updated_at=now(), **more)


def written(told: Told) -> bytes:
    """Write what is told as one line."""
    return msgspec.json.encode(told) + b"\n"


def read(lines: bytes) -> Told:
    """Read the last line of what was told."""
    return msgspec.json.decode(lines.rstrip(b"\n").rpartition(b"\n")[2], type=Told)


class Job:
    """A run that somebody may ask about."""

    def __init__(self, owner: str, runtime: Runtime, told: Told) -> None:
        self.owner = owner
        self.runtime = runtime
        self.told = told
        self._questions: dict[str, Any] = {}
        self._answered: set[str] = set()

    async def say(self, message: str) -> None:
        """Tell how far it is."""
        await self._tell(structs.replace(self.told, last_updated_at=now(), status_message=message))

    async def question(self, topic: str, asked: Any) -> None:
        """Ask something; who waits for the answer says when it is there."""
        if topic not in self._answered:
            self._questions[topic] = asked
            await self._tell_questions()

    async def wait(self, topic: str, timeout: float | None = None) -> Any:  # noqa: ASYNC109  an engine keeps the time
        """Return the answer to a question; `TimeoutError` if there is none."""
        try:
            answer = await self.runtime.wait(topic, timeout)
        except TimeoutError:
            await self._close(topic)
            raise
        await self._close(topic)
        return answer

    async def ask(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Wait until the client has answered every question, each under its key."""
        self._questions.update(questions)
        await self._tell_questions()
        return {topic: await self.wait(topic) for topic in questions}

    def end(self, *, result: dict[str, Any] | None = None, error: dict[str, Any] | None = None) -> bytes:
        """Return what is told of it from now on."""
        status: Status = "completed" if error is None else "failed"
        return written(changed(self.told, status, result=result, error=error, input_requests=None))

    async def _close(self, topic: str) -> None:
        self._answered.add(topic)
        if self._questions.pop(topic, None) is not None:
            await self._tell_questions()

    async def _tell_questions(self) -> None:
        status: Status = "input_required" if self._questions else "working"
        await self._tell(changed(self.told, status, input_requests=dict(self._questions) or None))

    async def _tell(self, told: Told) -> None:
        self.told = told
        await self.runtime.emit(written(told))
