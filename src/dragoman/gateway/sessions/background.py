"""Answers that are made while nobody waits for them: asked for with `background`, looked at and cancelled by id.

Such a turn is kept as soon as it is asked for, and again when it is answered. While it is made, its maker says every
few seconds that it is alive, so that other processes, and later ones, can tell a slow answer from one that never comes.
"""

import asyncio
import contextlib
from collections.abc import Callable
from time import time

from msgspec import structs

from dragoman.core.events import Started
from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.observe import Observers
from dragoman.gateway.record import Record
from dragoman.gateway.relay import Relay
from dragoman.gateway.sessions.keeping import Keeper, Question, unavailable
from dragoman.gateway.sessions.naming import response_name
from dragoman.gateway.sessions.opening import Opened
from dragoman.http.exchange import Unheard
from dragoman.sessions.store import Store
from dragoman.sessions.values import Turn, Unavailable
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import spliced
from dragoman.wire.sse import SseReader

_BETWEEN_SIGNS = 5.0
_SILENT = 30.0
"""Seconds without a sign of life after which an answer will never come."""


class Background:
    """Makes answers in the background."""

    def __init__(self, store: Store, relay: Relay, observers: Observers) -> None:
        self.store = store
        self._relay = relay
        self._observers = observers
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, opened: Opened, done: Callable[[], object]) -> bytes:
        """Begin an answer; return what its client is told meanwhile. `done` is called when it is over."""
        question = opened.question
        if opened.ask.call.stream:
            raise Problem("unsupported", "a background response cannot be streamed here", where="/stream")
        told = _begun(question)
        turn = structs.replace(
            question.turn,
            id=response_name(told),
            reply=told,
            status="in_progress",
            created=int(time()),
            alive=int(time()),
        )
        try:
            await self.store.add(turn)
        except Unavailable:
            raise unavailable() from None
        question = structs.replace(question, turn=turn)
        task = asyncio.create_task(self._make(structs.replace(opened, question=question), done))
        self._tasks[turn.key] = task
        task.add_done_callback(lambda _: self._tasks.pop(turn.key, None))
        return told

    async def cancel(self, turn: Turn) -> bytes:
        """Cancel an answer that is being made; return it as it is then."""
        if lookup(turn.reply, "/background") != ("/background", b"true"):
            raise Problem("invalid_request", "Cannot cancel a synchronous response.", where="/response_id")
        if turn.status != "in_progress":
            return turn.reply
        stopped = _with_status(turn, "cancelled")
        if await self.store.finish(stopped):
            self.stop(turn)
            return stopped.reply
        now = await self.store.turn(turn.owner, turn.id)
        return now.reply if now is not None else stopped.reply

    def stop(self, turn: Turn) -> None:
        """Make no more of an answer."""
        if turn.key in self._tasks:
            self._tasks[turn.key].cancel()

    async def close(self) -> None:
        """Stop making answers; those that are not done are told as failed."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _make(self, opened: Opened, done: Callable[[], object]) -> None:
        ask = opened.ask
        record = Record(owner=ask.owner, dialect=ask.dialect, operation="generate", model=ask.call.model)
        self._observers.begin(record)
        signs = asyncio.create_task(self._live(opened.question.turn))
        try:
            await self._relay.answer(opened.ask, Unheard(), record, Keeper(self.store, opened.question))
        except Problem as problem:
            record.problem, record.outcome = problem, "failed"
            await self._fail(opened.question.turn, problem)
        except Exception as error:  # noqa: BLE001  whoever asks for the answer is owed one
            record.crash, record.outcome = error, "failed"
            await self._fail(opened.question.turn, Problem("internal", f"the gateway failed, at {record.id}"))
        except asyncio.CancelledError:
            record.outcome = "left"
            await self._fail(opened.question.turn, Problem("cancelled", "the gateway was stopped"))
            raise
        finally:
            done()
            signs.cancel()
            record.close()
            self._observers.end(record)

    async def _fail(self, turn: Turn, problem: Problem) -> None:
        error = json.encode({"code": "server_error", "message": problem.message})
        failed = _with_status(turn, "failed")
        with contextlib.suppress(Unavailable):
            await self.store.finish(structs.replace(failed, reply=spliced(failed.reply, "error", error)))

    async def _live(self, turn: Turn) -> None:
        while True:
            await asyncio.sleep(_BETWEEN_SIGNS)
            with contextlib.suppress(Unavailable):
                await self.store.live(turn)


def as_it_is(turn: Turn) -> bytes:
    """Return an answer as it is told now: one whose maker is gone has failed."""
    if turn.status != "in_progress" or time() - turn.alive < _SILENT:
        return turn.reply
    error = json.encode({"code": "server_error", "message": "the gateway that made this answer is gone"})
    return spliced(_with_status(turn, "failed").reply, "error", error)


def _with_status(turn: Turn, status: str) -> Turn:
    return structs.replace(turn, status=status, reply=spliced(turn.reply, "status", json.encode(status)))


def _begun(question: Question) -> bytes:
    """Return an answer of which nothing is there yet: what a stream of it would begin with."""
    turn = question.turn
    encoder = dialect_named(turn.dialect).encoder(None)
    (event, *_) = SseReader().feed(encoder.feed(Started("", turn.model, int(time()))))
    told = bytes(json.decode_object(event.data)[question.below])
    for name, raw in question.members.items():
        told = spliced(told, name, raw)
    return spliced(told, "status", b'"queued"')
