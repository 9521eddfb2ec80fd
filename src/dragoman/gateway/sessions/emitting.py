"""The answer of a run that goes on while nobody waits: what would be sent to a client is emitted."""

from collections.abc import Mapping

from dragoman.agent import Runtime
from dragoman.gateway.sessions.sofar import SoFar
from dragoman.http.exchange import Unheard


class Emitting(Unheard):
    """An exchange in which a stream goes to whoever watches the run; a whole answer goes nowhere."""

    def __init__(self, runtime: Runtime, so_far: SoFar, *, started: bool) -> None:
        super().__init__()
        self.started = started
        """Nothing is held back: what goes wrong is told in the stream."""
        self.is_gone = False
        self._runtime = runtime
        self._so_far = so_far
        self._first = b""

    @property
    def is_behind(self) -> bool:
        """Nobody reads here; who watches the run is waited for by the run."""
        return False

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
