"""What models cost, by what is configured: of a million tokens, in whatever currency the operator counts.

A model is meant by its name or a pattern with `*`, the longest that fits. A vendor may report a longer name than the
one that was asked for, so both are looked for.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta, Struct

from dragoman.agent.equipment import Price
from dragoman.core.response import Usage

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

    def of(self, usage: Usage) -> float | None:
        """Return what was spent; None if nothing was reported."""
        if usage.input is None and usage.output is None:
            return None
        cached, written = usage.cached or 0, usage.cache_written or 0
        fresh = max((usage.input or 0) - cached - written, 0)
        spent = fresh * self.input + (usage.output or 0) * self.output
        spent += cached * (self.input if self.cached is None else self.cached)
        spent += written * (self.input if self.cache_written is None else self.cache_written)
        return spent / _MILLION


def table_of(prices: Mapping[str, PriceTable], *names: str) -> PriceTable | None:
    """Return the price of a model that has several names; that of the first for which there is one."""
    for name in names:
        fitting = [pattern for pattern in prices if pattern == name or fnmatchcase(name, pattern)]
        if fitting:
            return prices[name if name in prices else max(fitting, key=len)]
    return None


def price_by(prices: Mapping[str, PriceTable], *asked: str) -> Price | None:
    """Return what turns of a model cost that is asked for by these names; None where that is not known."""
    if not prices:
        return None

    def price(model: str, usage: Usage) -> float | None:
        table = table_of(prices, model, *asked)
        return table.of(usage) if table is not None else None

    return price
