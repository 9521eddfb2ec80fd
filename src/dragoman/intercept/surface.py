"""Stand between a client and its upstream: what came goes on, what comes back is handed to the client as it comes.

Nothing is held back, and no byte is changed, unless a session has something to do for the client.
"""

import logging
from collections.abc import Mapping

from msgspec import Struct

from dragoman.http.client import Client, Deadlines, Incoming, Outgoing
from dragoman.http.exchange import Exchange
from dragoman.http.origin import Origin
from dragoman.intercept import headers
from dragoman.intercept.lookout import Lookout
from dragoman.intercept.passing import Looker, Passing

_LOG = logging.getLogger("dragoman.intercept")
_BODILESS = frozenset({204, 304})


class Destination(Struct, frozen=True, kw_only=True):
    """Where the requests of a client go: configured, never out of a request."""

    upstream: str
    origin: Origin
    prefix: str = ""
    deadlines: Deadlines = Deadlines()
    headers: Mapping[str, str] = {}
    """Headers to set on the way, or to take out."""


class Surface:
    """Passes requests on."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.lookers: list[Looker] = []
        """Who is told of each exchange when it is over."""
        self._lookout = Lookout()

    async def answer(self, exchange: Exchange, passing: Passing, destination: Destination) -> None:
        """Pass one request on, and its reply back; raises the `Failure` of an upstream that gives none."""
        request = exchange.request
        passing.came = passing.left = request.body
        passing.headers = headers.shown(request.headers)
        lookers = [*self.lookers, self._lookout] if self._lookout.is_watched else self.lookers
        passing.is_seen = bool(lookers)
        try:
            await self._pass(exchange, passing, destination)
        finally:
            passing.close()
            for looker in lookers:
                _tell(looker, passing)

    async def _pass(self, exchange: Exchange, passing: Passing, destination: Destination) -> None:
        request = exchange.request
        outgoing = Outgoing(
            destination.origin,
            request.method,
            destination.prefix + passing.target,
            headers.going(request.headers, destination.headers),
            request.body,
        )
        passing.target_left = passing.target = headers.without_key(passing.target)
        incoming = await self._client.ask(outgoing, destination.deadlines)
        try:
            await self._hand_back(incoming, exchange, passing)
        finally:
            incoming.close()

    async def _hand_back(self, incoming: Incoming, exchange: Exchange, passing: Passing) -> None:
        told = headers.coming(incoming.headers, plain=incoming.plain)
        passing.status, passing.reply_headers = incoming.status, tuple(told.items())
        if incoming.status in _BODILESS or exchange.request.method == "HEAD":
            await exchange.send(incoming.status, told)
            return
        length = incoming.header("content-length") if incoming.plain else ""
        exchange.start(incoming.status, told, int(length) if length.isdecimal() else None)
        while piece := await incoming.piece():
            if passing.is_seen:
                passing.note(piece, piece)
            await exchange.write(piece)
        await exchange.end()


def _tell(looker: Looker, passing: Passing) -> None:
    try:
        looker(passing)
    except Exception:  # noqa: BLE001  whoever looks on must not be able to do harm
        _LOG.exception("a looker failed on %s", passing.id)
