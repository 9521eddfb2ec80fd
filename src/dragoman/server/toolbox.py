"""The tools that Dragoman runs itself, together for everybody who runs some."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct, structs

from dragoman.agent import Artifacts
from dragoman.config import Config
from dragoman.gateway.agents.crew import by_name
from dragoman.mcp.client import Status, open_servers
from dragoman.server.places import AGENT
from dragoman.tools import Executor, Handler, Registry
from dragoman.tools.web import Settings, Web, web_fetch


class Toolbox(Struct, frozen=True):
    """What runs tools, and the web as far as it may be read."""

    executor: Executor
    web: Web
    origin: Callable[[str], tuple[str, str] | None]
    """Tells the server that a tool is from, and its name there."""
    status: Callable[[], tuple[Status, ...]] = tuple
    """Tells how each external server does."""


@asynccontextmanager
async def open_toolbox(config: Config, more: Iterable[Handler] = ()) -> AsyncGenerator[Toolbox]:
    """Open the tools that a configuration names, and more that are given, as long as the block runs."""
    web = Web(settings := Settings(**structs.asdict(config.web), agent=AGENT))
    artifacts = Artifacts()
    registry = Registry(web_fetch(settings, web=web), artifacts.tool, *more)
    async with AsyncExitStack() as stack:
        toolbox = Toolbox(Executor(registry, spill=artifacts.spill), web, by_name)
        if config.tools:
            servers = await stack.enter_async_context(open_servers(config.tools, registry))
            toolbox = structs.replace(toolbox, origin=servers.origin, status=servers.status)
        yield toolbox
