"""Build the server from its configuration, and run it on a port until a signal."""

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.util import find_spec

from dragoman.config import HASH_PREFIX, Config, ConfigError
from dragoman.gateway.record import EXCHANGE_HEADER, Observer
from dragoman.http.admission import Load, RequestPolicy
from dragoman.http.client import Client
from dragoman.http.server import Ending, Server, listen
from dragoman.server import log
from dragoman.server.agent_services import AgentServices
from dragoman.server.app import App
from dragoman.server.auth import LOOPBACK_HOSTS, Access, Key, find_host_names, hash_secret
from dragoman.server.exchanges import Observability, WorkerContext
from dragoman.server.handlers import Services, build_rejection
from dragoman.server.interception import open_interception
from dragoman.server.mcp import McpEndpoint
from dragoman.server.services import JobRunnerFactory, build_job_runner, open_gateway_services, open_tool_services
from dragoman.server.stop_signals import watch_stop_signals
from dragoman.tools import Handler

if sys.platform != "win32":
    import resource

_MAX_FILES = 1 << 16
_LAST_PORT = 65535
_MIN_KEY_LENGTH = 16
"""Characters of a client key if the server is reachable from the network."""


class RunningGateway:
    """A running gateway and its URL."""

    def __init__(self, server: Server, app: App) -> None:
        self.base_url = server.base_url
        self.app = app


@asynccontextmanager
async def running(  # noqa: PLR0913  all but the configuration are keyword options
    config: Config,
    *,
    port: int | None = None,
    observers: Sequence[Observer] = (),
    grace: float | None = None,
    worker_context: WorkerContext | None = None,
    tools: Iterable[Handler] = (),
    job_runner_factory: JobRunnerFactory = build_job_runner,
) -> AsyncGenerator[RunningGateway]:
    """Run a gateway while the block runs.

    `port` overrides the configured one; one of several workers has a `worker_context`. `tools` are added to those that
    clients can use. `job_runner_factory` creates the job runner of agent runs; the default runs them in this process.
    """
    host, configured_port = listen_address(config)
    async with AsyncExitStack() as stack:
        tool_services = await stack.enter_async_context(open_tool_services(config, tools))
        gateway_services = await stack.enter_async_context(
            open_gateway_services(config, tool_services, job_runner_factory)
        )
        observability = Observability(config, observers, worker_context)
        if worker_context is not None:
            await stack.enter_async_context(worker_context.peers.serve(observability.exchanges.find))
        mcp_endpoint = McpEndpoint(AgentServices(config, gateway_services, observability.observers, tool_services))
        stack.push_async_callback(mcp_endpoint.close)
        interception = await stack.enter_async_context(
            open_interception(
                config,
                gateway_services.gateway.routes,
                gateway_services.conversations.store,
                is_single_process=worker_context is None,
            )
        )
        access = _build_access(config, host)
        table, load = config.server, Load(config.server.limits)
        services = Services(
            gateway_services, access, observability, mcp_endpoint, interception, load, table.strict, table.translate
        )
        app = App(services)
        policy = RequestPolicy(
            load=load,
            check_head=app.check_head,
            rejection_renderer=partial(build_rejection, app.paths),
            unlimited_paths=frozenset({b"/health", b"/ready"}),
        )
        server = await stack.enter_async_context(
            listen(
                app.handle,
                (host, configured_port if port is None else port) if worker_context is None else worker_context.socket,
                policy=policy,
                ending=Ending(
                    grace=config.server.grace if grace is None else grace,
                    drain=config.server.drain,
                    on_grace_end=gateway_services.client.fail_all,
                ),
            )
        )
        _set_address(app, gateway_services.client, LOOPBACK_HOSTS | find_host_names(host, config.server.hosts), server)
        yield RunningGateway(server, app)


def _set_address(app: App, client: Client, own_hosts: frozenset[str], server: Server) -> None:
    """Set where the server listens, also for requests to its own hosts, so that it can refuse one that it sent."""
    app.base_url = app.interception.base_url = server.base_url
    client.mark_requests(own_hosts, EXCHANGE_HEADER, server.base_url)


def listen_address(config: Config) -> tuple[str, int]:
    """Return the configured host and port; an address other than loopback without strong keys is a `ConfigError`."""
    host, colon, port = config.server.listen.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isdecimal() or int(port) > _LAST_PORT:
        message = f"must be HOST:PORT with a port up to {_LAST_PORT}, not {config.server.listen!r}"
        raise ConfigError(config.source, "server.listen", message)
    if host not in LOOPBACK_HOSTS and not config.keys:
        raise ConfigError(
            config.source, "server.keys", f"{host} is reachable from the network; add a key, or listen on 127.0.0.1"
        )
    if host not in LOOPBACK_HOSTS:
        for at, table in enumerate(config.keys):
            if not table.key.startswith(HASH_PREFIX) and len(table.key.strip()) < _MIN_KEY_LENGTH:
                message = (
                    f"a key of fewer than {_MIN_KEY_LENGTH} characters can be guessed, and {host} is reachable from "
                    "the network; create one with `dragoman config hash-key --new`, or listen on 127.0.0.1"
                )
                raise ConfigError(config.source, f"server.keys[{at}]", message)
    return host, int(port)


def require_extras(config: Config) -> None:
    """Raise `ConfigError` if the configuration needs an extra of this package that is not installed."""
    needs = [(f"tools.{name}", "mcp", "mcp") for name in config.tools]
    if config.sessions.url.startswith("postgres"):
        needs.append(("sessions.url", "psycopg_pool", "postgres"))
    for key, module, extra in needs:
        if find_spec(module) is None:
            message = f'needs the extra `{extra}`, which is not installed; run: pip install "dragoman[{extra}]"'
            raise ConfigError(config.source, key, message)


def _build_access(config: Config, host: str) -> Access:
    keys = [
        Key(
            hash=table.key.removeprefix(HASH_PREFIX) if table.key.startswith(HASH_PREFIX) else hash_secret(table.key),
            name=table.name,
            models=table.models,
            tools=table.tools,
            concurrency=table.concurrency,
        )
        for table in config.keys
    ]
    return Access(keys, find_host_names(host, config.server.hosts), config.server.origins)


_GC_THRESHOLDS = (10_000, 20, 20)
"""Thresholds of the garbage collector, higher than the default because requests leave hardly any cycles behind."""


async def serve(
    config: Config,
    *,
    on_start: Callable[[RunningGateway], None] | None = None,
    worker_context: WorkerContext | None = None,
    parent_pipe: int | None = None,
) -> None:
    """Serve until a stop signal, or until the parent that holds the other end of `parent_pipe` exits."""
    _raise_file_limit()
    with log.open_log(config, None if worker_context is None else worker_context.worker) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.on_loop_error)
        async with running(config, observers=[lines.on_end], worker_context=worker_context) as gateway:
            stopped = watch_stop_signals(parent_pipe)
            if on_start is not None:
                on_start(gateway)
            _freeze_objects()
            await stopped.wait()


def _raise_file_limit() -> None:
    """Allow as many open files as the system does: each connection is one."""
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _freeze_objects() -> None:
    """Exclude all current objects from garbage collection: they live as long as the server."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
