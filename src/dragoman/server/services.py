"""Open everything that answers for models, without a server around it: upstreams, routes, conversations, agents."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from time import time
from typing import Any

from msgspec import Struct, structs

from dragoman import __version__
from dragoman.agent import Artifacts, Carrier
from dragoman.agent.equipment import Price
from dragoman.config import Config, ConfigError, UpstreamTable
from dragoman.core.problems import Problem
from dragoman.core.traits import TextCalls
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.runner import Agents
from dragoman.gateway.agents.settings import price_by, table_of
from dragoman.gateway.agents.toolset import Roster, ToolServers, by_name, unmeant
from dragoman.gateway.conversations.load import ConversationLoader
from dragoman.gateway.conversations.runner import Carrying
from dragoman.gateway.errors import map_failure
from dragoman.gateway.generate import Gateway, Timing
from dragoman.gateway.media import Library, MediaLimits
from dragoman.gateway.redact import redact
from dragoman.gateway.retry import RetryPolicy
from dragoman.gateway.router import Places, Routes, Target
from dragoman.gateway.signatures import Vault
from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.guarded import Guard
from dragoman.http.link import Failure
from dragoman.mcp.client import ServerStatus, open_servers
from dragoman.sessions.store import Store, open_store, usual_url
from dragoman.sessions.values import Unavailable
from dragoman.tasks import TaskSet
from dragoman.tools import Executor, Handler, Registry
from dragoman.tools.handler import NAMESPACE_SEPARATOR
from dragoman.tools.web import Settings, Web, web_fetch
from dragoman.upstreams.registry import KINDS
from dragoman.upstreams.simulator import KIND as SIMULATOR
from dragoman.upstreams.upstream import Place
from dragoman.wire import json


def trouble_of(server: str, statuses: Iterable[ServerStatus]) -> str:
    """Tell why a server cannot be reached; "" if it can, or is none of these."""
    return next((redact(status.error) for status in statuses if status.name == server), "")


def _absent(name: str, statuses: Iterable[ServerStatus]) -> str:
    """Say of a tool that is not there that its server is not."""
    server = name.partition(NAMESPACE_SEPARATOR)[0]
    error = trouble_of(server, statuses)
    return f"the server {server} is not available: {error}" if error else ""


class Toolbox(Struct, frozen=True):
    """What runs tools, and the web as far as it may be read."""

    executor: Executor
    web: Web
    origin: Callable[[str], tuple[str, str] | None]
    """Tells the server that a tool is from, and its name there."""
    status: Callable[[], tuple[ServerStatus, ...]] = tuple
    """Tells how each external server does."""

    def trouble(self, server: str) -> str:
        """Tell why a server cannot be reached; "" if it can, or is none of ours."""
        return trouble_of(server, self.status())


@asynccontextmanager
async def open_toolbox(config: Config, more: Iterable[Handler] = ()) -> AsyncGenerator[Toolbox]:
    """Open the tools that a configuration names, and more that are given, as long as the block runs."""
    web = Web(settings := Settings(**structs.asdict(config.web), agent=AGENT))
    artifacts = Artifacts()
    registry = Registry(web_fetch(settings, web=web), artifacts.tool, *more)
    async with AsyncExitStack() as stack:
        if not config.tools:
            yield Toolbox(Executor(registry, spill=artifacts.spill), web, by_name)
            return
        servers = await stack.enter_async_context(open_servers(config.tools, registry))
        executor = Executor(
            registry, spill=artifacts.spill, explain_missing=lambda name: _absent(name, servers.status())
        )
        yield Toolbox(executor, web, servers.origin, servers.status)


_LOG = logging.getLogger("dragoman.agents")
CarriedBy = Callable[[Store], Carrier]
"""Makes what carries runs, over the store in which they are seen."""


def carrying(store: Store) -> Carrier:
    """Carry runs in this process."""
    return Carrying(store.runs)


class Connected(Struct, frozen=True):
    """Who asks upstreams, and who keeps conversations."""

    gateway: Gateway
    desk: ConversationLoader
    carrier: Carrier
    """Carries all runs, in the gateway's requests, behind them and in MCP tasks."""


@asynccontextmanager
async def connected(
    config: Config, toolbox: Toolbox | None = None, carried_by: CarriedBy = carrying
) -> AsyncGenerator[Connected]:
    """Open all that a configuration names, as long as the block runs; what is in the toolbox is run for clients."""
    async with AsyncExitStack() as stack:
        client = Client()
        stack.push_async_callback(client.close)
        places: dict[str, Place] = {}
        for name, table in config.upstreams.items():
            places[name] = await place(name, table, client, stack)
        kinds = {name: table.kind for name, table in config.upstreams.items()}
        deadlines = {
            name: Deadlines(connect=table.connect, first_byte=table.first_byte, idle=table.idle)
            for name, table in config.upstreams.items()
        }
        found = Places(places, kinds, deadlines, library(config), linkless(config), text_calls(config))
        routes = Routes(found, config.models, config.agents)
        desk = await stack.enter_async_context(open_desk(config))
        prices = {name: agent_price(config, name, routes) for name in config.agents}
        carrier = carried_by(desk.store)
        stack.push_async_callback(carrier.close)
        agents = _agents(config, toolbox, desk, carrier, prices) if toolbox is not None else None
        yield Connected(Gateway(routes, client, _timing(config), Vault(desk.store.signed_calls), agents), desk, carrier)


