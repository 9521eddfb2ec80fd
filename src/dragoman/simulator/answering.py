"""One request for an answer: held to the rules, answered by the script or the model, sent whole or as a stream."""

import time
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, structs

from dragoman.http.exchange import Exchange
from dragoman.simulator import model
from dragoman.simulator.api import Accepted, Occasion, Pace, Refusal, Told
from dragoman.simulator.apis import APIS
from dragoman.simulator.faults import Fault, UnknownFault, read_fault, split_model
from dragoman.simulator.keys import is_accepted
from dragoman.simulator.routes import Route
from dragoman.simulator.rule import Situation, Violation
from dragoman.simulator.script import Received, Unmet
from dragoman.simulator.sending import Flow, changed_frames, send_frames, send_whole, went_wrong_early
from dragoman.simulator.talk import Answer
from dragoman.wire.json import Malformed
from dragoman.wire.splice import spliced

if TYPE_CHECKING:
    from dragoman.simulator.app import Simulator

_JSON = {"content-type": "application/json"}
_SSE = {"content-type": "text/event-stream", "cache-control": "no-cache"}


class _Named(Struct):
    model: str | None = None


class Refused(Exception):  # noqa: N818  it says what became of the request
    """A request gets no answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Answering:
    """One request on its way to an answer."""

    def __init__(self, simulator: "Simulator", exchange: Exchange, route: Route) -> None:
        self._simulator = simulator
        self._settings = simulator.settings
        self._exchange = exchange
        self._request = exchange.request
        self._api = APIS[route.api]
        self._route, self._body, self._written_fault = _unfaulted(route, exchange.request.body)
        self._envelope = self._api.envelope if route.wrapped else None
        self._fault: Fault | None = None

    async def told(self) -> Told | None:
        """Return what is to be sent; None if that has been done."""
        request, settings = self._request, self._settings
        if settings.recordings is not None:
            found = settings.recordings.find(request.target, request.body)
            if found is not None:
                return found
        if not is_accepted(request, settings.key):
            raise Refused(self._api.bad_key)
        self._fault = self._asked_fault(request.header("x-dragoman-fault") or self._written_fault or settings.fault)
        _raise_status(self._fault)
        if await went_wrong_early(self._exchange, self._fault):
            self._simulator.note(request, self._api.name, 0, "fault")
            return None
        accepted = self._accepted()
        if self._route.operation == "count":
            return Told(200, _JSON, self._api.count(accepted, model.ask_tokens(accepted.ask)))
        await self._answer(accepted)
        return None

    def _asked_fault(self, written: str) -> Fault | None:
        if not written:
            return None
        try:
            fault = read_fault(written)
        except UnknownFault as error:
            raise Refused(Refusal(status=400, message=str(error), rule="fault")) from None
        failed = self._simulator.failed
        failed[fault.written] += 1
        return None if fault.times is not None and failed[fault.written] > fault.times else fault

    def _accepted(self) -> Accepted:
        api, route, body, name = self._api, self._route, self._body, self._route.model
        if self._envelope is not None:
            opened = self._envelope.opened(body)
            if isinstance(opened, Violation):
                raise _refused(opened)
            name, body = opened
        if api.checks_headers is not None and not route.vertex:
            missing = api.checks_headers(dict(self._request.headers))
            if missing is not None:
                raise _refused(missing)
        if api.remembers:
            joined = self._simulator.store.joined(body)
            if isinstance(joined, Refusal):
                raise Refused(structs.replace(joined, rule="stored"))
            body = joined
        situation = Situation(
            model=name,
            recorded=self._settings.recorded,
            vertex=route.vertex or route.wrapped,
            counting=route.operation == "count",
            version=self._request.header("anthropic-version"),
            betas=tuple(beta.strip() for beta in self._request.header("anthropic-beta").split(",") if beta.strip()),
        )
        accepted = api.accept(body, situation, self._simulator.signer)
        if isinstance(accepted, Violation):
            raise _refused(accepted)
        return accepted

    async def _answer(self, accepted: Accepted) -> None:
        said = _spoiled(self._said(accepted), self._fault)
        occasion = self._occasion()
        self._simulator.note(self._request, self._api.name, 200)
        if accepted.stream or self._route.stream:
            await self._stream(said, accepted, occasion)
            return
        whole = self._api.whole(said, accepted, occasion)
        if self._api.remembers:
            self._simulator.store.keep(self._body, whole)
        if self._fault is not None and self._fault.name == "no-candidates":
            whole = self._api.silenced(whole)
        whole = self._envelope.closed(whole) if self._envelope is not None else whole
        await send_whole(self._exchange, _JSON, whole, self._fault)

    def _said(self, accepted: Accepted) -> Answer:
        simulator, settings = self._simulator, self._settings
        if settings.script is not None:
            received = Received(api=self._api.name, ask=accepted.ask, body=msgspec.json.decode(self._body))
            try:
                scripted = settings.script(received)
            except Unmet as unmet:
                raise Refused(Refusal(status=400, message=str(unmet), rule="script")) from None
            if isinstance(scripted, Answer):
                return structs.replace(scripted, usage=model.usage_of(accepted.ask, scripted, simulator.memory))
            self._fault = self._fault or scripted
            _raise_status(scripted)
        return model.answer(accepted.ask, settings.seed, simulator.memory)

    async def _stream(self, said: Answer, accepted: Accepted, occasion: Occasion) -> None:
        api, envelope, settings = self._api, self._envelope, self._settings
        flow = Flow(delay=settings.delay, split=settings.split, seed=settings.seed)
        failure = api.fail(Refusal(status=500, message="A fault in the stream, as asked for", rule="fault"))
        if api.array is not None and self._request.query.get("alt") != "sse":
            frames = api.array(said, accepted, occasion, envelope is not None)
            await send_frames(self._exchange, _JSON, frames, flow, self._fault, failure)
            return
        frames = api.stream(said, accepted, occasion)
        if api.remembers:
            frames = self._simulator.store.watch(self._body, frames)
        if self._fault is not None and self._fault.name == "no-candidates":
            frames = changed_frames(frames, api.silenced)
        if envelope is not None:
            frames = changed_frames(frames, envelope.closed)
        await send_frames(self._exchange, _SSE, frames, flow, self._fault, failure)

    def _occasion(self) -> Occasion:
        simulator, settings = self._simulator, self._settings
        simulator.answered += 1
        number = f"{settings.seed} {simulator.answered} ".encode()
        return Occasion(
            id=sha256(number + self._request.body).hexdigest()[:24],
            created=int(time.time()),
            signer=simulator.signer,
            pace=Pace(
                size=settings.chunk,
                seed=settings.seed,
                interleaved=settings.interleaved,
                partial_args=settings.partial_args and self._route.vertex,
            ),
        )


def _refused(violation: Violation) -> Refused:
    return Refused(
        Refusal(status=violation.status, message=violation.message, where=violation.where, rule=violation.rule)
    )


def _raise_status(fault: Fault | None) -> None:
    if fault is not None and fault.name == "status":
        message = f"A fault of status {fault.status}, as asked for"
        raise Refused(Refusal(status=fault.status, message=message, rule="fault", retry_after=fault.retry_after))


def _unfaulted(route: Route, body: bytes) -> tuple[Route, bytes, str]:
    """Take a fault out of the model's name, in the path or in the body."""
    if route.model:
        model, fault = split_model(route.model)
        return structs.replace(route, model=model), body, fault
    try:
        named = msgspec.json.decode(body, type=_Named).model or ""
        model, fault = split_model(named)
        return route, spliced(body, "model", msgspec.json.encode(model)) if fault else body, fault
    except (msgspec.MsgspecError, Malformed, UnicodeDecodeError, RecursionError):
        return route, body, ""  # what is wrong with it is the API's to say


def _spoiled(said: Answer, fault: Fault | None) -> Answer:
    """Let the model answer as a fault wants it."""
    match fault.name if fault is not None else "":
        case "blocked":
            return structs.replace(said, text="", thought="", calls=(), sources=(), query="", end="filtered")
        case "malformed-call":
            return structs.replace(said, text="", calls=(), sources=(), query="", end="malformed_call")
        case _:
            return said
