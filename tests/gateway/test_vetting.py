"""Tools that one dialect reads are not known to be readable in another."""

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.vetting import require_readable

BODY = b'{"model":"m","messages":[],"input":"","tools":[{"type":"function","function":{"name":"read"},"name":5}]}'


def test_what_one_dialect_reads_is_looked_at_again_in_another():
    require_readable(Call(BODY, "m", stream=False), dialect_named("chat"))
    with pytest.raises(Problem):
        require_readable(Call(BODY, "m", stream=False), dialect_named("responses"))
