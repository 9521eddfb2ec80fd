"""Programs of other people for the tests of MCP."""

from pathlib import Path

import pytest

import npm
import pypi

PACKAGES = Path(__file__).parent / "node"


@pytest.fixture(scope="session")
def modules(request: pytest.FixtureRequest) -> Path:
    """Install the packages from npm, once for each lock, and return their folder."""
    assert request.config.cache is not None
    return npm.install(PACKAGES, request.config.cache.mkdir("node-mcp")) / "node_modules"


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Path:
    """Install servers written in Python, once, and return the folder of their programs."""
    assert request.config.cache is not None
    cache = request.config.cache.mkdir("python-mcp")
    return pypi.install(cache, "mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19")
