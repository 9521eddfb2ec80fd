"""Prices of model turns."""

import pytest

from dragoman.core.response import Usage
from dragoman.gateway.agents.settings import PriceTable, build_price

PRICES = {
    "*": PriceTable(input=1.0, output=2.0),
    "gpt-5*": PriceTable(input=10.0, output=20.0),
    "gpt-5.2": PriceTable(input=100.0, output=200.0, cached=1.0, cache_written=300.0),
}


@pytest.mark.parametrize(
    ("model", "cost"),
    [("gpt-5.2", 300.0), ("gpt-5.2-2025-12-11", 30.0), ("claude", 3.0)],
    ids=["name", "pattern", "anything"],
)
def test_a_model_has_the_price_of_its_name_or_of_the_longest_pattern(model, cost):
    assert build_price(PRICES)(model, Usage(input=1_000_000, output=1_000_000)) == cost


def test_what_the_cache_did_has_its_own_price():
    usage = Usage(input=1_000_000, cached=500_000, cache_written=250_000, output=0)
    assert build_price(PRICES)("gpt-5.2", usage) == 0.25 * 100 + 0.5 * 1 + 0.25 * 300
    assert build_price(PRICES)("gpt-5", usage) == 10.0


def test_the_price_of_an_unknown_vendor_name_is_found_by_the_requested_name():
    prices = {"usual": PriceTable(input=1.0, output=0.0)}
    assert build_price(prices, "usual")("model-0042", Usage(input=1_000_000)) == 1.0
    assert build_price(prices)("model-0042", Usage(input=1_000_000)) is None


def test_without_a_price_or_usage_the_cost_is_unknown():
    assert build_price({}) is None
    assert build_price(PRICES)("gpt-5.2", Usage()) is None
