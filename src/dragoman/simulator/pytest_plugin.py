"""Fixtures for other people's tests: a simulator that runs as long as a test does.

Loaded by pytest itself wherever Dragoman is installed, so nothing heavy is imported before a test asks for it.
"""

from collections.abc import Generator  # noqa: TC003  pytest reads the annotation
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dragoman.simulator.serving import Running


@pytest.fixture
def dragoman_simulator(request: pytest.FixtureRequest) -> "Generator[Running]":
    """A running simulator; `@pytest.mark.dragoman(seed=1, fault="429")` sets how it behaves."""
    from dragoman.simulator.serving import in_thread  # noqa: PLC0415  see above

    mark: pytest.Mark | None = request.node.get_closest_marker("dragoman")  # pyright: ignore[reportUnknownMemberType]
    if mark is not None and mark.args:
        pytest.fail("the mark dragoman takes settings by name, such as fault='429'", pytrace=False)
    with in_thread(**(mark.kwargs if mark is not None else {})) as simulator:
        yield simulator


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "dragoman(**settings): how the fixture dragoman_simulator behaves")
