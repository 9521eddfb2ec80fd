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
from dragoman.agent.config import Price
from dragoman.config import Config, ConfigError, UpstreamTable
from dragoman.core.problems import Problem
from dragoman.core.traits import TextCalls
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.runner import Agents
from dragoman.gateway.agents.settings import build_price, find_price_table
from dragoman.gateway.agents.toolset import AgentRegistry, ToolServers, find_unknown_tools, parse_origin
from dragoman.gateway.conversations.load import ConversationLoader
from dragoman.gateway.conversations.runner import Carrying
from dragoman.gateway.errors import map_failure
from dragoman.gateway.generate import Gateway, Timing
from dragoman.gateway.media import MediaFetcher, MediaLimits
from dragoman.gateway.redact import redact
from dragoman.gateway.retry import RetryPolicy
from dragoman.gateway.router import Routes, Target, UpstreamSet
from dragoman.gateway.signatures import SignatureStore
from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.safe_fetch import GuardedFetcher
from dragoman.http.upstream_connection import ConnectionFailure
from dragoman.mcp.client import ServerStatus, open_servers
from dragoman.sessions.store import Store, default_url, open_store
from dragoman.sessions.values import Unavailable
from dragoman.tasks import TaskSet
from dragoman.tools import Executor, Handler, Registry
from dragoman.tools.handler import NAMESPACE_SEPARATOR
from dragoman.tools.web import Settings, Web, web_fetch
from dragoman.upstreams.registry import KINDS
from dragoman.upstreams.simulator import KIND as SIMULATOR
from dragoman.upstreams.upstream import Place
from dragoman.wire import json


def find_server_error(server: str, statuses: Iterable[ServerStatus]) -> str:
    """Tell why a server cannot be reached; "" if it can, or is none of these."""
    return next((redact(status.error) for status in statuses if status.name == server), "")


def _explain_missing(name: str, statuses: Iterable[ServerStatus]) -> str:
    """Say of a tool that is not there that its server is not."""
    server = name.partition(NAMESPACE_SEPARATOR)[0]
    error = find_server_error(server, statuses)
    return f"the server {server} is not available: {error}" if error else ""


class ToolServices(Struct, frozen=True):
    """What runs tools, and the web as far as it may be read."""

    executor: Executor
    web: Web
    find_origin: Callable[[str], tuple[str, str] | None]
    """Tells the server that a tool is from, and its name there."""
    list_statuses: Callable[[], tuple[ServerStatus, ...]] = tuple
    """Tells how each external server does."""

    def find_error(self, server: str) -> str:
        """Tell why a server cannot be reached; "" if it can, or is none of ours."""
        return find_server_error(server, self.list_statuses())


@asynccontextmanager
async def open_tool_services(config: Config, extra_tools: Iterable[Handler] = ()) -> AsyncGenerator[ToolServices]:
    """Open the tools that a configuration names, and more that are given, as long as the block runs."""
    web = Web(settings := Settings(**structs.asdict(config.web), agent=USER_AGENT))
    artifacts = Artifacts()
    registry = Registry(web_fetch(settings, web=web), artifacts.tool, *extra_tools)
    async with AsyncExitStack() as stack:
        if not config.tools:
            yield ToolServices(Executor(registry, spill=artifacts.spill), web, parse_origin)
            return
        servers = await stack.enter_async_context(open_servers(config.tools, registry))
        executor = Executor(
            registry, spill=artifacts.spill, explain_missing=lambda name: _explain_missing(name, servers.status())
        )
        yield ToolServices(executor, web, servers.origin, servers.status)


_LOG = logging.getLogger("dragoman.agents")
CarrierFactory = Callable[[Store], Carrier]
"""Makes what carries runs, over the store in which they are seen."""


def build_carrier(store: Store) -> Carrier:
    """Carry runs in this process."""
    return Carrying(store.runs)


class GatewayServices(Struct, frozen=True):
    """Who asks upstreams, and who keeps conversations."""

    gateway: Gateway
    conversations: ConversationLoader
    carrier: Carrier
    """Carries all runs, in the gateway's requests, behind them and in MCP tasks."""


@asynccontextmanager
async def open_gateway_services(
    config: Config, tool_services: ToolServices | None = None, carried_by: CarrierFactory = build_carrier
) -> AsyncGenerator[GatewayServices]:
    """Open all that a configuration names, as long as the block runs; what is in the toolbox is run for clients."""
    async with AsyncExitStack() as stack:
        client = Client()
        stack.push_async_callback(client.close)
        places: dict[str, Place] = {}
        for name, table in config.upstreams.items():
            places[name] = await open_upstream(name, table, client, stack)
        kinds = {name: table.kind for name, table in config.upstreams.items()}
        deadlines = {
            name: Deadlines(connect=table.connect, first_byte=table.first_byte, idle=table.idle)
            for name, table in config.upstreams.items()
        }
        found = UpstreamSet(
            places,
            kinds,
            deadlines,
            build_media_fetcher(config),
            find_linkless_upstreams(config),
            find_text_calls(config),
        )
        routes = Routes(found, config.models, config.agents)
        desk = await stack.enter_async_context(open_conversation_loader(config))
        prices = {name: find_agent_price(config, name, routes) for name in config.agents}
        carrier = carried_by(desk.store)
        stack.push_async_callback(carrier.close)
        agents = _build_agents(config, tool_services, desk, carrier, prices) if tool_services is not None else None
        yield GatewayServices(
            Gateway(routes, client, _build_timing(config), SignatureStore(desk.store.signatures), agents), desk, carrier
        )


