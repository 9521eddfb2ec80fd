"""Dependencies of agents: server-side tools, conversations, and models whose calls are logged as exchanges."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import assert_never

from msgspec import Struct

from dragoman.agent.model import Model, closing
from dragoman.config import Config
from dragoman.core import events
from dragoman.core.request import Request
from dragoman.gateway.agents.toolset import AgentRegistry, ToolServers
from dragoman.gateway.context import build_program_context
from dragoman.gateway.generate import Gateway
from dragoman.gateway.record import Observers, Record
from dragoman.gateway.router import default_model
from dragoman.server.services import GatewayServices, ToolServices, open_gateway_services, open_tool_services
from dragoman.sessions.conversations import Conversations


class AgentServices(Struct, frozen=True):
    """The configured models, tools and conversations, and the observers of model calls."""

    config: Config
    gateway_services: GatewayServices
    observers: Observers
    tool_services: ToolServices

    @property
    def default_model(self) -> str:
        """The model for requests that name none; "" if no model is configured."""
        return self.config.mcp.model or choose_default_model(self.config)

    def build_model(self, owner: str, client_name: str) -> Model:
        """Return a function that calls any model for an owner; the log shows `client_name` as the dialect."""
        return build_observed_model(self.gateway_services.gateway, self.observers, owner, client_name)

    def build_agent_registry(self) -> AgentRegistry:
        """Return a lookup of tools by tool name, server name or pattern."""
        return AgentRegistry(
            self.tool_services.executor.registry, servers=ToolServers(find_origin=self.tool_services.find_origin)
        )

    def build_conversations(self, hours: float) -> Conversations:
        """Return the stored conversations; one that was not continued for `hours` starts again empty."""
        return Conversations(
            self.gateway_services.conversations.store, hours=hours, max_messages=self.config.mcp.session_messages
        )


@asynccontextmanager
async def open_agent_services(config: Config, observers: Observers) -> AsyncGenerator[AgentServices]:
    """Open the configured upstreams, stores and tools while the block runs."""
    async with open_gateway_services(config) as gateway_services, open_tool_services(config) as tool_services:
        yield AgentServices(config, gateway_services, observers, tool_services)


def build_observed_model(gateway: Gateway, observers: Observers, owner: str, client_name: str) -> Model:
    """Return a function that calls any model for an owner; the log shows `client_name` as the dialect."""

    async def call_model(request: Request) -> AsyncGenerator[events.Event]:
        record = Record(
            owner=owner, dialect=client_name, operation="generate", model=request.model, stream=request.stream
        )
        observers.begin(record)
        try:
            async with closing(gateway.model(build_program_context(owner, record))(request)) as stream:
                async for event in stream:
                    _record_event(event, record)
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            record.outcome = "left" if record.outcome == "open" else record.outcome
            raise
        finally:
            observers.end(record)

    return call_model


def _record_event(event: events.Event, record: Record) -> None:
    match event:
        case events.UsageSeen(usage):
            record.usage = usage
        case events.Finished(finish):
            record.finish, record.status, record.outcome = finish.reason, 200, "answered"
        case events.Failed(problem):
            record.problem, record.status = problem, problem.status
            record.outcome = "failed" if record.upstream else "refused"
        case events.Started():
            pass
        case (
            events.PartStarted()
            | events.PartDelta()
            | events.PartSigned()
            | events.PartCited()
            | events.PartNative()
            | events.PartEnded()
            | events.Native()
        ):
            record.note_first_token()
        case _:
            assert_never(event)


def choose_default_model(config: Config) -> str:
    """Return the first configured model alias without a wildcard, else the default model of the first upstream."""
    named = next((name for name in config.models if "*" not in name), "")
    if named:
        return named
    return next((f"{name}/{default_model(table.kind)}" for name, table in config.upstreams.items()), "")
