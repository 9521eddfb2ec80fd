"""Attacks that pass while other tests run, briefly: `make attack` runs all, four times as large, and asserts times too."""

import pytest

from attack.run import ATTACKS


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_no_request_hurts_another(name):
    missed = [measure for measure in ATTACKS[name](1) if not measure.is_time and not measure.is_met]
    assert not missed
