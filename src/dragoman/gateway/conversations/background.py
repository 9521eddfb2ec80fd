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
from dragoman.gateway.conversations.recorder import (
    ConversationRecorder,
    MemberInjector,
    Question,
    build_unavailable_error,
    find_or_generate_id,
    response_id_of,
)
from dragoman.gateway.generate import Gateway
from dragoman.gateway.record import Observers, Record
from dragoman.guard import attempt_async
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request
from dragoman.sessions.store import Store
from dragoman.sessions.values import Conflict, Item, Turn, Unavailable
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import set_member
from dragoman.wire.sse import SseReader

_OUTPUT_MEMBERS = ("output", "usage")
"""Members of an answer that grow while it is made."""


class PartialAnswer:
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

    def build_turn(self, status: str, message: str = "") -> Turn:
        """Return the turn with what was said, and how it ended; `message` is for one that failed."""
        turn, dialect = self._turn, dialect_named(self._turn.dialect)
        parts = drop_incomplete_parts(self._collector.parts, self._collector.open_parts)
        reply = set_member(turn.reply, "status", json.encode(status))
        if parts:
            self._collector.feed(Finished(Finish("stop")))
            body = dialect.build_response(structs.replace(self._collector.response(), parts=parts), None)
            for name in _OUTPUT_MEMBERS:
                found = lookup(body, f"/{name}")
                reply = set_member(reply, name, found[1]) if found is not None else reply
        if message:
            reply = set_member(reply, "error", json.encode({"code": "server_error", "message": message}))
        said = [Item(find_or_generate_id(body), body, said=True) for body in dialect.turns.read_reply_items(reply)]
        calls = {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        return structs.replace(
            turn, reply=reply, status=status, items=(*turn.items, *said), calls={**turn.calls, **calls}
        )


class BackgroundExchange(Exchange):
    """An exchange in which a stream goes to whoever watches the run; a whole answer goes nowhere."""

    def __init__(self, runtime: Runtime, partial_answer: PartialAnswer, *, started: bool) -> None:
        super().__init__(Request("", "", ()), asyncio.Transport(), keeps_alive=False, supports_chunks=False)
        self.started = started
        """Nothing is held back: what goes wrong is told in the stream."""
        self._runtime = runtime
        self._partial_answer = partial_answer
        self._unsent = b""

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:  # noqa: ARG002
        """Take a whole answer as sent."""
        self.started = self.ended = True
        self.status = status

    def start(self, status: int, headers: Mapping[str, str], length: int | None = None, first: bytes = b"") -> None:  # noqa: ARG002
        """Begin a stream."""
        self.started, self.status, self._unsent = True, status, first

    async def write(self, data: bytes) -> None:
        """Tell the next piece."""
        told, self._unsent = self._unsent + data, b""
        if told:
            self._partial_answer.feed(told)
            await self._runtime.emit(told)

    def push(self, data: bytes) -> None:
        """A sign of life is for nobody here."""

    async def end(self, last: bytes = b"") -> None:
        """Tell the last piece."""
        await self.write(last)
        self.ended = True


_RUN_KIND = "response"
_IN_PROGRESS = "in_progress"
_INTERRUPTED = "the gateway that made this answer is gone"
_REQUEST_DECODER = msgspec.msgpack.Decoder(LoadedRequest)


class Background:
    """Makes answers in the background."""

    def __init__(self, store: Store, gateway: Gateway, observers: Observers, carrier: Carrier) -> None:
        self.store = store
        self._gateway = gateway
        self._observers = observers
        self._carrier = carrier
        self._on_end_callbacks: dict[str, Callable[[], object]] = {}
        carrier.serve(_RUN_KIND, self._generate)

    async def begin(self, loaded: LoadedRequest, on_end: Callable[[], object]) -> Turn:
        """Begin an answer; return it as its client is told of it meanwhile. `done` is called when it is over."""
        question, ask = loaded.question, loaded.ask
        if self._gateway.runs_tools_for(ask):
            # What tools do takes long: it is told piece by piece, so that what was done is known at any time.
            ask = structs.replace(ask, call=structs.replace(ask.call, stream=True))
        told = _render_queued(question)
        turn = structs.replace(
            question.turn, id=response_id_of(told), reply=told, status=_IN_PROGRESS, created=int(time())
        )
        loaded = structs.replace(loaded, ask=ask, question=structs.replace(question, turn=turn))
        order = Order(owner=turn.owner, run=turn.id, kind=_RUN_KIND, document=msgspec.msgpack.encode(loaded))
        try:
            await self.store.add_turn(turn)
            self._on_end_callbacks[turn.id] = on_end
            await self._carrier.start(order)
        except (Unavailable, Conflict):
            self._on_end_callbacks.pop(turn.id, None)
            raise build_unavailable_error() from None
        return turn

    async def cancel(self, turn: Turn) -> bytes:
        """Cancel an answer that is being made; return it as it is then."""
        if lookup(turn.reply, "/background") != ("/background", b"true"):
            raise Problem("invalid_request", "Cannot cancel a synchronous response.", where="/response_id")
        if turn.status != _IN_PROGRESS:
            return turn.reply
        await self._carrier.cancel(turn.owner, turn.id)
        return (await self._finish_turn(turn, "cancelled")).reply

    async def stop(self, turn: Turn) -> None:
        """Make no more of an answer."""
        if turn.status == _IN_PROGRESS:
            await self._carrier.cancel(turn.owner, turn.id)

    async def refresh_turn(self, turn: Turn) -> Turn:
        """Return a turn as it is now: one whose answer nobody makes any more has failed."""
        if turn.status != _IN_PROGRESS:
            return turn
        state = await self._carrier.state(turn.owner, turn.id)
        if state is not None and state.status == "running":
            return turn
        return await self._finish_turn(turn, "failed", _INTERRUPTED)

    async def watch_events(self, turn: Turn, after: int = -1) -> AsyncGenerator[bytes]:
        """Iterate the events of an answer behind one of them, those that are to come too."""
        reader = SseReader()
        async for piece in self._carrier.watch(turn.owner, turn.id):
            async for event in iter_events_after(piece, after, reader):
                yield event

    async def _finish_turn(self, turn: Turn, status: str, message: str = "") -> Turn:
        """Keep a turn of whose answer no more will come, with what was said of it."""
        so_far = PartialAnswer(turn)
        state = await self._carrier.state(turn.owner, turn.id)
        if state is not None and state.status != "running":
            async for piece in self._carrier.watch(turn.owner, turn.id):
                so_far.feed(piece)
        ended = so_far.build_turn(status, message)
        if await self.store.finish_turn(ended):
            return ended
        return await self.store.find_turn(turn.owner, turn.id) or ended

    async def _generate_response(self, turn: Turn, context: RequestContext) -> None:
        """Save that a turn is in progress, and generate its answer."""
        with contextlib.suppress(Unavailable):
            await self.store.update_reply(turn, set_member(turn.reply, "status", json.encode(_IN_PROGRESS)))
        await self._gateway.generate(context)

    async def _generate(self, order: Order, runtime: Runtime) -> bytes:
        opened = _REQUEST_DECODER.decode(order.document)
        question, ask = opened.question, opened.ask
        turn = question.turn
        record = Record(owner=ask.owner, dialect=ask.dialect, operation="generate", model=ask.call.model)
        self._observers.begin(record)
        so_far = PartialAnswer(turn)
        # Nobody waits for a status, and a loop tries again by itself: what it says is told at once.
        exchange = BackgroundExchange(runtime, so_far, started=ask.call.stream and self._gateway.runs_tools_for(ask))
        try:
            context = RequestContext(ask, exchange, record, ConversationRecorder(self.store, question), runtime)
            # Whoever asks for the answer gets one, whatever fails.
            error = (await attempt_async(self._generate_response, turn, context)).error
            failure = record.problem
            if isinstance(error, Problem):
                record.problem, record.outcome, failure = error, "failed", error
            elif error is not None:
                record.crash, record.outcome = error, "failed"
                failure = Problem("internal", f"the gateway failed, at {record.id}")
        finally:
            if order.run in self._on_end_callbacks:
                self._on_end_callbacks.pop(order.run)()
            record.outcome = "left" if record.outcome == "open" else record.outcome
            self._observers.end(record)
        if failure is not None:
            if ask.call.stream and not exchange.ended:
                await exchange.end(_render_failure(question, failure))
            with contextlib.suppress(Unavailable):
                await self.store.finish_turn(so_far.build_turn("failed", failure.message))
        return b""


async def iter_events_after(events: bytes, after: int, reader: SseReader | None = None) -> AsyncGenerator[bytes]:
    """Iterate the events that come behind the one with a number."""
    for frame in (reader or SseReader()).feed(events):
        if after < 0 or _sequence_number_of(frame.data) > after:
            yield b"event: %b\ndata: %b\n\n" % (frame.event.encode(), frame.data)


def _sequence_number_of(data: bytes) -> int:
    found = lookup(data, "/sequence_number")
    return int(found[1]) if found is not None else -1


def _render_queued(question: Question) -> bytes:
    """Return an answer of which nothing is there yet: what a stream of it would begin with."""
    turn = question.turn
    encoder = dialect_named(turn.dialect).encoder(None)
    (event, *_) = SseReader().feed(encoder.feed(Started("", turn.model, int(time()))))
    told = bytes(json.decode_object(event.data)[question.below])
    return set_member(MemberInjector(question.members, "").add_to_reply(told), "status", b'"queued"')


def _render_failure(question: Question, problem: Problem) -> bytes:
    """Return the events of an answer that failed before it could say so itself."""
    encoder = dialect_named(question.turn.dialect).encoder(None)
    told = encoder.feed(Started("", question.turn.model)) + encoder.feed(Failed(problem))
    return MemberInjector(question.members, question.below).add_to_events(told)
