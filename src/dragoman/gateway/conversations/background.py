"""Answers that are generated in the background: requested with `background`, retrieved and cancelled by id.

Such a turn is saved when it is requested, and again when it is answered. Generating the answer is a run of the runner,
so it can be watched and cancelled from every process. What was generated until a run was cancelled, failed or was
interrupted stays. An interrupted run is detected by the next request for it.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from time import time

import msgspec
from msgspec import structs

from dragoman.agent import Carrier, Order, Runtime
from dragoman.agent.history import drop_incomplete_parts
from dragoman.core.events import Failed, Finished, Started
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish
from dragoman.core.stream import Collector
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.context import RequestContext
from dragoman.gateway.conversations.load import LoadedRequest
from dragoman.gateway.conversations.recorder import Echo, Keeper, Question, item_id, response_name, unavailable
from dragoman.gateway.generate import Gateway
from dragoman.gateway.record import Observers, Record
from dragoman.guard import attempt_async
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Item, Turn, Unavailable
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import spliced
from dragoman.wire.sse import SseReader

_SAID = ("output", "usage")
"""Members of an answer that grow while it is made."""


class SoFar:
    """Listens to the events of an answer."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._decoder = dialect_named(turn.dialect).decoder()
        self._collector = Collector()

    def feed(self, events: bytes) -> None:
        """Take the next events, in the client's dialect."""
        for event in self._decoder.feed(events):
            # How it ended is said by whoever keeps it.
            if not isinstance(event, Failed | Finished):
                self._collector.feed(event)

    def turn(self, status: str, message: str = "") -> Turn:
        """Return the turn with what was said, and how it ended; `message` is for one that failed."""
        turn, dialect = self._turn, dialect_named(self._turn.dialect)
        parts = drop_incomplete_parts(self._collector.parts, self._collector.growing)
        reply = spliced(turn.reply, "status", json.encode(status))
        if parts:
            self._collector.feed(Finished(Finish("stop")))
            body = dialect.build_response(structs.replace(self._collector.response(), parts=parts), None)
            for name in _SAID:
                found = lookup(body, f"/{name}")
                reply = spliced(reply, name, found[1]) if found is not None else reply
        if message:
            reply = spliced(reply, "error", json.encode({"code": "server_error", "message": message}))
        said = [Item(item_id(body), body, said=True) for body in dialect.turns.said(reply)]
        calls = {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        return structs.replace(
            turn, reply=reply, status=status, items=(*turn.items, *said), calls={**turn.calls, **calls}
        )


class Emitting(Exchange):
    """An exchange in which a stream goes to whoever watches the run; a whole answer goes nowhere."""

    def __init__(self, runtime: Runtime, so_far: SoFar, *, started: bool) -> None:
        super().__init__(Request("", "", ()), asyncio.Transport(), keeps_alive=False, in_chunks=False)
        self.started = started
        """Nothing is held back: what goes wrong is told in the stream."""
        self._runtime = runtime
        self._so_far = so_far
        self._first = b""

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:  # noqa: ARG002
        """Take a whole answer as sent."""
        self.started = self.ended = True
        self.status = status

    def start(self, status: int, headers: Mapping[str, str], length: int | None = None, first: bytes = b"") -> None:  # noqa: ARG002
        """Begin a stream."""
        self.started, self.status, self._first = True, status, first

    async def write(self, data: bytes) -> None:
        """Tell the next piece."""
        told, self._first = self._first + data, b""
        if told:
            self._so_far.feed(told)
            await self._runtime.emit(told)

    def push(self, data: bytes) -> None:
        """A sign of life is for nobody here."""

    async def end(self, last: bytes = b"") -> None:
        """Tell the last piece."""
        await self.write(last)
        self.ended = True


_KIND = "response"
_IN_PROGRESS = "in_progress"
_GONE = "the gateway that made this answer is gone"
_OPENED = msgspec.msgpack.Decoder(LoadedRequest)


class Background:
    """Makes answers in the background."""

    def __init__(self, store: Store, gateway: Gateway, observers: Observers, carrier: Carrier) -> None:
        self.store = store
        self._gateway = gateway
        self._observers = observers
        self._carrier = carrier
        self._done: dict[str, Callable[[], object]] = {}
        carrier.serve(_KIND, self._make)

    async def begin(self, opened: LoadedRequest, done: Callable[[], object]) -> Turn:
        """Begin an answer; return it as its client is told of it meanwhile. `done` is called when it is over."""
        question, ask = opened.question, opened.ask
        if self._gateway.runs(ask):
            # What tools do takes long: it is told piece by piece, so that what was done is known at any time.
            ask = structs.replace(ask, call=structs.replace(ask.call, stream=True))
        told = _begun(question)
        turn = structs.replace(
            question.turn, id=response_name(told), reply=told, status=_IN_PROGRESS, created=int(time())
        )
        opened = structs.replace(opened, ask=ask, question=structs.replace(question, turn=turn))
        order = Order(owner=turn.owner, run=turn.id, kind=_KIND, document=msgspec.msgpack.encode(opened))
        try:
            await self.store.add(turn)
            self._done[turn.id] = done
            await self._carrier.start(order)
        except (Unavailable, Conflict):
            self._done.pop(turn.id, None)
            raise unavailable() from None
        return turn

    async def cancel(self, turn: Turn) -> bytes:
        """Cancel an answer that is being made; return it as it is then."""
        if lookup(turn.reply, "/background") != ("/background", b"true"):
            raise Problem("invalid_request", "Cannot cancel a synchronous response.", where="/response_id")
        if turn.status != _IN_PROGRESS:
            return turn.reply
        await self._carrier.cancel(turn.owner, turn.id)
        return (await self._settled(turn, "cancelled")).reply

    async def stop(self, turn: Turn) -> None:
        """Make no more of an answer."""
        if turn.status == _IN_PROGRESS:
            await self._carrier.cancel(turn.owner, turn.id)

    async def as_it_is(self, turn: Turn) -> Turn:
        """Return a turn as it is now: one whose answer nobody makes any more has failed."""
        if turn.status != _IN_PROGRESS:
            return turn
        state = await self._carrier.state(turn.owner, turn.id)
        if state is not None and state.status == "running":
            return turn
        return await self._settled(turn, "failed", _GONE)

    async def events(self, turn: Turn, after: int = -1) -> AsyncGenerator[bytes]:
        """Iterate the events of an answer behind one of them, those that are to come too."""
        reader = SseReader()
        async for piece in self._carrier.watch(turn.owner, turn.id):
            async for event in behind(piece, after, reader):
                yield event

    async def _settled(self, turn: Turn, status: str, message: str = "") -> Turn:
        """Keep a turn of whose answer no more will come, with what was said of it."""
        so_far = SoFar(turn)
        state = await self._carrier.state(turn.owner, turn.id)
        if state is not None and state.status != "running":
            async for piece in self._carrier.watch(turn.owner, turn.id):
                so_far.feed(piece)
        ended = so_far.turn(status, message)
        if await self.store.finish(ended):
            return ended
        return await self.store.turn(turn.owner, turn.id) or ended

    async def _generate(self, turn: Turn, context: RequestContext) -> None:
        """Save that a turn is in progress, and generate its answer."""
        with contextlib.suppress(Unavailable):
            await self.store.progress(turn, spliced(turn.reply, "status", json.encode(_IN_PROGRESS)))
        await self._gateway.generate(context)

    async def _make(self, order: Order, runtime: Runtime) -> bytes:
        opened = _OPENED.decode(order.document)
        question, ask = opened.question, opened.ask
        turn = question.turn
        record = Record(owner=ask.owner, dialect=ask.dialect, operation="generate", model=ask.call.model)
        self._observers.begin(record)
        so_far = SoFar(turn)
        # Nobody waits for a status, and a loop tries again by itself: what it says is told at once.
        exchange = Emitting(runtime, so_far, started=ask.call.stream and self._gateway.runs(ask))
        try:
            context = RequestContext(ask, exchange, record, Keeper(self.store, question), runtime)
            # Whoever asks for the answer gets one, whatever fails.
            error = (await attempt_async(self._generate, turn, context)).error
            failure = record.problem
            if isinstance(error, Problem):
                record.problem, record.outcome, failure = error, "failed", error
            elif error is not None:
                record.crash, record.outcome = error, "failed"
                failure = Problem("internal", f"the gateway failed, at {record.id}")
        finally:
            if order.run in self._done:
                self._done.pop(order.run)()
            record.outcome = "left" if record.outcome == "open" else record.outcome
            self._observers.end(record)
        if failure is not None:
            if ask.call.stream and not exchange.ended:
                await exchange.end(_failed(question, failure))
            with contextlib.suppress(Unavailable):
                await self.store.finish(so_far.turn("failed", failure.message))
        return b""


async def behind(events: bytes, after: int, reader: SseReader | None = None) -> AsyncGenerator[bytes]:
    """Iterate the events that come behind the one with a number."""
    for frame in (reader or SseReader()).feed(events):
        if after < 0 or _number(frame.data) > after:
            yield b"event: %b\ndata: %b\n\n" % (frame.event.encode(), frame.data)


def _number(data: bytes) -> int:
    found = lookup(data, "/sequence_number")
    return int(found[1]) if found is not None else -1


def _begun(question: Question) -> bytes:
    """Return an answer of which nothing is there yet: what a stream of it would begin with."""
    turn = question.turn
    encoder = dialect_named(turn.dialect).encoder(None)
    (event, *_) = SseReader().feed(encoder.feed(Started("", turn.model, int(time()))))
    told = bytes(json.decode_object(event.data)[question.below])
    return spliced(Echo(question.members, "").whole(told), "status", b'"queued"')


def _failed(question: Question, problem: Problem) -> bytes:
    """Return the events of an answer that failed before it could say so itself."""
    encoder = dialect_named(question.turn.dialect).encoder(None)
    told = encoder.feed(Started("", question.turn.model)) + encoder.feed(Failed(problem))
    return Echo(question.members, question.below).events(told)
