"""The models a client may be shown: those that are configured, and those that upstreams list themselves.

Upstreams are asked when somebody wants to know, all at once and not for long, and what they say is remembered for some
minutes. One that does not answer is left out, or told of as it was before. A model is called by its plain name if a
request for that name would be answered by it, else by its upstream's name and its own.
"""

import asyncio
from collections.abc import Mapping
from time import monotonic

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.router import Routes
from dragoman.http.client import Client, Deadlines
from dragoman.http.link import Failure
from dragoman.upstreams.model_list import ListedModel
from dragoman.upstreams.upstream import Upstream

_QUICK = Deadlines(connect=2.0, first_byte=3.0, idle=3.0)
_LONGEST = 4.0
_FRESH = 300.0
_FAILED = 30.0
"""Seconds until an upstream is asked again, after it has answered and after it has not."""


class Entry(Struct, frozen=True, kw_only=True):
    """A model as it is shown."""

    name: str
    issuer: str = ""
    """Whose row it is."""
    listed: ListedModel | None = None
    """What its upstream says of it, if that does."""


class _Memory(Struct):
    until: float = 0.0
    rows: dict[str, ListedModel] = {}


class Catalogue:
    """Knows which models there are."""

    def __init__(self, routes: Routes, client: Client, agents: Mapping[str, str] | None = None) -> None:
        self._routes = routes
        self._agents = agents or {}
        """Names that agents are called by, and the model of each."""
        self._client = client
        self._memories: dict[int, _Memory] = {}
        self._lock = asyncio.Lock()

    async def entries(self) -> dict[str, Entry]:
        """Return all models by the name a client asks for."""
        upstreams = self._routes.upstreams
        async with self._lock:
            await asyncio.gather(*(self._refresh(upstream) for upstream in upstreams))
        found = {name: await self.entry(name) for name in (*self._routes.names, *self._agents)}
        for upstream in upstreams:
            issuer = dialect_named(upstream.dialect).issuer
            for listed in self._rows(upstream).values():
                name = self._shown(upstream, listed.name)
                found.setdefault(name, Entry(name=name, issuer=issuer, listed=listed))
        return found

    async def entry(self, name: str) -> Entry:
        """Return one model; raises the `Problem` for which nobody answers for it."""
        target = self._routes.of(self._agents.get(name, name))[0]
        async with self._lock:
            await self._refresh(target.upstream)
        listed = self._rows(target.upstream).get(target.model.removeprefix("models/"))
        return Entry(name=name, issuer=dialect_named(target.upstream.dialect).issuer, listed=listed)

    def _rows(self, upstream: Upstream) -> dict[str, ListedModel]:
        return self._memories.setdefault(id(upstream), _Memory()).rows

    async def _refresh(self, upstream: Upstream) -> None:
        memory = self._memories.setdefault(id(upstream), _Memory())
        if monotonic() < memory.until:
            return
        rows = await self._asked(upstream)
        if rows:
            memory.rows = {row.name: row for row in rows}
        memory.until = monotonic() + (_FRESH if rows else _FAILED)

    async def _asked(self, upstream: Upstream) -> list[ListedModel]:
        try:
            async with asyncio.timeout(_LONGEST):
                listing = await upstream.models()
                if listing is None:
                    return []
                incoming = await self._client.ask(listing.request, _QUICK)
                body = await incoming.read()
        except (Failure, Problem, TimeoutError):
            return []
        return listing.read(body) if incoming.good else []

    def _shown(self, upstream: Upstream, model: str) -> str:
        qualified = f"{upstream.name}/{model}"
        try:
            target = self._routes.of(model)[0]
        except Problem:
            return qualified
        return model if (target.upstream.name, target.model) == (upstream.name, model) else qualified