def _agents(
    config: Config, toolbox: Toolbox, desk: ConversationLoader, carrier: Carrier, prices: Mapping[str, Price | None]
) -> Agents:
    registry = toolbox.executor.registry
    origins = (toolbox.origin(name) for name in registry.names)
    servers = {*config.tools, *(origin[0] for origin in origins if origin is not None)}
    for key, words in unmeant(config.agents, {*servers, *registry.names}):
        _LOG.warning("%s: %s", key, words)
    roster = Roster(registry, config.agents, ToolServers(servers, toolbox.origin, toolbox.trouble), prices)
    return Agents(roster, toolbox.executor, desk.store, carrier)


def _timing(config: Config) -> Timing:
    server, retries = config.server, config.server.retries
    retry = RetryPolicy(
        retries=retries.most,
        first_wait=retries.first_wait,
        longest_wait=retries.longest_wait,
        longest_asked=retries.longest_asked,
    )
    return Timing(retry=retry, hold=server.hold, heartbeat=server.heartbeat)


_DAY = 86400.0
_HOUR = 3600.0


@asynccontextmanager
async def open_desk(config: Config) -> AsyncGenerator[ConversationLoader]:
    """Open the store a configuration names, as long as the block runs."""
    table = config.sessions
    try:
        store = await asyncio.to_thread(open_store, table.url or usual_url())
    except ValueError as error:
        raise ConfigError(config.source, "sessions.url", str(error)) from None
    except Unavailable as error:
        raise ConfigError(config.source, "sessions.url", f"cannot be opened: {error}; name another place") from None
    try:
        async with TaskSet() as background:
            if table.keep_days:
                background.start(_forget_old(store, table.keep_days), "delete old conversations")
            yield ConversationLoader(store, keeps_responses=table.state == "gateway")
    finally:
        await store.close()


async def _forget_old(store: Store, days: float) -> None:
    while True:
        await asyncio.sleep(_HOUR)
        with contextlib.suppress(Unavailable):
            await store.purge(time() - days * _DAY)


AGENT = f"dragoman/{__version__}"


def linkless(config: Config) -> frozenset[str]:
    """Return the names of upstreams that fetch no linked media."""
    tables = config.upstreams.items()
    return frozenset(
        name for name, table in tables if not (KINDS[table.kind].links if table.links is None else table.links)
    )


def text_calls(config: Config) -> dict[str, dict[str, TextCalls]]:
    """Return the upstreams whose models call tools in their text, and the form by patterns of the models' names."""
    forced: dict[str, TextCalls] = {} if config.server.use_native_function_calling else {"*": "json"}
    found: dict[str, dict[str, TextCalls]] = {}
    for name, table in config.upstreams.items():
        said = table.text_calls
        patterns: dict[str, TextCalls] = {"*": said} if isinstance(said, str) else {**(said or {}), **forced}
        if patterns:
            found[name] = patterns
    return found


def library(config: Config) -> Library:
    """Return what fetches it for them."""
    media = config.media
    limits = MediaLimits(fetch=media.fetch, max_bytes=media.max_bytes, max_links=media.max_links, seconds=media.seconds)
    return Library(Guard(media.allow), limits)


async def place(name: str, table: UpstreamTable, client: Client, stack: AsyncExitStack) -> Place:
    """Open one upstream; what it needs beside the gateway lives as long as `stack`."""
    if table.kind == SIMULATOR.name and not table.base_url:
        from dragoman.simulator.serving import running  # noqa: PLC0415  only who has no model pays for it

        table = structs.replace(table, base_url=(await stack.enter_async_context(running())).base_url)
    return open_place(name, table, client)


def open_place(name: str, table: UpstreamTable, client: Client) -> Place:
    """Open one upstream whose server runs."""
    kind = KINDS[table.kind]
    deadlines = Deadlines(connect=table.connect, first_byte=60.0, idle=60.0)
    return kind.open(name, table, AGENT, partial(_set_up, name, kind.dialects[0], client, deadlines))


async def _set_up(name: str, dialect: str, client: Client, deadlines: Deadlines, outgoing: Outgoing) -> dict[str, Any]:
    """Send a request that sets an upstream up, and return the JSON object of the reply."""
    try:
        incoming = await client.ask(outgoing, deadlines)
        body = await incoming.read()
    except Failure as failure:
        raise map_failure(failure, name) from None
    if not incoming.good:
        problem = dialect_named(dialect).parse_error(incoming.status, dict(incoming.headers), body)
        words = f"the upstream {name} could not be set up: {problem.message}"
        raise Problem("internal", words, status=502, code="credentials")
    return json.decode(body)


def agent_price(config: Config, name: str, routes: Routes) -> Price | None:
    """Return what turns of an agent cost; a `ConfigError` for one that could not work as it is configured."""
    agent = config.agents[name]
    targets = _targets(config, f"agents.{name}.model", agent.model, routes)
    if agent.compaction.model:
        _targets(config, f"agents.{name}.compaction.model", agent.compaction.model, routes)
    names = (agent.model, *(target.model for target in targets))
    if agent.limits.cost and table_of(config.prices, *names) is None:
        words = f"what {names[-1]!r} costs is not known: add it to [prices]"
        raise ConfigError(config.source, f"agents.{name}.limits.cost", words)
    return price_by(config.prices, *names)


def _targets(config: Config, key: str, model: str, routes: Routes) -> list[Target]:
    try:
        return list(routes.of(model))
    except Problem as problem:
        raise ConfigError(config.source, key, problem.message) from None
