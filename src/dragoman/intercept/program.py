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
        self._takes_input = not any(PROMPT in word for word in table.command)

    async def run(self, prompt: str) -> int:
        """Run the client to its end; return what it says of that. It is ended when nobody waits for it any more."""
        with tempfile.TemporaryDirectory(prefix="dragoman-client-", ignore_cleanup_errors=True) as folder:
            process = await self._start(prompt, self._table.cwd or folder)
            try:
                await process.communicate(prompt.encode() if self._takes_input else None)
                return process.returncode or 0
            finally:
                await _ended(process)

    async def _start(self, prompt: str, folder: str) -> Process:
        words = [_word(word.replace(URL, self._url), prompt) for word in self._table.command]
        given = {name: value.replace(URL, self._url) for name, value in self._table.env.items()}
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=PIPE if self._takes_input else DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env={name: os.environ[name] for name in _NEEDED if name in os.environ} | given,
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            told = f"the client {self._table.command[0]!r} cannot be started: {error}"
            raise Problem("internal", told, status=502) from None


def _word(word: str, prompt: str) -> str:
    """Return a word with the prompt in it; a prompt that looks like an option must not be one for the client."""
    is_option = word.startswith(PROMPT) and prompt.startswith("-")
    return word.replace(PROMPT, f" {prompt}" if is_option else prompt)


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
