"""A run written down while it happens, so that one that never ended is seen, and can be gone on from.

Rules: what the model said is written before its calls are run, and each result as soon as it is there: whoever finds a
run that was interrupted knows which calls may have had their effect. `history.closed` makes what was written a history
in which every call has its result.
"""

from typing import Protocol

from dragoman.agent.mistakes import mistakes_of
from dragoman.agent.steps import RunEnded
from dragoman.core.request import Message, Request


class Recorder(Protocol):
    """Where runs are written down. What it raises as a `Problem` ends the run."""

    async def begin(self, run: str, request: Request) -> None:
        """Note that a run has begun, with its history so far."""
        ...

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Note what was said, or what came of a call; results of one turn come one by one, as the calls end."""
        ...

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Note that the whole history is now another one: it was made shorter."""
        ...

    async def end(self, ended: RunEnded) -> None:
        """Note that a run is over, and how."""
        ...


class Recording:
    """A recorder whose mistakes are problems of the run's."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def begin(self, run: str, request: Request) -> None:
        """Note that a run has begun."""
        with mistakes_of("the recorder"):
            await self._recorder.begin(run, request)

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Note what was said."""
        with mistakes_of("the recorder"):
            await self._recorder.add(run, messages)

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Note that the history is another one."""
        with mistakes_of("the recorder"):
            await self._recorder.replace(run, messages)

    async def end(self, ended: RunEnded) -> None:
        """Note that a run is over."""
        with mistakes_of("the recorder"):
            await self._recorder.end(ended)


class Unrecorded:
    """Nothing is written down."""

    async def begin(self, run: str, request: Request) -> None:
        """Do nothing."""

    async def add(self, run: str, messages: tuple[Message, ...]) -> None:
        """Do nothing."""

    async def replace(self, run: str, messages: tuple[Message, ...]) -> None:
        """Do nothing."""

    async def end(self, ended: RunEnded) -> None:
        """Do nothing."""
