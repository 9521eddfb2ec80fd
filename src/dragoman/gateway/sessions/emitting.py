"""The answer of a run that goes on while nobody waits: what would be sent to a client is emitted."""

import asyncio
from collections.abc import Mapping

from dragoman.agent import Runtime
from dragoman.gateway.sessions.sofar import SoFar
from dragoman.http.exchange import Exchange
from dragoman.http.message import Request


class Emitting(Exchange):
    """An exchange in which a stream goes to whoever watches the run; a whole answer goes nowhere."""

    def __init__(self, runtime: Runtime, so_far: SoFar, *, started: bool) -> None:
        super().__init__(Request("", "", ()), asyncio.Transport(), keeps_alive=False, in_chunks=False)
        self.started = started
        """Nothing is held back: what goes wrong is told in the stream."""
        self._runtime = runtime
        self._so_far = so_far
        self._first = b""

    async def send(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:  # noqa: ARG002
        """Take a whole answer as sent."""
        self.started = self.ended = True
        self.status = status

    def start(self, status: int, headers: Mapping[str, str], length: int | None = None, first: bytes = b"") -> None:  # noqa: ARG002
        """Begin a stream."""
        self.started, self.status, self._first = True, status, first

    async def write(self, data: bytes) -> None:
        """Tell the next piece."""
        told, self._first = self._first + data, b""
        if told:
            self._so_far.feed(told)
            await self._runtime.emit(told)

    def push(self, data: bytes) -> None:
        """A sign of life is for nobody here."""

    async def end(self, last: bytes = b"") -> None:
        """Tell the last piece."""
        await self.write(last)
        self.ended = True
