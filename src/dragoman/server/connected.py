"""Everything that answers for models, without a server around it: upstreams, routes, and what is kept."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct

from dragoman.agent import Carrier
from dragoman.agent.equipment import Price
from dragoman.config import Config
from dragoman.gateway.agents.answering import Agents
from dragoman.gateway.agents.crew import Roster
from dragoman.gateway.agents.naming import unmeant
from dragoman.gateway.generate import Gateway, Timing
from dragoman.gateway.retry import RetryPolicy
from dragoman.gateway.route import Place, Places, Routes
from dragoman.gateway.sessions.carrying import Carrying
from dragoman.gateway.sessions.desk import Desk
from dragoman.gateway.vault import Vault
from dragoman.http.client import Client, Deadlines
from dragoman.server.desks import open_desk
from dragoman.server.places import library, linkless, place, text_calls
from dragoman.server.priced import agent_price
from dragoman.server.toolbox import Toolbox
from dragoman.sessions.store import Store

_LOG = logging.getLogger("dragoman.agents")
CarriedBy = Callable[[Store], Carrier]
"""Makes what carries runs, over the store in which they are seen."""


def carrying(store: Store) -> Carrier:
    """Carry runs in this process."""
    return Carrying(store.runs)


class Connected(Struct, frozen=True):
    """Who asks upstreams, and who keeps conversations."""

    gateway: Gateway
    desk: Desk
    carrier: Carrier
    """Carries all runs, in the gateway's requests, behind them and in MCP tasks."""


@asynccontextmanager
async def connected(
    config: Config, toolbox: Toolbox | None = None, carried_by: CarriedBy = carrying
) -> AsyncGenerator[Connected]:
    """Open all that a configuration names, as long as the block runs; what is in the toolbox is run for clients."""
    async with AsyncExitStack() as stack:
        client = Client()
        stack.push_async_callback(client.close)
        places: dict[str, Place] = {}
        for name, table in config.upstreams.items():
            places[name] = await place(name, table, client, stack)
        kinds = {name: table.kind for name, table in config.upstreams.items()}
        deadlines = {
            name: Deadlines(connect=table.connect, first_byte=table.first_byte, idle=table.idle)
            for name, table in config.upstreams.items()
        }
        found = Places(places, kinds, deadlines, library(config), linkless(config), text_calls(config))
        routes = Routes(found, config.models, config.agents)
        desk = await stack.enter_async_context(open_desk(config))
        prices = {name: agent_price(config, name, routes) for name in config.agents}
        carrier = carried_by(desk.store)
        stack.push_async_callback(carrier.close)
        agents = _agents(config, toolbox, desk, carrier, prices) if toolbox is not None else None
        yield Connected(Gateway(routes, client, _timing(config), Vault(desk.store), agents), desk, carrier)


def _agents(
    config: Config, toolbox: Toolbox, desk: Desk, carrier: Carrier, prices: Mapping[str, Price | None]
) -> Agents:
    registry = toolbox.executor.registry
    origins = (toolbox.origin(name) for name in registry.names)
    servers = {*config.tools, *(origin[0] for origin in origins if origin is not None)}
    for key, words in unmeant(config.agents, {*servers, *registry.names}):
        _LOG.warning("%s: %s", key, words)
    roster = Roster(registry, config.agents, servers, toolbox.origin, toolbox.trouble, prices)
    return Agents(roster, toolbox.executor, desk.store, carrier)


def _timing(config: Config) -> Timing:
    server, retries = config.server, config.server.retries
    retry = RetryPolicy(
        retries=retries.most,
        first_wait=retries.first_wait,
        longest_wait=retries.longest_wait,
        longest_asked=retries.longest_asked,
    )
    return Timing(retry=retry, hold=server.hold, heartbeat=server.heartbeat)
