"""Build the gateway without its HTTP server: upstreams, routes, tools, conversations and agents."""

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
from dragoman.agent import Artifacts, JobRunner
from dragoman.agent.config import Price
from dragoman.config import Config, ConfigError, UpstreamTable
from dragoman.core.problems import Problem
from dragoman.core.traits import TextCalls
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.agents.hidden_turns import HiddenTurns
from dragoman.gateway.agents.runner import Agents
from dragoman.gateway.agents.settings import build_price, find_price_table
from dragoman.gateway.agents.toolset import AgentRegistry, ToolServers, find_unknown_tools, parse_origin
from dragoman.gateway.agents.turn_runner import TurnRunner
from dragoman.gateway.conversations.load import ConversationLoader
from dragoman.gateway.conversations.runner import LocalJobRunner
from dragoman.gateway.errors import build_credentials_error, map_failure
from dragoman.gateway.generate import Gateway, GenerateSettings
from dragoman.gateway.large_bodies import LargeBodies
from dragoman.gateway.media import MediaFetcher, MediaLimits
from dragoman.gateway.redact import redact
from dragoman.gateway.retry import RetryPolicy
from dragoman.gateway.router import Routes, Target, UpstreamSet
from dragoman.gateway.search_backends import ModelBackend, SearchBackend, SearxngBackend
from dragoman.gateway.search_settings import MODEL_BACKEND
from dragoman.gateway.signatures import SignatureStore
from dragoman.gateway.tool_search import ToolSearchProvider
from dragoman.gateway.turn_functions import FunctionProvider
from dragoman.gateway.web_search import PURPOSE as SEARCH_PURPOSE
from dragoman.gateway.web_search import WebSearch
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
from dragoman.upstreams.registry import KINDS, find_other_kind
from dragoman.upstreams.simulator import KIND as SIMULATOR
from dragoman.upstreams.upstream import UpstreamSelector
from dragoman.wire import json


def find_server_error(server: str, statuses: Iterable[ServerStatus]) -> str:
    """Return why an MCP server cannot be reached; "" if it can, or is not in `statuses`."""
    return next((redact(status.error) for status in statuses if status.name == server), "")


def _explain_missing(name: str, statuses: Iterable[ServerStatus]) -> str:
    """Explain that a tool is missing because its MCP server is not available; "" for any other reason."""
    server = name.partition(NAMESPACE_SEPARATOR)[0]
    error = find_server_error(server, statuses)
    return f"the server {server} is not available: {error}" if error else ""


class ToolServices(Struct, frozen=True):
    """The tool executor, the web reader and the state of the MCP servers."""

    executor: Executor
    web: Web
    find_origin: Callable[[str], tuple[str, str] | None]
    """Returns the MCP server of a tool and the tool's name there; None for a local tool."""
    list_statuses: Callable[[], tuple[ServerStatus, ...]] = tuple
    """Returns the status of each external MCP server."""

    def find_error(self, server: str) -> str:
        """Return why an MCP server cannot be reached; "" if it can, or is not configured."""
        return find_server_error(server, self.list_statuses())


@asynccontextmanager
async def open_tool_services(config: Config, extra_tools: Iterable[Handler] = ()) -> AsyncGenerator[ToolServices]:
    """Open the configured tools and `extra_tools` while the block runs."""
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
JobRunnerFactory = Callable[[Store], JobRunner]
"""Creates the job runner for agent runs, whose state is in the store."""


def build_job_runner(store: Store) -> JobRunner:
    """Return a job runner that executes agent runs in this process."""
    return LocalJobRunner(store.runs)


LARGE_BODY_PROCESS = "dragoman.server.large_body_process"


class GatewayServices(Struct, frozen=True):
    """The gateway, its conversations and its job runner."""

    gateway: Gateway
    conversations: ConversationLoader
    job_runner: JobRunner
    """Runs all agents: in requests, in the background and in MCP tasks."""
    client: Client
    """Sends all requests to upstreams."""
    large_bodies: LargeBodies
    """Handles bodies with very many values in another process."""


