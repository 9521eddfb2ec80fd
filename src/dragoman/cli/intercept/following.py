"""`dragoman intercept --log`: show each exchange as it passes, and keep it in a file if that is wanted.

It looks on from outside: at a gateway that serves, at another `dragoman intercept`, at all workers. With a command it
looks on beside it.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TextIO

from dragoman.cli.chat.screen import Screen
from dragoman.cli.intercept.showing import shown
from dragoman.intercept.lookout import Onlooker, looking_on
from dragoman.intercept.saved import NotSavedError, read

_BETWEEN = 0.1
"""Seconds between two looks."""


class Follower:
    """Shows what passes: all of it, or that of one name."""

    def __init__(self, onlooker: Onlooker, out: TextIO, name: str = "", folder: Path | None = None) -> None:
        self._onlooker = onlooker
        self._out = out
        self._name = name
        self._folder = folder
        self._screen = Screen(out, out, pretty=out.isatty())

    def look(self) -> None:
        """Show what has passed since the last look."""
        for file in self._onlooker.take():
            try:
                exchange = read(file)
            except NotSavedError as error:
                self._out.write(f"an exchange cannot be shown: {error}\n")
                continue
            if self._name not in ("", exchange.name):
                continue
            self._out.write(shown(exchange, self._screen))
            if self._folder is not None:
                kept = self._folder / f"{exchange.id}.json"
                with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
                    opened.write(file)
                self._out.write(f"  saved as {kept}\n")
            self._out.flush()

    def follow(self, over: Event) -> None:
        """Go on until it is over."""
        while not over.wait(_BETWEEN):
            self.look()
        self.look()


def follow(name: str = "", folder: Path | None = None) -> int:
    """Show what passes until interrupted."""
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with looking_on() as onlooker:
        sys.stderr.write("dragoman: looking on; Ctrl-C ends it\n")
        with suppress(KeyboardInterrupt):
            Follower(onlooker, sys.stdout, name, folder).follow(Event())
    return 0


@contextmanager
def followed(out: TextIO, name: str = "", folder: Path | None = None) -> Generator[None]:
    """Show what passes as long as the block runs."""
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    over = Event()
    with looking_on() as onlooker:
        thread = Thread(target=Follower(onlooker, out, name, folder).follow, args=(over,), name="log", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
