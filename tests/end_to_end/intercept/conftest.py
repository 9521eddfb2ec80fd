"""The fixtures of the interception's own tests."""

from intercept.conftest import middle, pool, server, simulator

__all__ = ["middle", "pool", "server", "simulator"]