@asynccontextmanager
async def open_gateway_services(
    config: Config, tool_services: ToolServices | None = None, job_runner_factory: JobRunnerFactory = build_job_runner
) -> AsyncGenerator[GatewayServices]:
    """Open the configured upstreams and stores while the block runs; clients can use the tools in `tool_services`."""
    async with AsyncExitStack() as stack:
        client = Client()
        stack.push_async_callback(client.close)
        routes = await _open_routes(config, client, stack)
        conversations = await stack.enter_async_context(open_conversation_loader(config))
        prices = {name: find_agent_price(config, name, routes) for name in config.agents}
        job_runner = job_runner_factory(conversations.store)
        stack.push_async_callback(job_runner.close)
        agents = (
            _build_agents(config, tool_services, conversations, job_runner, prices)
            if tool_services is not None
            else None
        )
        signatures = SignatureStore(conversations.store.signatures)
        settings = _build_settings(config)
        providers = _build_providers(config, client, Gateway(routes, client, settings))
        turn_answers = TurnRunner(providers, Executor(Registry()), signatures, HiddenTurns(conversations.store))
        large_bodies = LargeBodies(LARGE_BODY_PROCESS)
        stack.push_async_callback(large_bodies.close)
        gateway = Gateway(
            routes,
            client,
            settings,
            signatures,
            agents,
            turn_answers=turn_answers,
            large_translator=large_bodies,
        )
        yield GatewayServices(gateway, conversations, job_runner, client, large_bodies)


@asynccontextmanager
async def open_storeless_gateway(config: Config) -> AsyncGenerator[Gateway]:
    """Open only the configured upstreams while the block runs, for a program that keeps signatures in its history."""
    async with AsyncExitStack() as stack:
        client = Client()
        stack.push_async_callback(client.close)
        yield Gateway(await _open_routes(config, client, stack), client, _build_settings(config))


async def _open_routes(config: Config, client: Client, stack: AsyncExitStack) -> Routes:
    """Open the configured upstreams; a simulator that one needs runs until `stack` closes."""
    by_name: dict[str, UpstreamSelector] = {}
    for name, table in config.upstreams.items():
        by_name[name] = await open_upstream(name, table, client, stack)
    kinds = {name: table.kind for name, table in config.upstreams.items()}
    deadlines = {
        name: Deadlines(connect=table.connect, first_byte=table.first_byte, idle=table.idle)
        for name, table in config.upstreams.items()
    }
    other_apis = {
        name: open_running_upstream(name, structs.replace(table, kind=other.name), client)
        for name, table in config.upstreams.items()
        if (other := find_other_kind(table)) is not None
    }
    upstreams = UpstreamSet(
        by_name,
        kinds,
        deadlines,
        build_media_fetcher(config),
        find_linkless_upstreams(config),
        find_text_calls(config),
        frozenset(name for name, table in config.upstreams.items() if table.cache_marks == "off"),
        frozenset(name for name, table in config.upstreams.items() if table.passthrough == "exact"),
        other_apis,
        {name: KINDS[table.kind].find_server(table) for name, table in config.upstreams.items()},
    )
    return Routes(upstreams, config.models, config.agents)


def _build_agents(
    config: Config,
    tool_services: ToolServices,
    conversations: ConversationLoader,
    job_runner: JobRunner,
    prices: Mapping[str, Price | None],
) -> Agents:
    registry = tool_services.executor.registry
    origins = (tool_services.find_origin(name) for name in registry.names)
    servers = {*config.tools, *(origin[0] for origin in origins if origin is not None)}
    for key, message in find_unknown_tools(config.agents, {*servers, *registry.names}):
        _LOG.warning("%s: %s", key, message)
    agent_registry = AgentRegistry(
        registry, config.agents, ToolServers(servers, tool_services.find_origin, tool_services.find_error), prices
    )
    return Agents(agent_registry, tool_services.executor, conversations.store, job_runner)


def _build_providers(config: Config, client: Client, models: Gateway) -> dict[str, FunctionProvider]:
    """Return what the gateway can run itself within a turn, by purpose; `models` runs searches."""
    providers: dict[str, FunctionProvider] = {}
    if config.search.backend:
        providers[SEARCH_PURPOSE] = WebSearch(_build_search_backend(config, client, models), config.search)
    return providers | {"tool_search": ToolSearchProvider(models.routes.find_tool_limit)}


def _build_search_backend(config: Config, client: Client, models: Gateway) -> SearchBackend:
    if config.search.backend != MODEL_BACKEND:
        return SearxngBackend(config.search, client, USER_AGENT)

    _find_targets(config, "search.model", config.search.model, models.routes)
    if models.routes.find_search_tool(config.search.model) is None:
        message = f"the API of {config.search.model!r} has no web search; use a model of another upstream, or a URL"
        raise ConfigError(config.source, "search.model", message)
    return ModelBackend(config.search, models.model, models.routes.find_search_tool)


