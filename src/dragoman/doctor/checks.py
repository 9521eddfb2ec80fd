"""Try what a configuration names: credentials, the way to each upstream, and a tool round trip with its models.

Each check says what it found, and what to do if that is not well. Addresses and the upstream's own words are told, for
this is read by whoever runs the gateway; secrets are not.
"""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from msgspec import Struct

from dragoman.config import Config, UpstreamTable
from dragoman.core.problems import Kind, Problem
from dragoman.dialects.record import Call
from dragoman.doctor.round_trip import round_trip
from dragoman.gateway.redact import credentials_of, redact
from dragoman.gateway.router import Target
from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.link import Failure, Untrusted
from dragoman.server.services import USUAL, place
from dragoman.upstreams.place import Upstream
from dragoman.wire import json

_REMEDIES: Mapping[Kind, str] = {
    "authentication": "check the key in [upstreams.{name}]",
    "permission": "the account may not use this model: enable it there, or name another with --model {name}/MODEL",
    "not_found": "name a model that the upstream has: --model {name}/MODEL, and in [models]",
    "rate_limit": "wait, or raise the quota of the account",
    "billing": "the account needs credit",
    "overloaded": "the upstream is busy: try again later",
    "timeout": "try again with a longer --timeout; see whether the upstream is well",
    "unreachable": "check base_url in [upstreams.{name}], the network and HTTPS_PROXY",
    "malformed_reply": "what answers is no such API: check kind and base_url in [upstreams.{name}]",
}
_CODES: Mapping[str, str] = {"credentials": "check the key or credentials in [upstreams.{name}]"}


class Check(Struct, frozen=True, kw_only=True):
    """What was tried, and what came of it."""

    check: str
    upstream: str = ""
    server: str = ""
    """The external server that it is about."""
    model: str = ""
    ok: bool
    detail: str
    remedy: str = ""
    seconds: float = 0.0


async def examine(config: Config, models: Sequence[str] = (), patience: float = 60.0) -> AsyncGenerator[Check]:
    """Check every upstream; `models` are those to try (`upstream/model`) instead of the configured ones."""
    async with AsyncExitStack() as stack:
        client = Client()
        stack.push_async_callback(client.close)
        for name, table in config.upstreams.items():
            tried = _models(config, name, table, models)
            if models and not tried:
                continue
            upstream = (await place(name, table, client, stack))(next(iter(tried), USUAL[table.kind]))
            visit = _Visit(config, name, table, client, Deadlines(connect=10.0, first_byte=patience, idle=patience))
            async for check in visit.checks(upstream, tried):
                yield check


def _models(config: Config, name: str, table: UpstreamTable, models: Sequence[str]) -> tuple[str, ...]:
    """Return the models of an upstream that are to be tried."""
    targets = models or [target for targets in config.models.values() for target in targets]
    own = [target.partition("/")[2] for target in targets if target.partition("/")[0] == name]
    named = tuple(dict.fromkeys(model for model in own if "*" not in model))
    return named or (() if models or (table.kind == "openai" and table.base_url) else (USUAL[table.kind],))


class _Visit:
    """The checks of one upstream."""

    def __init__(self, config: Config, name: str, table: UpstreamTable, client: Client, deadlines: Deadlines) -> None:
        self._config = config
        self._name = name
        self._table = table
        self._client = client
        self._deadlines = deadlines
        self._began = time.monotonic()

    async def checks(self, upstream: Upstream, models: Sequence[str]) -> AsyncGenerator[Check]:
        try:
            outgoing = await upstream.generate(Call(b"{}", next(iter(models), "")), ())
        except (Problem, ImportError) as problem:
            yield self._failed("credentials", problem)
            return
        yield self._good("credentials", "there is a key or token" if credentials_of(outgoing) else "none are sent")
        try:
            incoming = await self._client.ask(_bare(outgoing), self._deadlines)
            incoming.close()
        except Failure as failure:
            remedy = "its certificate is not trusted here: see SSL_CERT_FILE" if isinstance(failure, Untrusted) else ""
            yield self._bad("reachable", str(failure), remedy or _REMEDIES["unreachable"])
            return
        yield self._good("reachable", outgoing.origin.url)
        for model in models or await self._listed(outgoing):
            yield await self._trip(upstream, model)

    async def _trip(self, upstream: Upstream, model: str) -> Check:
        self._began = time.monotonic()
        try:
            said = await round_trip(Target(upstream, model, self._deadlines), self._client)
        except Problem as problem:
            return self._failed("tool round trip", problem, model)
        return self._good("tool round trip", said, model)

    async def _listed(self, outgoing: Outgoing) -> tuple[str, ...]:
        """Return the first model that a compatible server has: nobody else knows what it calls them."""
        base = outgoing.target.partition("/chat/completions")[0]
        asked = Outgoing(outgoing.origin, "GET", f"{base}/models", outgoing.headers)
        try:
            listed: Any = json.decode(await (await self._client.ask(asked, self._deadlines)).read())
            return (str(listed["data"][0]["id"]),)
        except (Failure, json.Malformed, KeyError, IndexError, TypeError):
            return (USUAL[self._table.kind],)

    def _good(self, check: str, detail: str, model: str = "") -> Check:
        return self._check(check, model, ok=True, detail=detail)

    def _bad(self, check: str, detail: str, remedy: str, model: str = "") -> Check:
        return self._check(check, model, ok=False, detail=detail, remedy=remedy)

    def _failed(self, check: str, problem: Exception, model: str = "") -> Check:
        if not isinstance(problem, Problem):
            return self._bad(check, str(problem), 'install what is missing: pip install "dragoman[google]"')
        remedy = _CODES.get(problem.code or "") or _REMEDIES.get(problem.kind, "see what the upstream says")
        return self._bad(check, problem.message, remedy, model)

    def _check(self, check: str, model: str, *, ok: bool, detail: str, remedy: str = "") -> Check:
        seconds = round(time.monotonic() - self._began, 3)
        self._began = time.monotonic()
        return Check(
            check=check,
            upstream=self._name,
            model=model,
            ok=ok,
            detail=redact(detail, self._config.secrets),
            remedy=remedy.replace("{name}", self._name),
            seconds=seconds,
        )


def _bare(outgoing: Outgoing) -> Outgoing:
    """Return a request to the same server that shows no credentials and asks for nothing."""
    return Outgoing(outgoing.origin, "GET", "/", (("accept-encoding", "identity"),))
