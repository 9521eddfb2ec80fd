"""Open what an agent needs: server-side tools, conversations, and models whose calls are observed as exchanges."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import assert_never

from msgspec import Struct

from dragoman.agent.model import Model, closing
from dragoman.config import Config
from dragoman.core.events import (
    Event,
    Failed,
    Finished,
    Native,
    PartCited,
    PartDelta,
    PartEnded,
    PartNative,
    PartSigned,
    PartStarted,
    Started,
    UsageSeen,
)
from dragoman.core.request import Request
from dragoman.gateway.generate import Gateway
from dragoman.gateway.model import Asker
from dragoman.gateway.record import Observers, Record
from dragoman.gateway.router import default_model
from dragoman.server.services import GatewayServices, ToolServices, open_gateway_services, open_tool_services
from dragoman.sessions.conversations import Conversations


class AgentServices(Struct, frozen=True):
    """Models, tools and conversations that a configuration names, and who is told when models are asked."""

    config: Config
    gateway_services: GatewayServices
    observers: Observers
    tool_services: ToolServices

    @property
    def default_model(self) -> str:
        """The model that is asked where nobody names one; "" where none is configured."""
        return self.config.mcp.model or choose_default_model(self.config)

    def build_model(self, owner: str, client_name: str) -> Model:
        """Return every model there is as one function for an owner; `who` says in the log what asked."""
        return build_observed_model(self.gateway_services.gateway, self.observers, owner, client_name)

    def build_conversations(self, hours: float) -> Conversations:
        """Return the conversations that are kept; one that nobody went on with for so many hours begins anew."""
        return Conversations(
            self.gateway_services.conversations.store, hours=hours, max_messages=self.config.mcp.session_messages
        )


@asynccontextmanager
async def open_agent_services(config: Config, observers: Observers) -> AsyncGenerator[AgentServices]:
    """Open all that a configuration names, as long as the block runs."""
    async with open_gateway_services(config) as upstreams, open_tool_services(config) as toolbox:
        yield AgentServices(config, upstreams, observers, toolbox)


def build_observed_model(gateway: Gateway, observers: Observers, owner: str, client_name: str) -> Model:
    """Return every model there is as one function for an owner; `dialect` says in the log who asked."""

    async def ask(request: Request) -> AsyncGenerator[Event]:
        record = Record(
            owner=owner, dialect=client_name, operation="generate", model=request.model, stream=request.stream
        )
        observers.begin(record)
        try:
            async with closing(gateway.model(Asker(owner=owner), record)(request)) as events:
                async for event in events:
                    _record_event(event, record)
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            record.outcome = "left" if record.outcome == "open" else record.outcome
            raise
        finally:
            observers.end(record)

    return ask


def _record_event(event: Event, record: Record) -> None:
    match event:
        case UsageSeen(usage):
            record.usage = usage
        case Finished(finish):
            record.finish, record.status, record.outcome = finish.reason, 200, "answered"
        case Failed(problem):
            record.problem, record.status = problem, problem.status
            record.outcome = "failed" if record.upstream else "refused"
        case Started():
            pass
        case PartStarted() | PartDelta() | PartSigned() | PartCited() | PartNative() | PartEnded() | Native():
            record.note_first_token()
        case _:
            assert_never(event)


def choose_default_model(config: Config) -> str:
    """Return the first model a configuration names, or else the usual one of its first upstream."""
    named = next((name for name in config.models if "*" not in name), "")
    if named:
        return named
    return next((f"{name}/{default_model(table.kind)}" for name, table in config.upstreams.items()), "")
