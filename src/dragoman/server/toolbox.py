"""The tools that Dragoman runs itself, together for everybody who runs some."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct, convert, to_builtins

from dragoman.agent import Artifacts
from dragoman.config import Config
from dragoman.mcp.client import open_servers
from dragoman.tools import Executor, Registry
from dragoman.tools.web import Settings, Web, web_fetch


class Toolbox(Struct, frozen=True):
    """What runs tools, and the web as far as it may be read."""

    executor: Executor
    web: Web


@asynccontextmanager
async def open_toolbox(config: Config) -> AsyncGenerator[Toolbox]:
    """Open the tools that a configuration names, as long as the block runs."""
    web = Web(settings := convert(to_builtins(config.web), Settings))
    artifacts = Artifacts()
    registry = Registry(web_fetch(settings, web=web), artifacts.tool)
    async with AsyncExitStack() as stack:
        if config.tools:
            await stack.enter_async_context(open_servers(config.tools, registry))
        yield Toolbox(Executor(registry, spill=artifacts.spill), web)
