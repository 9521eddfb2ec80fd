"""Make the tool `web_fetch` that a configuration describes."""

from msgspec import structs

from dragoman import __version__
from dragoman.config import Config
from dragoman.tools import Handler
from dragoman.tools.web import Settings, web_fetch


def web_tool(config: Config) -> Handler:
    """Return the tool."""
    return web_fetch(Settings(**structs.asdict(config.web), agent=f"dragoman/{__version__}"))
