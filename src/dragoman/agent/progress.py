"""How far a running call is, told to whoever watches the run: the newest word only, and never held up for it.

A tool may speak from a thread, and faster than anybody reads; what was overtaken before it was told is left out.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import CallProgressed
from dragoman.tools import Progress, progress_to


@asynccontextmanager
async def progress_told(runtime: Runtime) -> AsyncGenerator[None]:
    """Tell the progress of what is run within."""
    teller = _Teller(runtime)
    with progress_to(teller.hear):
        try:
            yield
        finally:
            await teller.close()


class _Teller:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loop = asyncio.get_running_loop()
        self._newest: Progress | None = None
        self._telling: asyncio.Task[None] | None = None
        self._closed = False

    def hear(self, progress: Progress) -> None:
        """Take a word of the tool's, wherever it runs."""
        self._loop.call_soon_threadsafe(self._heard, progress)

    def _heard(self, progress: Progress) -> None:
        self._newest = progress
        if not self._closed and (self._telling is None or self._telling.done()):
            self._telling = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        while self._newest is not None:
            progress, self._newest = self._newest, None
            await self._runtime.emit(CallProgressed(progress))

    async def close(self) -> None:
        """Say what is left, and no more after that."""
        self._closed = True
        if self._telling is not None:
            await self._telling
