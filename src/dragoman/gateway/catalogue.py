"""The models to list to clients: those in the configuration and those that upstreams list.

Upstreams are queried on demand, all at once and with short timeouts, and their lists are cached for some minutes. If an
upstream does not respond, its last list is used, if there is one. A model is listed by its plain name if requests for
that name go to it, else as `upstream/model`.
"""

import asyncio
from collections.abc import Mapping
from time import monotonic

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.api import UNLISTED, ListedModel, ModelEntry
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.router import Routes
from dragoman.http.client import Client, Deadlines
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.upstreams.upstream import Upstream

_LIST_DEADLINES = Deadlines(connect=2.0, first_byte=3.0, idle=3.0)
_MAX_SECONDS = 4.0
_REFRESH_SECONDS = 300.0
_RETRY_SECONDS = 30.0
"""Seconds until an upstream is queried again, after a success and after a failure."""


class _CachedModelList(Struct):
    expires_at: float = 0.0
    rows: dict[str, ListedModel] = {}


class Catalogue:
    """Lists the available models."""

    def __init__(self, routes: Routes, client: Client, agents: Mapping[str, str] | None = None) -> None:
        self._routes = routes
        self._agents = agents or {}
        """The model of each agent, by agent name."""
        self._client = client
        self._cached_lists: dict[int, _CachedModelList] = {}
        self._lock = asyncio.Lock()

    async def list_entries(self) -> dict[str, ModelEntry]:
        """Return all models by the name that clients use."""
        upstreams = self._routes.upstreams
        async with self._lock:
            await asyncio.gather(*(self._refresh(upstream) for upstream in upstreams))
        found = {name: await self.find_entry(name) for name in (*self._routes.names, *self._agents)}
        for upstream in upstreams:
            issuer = dialect_named(upstream.dialect).issuer
            for listed in self._get_cached_rows(upstream).values():
                name = self._public_name(upstream, listed.name)
                found.setdefault(name, ModelEntry(name=name, issuer=issuer, listed=listed))
        return found

    async def find_entry(self, name: str) -> ModelEntry:
        """Return one model; raises `Problem` if no upstream serves it."""
        target = self._routes.find_targets(self._agents.get(name, name))[0]
        async with self._lock:
            await self._refresh(target.upstream)
        listed = self._get_cached_rows(target.upstream).get(target.model.removeprefix("models/"), UNLISTED)
        return ModelEntry(name=name, issuer=dialect_named(target.upstream.dialect).issuer, listed=listed)

    def serves(self, name: str) -> bool:
        """Return whether requests for a model name go to an upstream, whether or not that lists it."""
        try:
            return bool(self._routes.find_targets(self._agents.get(name, name)))
        except Problem:
            return False

    def _get_cached_rows(self, upstream: Upstream) -> dict[str, ListedModel]:
        return self._cached_lists.setdefault(id(upstream), _CachedModelList()).rows

    async def _refresh(self, upstream: Upstream) -> None:
        cached = self._cached_lists.setdefault(id(upstream), _CachedModelList())
        if monotonic() < cached.expires_at:
            return
        rows = await self._fetch_list(upstream)
        if rows:
            cached.rows = {row.name: row for row in rows}
        cached.expires_at = monotonic() + (_REFRESH_SECONDS if rows else _RETRY_SECONDS)

    async def _fetch_list(self, upstream: Upstream) -> list[ListedModel]:
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                listing = await upstream.models()
                if listing is None:
                    return []
                incoming = await self._client.send(listing.request, _LIST_DEADLINES)
                body = await incoming.read()
        except (ConnectionFailure, Problem, TimeoutError):
            return []
        return listing.read(body) if incoming.is_success else []

    def _public_name(self, upstream: Upstream, model: str) -> str:
        qualified = f"{upstream.name}/{model}"
        try:
            target = self._routes.find_targets(model)[0]
        except Problem:
            return qualified
        return model if (target.upstream.name, target.model) == (upstream.name, model) else qualified
