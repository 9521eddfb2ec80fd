"""Programs that come from an index, once for all tests."""

from pathlib import Path

import pytest

from end_to_end.interception import MITMPROXY
from pypi import install


@pytest.fixture(scope="session")
def mitmproxy(request: pytest.FixtureRequest) -> Path:
    """Install mitmproxy, once."""
    assert request.config.cache is not None
    return install(request.config.cache.mkdir("mitmproxy"), MITMPROXY)
