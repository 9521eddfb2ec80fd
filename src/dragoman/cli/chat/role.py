"""Who answers in a conversation: a model, or an agent of the configuration with what it brings along."""

from collections.abc import Iterable

from msgspec import Struct, structs

from dragoman.agent import Limits
from dragoman.agent.equipment import Price
from dragoman.core.problems import Problem
from dragoman.gateway.agents.settings import AgentCompaction
from dragoman.gateway.agents.toolset import Roster, limits_of
from dragoman.server.agent_services import Bench
from dragoman.server.services import agent_price
from dragoman.tools import Registry

_ARTIFACTS = "read_artifact"
"""What reads outputs that were too large: every tool's may be."""

_USUAL = AgentCompaction(context=1 << 40)
"""Nobody knows how long a history a model takes: it is made shorter when the model says that it is too long."""


class Role(Struct, frozen=True, kw_only=True):
    """Whom the user talks to."""

    name: str
    """What the user calls it."""
    model: str
    system: str
    limits: Limits
    destinations: tuple[str, ...]
    compaction: AgentCompaction
    price: Price | None
    tools: tuple[str, ...] | None
    """Its tools, servers and patterns; None for all there are."""
    simulated: bool
    """No model answers, but the simulator."""


def role_of(bench: Bench, name: str, *, patient: bool) -> Role:
    """Return who answers to a name, or raise the `Problem` for which nobody does; `patient` if a person can stop it."""
    table, agent = bench.config.mcp, bench.config.agents.get(name)
    model = name if agent is None else agent.model
    if not model:
        raise Problem("invalid_request", "no model is configured: name one with --model")
    targets = bench.connected.gateway.routes.of(model)
    if agent is None:
        limits = Limits(turns=table.max_turns, seconds=None if patient else table.seconds)
    else:
        limits = limits_of(agent.limits)
    return Role(
        name=name,
        model=model,
        system=table.system_prompt if agent is None else agent.system,
        limits=structs.replace(limits, seconds=None) if patient else limits,
        destinations=table.destinations if agent is None else agent.destinations,
        compaction=_USUAL if agent is None or not agent.compaction.context else agent.compaction,
        price=agent_price(bench.config, name, bench.connected.gateway.routes) if agent is not None else None,
        tools=None if agent is None else agent.tools,
        simulated=any(bench.config.upstreams[target.upstream.name].kind == "simulator" for target in targets),
    )


def equipped(bench: Bench, wanted: tuple[str, ...] | None) -> Registry:
    """Return the tools that are meant by names, servers and patterns, as they come and go; all there are for None."""
    whole, roster = bench.toolbox.executor.registry, roster_of(bench)
    if wanted is None:
        return whole

    def chosen() -> tuple[str, ...]:
        names = dict.fromkeys(name for word in wanted for name in roster.meant(word))
        return (*names, _ARTIFACTS) if names else ()

    return whole.select(chosen)


def roster_of(bench: Bench) -> Roster:
    """Return what knows tools by the names of their servers, too."""
    return Roster(bench.toolbox.executor.registry, origin=bench.toolbox.origin)


def require_known(bench: Bench, words: tuple[str, ...], option: str, servers: Iterable[str]) -> None:
    """Raise a `Problem` for a word that means no tool, with what would, also of servers that were not started."""
    roster = roster_of(bench)
    down = {status.name: status.error for status in bench.toolbox.status() if not status.connected}
    for word in words:
        server = word.partition("__")[0]
        if roster.meant(word):
            continue
        if server in down:
            raise Problem("not_found", f"{option}: the server {server!r} is not there: {down[server]}")
        near = roster.registry.nearest(word)
        there = dict.fromkeys((*sorted(servers), *roster.registry.names))
        known = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(there)}"
        raise Problem("not_found", f"{option}: there is no tool or server {word!r}: {known}")
