"""The fixtures of the conformance suite, which are not part of the package."""

import sys

import pytest

from dragoman.core.problems import Problem
from dragoman.mcp.server.server import load_fixtures


def test_fixtures_that_are_not_on_the_path_are_a_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_fixtures", None)
    with pytest.raises(Problem, match="`tests` folder of Dragoman's source on PYTHONPATH"):
        load_fixtures()
