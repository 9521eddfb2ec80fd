"""The fixtures of the simulator's own tests."""

from simulator.conftest import simulate, simulator

__all__ = ["simulate", "simulator"]
