"""What the workers of a gateway count together: a share of memory for each, which all of them can read.

A gateway of one process has a board of one share.
"""

from msgspec import Struct

from dragoman.server.process.sheet import Sheet, shared

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
"""Upper ends of the classes that times are counted in, in seconds; what is longer has a class of its own."""
TOKENS = ("input", "output", "cached", "cache_written", "reasoning")
LOSSES = ("dropped", "approximated")
CLASSES = len(BOUNDS) + 1
FIRST_AT = CLASSES + 1
"""Where the classes of the first token begin: behind those of the whole answer, and their sum."""
TOKENS_AT = 2 * FIRST_AT
LOSSES_AT = TOKENS_AT + len(TOKENS)
RETRIES_AT = LOSSES_AT + len(LOSSES)
_MODEL_WIDTH = RETRIES_AT + 1
_MODEL_ROWS = 256
_REQUEST_ROWS = 1024
_REQUEST_WORDS = 6
_MODEL_WORDS = 2


class Share(Struct, frozen=True):
    """What one worker counts."""

    requests: Sheet
    """One number a row: how many. By operation, dialect, model, upstream, status and outcome."""
    models: Sheet
    """By model and upstream, all that is counted of answers."""
    open: "memoryview[float]"
    """How many requests are open: in all, and then by key."""


class Board:
    """The shares of all workers."""

    def __init__(self, workers: int = 1, keys: int = 0) -> None:
        self.workers = workers
        self._requests = Sheet.size(1, _REQUEST_ROWS)
        self._models = Sheet.size(_MODEL_WIDTH, _MODEL_ROWS)
        self._size = self._requests + self._models + (1 + keys) * 8
        self._memory = memoryview(shared(self._size * workers))

    def share(self, worker: int) -> Share:
        """Return the share of a worker as it is now; what one before it has counted is in it."""
        part = self._memory[worker * self._size : (worker + 1) * self._size]
        requests, rest = part[: self._requests], part[self._requests :]
        return Share(
            Sheet(requests, 1, _REQUEST_WORDS),
            Sheet(rest[: self._models], _MODEL_WIDTH, _MODEL_WORDS),
            rest[self._models :].cast("d"),
        )

    def shares(self) -> tuple[Share, ...]:
        """Return the shares of all workers."""
        return tuple(self.share(worker) for worker in range(self.workers))

    def forget_open(self, worker: int) -> None:
        """A worker is gone, and with it all that it had open."""
        share = self.share(worker).open
        for at in range(len(share)):
            share[at] = 0.0