def _build_settings(config: Config) -> GenerateSettings:
    server, retries = config.server, config.server.retries
    retry = RetryPolicy(
        retries=retries.most,
        first_wait=retries.first_wait,
        longest_wait=retries.longest_wait,
        longest_asked=retries.longest_asked,
    )
    return GenerateSettings(retry=retry, hold=server.hold, heartbeat=server.heartbeat, max_choices=server.max_choices)


_DAY = 86400.0
_HOUR = 3600.0


@asynccontextmanager
async def open_conversation_loader(config: Config) -> AsyncGenerator[ConversationLoader]:
    """Open the configured conversation store while the block runs, and purge old conversations every hour."""
    table = config.sessions
    try:
        store = await asyncio.to_thread(open_store, table.url or default_url())
    except ValueError as error:
        raise ConfigError(config.source, "sessions.url", str(error)) from None
    except Unavailable as error:
        raise ConfigError(
            config.source, "sessions.url", f"cannot open the conversation store: {error}; use another URL"
        ) from None
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
    """Return the names of upstreams that do not fetch media by URL."""
    tables = config.upstreams.items()
    return frozenset(
        name for name, table in tables if not (KINDS[table.kind].links if table.links is None else table.links)
    )


def find_text_calls(config: Config) -> dict[str, dict[str, TextCalls]]:
    """Return the configured text-call formats by upstream and model pattern."""
    forced: dict[str, TextCalls] = {} if config.server.use_native_function_calling else {"*": "json"}
    found: dict[str, dict[str, TextCalls]] = {}
    for name, table in config.upstreams.items():
        configured = table.text_calls
        patterns: dict[str, TextCalls] = (
            {"*": configured} if isinstance(configured, str) else {**(configured or {}), **forced}
        )
        if patterns:
            found[name] = patterns
    return found


def build_media_fetcher(config: Config) -> MediaFetcher:
    """Return the fetcher that downloads linked media for upstreams that do not."""
    media = config.media
    limits = MediaLimits(fetch=media.fetch, max_bytes=media.max_bytes, max_links=media.max_links, seconds=media.seconds)
    return MediaFetcher(GuardedFetcher(media.allow), limits)


async def open_upstream(name: str, table: UpstreamTable, client: Client, stack: AsyncExitStack) -> UpstreamSelector:
    """Open one upstream; a simulator that it needs runs until `stack` closes."""
    if table.kind == SIMULATOR.name and not table.base_url:
        from dragoman.simulator.runner import running  # noqa: PLC0415  only needed with a simulator upstream

        table = structs.replace(table, base_url=(await stack.enter_async_context(running())).base_url)
    return open_running_upstream(name, table, client)


def open_running_upstream(name: str, table: UpstreamTable, client: Client) -> UpstreamSelector:
    """Open one upstream whose server is already running."""
    kind = KINDS[table.kind]
    deadlines = Deadlines(connect=table.connect, first_byte=60.0, idle=60.0)
    return kind.open(name, table, USER_AGENT, partial(_send_setup_request, name, kind.dialects[0], client, deadlines))


async def _send_setup_request(
    name: str, dialect: str, client: Client, deadlines: Deadlines, outgoing: Outgoing
) -> dict[str, Any]:
    """Send a setup request to an upstream, such as for a token, and return the JSON object of the response."""
    try:
        incoming = await client.send(outgoing, deadlines)
        body = await incoming.read()
    except ConnectionFailure as failure:
        raise map_failure(failure, name) from None
    if not incoming.is_success:
        problem = dialect_named(dialect).parse_error(incoming.status, dict(incoming.headers), body)
        raise build_credentials_error(name, problem.message, is_setup=True)
    return json.decode(body)


def find_agent_price(config: Config, name: str, routes: Routes) -> Price | None:
    """Return the price of an agent's model; raises `ConfigError` for an unknown model or a missing price."""
    agent = config.agents[name]
    targets = _find_targets(config, f"agents.{name}.model", agent.model, routes)
    if agent.compaction.model:
        _find_targets(config, f"agents.{name}.compaction.model", agent.compaction.model, routes)
    names = (agent.model, *(target.model for target in targets))
    if agent.limits.cost and find_price_table(config.prices, *names) is None:
        message = f"the price of {names[-1]!r} is not known; add it to [prices]"
        raise ConfigError(config.source, f"agents.{name}.limits.cost", message)
    return build_price(config.prices, *names)


def _find_targets(config: Config, key: str, model: str, routes: Routes) -> list[Target]:
    try:
        return list(routes.find_targets(model))
    except Problem as problem:
        raise ConfigError(config.source, key, problem.message) from None
