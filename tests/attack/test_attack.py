"""Each attack, briefly: `make attack` runs them at four times the size and asserts the times too."""

import pytest

from attack.run import ATTACKS

NEED_ALL_CORES = {"faults", "overload", "processing", "shutdown"}
"""They measure how fast a gateway reacts, so only `make attack` runs them, without other tests at the same time."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in NEED_ALL_CORES])
def test_no_request_hurts_another(name):
    missed = [measure for measure in ATTACKS[name](1) if not measure.is_time and not measure.is_met]
    assert not missed
