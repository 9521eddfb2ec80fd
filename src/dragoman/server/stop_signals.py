"""Stop signals: the first one asks to stop, the second one ends the process at once."""

import asyncio
import os
import signal
from collections.abc import Iterable
from contextlib import suppress

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_REPEATED_SIGNAL = 0.3
"""Seconds within which a second signal is the same one: wrappers forward a signal that the terminal sends to all."""


def watch_stop_signals(
    parent_pipe: int | None = None, signals: Iterable[signal.Signals] = _STOP_SIGNALS
) -> asyncio.Event:
    """Return an event that is set on a stop signal, or when the parent process exits.

    A second signal ends the process at once, unless it has a parent, which does that. SIGHUP does nothing.
    """
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    first = 0.0

    def on_signal(number: int) -> None:
        nonlocal first
        if not stopped.is_set():
            first = loop.time()
            stopped.set()
        elif parent_pipe is None and loop.time() - first > _REPEATED_SIGNAL:
            os._exit(128 + number)

    with suppress(NotImplementedError):  # on Windows an interrupt is an exception instead
        for each in signals:
            loop.add_signal_handler(each, on_signal, each)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
    if parent_pipe is not None:

        def on_parent_exit() -> None:
            loop.remove_reader(parent_pipe)
            stopped.set()

        loop.add_reader(parent_pipe, on_parent_exit)
    return stopped
