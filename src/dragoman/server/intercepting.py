"""Put together what stands between clients and their upstreams, as a configuration names them.

The client's own key is for its upstream. Where keys of ours are configured, it shows one in `x-dragoman-key`; a client
that the gateway started itself is known by its path.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.config import Config
from dragoman.core.problems import Problem
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import RequestContext
from dragoman.gateway.record import Record
from dragoman.gateway.route import Routes
from dragoman.gateway.sessions.wanted import Wanted
from dragoman.gateway.upstream_call import map_failure
from dragoman.http.client import Client
from dragoman.http.exchange import Exchange
from dragoman.http.link import Failure
from dragoman.http.message import Request
from dragoman.intercept.caller import Caller
from dragoman.intercept.digest import digest_of
from dragoman.intercept.passing import Looker, Passing
from dragoman.intercept.sessions import Name, Sessions, fixed_plan
from dragoman.intercept.settings import KINDS, InterceptTable
from dragoman.intercept.surface import Destination, Surface
from dragoman.server.access import Key
from dragoman.server.calling import Bound, answer_caller, conversation_of
from dragoman.server.paths import Path
from dragoman.server.remembering import Remembering
from dragoman.sessions.store import Store

_OURS = {"x-dragoman-key": "x-api-key", "host": "host", "origin": "origin"}
"""Headers that are for us, and what they are called where keys are looked at."""


def shown(request: Request) -> Request:
    """Return what a client shows to us of a request that is for its upstream."""
    headers = tuple((_OURS[name], value) for name, value in request.headers if name in _OURS)
    return Request(request.method, request.target.partition("?")[0], headers)


class Interception:
    """Passes the requests of clients on to the upstreams they are meant for."""

    def __init__(self, config: Config, routes: Routes, client: Client, store: Store, *, alone: bool = True) -> None:
        self._config = config
        self._is_alone = alone
        """No other process answers on the same port: what is known here is all that is known."""
        self._routes = routes
        self._surface = Surface(client)
        self.sessions = Sessions()
        self._remembering = Remembering(self.sessions, store)
        self.callers = Caller()
        self.base_url = ""
        """Where clients that are started here are told to ask."""

    @property
    def lookers(self) -> list[Looker]:
        """Who is told of each exchange when it is over."""
        return self._surface.lookers

    def knows(self, path: Path) -> bool:
        """Tell whether a path is one that was given to a client which the gateway started."""
        return self.sessions.knows(path.name, path.item)

    async def answer(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        """Answer one request of a client."""
        table = self._table(path.name)
        destination = self._destination(table)
        if not key.allows(destination.upstream + path.action):
            raise Problem("permission", f"this key may not ask for {destination.upstream + path.action!r}")
        query = exchange.request.target.partition("?")[2]
        passing = Passing(
            name=path.name,
            session=path.item,
            upstream=destination.upstream,
            method=exchange.request.method,
            target=path.action + (f"?{query}" if query else ""),
        )
        record.note_asked(destination.upstream, "")
        session = None
        if path.name in self._config.intercept:
            session = await self._remembering.find(Name(key.name, path.name, path.item), table)
        plan = fixed_plan(table) if session is None else session.plan(digest_of(exchange.request.body))
        try:
            await self._surface.answer(exchange, passing, destination, plan, session)
        except Failure as failure:
            raise map_failure(failure, destination.upstream) from None
        finally:
            record.status = passing.status
            if session is not None:
                await self._remembering.keep(session)

    @property
    def has_callers(self) -> bool:
        """Tell whether a request may be a caller's."""
        return bool(self._config.intercept)

    async def bound(self, ask: ClientRequest, request: Request, wanted: Wanted | None) -> Bound | None:
        """Return the session that a request of a caller names as its conversation; None for any other request."""
        name = wanted.conversation if wanted is not None else conversation_of(ask, request)
        entry, _, session = name.partition(":")
        table = self._config.intercept.get(entry)
        if table is None:
            return None
        if not self._is_alone:
            words = f"sessions of [intercept.{entry}] live in one process: serve with one worker"
            raise Problem("unsupported", words, status=501)
        opened = await self._remembering.open(Name(ask.owner, entry, session), table)
        return Bound(opened, f"{self.base_url}/intercept/{entry}@{opened.ticket}")

    async def answer_caller(self, bound: Bound, context: RequestContext) -> None:
        """Answer a caller whose conversation is bound to a session."""
        server, callers = self._config.server, self.callers
        try:
            await answer_caller(bound, callers, context, hold=server.hold, heartbeat=server.heartbeat)
        finally:
            await self._remembering.keep(bound.session)

    def _table(self, name: str) -> InterceptTable:
        """Return what is configured for a client; an upstream's own name stands for nothing but the way there."""
        table = self._config.intercept.get(name)
        if table is not None:
            return table
        upstream = self._config.upstreams.get(name)
        if upstream is None or upstream.kind not in KINDS:
            raise Problem("not_found", f"there is no [intercept.{name}], and no upstream {name!r} of Google's")
        return InterceptTable(upstream=name)

    def _destination(self, table: InterceptTable) -> Destination:
        target = self._routes.named(table.upstream, "gemini-")
        site = getattr(target.upstream, "site", None) if target is not None else None
        if target is None or site is None:
            raise Problem("not_found", f"there is no upstream {table.upstream!r} of Google's")
        return Destination(
            upstream=table.upstream,
            origin=site.origin,
            prefix=site.prefix,
            deadlines=target.deadlines,
            headers=table.headers,
        )


@asynccontextmanager
async def open_interception(
    config: Config, routes: Routes, store: Store, *, alone: bool = True
) -> AsyncGenerator[Interception]:
    """Open what stands between clients and upstreams, as long as the block runs."""
    client = Client()
    try:
        opened = Interception(config, routes, client, store, alone=alone)
        try:
            yield opened
        finally:
            await opened.callers.close()
    finally:
        await client.close()
