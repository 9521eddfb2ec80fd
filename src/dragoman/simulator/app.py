"""The simulator: all APIs behind one address, and what it keeps from one request to the next."""

from collections import Counter, deque
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from dragoman.http.exchange import Exchange
from dragoman.http.message import Headers, Request
from dragoman.simulator import auxiliary
from dragoman.simulator.answering import Answering, Refused
from dragoman.simulator.api import Refusal, Told
from dragoman.simulator.apis import APIS
from dragoman.simulator.model.usage import PrefixMemory
from dragoman.simulator.routes import Route, api_of, route_of
from dragoman.simulator.settings import Settings
from dragoman.simulator.signatures import Signer

if TYPE_CHECKING:
    from dragoman.simulator.apis.responses.store import Store

_JSON = {"content-type": "application/json"}
_MOST_KEPT = 10_000


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
        self.requests: deque[Seen] = deque(maxlen=_MOST_KEPT)
        self.signer = Signer(self.settings.seed)
        self.memory = PrefixMemory()
        self.failed: Counter[str] = Counter()
        """How often each fault has been asked for."""
        self.answered = 0

    @cached_property
    def store(self) -> "Store":
        """What the Responses API remembers."""
        from dragoman.simulator.apis.responses.store import Store  # noqa: PLC0415  only who asks there pays for loading it

        return Store()

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        request = exchange.request
        route = route_of(request.method, request.path)
        api = route.api if route is not None and route.api else api_of(request.path)
        try:
            told = await self._told(exchange, route)
        except Refused as refused:
            told = APIS[api].refuse(refused.refusal)
            self.note(request, api, told.status, refused.refusal.rule)
            await exchange.send(told.status, told.headers, told.body)
            return
        if told is not None:
            self.note(request, api, told.status)
            await exchange.send(told.status, told.headers, told.body)

    async def _told(self, exchange: Exchange, route: Route | None) -> Told | None:
        """Return what is to be sent; None if that has been done."""
        request = exchange.request
        if route is None:
            raise Refused(Refusal(status=404, message=f"Not found: {request.method} {request.path}", rule="path"))
        match route.operation:
            case "generate" | "count":
                return await Answering(self, exchange, route).told()
            case "requests":
                return auxiliary.listed([structs.replace(seen, headers=()) for seen in self.requests])
            case "stored":
                found = self.store.asked(route.id, route.action)
                if found is None:
                    message = f"Response with id '{route.id}' not found."
                    raise Refused(Refusal(status=404, message=message, rule="stored"))
                return Told(200, _JSON, found)
            case _:
                return auxiliary.told(request, route)

    def note(self, request: Request, api: str, status: int, rule: str = "") -> None:
        """Remember what came in."""
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