def _build_agents(
    config: Config,
    tool_services: ToolServices,
    conversations: ConversationLoader,
    carrier: Carrier,
    prices: Mapping[str, Price | None],
) -> Agents:
    registry = tool_services.executor.registry
    origins = (tool_services.find_origin(name) for name in registry.names)
    servers = {*config.tools, *(origin[0] for origin in origins if origin is not None)}
    for key, words in find_unknown_tools(config.agents, {*servers, *registry.names}):
        _LOG.warning("%s: %s", key, words)
    roster = AgentRegistry(
        registry, config.agents, ToolServers(servers, tool_services.find_origin, tool_services.find_error), prices
    )
    return Agents(roster, tool_services.executor, conversations.store, carrier)


def _build_timing(config: Config) -> Timing:
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
async def open_conversation_loader(config: Config) -> AsyncGenerator[ConversationLoader]:
    """Open the store a configuration names, as long as the block runs."""
    table = config.sessions
    try:
        store = await asyncio.to_thread(open_store, table.url or default_url())
    except ValueError as error:
        raise ConfigError(config.source, "sessions.url", str(error)) from None
    except Unavailable as error:
        raise ConfigError(config.source, "sessions.url", f"cannot be opened: {error}; name another place") from None
    try:
        async with TaskSet() as background:
            if table.keep_days:
                background.start(_purge_hourly(store, table.keep_days), "delete old conversations")
            yield ConversationLoader(store, keeps_responses=table.state == "gateway")
    finally:
        await store.close()


async def _purge_hourly(store: Store, days: float) -> None:
    while True:
        await asyncio.sleep(_HOUR)
        with contextlib.suppress(Unavailable):
            await store.purge(time() - days * _DAY)


USER_AGENT = f"dragoman/{__version__}"


def find_linkless_upstreams(config: Config) -> frozenset[str]:
    """Return the names of upstreams that fetch no linked media."""
    tables = config.upstreams.items()
    return frozenset(
        name for name, table in tables if not (KINDS[table.kind].links if table.links is None else table.links)
    )


def find_text_calls(config: Config) -> dict[str, dict[str, TextCalls]]:
    """Return the upstreams whose models call tools in their text, and the form by patterns of the models' names."""
    forced: dict[str, TextCalls] = {} if config.server.use_native_function_calling else {"*": "json"}
    found: dict[str, dict[str, TextCalls]] = {}
    for name, table in config.upstreams.items():
        said = table.text_calls
        patterns: dict[str, TextCalls] = {"*": said} if isinstance(said, str) else {**(said or {}), **forced}
        if patterns:
            found[name] = patterns
    return found


def build_media_fetcher(config: Config) -> MediaFetcher:
    """Return what fetches it for them."""
    media = config.media
    limits = MediaLimits(fetch=media.fetch, max_bytes=media.max_bytes, max_links=media.max_links, seconds=media.seconds)
    return MediaFetcher(GuardedFetcher(media.allow), limits)


async def open_upstream(name: str, table: UpstreamTable, client: Client, stack: AsyncExitStack) -> Place:
    """Open one upstream; what it needs beside the gateway lives as long as `stack`."""
    if table.kind == SIMULATOR.name and not table.base_url:
        from dragoman.simulator.runner import running  # noqa: PLC0415  only who has no model pays for it

        table = structs.replace(table, base_url=(await stack.enter_async_context(running())).base_url)
    return open_running_upstream(name, table, client)


def open_running_upstream(name: str, table: UpstreamTable, client: Client) -> Place:
    """Open one upstream whose server runs."""
    kind = KINDS[table.kind]
    deadlines = Deadlines(connect=table.connect, first_byte=60.0, idle=60.0)
    return kind.open(name, table, USER_AGENT, partial(_send_setup_request, name, kind.dialects[0], client, deadlines))


async def _send_setup_request(
    name: str, dialect: str, client: Client, deadlines: Deadlines, outgoing: Outgoing
) -> dict[str, Any]:
    """Send a request that sets an upstream up, and return the JSON object of the reply."""
    try:
        incoming = await client.send(outgoing, deadlines)
        body = await incoming.read()
    except ConnectionFailure as failure:
        raise map_failure(failure, name) from None
    if not incoming.is_success:
        problem = dialect_named(dialect).parse_error(incoming.status, dict(incoming.headers), body)
        words = f"the upstream {name} could not be set up: {problem.message}"
        raise Problem("internal", words, status=502, code="credentials")
    return json.decode(body)


def find_agent_price(config: Config, name: str, routes: Routes) -> Price | None:
    """Return what turns of an agent cost; a `ConfigError` for one that could not work as it is configured."""
    agent = config.agents[name]
    targets = _find_targets(config, f"agents.{name}.model", agent.model, routes)
    if agent.compaction.model:
        _find_targets(config, f"agents.{name}.compaction.model", agent.compaction.model, routes)
    names = (agent.model, *(target.model for target in targets))
    if agent.limits.cost and find_price_table(config.prices, *names) is None:
        words = f"what {names[-1]!r} costs is not known: add it to [prices]"
        raise ConfigError(config.source, f"agents.{name}.limits.cost", words)
    return build_price(config.prices, *names)


def _find_targets(config: Config, key: str, model: str, routes: Routes) -> list[Target]:
    try:
        return list(routes.find_targets(model))
    except Problem as problem:
        raise ConfigError(config.source, key, problem.message) from None
