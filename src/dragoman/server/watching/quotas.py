"""How many requests each key has open, at all workers together.

A turn is taken first and given back if that was one too many: so two workers at once never let both in.
"""

from dragoman.config import Config
from dragoman.core.problems import Problem
from dragoman.server.access import Key
from dragoman.server.process.board import Board


class Quotas:
    """The turns of keys that may have only so many requests open."""

    def __init__(self, config: Config, board: Board, worker: int) -> None:
        self._at = {key.name: at for at, key in enumerate(config.keys, 1)}
        self._all = [share.open for share in board.shares()]
        self._own = self._all[worker]

    def take(self, key: Key) -> None:
        """Begin a request, or raise the `Problem` that there are too many."""
        if not key.concurrency:
            return
        at = self._at[key.name]
        self._own[at] += 1
        if sum(counted[at] for counted in self._all) > key.concurrency:
            self._own[at] -= 1
            raise Problem("rate_limit", f"this key has {key.concurrency} requests open already", retry_after=1)

    def give_back(self, key: Key) -> None:
        """End a request."""
        if key.concurrency:
            self._own[self._at[key.name]] -= 1
