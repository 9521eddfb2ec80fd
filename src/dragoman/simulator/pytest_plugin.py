"""Pytest fixtures for users' tests: a simulator that runs for the duration of a test.

Pytest loads this module wherever Dragoman is installed, so heavy imports wait until a test uses the fixture.
"""

from collections.abc import Generator  # noqa: TC003  pytest reads the annotation
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dragoman.simulator.runner import Running


@pytest.fixture
def dragoman_simulator(request: pytest.FixtureRequest) -> "Generator[Running]":
    """A running simulator; `@pytest.mark.dragoman(seed=1, fault="429")` sets its options."""
    from dragoman.simulator.runner import in_thread  # noqa: PLC0415  see the module's docstring

    mark: pytest.Mark | None = request.node.get_closest_marker("dragoman")  # pyright: ignore[reportUnknownMemberType]
    if mark is not None and mark.args:
        pytest.fail("The marker `dragoman` takes keyword arguments only, such as fault='429'.", pytrace=False)
    with in_thread(**(mark.kwargs if mark is not None else {})) as simulator:
        yield simulator


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "dragoman(**settings): options of the fixture dragoman_simulator")
