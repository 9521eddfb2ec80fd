"""What holds for every test."""

import os
from collections.abc import Generator
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(scope="session", autouse=True)
def state_of_their_own() -> Generator[None]:
    """Keep what gateways keep where nobody else looks: a test must not find, or leave, a user's conversations."""
    before = os.environ.get("XDG_STATE_HOME")
    with TemporaryDirectory() as directory:
        os.environ["XDG_STATE_HOME"] = directory
        yield
    if before is None:
        del os.environ["XDG_STATE_HOME"]
    else:
        os.environ["XDG_STATE_HOME"] = before
