"""The simulator: all APIs behind one address, and what it keeps from one request to the next."""

import math
from collections import Counter, deque
from typing import Any

import msgspec
from msgspec import Struct, structs

from dragoman.http.exchange import Exchange
from dragoman.http.message import Headers, Request
from dragoman.simulator import endpoints
from dragoman.simulator.answering import Answering, Refused, in_array, refused
from dragoman.simulator.api import Memory, Refusal, Told
from dragoman.simulator.apis import APIS
from dragoman.simulator.faults import read_fault
from dragoman.simulator.model.usage import PrefixMemory
from dragoman.simulator.recordings import Recordings
from dragoman.simulator.routes import Route, api_of, route_of
from dragoman.simulator.rule import Violation
from dragoman.simulator.script import Script
from dragoman.simulator.talk import Signer

_MOST_KEPT = 10_000
_MOST_BYTES = 256 << 20
"""Of bodies that are kept: who sends documents for days shall not fill the memory."""


class Settings(Struct, frozen=True, kw_only=True):
    """How a simulator behaves. Without any of these it is a strict and quick stand-in."""

    seed: int = 0
    recorded: bool = False
    """Signatures of the real vendors are let through where they are well formed."""
    chunk: int = 24
    """About how many characters a delta of a stream has; 0 for all at once."""
    delay: float = 0.0
    """Seconds between the frames of a stream."""
    split: int = 0
    """Frames leave in pieces of at most so many bytes; 0 for a frame at once."""
    interleaved: bool = False
    """Parallel calls grow in turns, where the API can say that."""
    partial_args: bool = False
    """Arguments come in pieces on Vertex."""
    fault: str = ""
    """How every request goes wrong."""
    key: str = ""
    """The one key that is accepted; any is if this is empty, but none that begins with `invalid`."""
    script: Script | None = None
    recordings: Recordings | None = None

    def __post_init__(self) -> None:
        """Refuse at once what could only go wrong later; raises `ValueError`."""
        for name in ("chunk", "delay", "split"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a number from 0 on, not {value}")
        if self.fault:
            read_fault(self.fault)


class Seen(Struct, frozen=True, kw_only=True):
    """A request that came in, and what became of it."""

    method: str
    target: str
    headers: Headers
    body: bytes
    api: str = ""
    status: int = 0
    """What was answered; 0 for a fault that answers nothing."""
    rule: str = ""
    """The rule by which it was refused."""

    def json(self) -> Any:
        """Return the body as Python values."""
        return msgspec.json.decode(self.body)


class Simulator:
    """All APIs behind one address."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.requests: deque[Seen] = deque()
        self._kept = 0
        self.signer = Signer(self.settings.seed)
        self.memory = PrefixMemory()
        self.failed: Counter[str] = Counter()
        """How often each fault has been asked for."""
        self.answered = 0
        self._memories: dict[str, Memory] = {}

    def memory_of(self, api: str) -> Memory | None:
        """Return what an API keeps; None for one that keeps nothing."""
        make = APIS[api].memory
        if make is not None and api not in self._memories:
            self._memories[api] = make()
        return self._memories.get(api)

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        request = exchange.request
        route = route_of(request.method, request.path) or self._recorded_route(request)
        api = endpoints.asked_api(request, route) if route is not None else api_of(request.path)
        try:
            told = await self._told(exchange, route, api)
        except Refused as refused:
            told = APIS[api].refuse(refused.refusal)
            if route is not None and in_array(request, route):
                told = structs.replace(told, body=b"[" + told.body.rstrip() + b"\n]\n")
            self.note(request, api, told.status, refused.refusal.rule)
            await exchange.send(told.status, told.headers, told.body)
            return
        if told is not None:
            self.note(request, api, told.status)
            await exchange.send(told.status, told.headers, told.body)

    def _recorded_route(self, request: Request) -> Route | None:
        """Return a route for a path that no vendor has, but a recording."""
        recordings = self.settings.recordings
        if recordings is None or not recordings.has(request.target, request.body):
            return None
        return Route(api=api_of(request.path), operation="generate")

    async def _told(self, exchange: Exchange, route: Route | None, api: str) -> Told | None:
        """Return what is to be sent; None if that has been done."""
        request = exchange.request
        if route is None:
            raise Refused(_nowhere(request))
        unaccepted = endpoints.refuse_key(request, route, APIS[api], self.settings.key)
        if unaccepted is not None:
            raise Refused(unaccepted)
        match route.operation:
            case "generate" | "count" | "compact":
                return await Answering(self, exchange, route).told()
            case "requests":
                return endpoints.list_requests([structs.replace(seen, headers=()) for seen in self.requests])
            case "stored" | "conversations":
                memory = self.memory_of(route.api)
                told = memory.told(request, route) if memory is not None else None
                if isinstance(told, Refusal):
                    raise Refused(told)
                return told
            case _:
                told = endpoints.answer_endpoint(request, route)
                if isinstance(told, Violation):
                    raise refused(told)
                return told

    def note(self, request: Request, api: str, status: int, rule: str = "") -> None:
        """Remember what came in; the oldest is forgotten when it gets too much."""
        self._kept += len(request.body)
        while self.requests and (len(self.requests) >= _MOST_KEPT or self._kept > _MOST_BYTES):
            self._kept -= len(self.requests.popleft().body)
        self.requests.append(
            Seen(
                method=request.method,
                target=request.target,
                headers=request.headers,
                body=request.body,
                api=api,
                status=status,
                rule=rule,
            )
        )


def _nowhere(request: Request) -> Refusal:
    """Say that nobody has such a path; of a socket, that it is not spoken, upon which clients ask again over HTTP."""
    # That it wishes for another protocol is not passed on by the server; the key of its handshake is.
    if request.path == "/v1/responses" and request.header("sec-websocket-key"):
        message = "WebSocket connections are not supported: send the request over HTTP."
        return Refusal(status=426, message=message, rule="path")
    return Refusal(status=404, message=f"Not found: {request.method} {request.path}", rule="path")
