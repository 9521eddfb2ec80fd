"""Settings of agents, and prices of models.

An agent is a model with tools that the gateway runs; clients use it like a model. Prices are per million tokens, in any
currency. A price is found by the exact model name or the longest matching pattern with `*`. A vendor may report a
longer model name than the one that was requested, so both are looked up.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta, Struct

from dragoman.agent.config import Price
from dragoman.core.response import Usage
from dragoman.http.addresses import parse_destination

_Count = Annotated[int, Meta(ge=0)]


class AgentLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of one run; 0 means no limit, except for `turns`."""

    turns: Annotated[int, Meta(ge=1)] = 10
    """Model turns with tools; after them the model is called once more, without tools."""
    seconds: Annotated[float, Meta(ge=0)] = 0.0
    tokens: _Count = 0
    """Input and output tokens of all turns together."""
    calls: _Count = 0
    """Tool calls that are run."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    """Cost of all turns together, by the configured prices."""


class AgentCompaction(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the history of a run is summarised."""

    context: _Count = 0
    """The context window of the model in tokens; 0 to summarise nothing."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.8
    """The share of the context window from which the history is summarised."""
    keep: Annotated[int, Meta(ge=1)] = 4
    """The number of newest messages that are never summarised."""
    model: str = ""
    """The model that summarises; empty for the agent's own model."""


class AgentTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An `[agents.NAME]` table of the configuration."""

    model: str
    tools: tuple[str, ...] = ()
    """Tool names, server names for all tools of a server, and patterns with `*`."""
    system: str = ""
    """Instructions that come before the client's own."""
    destinations: tuple[str, ...] = ()
    """Hosts to which its tools may send data even after they have read untrusted text."""
    limits: AgentLimits = AgentLimits()
    compaction: AgentCompaction = AgentCompaction()

    def __post_init__(self) -> None:
        for entry in self.destinations:
            parse_destination(entry)


_MILLION = 1_000_000
_Amount = Annotated[float, Meta(ge=0)]


class PriceTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The price of a million tokens of a model."""

    input: _Amount
    output: _Amount
    cached: _Amount | None = None
    """Price of input tokens read from the vendor's cache; None for the price of `input`."""
    cache_written: _Amount | None = None
    """Price of input tokens written to the vendor's cache; None for the price of `input`."""

    def cost_of(self, usage: Usage) -> float | None:
        """Return the cost of some usage; None if the vendor reported no tokens."""
        if usage.input is None and usage.output is None:
            return None
        cached, cache_written = usage.cached or 0, usage.cache_written or 0
        uncached = max((usage.input or 0) - cached - cache_written, 0)
        cost = uncached * self.input + (usage.output or 0) * self.output
        cost += cached * (self.input if self.cached is None else self.cached)
        cost += cache_written * (self.input if self.cache_written is None else self.cache_written)
        return cost / _MILLION


def find_price_table(prices: Mapping[str, PriceTable], *names: str) -> PriceTable | None:
    """Return the price of the first of a model's names that has one."""
    for name in names:
        matches = [pattern for pattern in prices if pattern == name or fnmatchcase(name, pattern)]
        if matches:
            return prices[name if name in prices else max(matches, key=len)]
    return None


def build_price(prices: Mapping[str, PriceTable], *names: str) -> Price | None:
    """Return a function for the cost of a turn of the model with these names; None if no prices are configured."""
    if not prices:
        return None

    def price(model: str, usage: Usage) -> float | None:
        table = find_price_table(prices, model, *names)
        return table.cost_of(usage) if table is not None else None

    return price
