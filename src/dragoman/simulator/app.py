"""The simulator: all APIs behind one address, and what it keeps from one request to the next."""

from collections import Counter, deque
from typing import Any

import msgspec
from msgspec import Struct, structs

from dragoman.http.exchange import Exchange
from dragoman.http.message import Headers, Request
from dragoman.simulator import auxiliary, keys
from dragoman.simulator.answering import Answering, Refused, in_array, refused
from dragoman.simulator.api import Memory, Refusal, Told
from dragoman.simulator.apis import APIS
from dragoman.simulator.model.usage import PrefixMemory
from dragoman.simulator.routes import Route, api_of, route_of
from dragoman.simulator.rule import Violation
from dragoman.simulator.settings import Settings
from dragoman.simulator.signatures import Signer

_MOST_KEPT = 10_000
_MOST_BYTES = 256 << 20
"""Of bodies that are kept: who sends documents for days shall not fill the memory."""


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
        api = auxiliary.asked_api(request, route) if route is not None else api_of(request.path)
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
        unaccepted = keys.unaccepted(request, route, APIS[api], self.settings.key)
        if unaccepted is not None:
            raise Refused(unaccepted)
        match route.operation:
            case "generate" | "count" | "compact":
                return await Answering(self, exchange, route).told()
            case "requests":
                return auxiliary.listed([structs.replace(seen, headers=()) for seen in self.requests])
            case "stored" | "conversations":
                memory = self.memory_of(route.api)
                told = memory.told(request, route) if memory is not None else None
                if isinstance(told, Refusal):
                    raise Refused(told)
                return told
            case _:
                told = auxiliary.told(request, route)
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
