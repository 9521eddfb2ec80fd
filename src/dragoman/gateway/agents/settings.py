"""What is configured of agents, and what models cost.

An agent is a model with tools that the gateway runs; clients ask for it like any other. Prices are those of a million
tokens, in whatever currency the operator counts. A model is meant by its name or a pattern with `*`, the longest that
fits. A vendor may report a longer name than the one that was asked for, so both are looked for.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta, Struct

from dragoman.agent.equipment import Price
from dragoman.core.response import Usage
from dragoman.http.addresses import parse_destination

_Count = Annotated[int, Meta(ge=0)]


class AgentLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far one run may go; 0 for no limit, but for the turns."""

    turns: Annotated[int, Meta(ge=1)] = 10
    """Turns of the model with tools; after them it is asked once more, without."""
    seconds: Annotated[float, Meta(ge=0)] = 0.0
    tokens: _Count = 0
    """Input and output of all turns together."""
    calls: _Count = 0
    """Calls that are run."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    """Of all turns together, by the configured prices."""


class AgentCompaction(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a history that grows in a run is summed up."""

    context: _Count = 0
    """Tokens that the model can take; 0 to sum up nothing."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.8
    """How full that may be."""
    keep: Annotated[int, Meta(ge=1)] = 4
    """Messages at the end that are kept at least."""
    model: str = ""
    """Who sums up; empty for the agent's own model."""


class AgentTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent."""

    model: str
    tools: tuple[str, ...] = ()
    """Tools by name, servers by name for all of theirs, and patterns with `*`."""
    system: str = ""
    """What it is told before its client's own instructions."""
    destinations: tuple[str, ...] = ()
    """Hosts to which its tools may send something also after they have read what anybody may have written."""
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
    """Of input that the vendor had in its cache; as `input` where nothing is said."""
    cache_written: _Amount | None = None
    """Of input that the vendor put into its cache; as `input` where nothing is said."""

    def cost_of(self, usage: Usage) -> float | None:
        """Return what was spent; None if nothing was reported."""
        if usage.input is None and usage.output is None:
            return None
        cached, written = usage.cached or 0, usage.cache_written or 0
        fresh = max((usage.input or 0) - cached - written, 0)
        spent = fresh * self.input + (usage.output or 0) * self.output
        spent += cached * (self.input if self.cached is None else self.cached)
        spent += written * (self.input if self.cache_written is None else self.cache_written)
        return spent / _MILLION


def find_price_table(prices: Mapping[str, PriceTable], *names: str) -> PriceTable | None:
    """Return the price of a model that has several names; that of the first for which there is one."""
    for name in names:
        fitting = [pattern for pattern in prices if pattern == name or fnmatchcase(name, pattern)]
        if fitting:
            return prices[name if name in prices else max(fitting, key=len)]
    return None


def build_price(prices: Mapping[str, PriceTable], *names: str) -> Price | None:
    """Return what turns of a model cost that is asked for by these names; None where that is not known."""
    if not prices:
        return None

    def price(model: str, usage: Usage) -> float | None:
        table = find_price_table(prices, model, *names)
        return table.cost_of(usage) if table is not None else None

    return price
