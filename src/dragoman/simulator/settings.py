"""What a simulator is told when it starts."""

import math

from msgspec import Struct

from dragoman.simulator.faults import read_fault
from dragoman.simulator.recordings import Recordings
from dragoman.simulator.script import Script


class Settings(Struct, frozen=True, kw_only=True):
    """How a simulator behaves. Without any of these it is a strict and quick stand-in."""

    seed: int = 0
    recorded: bool = False
    """Signatures of the real vendors are let through where they are well formed."""
    chunk: int = 24
    """About how many characters a delta of a stream has; 0 for all at once."""
    delay: float = 0.0
    """Seconds between the frames of a stream."""
    split: int = 0
    """Frames leave in pieces of at most so many bytes; 0 for a frame at once."""
    interleaved: bool = False
    """Parallel calls grow in turns, where the API can say that."""
    partial_args: bool = False
    """Arguments come in pieces on Vertex."""
    fault: str = ""
    """How every request goes wrong."""
    key: str = ""
    """The one key that is accepted; any is if this is empty, but none that begins with `invalid`."""
    script: Script | None = None
    recordings: Recordings | None = None

    def __post_init__(self) -> None:
        """Refuse at once what could only go wrong later; raises `ValueError`."""
        for name in ("chunk", "delay", "split"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a number from 0 on, not {value}")
        if self.fault:
            read_fault(self.fault)
