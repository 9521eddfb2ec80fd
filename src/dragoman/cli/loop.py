"""Choose the event loop for the servers."""

from typing import Any


def choose_runner() -> Any:
    """Return `uvloop.run` if uvloop is installed, else `asyncio.run`."""
    try:
        import uvloop  # noqa: PLC0415  an optional dependency
    except ImportError:
        import asyncio  # noqa: PLC0415  not for other verbs

        return asyncio.run
    return uvloop.run
