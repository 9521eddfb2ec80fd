"""Start a client that the configuration names, give it a prompt, and see that it ends.

It finds in its environment what every program needs, what is configured for it, and nothing else of ours. The prompt
stands in its words where `{prompt}` does, else it is written to its standard input. What it prints is its own affair.
"""

import asyncio
import contextlib
import os
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process

from dragoman.core.problems import Problem
from dragoman.intercept.settings import PROMPT, URL, InterceptTable

_NEEDED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "SYSTEMROOT", "TEMP", "TERM", "TMP", "TMPDIR", "USER")
_GRACE = 2.0


class Program:
    """One run of a client."""

    def __init__(self, table: InterceptTable, url: str) -> None:
        self._table = table
        self._url = url
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def run(self, prompt: str) -> int:
        """Run the client to its end; return what it says of that. It is ended when nobody waits for it any more."""
        process = await self._start(prompt)
        try:
            if PROMPT in " ".join(self._table.command):
                return await process.wait()
            await process.communicate(prompt.encode())
            return process.returncode or 0
        finally:
            await _ended(process)
            if self._folder is not None:
                self._folder.cleanup()

    async def _start(self, prompt: str) -> Process:
        words = [word.replace(PROMPT, prompt).replace(URL, self._url) for word in self._table.command]
        given = {name: value.replace(URL, self._url) for name, value in self._table.env.items()}
        environment = {name: os.environ[name] for name in _NEEDED if name in os.environ} | given
        if not self._table.cwd:
            self._folder = tempfile.TemporaryDirectory(prefix="dragoman-client-", ignore_cleanup_errors=True)
        takes_input = PROMPT not in " ".join(self._table.command)
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=PIPE if takes_input else DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env=environment,
                cwd=self._table.cwd or (self._folder.name if self._folder is not None else None),
                start_new_session=True,
            )
        except OSError as error:
            words_told = f"the client {self._table.command[0]!r} cannot be started: {error.strerror}"
            raise Problem("internal", words_told, status=502) from None


async def _ended(process: Process) -> None:
    """End a client that still runs, with all that it has started."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 15)
    try:
        async with asyncio.timeout(_GRACE):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()
