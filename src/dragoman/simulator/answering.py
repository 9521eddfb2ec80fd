"""One request for an answer: looked for among recordings, else held to the rules, answered by the script or the model.

What is sent goes out whole or as a stream, and goes wrong on the way where a fault wants that.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import sha256

import msgspec
from msgspec import Struct, structs

from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON, Request
from dragoman.simulator import model
from dragoman.simulator.api import Accepted, Occasion, Pace, Refusal, Told
from dragoman.simulator.apis import APIS
from dragoman.simulator.faults import (
    Failure,
    Fault,
    Flow,
    UnknownFault,
    changed_frames,
    early_status,
    frames_of,
    go_wrong_early,
    read_fault,
    send_frames,
    send_whole,
    split_model,
)
from dragoman.simulator.recordings import SSE
from dragoman.simulator.routes import Route
from dragoman.simulator.rule import Situation, Violation
from dragoman.simulator.script import Received, Unmet
from dragoman.simulator.state import State
from dragoman.simulator.talk import Answer
from dragoman.wire.json import Malformed
from dragoman.wire.splice import spliced

_SSE = {"content-type": SSE, "cache-control": "no-cache"}
_BREAK = Refusal(status=500, message="A fault in the stream, as asked for", rule="fault")


class _Named(Struct):
    model: str | None = None


class Refused(Exception):  # noqa: N818  it says what became of the request
    """A request gets no answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Answering:
    """One request on its way to an answer."""

    def __init__(self, simulator: State, exchange: Exchange, route: Route) -> None:
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
        self._fault = self._asked_fault(request.header("x-dragoman-fault") or self._written_fault or settings.fault)
        if await self._went_wrong():
            return None
        if settings.recordings is not None:
            target = request.target.replace(f"~{self._written_fault}", "", 1) if self._written_fault else request.target
            found = settings.recordings.find(target, self._body)
            if found is not None:
                await self._replay(found)
                return None
        accepted = self._accepted()
        if self._route.operation == "count":
            counted = self._api.count(accepted, model.ask_tokens(accepted.ask))
            return Told(200, JSON, self._envelope.counted(counted) if self._envelope is not None else counted)
        if self._route.operation == "compact" and self._api.compact is not None:
            tokens = model.ask_tokens(accepted.ask)
            return Told(200, JSON, self._api.compact(accepted, self._occasion(), tokens))
        await self._answer(accepted)
        return None

    def _asked_fault(self, written: str) -> Fault | None:
        if not written:
            return None
        try:
            return self._due(read_fault(written))
        except UnknownFault as error:
            raise Refused(Refusal(status=400, message=str(error), rule="fault")) from None

    def _due(self, fault: Fault) -> Fault | None:
        """Return a fault unless it has happened as often as it shall."""
        if fault.times is None:
            return fault
        failed = self._simulator.failed
        failed[fault.written] += 1
        return fault if failed[fault.written] <= fault.times else None

    async def _went_wrong(self) -> bool:
        """Do what a fault does before there is an answer; tell whether that was all."""
        fault = self._fault
        if fault is None:
            return False
        if fault.name == "status":
            message = f"A fault of status {fault.status}, as asked for"
            raise Refused(Refusal(status=fault.status, message=message, rule="fault", retry_after=fault.retry_after))
        if fault.name == "slow-headers":
            await asyncio.sleep(fault.delay)
        status = early_status(fault)
        if status is None:
            return False
        self._simulator.note(self._request, self._api.name, status, "fault")
        await go_wrong_early(self._exchange, fault)
        return True

    async def _replay(self, found: Told) -> None:
        """Send what was recorded."""
        self._simulator.note(self._request, self._api.name, found.status)
        if found.status == 200 and found.headers["content-type"].startswith(SSE):
            await self._send_frames(found.headers, frames_of(found.body), lambda _sent: self._api.fail(_BREAK))
        else:
            await send_whole(self._exchange, found, self._fault)

    def _accepted(self) -> Accepted:
        api, route, body, name = self._api, self._route, self._body, self._route.model
        if self._envelope is not None:
            opened = self._envelope.opened(body)
            if isinstance(opened, Violation):
                raise refused(opened)
            name, body = opened
        if api.checks_headers is not None and not route.vertex:
            missing = api.checks_headers(dict(self._request.headers))
            if missing is not None:
                raise refused(missing)
        memory = self._simulator.memory_of(api.name)
        if memory is not None:
            joined = memory.joined(body, recorded=self._settings.recorded)
            if isinstance(joined, Refusal):
                raise Refused(joined if joined.rule else structs.replace(joined, rule="stored"))
            body = joined
        situation = Situation(
            model=name,
            recorded=self._settings.recorded,
            vertex=route.vertex or route.wrapped,
            counting=route.operation == "count",
            compacting=route.operation == "compact",
            version=self._request.header("anthropic-version") or route.version,
            betas=tuple(beta.strip() for beta in self._request.header("anthropic-beta").split(",") if beta.strip()),
        )
        accepted = api.accept(body, situation, self._simulator.signer)
        if isinstance(accepted, Violation):
            raise refused(accepted)
        return accepted

    async def _answer(self, accepted: Accepted) -> None:
        said = self._scripted(accepted)
        if isinstance(said, Fault):
            self._fault = self._fault or self._due(said)
            if await self._went_wrong():
                return
        if not isinstance(said, Answer):
            said = model.answer(accepted.ask, self._settings.seed, self._simulator.memory)
        said = _spoiled(said, self._fault)
        occasion = self._occasion()
        if accepted.stream or self._route.stream:
            self._simulator.note(self._request, self._api.name, 200)
            await self._stream(said, accepted, occasion)
            return
        if self._is_asked("stream-error"):
            raise Refused(_BREAK)
        whole = self._api.whole(said, accepted, occasion)
        memory = self._simulator.memory_of(self._api.name)
        whole = memory.keep(self._body, whole) if memory is not None else whole
        if self._is_asked("no-candidates"):
            whole = self._api.silenced(whole)
        whole = self._envelope.closed(whole) if self._envelope is not None else whole
        if self._request.query.get("prettyPrint") == "false" and self._api.array is not None:
            whole = msgspec.json.format(whole, indent=-1)
        self._simulator.note(self._request, self._api.name, 200)
        await send_whole(self._exchange, Told(200, self._headers(JSON, occasion), whole), self._fault)

    def _scripted(self, accepted: Accepted) -> Answer | Fault | None:
        """Return what the script says; None where it says nothing."""
        if self._settings.script is None:
            return None
        received = Received(api=self._api.name, ask=accepted.ask, body=msgspec.json.decode(self._body))
        try:
            scripted = self._settings.script(received)
        except (Unmet, AssertionError) as unmet:
            message = str(unmet) or "the request is not what the script expects"
            raise Refused(Refusal(status=400, message=message, rule="script")) from None
        if isinstance(scripted, Answer):
            return structs.replace(scripted, usage=model.usage_of(accepted.ask, scripted, self._simulator.memory))
        return scripted

    def _is_asked(self, fault: str) -> bool:
        return self._fault is not None and self._fault.name == fault

    async def _stream(self, said: Answer, accepted: Accepted, occasion: Occasion) -> None:
        api = self._api
        frames = api.stream(said, accepted, occasion)
        memory = self._simulator.memory_of(api.name)
        if memory is not None:
            frames = memory.watch(self._body, frames, partial(api.whole, said, accepted, occasion))
        if self._is_asked("no-candidates"):
            frames = changed_frames(frames, api.silenced)
        if self._envelope is not None:
            frames = changed_frames(frames, self._envelope.closed)
        headers = _SSE
        if api.array is not None and in_array(self._request, self._route):
            frames, headers = api.array(frames), JSON
        failure = partial(self._failure, accepted, occasion)
        await self._send_frames(self._headers(headers, occasion), frames, failure)

    def _failure(self, accepted: Accepted, occasion: Occasion, sent: int) -> bytes:
        """Return the last frames of a stream that breaks off behind so many others."""
        api = self._api
        if api.broken_off is not None:
            return api.broken_off(_BREAK, accepted, occasion, sent)
        if api.array is not None and in_array(self._request, self._route):
            # It is the last element: there is no other way to tell within an array.
            alone = b"".join(api.array([api.fail(_BREAK)]))
            return alone.replace(b"[", b"\n,\r\n", 1) if sent else alone
        return api.fail(_BREAK)

    def _headers(self, headers: Mapping[str, str], occasion: Occasion) -> Mapping[str, str]:
        return headers if self._api.headers is None else {**headers, **self._api.headers(occasion)}

    async def _send_frames(self, headers: Mapping[str, str], frames: Iterable[bytes], failure: Failure) -> None:
        settings = self._settings
        flow = Flow(delay=settings.delay, split=settings.split, seed=settings.seed)
        self._exchange.start(200, headers)
        await send_frames(self._exchange, frames, flow, self._fault, failure)

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


def in_array(request: Request, route: Route) -> bool:
    """Tell whether a stream is one JSON array, in which an error before it stands too."""
    return route.stream and APIS[route.api].array is not None and request.query.get("alt") != "sse"


def refused(violation: Violation) -> Refused:
    """Make a refusal of what is wrong."""
    return Refused(
        Refusal(status=violation.status, message=violation.message, where=violation.where, rule=violation.rule)
    )


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
