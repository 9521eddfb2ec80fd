"""Build the server from its configuration and let it run."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import convert, to_builtins

from dragoman.config import Config, ConfigError
from dragoman.gateway.record import Observer
from dragoman.http.connection import ClientLimits
from dragoman.http.server import Server, listening
from dragoman.server.agent_services import Bench
from dragoman.server.app import App
from dragoman.server.auth import Access, Key, hashed, own_names
from dragoman.server.endpoints.handlers import Services
from dragoman.server.endpoints.mcp import Door
from dragoman.server.exchanges import Watch
from dragoman.server.interception import open_interception
from dragoman.server.process.peers import Seat
from dragoman.server.routes import refusal
from dragoman.server.services import CarriedBy, carrying, connected, open_toolbox
from dragoman.tools import Handler

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_LAST_PORT = 65535


class Running:
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
    seat: Seat | None = None,
    tools: Iterable[Handler] = (),
    carried_by: CarriedBy = carrying,
) -> AsyncGenerator[Running]:
    """Run a gateway as long as the block does.

    It listens on another port than the configured one if that is given; one of several workers has its `seat`. `tools`
    are run for clients that ask for them. Runs are `carried_by` this process, or by what is given.
    """
    host, configured = listen_address(config)
    async with AsyncExitStack() as stack:
        toolbox = await stack.enter_async_context(open_toolbox(config, tools))
        upstreams = await stack.enter_async_context(connected(config, toolbox, carried_by))
        watch = Watch(config, observers, seat)
        if seat is not None:
            await stack.enter_async_context(seat.siblings.answered(watch.exchanges.find))
        door = Door(Bench(config, upstreams, watch.observers, toolbox))
        stack.push_async_callback(door.close)
        between = await stack.enter_async_context(
            open_interception(config, upstreams.gateway.routes, upstreams.desk.store, alone=seat is None)
        )
        app = App(Services(upstreams, _access(config, host), watch, door, between, config.server.strict))
        held = convert(to_builtins(config.server.limits), ClientLimits)
        server = await stack.enter_async_context(
            listening(
                app.handle,
                (host, configured if port is None else port) if seat is None else seat.socket,
                held,
                refusal=refusal,
                grace=config.server.grace if grace is None else grace,
            )
        )
        between.base_url = server.base_url
        yield Running(server, app)


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


def _access(config: Config, host: str) -> Access:
    keys = [
        Key(
            hash=table.key.removeprefix("sha256:") if table.key.startswith("sha256:") else hashed(table.key),
            name=table.name,
            models=table.models,
            tools=table.tools,
            concurrency=table.concurrency,
        )
        for table in config.keys
    ]
    return Access(keys, own_names(host, config.server.hosts), config.server.origins)
