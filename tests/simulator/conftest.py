"""A simulator on loopback for the tests of its APIs."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest

from dragoman.simulator.runner import Running, in_thread


@pytest.fixture(scope="session")
def simulator() -> Generator[Running]:
    """A simulator that runs for the whole test session."""
    with in_thread() as running:
        yield running


@pytest.fixture
def simulate() -> Generator[Callable[..., Running]]:
    """Start simulators with their own settings."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Running:
            return stack.enter_context(in_thread(**settings))

        yield start
