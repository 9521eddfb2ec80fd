"""Build the server from its configuration, and serve until a signal comes: on a port or, for MCP, on standard input."""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

from msgspec import convert, to_builtins

from dragoman.config import Config, ConfigError
from dragoman.gateway.record import Observer
from dragoman.http.connection import ClientLimits
from dragoman.http.server import Server, listen
from dragoman.server import log
from dragoman.server.agent_services import AgentServices, open_agent_services
from dragoman.server.app import App
from dragoman.server.auth import Access, Key, find_host_names, hash_secret
from dragoman.server.endpoints.handlers import Services, build_rejection
from dragoman.server.endpoints.mcp import McpEndpoint
from dragoman.server.exchanges import Observability
from dragoman.server.interception import open_interception
from dragoman.server.process.peers import WorkerContext
from dragoman.server.services import CarrierFactory, build_carrier, open_gateway_services, open_tool_services
from dragoman.tasks import start_task
from dragoman.tools import Handler

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_LAST_PORT = 65535


class RunningGateway:
    """A gateway that listens."""

    def __init__(self, server: Server, app: App) -> None:
        self.base_url = server.base_url
        self.app = app


@asynccontextmanager
async def running(  # noqa: PLR0913  a configuration, and what else may be given, by name
    config: Config,
    *,
    port: int | None = None,
    observers: Sequence[Observer] = (),
    grace: float | None = None,
    worker_context: WorkerContext | None = None,
    tools: Iterable[Handler] = (),
    carried_by: CarrierFactory = build_carrier,
) -> AsyncGenerator[RunningGateway]:
    """Run a gateway as long as the block does.

    It listens on another port than the configured one if that is given; one of several workers has its `seat`. `tools`
    are run for clients that ask for them. Runs are `carried_by` this process, or by what is given.
    """
    host, configured = listen_address(config)
    async with AsyncExitStack() as stack:
        toolbox = await stack.enter_async_context(open_tool_services(config, tools))
        upstreams = await stack.enter_async_context(open_gateway_services(config, toolbox, carried_by))
        watch = Observability(config, observers, worker_context)
        if worker_context is not None:
            await stack.enter_async_context(worker_context.peers.serve(watch.exchanges.find))
        door = McpEndpoint(AgentServices(config, upstreams, watch.observers, toolbox))
        stack.push_async_callback(door.close)
        between = await stack.enter_async_context(
            open_interception(
                config,
                upstreams.gateway.routes,
                upstreams.conversations.store,
                is_single_process=worker_context is None,
            )
        )
        app = App(Services(upstreams, _build_access(config, host), watch, door, between, config.server.strict))
        held = convert(to_builtins(config.server.limits), ClientLimits)
        server = await stack.enter_async_context(
            listen(
                app.handle,
                (host, configured if port is None else port) if worker_context is None else worker_context.socket,
                held,
                rejection_renderer=partial(build_rejection, app.paths),
                grace=config.server.grace if grace is None else grace,
            )
        )
        between.base_url = server.base_url
        yield RunningGateway(server, app)


def listen_address(config: Config) -> tuple[str, int]:
    """Return host and port; an address that others can reach needs a key."""
    host, colon, port = config.server.listen.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isdecimal() or int(port) > _LAST_PORT:
        words = f"{config.server.listen!r} must be host:port, with a port up to {_LAST_PORT}"
        raise ConfigError(config.source, "server.listen", words)
    if host not in _LOOPBACK and not config.keys:
        raise ConfigError(
            config.source, "server.keys", f"listening on {host} lets others in: add a key, or listen on 127.0.0.1"
        )
    return host, int(port)


def _build_access(config: Config, host: str) -> Access:
    keys = [
        Key(
            hash=table.key.removeprefix("sha256:") if table.key.startswith("sha256:") else hash_secret(table.key),
            name=table.name,
            models=table.models,
            tools=table.tools,
            concurrency=table.concurrency,
        )
        for table in config.keys
    ]
    return Access(keys, find_host_names(host, config.server.hosts), config.server.origins)


_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_GC_THRESHOLDS = (10_000, 20, 20)
"""After how many new objects the collector looks: what a request leaves behind is hardly ever in cycles."""


async def serve(
    config: Config,
    *,
    on_start: Callable[[RunningGateway], None] | None = None,
    worker_context: WorkerContext | None = None,
    parent_pipe: int | None = None,
) -> None:
    """Serve until a signal comes, or the parent that holds the other end of a pipe is gone."""
    with log.open_log(config, None if worker_context is None else worker_context.worker) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.on_loop_error)
        async with running(config, observers=[lines.on_end], worker_context=worker_context) as gateway:
            stopped = watch_stop_signals(parent_pipe)
            if on_start is not None:
                on_start(gateway)
            _freeze_objects()
            await stopped.wait()


def watch_stop_signals(
    parent_pipe: int | None = None, signals: Iterable[signal.Signals] = _STOP_SIGNALS
) -> asyncio.Event:
    """Return what is set at a signal, or at the parent's end."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    with suppress(NotImplementedError):  # where a loop knows no signals, an interrupt is an exception
        for each in signals:
            loop.add_signal_handler(each, stopped.set)
    if parent_pipe is not None:

        def orphaned() -> None:
            loop.remove_reader(parent_pipe)
            stopped.set()

        loop.add_reader(parent_pipe, orphaned)
    return stopped


def _freeze_objects() -> None:
    """Let the collector pass by all that there is now: it stays as long as the server does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


async def serve_mcp(config: Config) -> None:
    """Serve until the input ends and all is answered, or a signal comes."""
    with log.open_log(config, None) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.on_loop_error)
        async with open_agent_services(config, Observability(config, [lines.on_end]).observers) as bench:
            door = McpEndpoint(bench)
            serving = start_task((await door.open_server()).serve_stdio(), "mcp on standard input")
            stopped = start_task(watch_stop_signals().wait(), "wait for a signal")
            try:
                await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                await door.close()
        if not serving.done():
            # A thread of the SDK waits for a line that may never come, and nothing can wake it.
            os._exit(0)
        stopped.cancel()
        await serving
