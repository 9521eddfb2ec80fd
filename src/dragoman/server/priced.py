"""Agents as they are configured, held to what is there: their models, and prices for those whose cost is limited."""

from dragoman.agent.equipment import Price
from dragoman.config import Config, ConfigError
from dragoman.core.problems import Problem
from dragoman.gateway.agents.prices import price_by, table_of
from dragoman.gateway.route import Routes, Target


def agent_price(config: Config, name: str, routes: Routes) -> Price | None:
    """Return what turns of an agent cost; a `ConfigError` for one that could not work as it is configured."""
    agent = config.agents[name]
    targets = _targets(config, f"agents.{name}.model", agent.model, routes)
    if agent.compaction.model:
        _targets(config, f"agents.{name}.compaction.model", agent.compaction.model, routes)
    names = (agent.model, *(target.model for target in targets))
    if agent.limits.cost and table_of(config.prices, *names) is None:
        words = f"what {names[-1]!r} costs is not known: add it to [prices]"
        raise ConfigError(config.source, f"agents.{name}.limits.cost", words)
    return price_by(config.prices, *names)


def _targets(config: Config, key: str, model: str, routes: Routes) -> list[Target]:
    try:
        return list(routes.of(model))
    except Problem as problem:
        raise ConfigError(config.source, key, problem.message) from None
