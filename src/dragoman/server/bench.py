"""What an agent works on, put together once for whoever runs one: a host's `query`, or a person at a terminal."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from msgspec import Struct

from dragoman.agent import Model
from dragoman.config import Config
from dragoman.gateway.observe import Observers
from dragoman.server.connected import Connected, connected
from dragoman.server.observed import observed_model
from dragoman.server.toolbox import Toolbox, open_toolbox
from dragoman.server.usual import usual_model
from dragoman.sessions.conversations import Conversations


class Bench(Struct, frozen=True):
    """Models, tools and conversations that a configuration names, and who is told when models are asked."""

    config: Config
    connected: Connected
    observers: Observers
    toolbox: Toolbox

    @property
    def usual(self) -> str:
        """The model that is asked where nobody names one; "" where none is configured."""
        return self.config.mcp.model or usual_model(self.config)

    def model(self, owner: str, who: str) -> Model:
        """Return every model there is as one function for an owner; `who` says in the log what asked."""
        return observed_model(self.connected.gateway, self.observers, owner, who)

    def conversations(self, hours: float) -> Conversations:
        """Return the conversations that are kept; one that nobody went on with for so many hours begins anew."""
        return Conversations(self.connected.desk.store, hours=hours, longest=self.config.mcp.session_messages)


@asynccontextmanager
async def open_bench(config: Config, observers: Observers) -> AsyncGenerator[Bench]:
    """Open all that a configuration names, as long as the block runs."""
    async with connected(config) as upstreams, open_toolbox(config) as toolbox:
        yield Bench(config, upstreams, observers, toolbox)
