"""The tools that Dragoman runs itself, together for everybody who runs some."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct, structs

from dragoman.agent import Artifacts
from dragoman.config import Config
from dragoman.gateway.agents.crew import by_name
from dragoman.gateway.redact import redact
from dragoman.mcp.client import Status, open_servers
from dragoman.server.places import AGENT
from dragoman.tools import Executor, Handler, Registry
from dragoman.tools.handler import JOINT
from dragoman.tools.web import Settings, Web, web_fetch


class Toolbox(Struct, frozen=True):
    """What runs tools, and the web as far as it may be read."""

    executor: Executor
    web: Web
    origin: Callable[[str], tuple[str, str] | None]
    """Tells the server that a tool is from, and its name there."""
    status: Callable[[], tuple[Status, ...]] = tuple
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
        executor = Executor(registry, spill=artifacts.spill, absent=lambda name: _absent(name, servers.status()))
        yield Toolbox(executor, web, servers.origin, servers.status)


def trouble_of(server: str, statuses: Iterable[Status]) -> str:
    """Tell why a server cannot be reached; "" if it can, or is none of these."""
    return next((redact(status.error) for status in statuses if status.name == server), "")


def _absent(name: str, statuses: Iterable[Status]) -> str:
    """Say of a tool that is not there that its server is not."""
    server = name.partition(JOINT)[0]
    error = trouble_of(server, statuses)
    return f"the server {server} is not available: {error}" if error else ""
