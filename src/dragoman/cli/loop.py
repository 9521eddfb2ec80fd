"""The event loop that servers run on."""

from typing import Any


def choose_runner() -> Any:
    """Return what runs a coroutine, on uvloop where that is installed."""
    try:
        import uvloop  # noqa: PLC0415  not on every system
    except ImportError:
        import asyncio  # noqa: PLC0415  not for other verbs

        return asyncio.run
    return uvloop.run
