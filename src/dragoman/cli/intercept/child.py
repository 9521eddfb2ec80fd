"""Run the user's command in the foreground, as a shell would: its terminal, its signals, its exit code.

An interrupt typed at a terminal reaches the child without us; we only wait. Any other signal that asks us to end is
handed on, and it is the child that decides.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

_HANDED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
_TYPED = (signal.SIGINT, signal.SIGQUIT)
_NOT_FOUND = 127
_NOT_STARTED = 126
_SIGNALLED = 128


async def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Return the exit code of a command, by a shell's rules."""
    loop = asyncio.get_running_loop()
    process: asyncio.subprocess.Process | None = None
    early: list[signal.Signals] = []

    def heard(number: signal.Signals) -> None:
        if process is None:
            early.append(number)
        elif number not in _TYPED or not _in_foreground():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    # What is ignored here (nohup) is ignored by the child too, as long as we leave it alone.
    handed_on = [number for number in _HANDED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handed_on:
        loop.add_signal_handler(number, partial(heard, number))
    try:
        try:
            process = await asyncio.create_subprocess_exec(*command, env=dict(environment))
        except FileNotFoundError:
            return _failed(command[0], "there is no such command", _NOT_FOUND)
        except OSError as error:
            return _failed(command[0], error.strerror or "it cannot be started", _NOT_STARTED)
        for number in early:
            process.send_signal(number)
        code = await process.wait()
    finally:
        for number in handed_on:
            loop.remove_signal_handler(number)
    return code if code >= 0 else _SIGNALLED - code


def _in_foreground() -> bool:
    """Tell whether what is typed at a terminal reaches us and the child alike."""
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123  a device, not a file
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def _failed(name: str, why: str, code: int) -> int:
    sys.stderr.write(f"dragoman: {name}: {why}\n")
    return code
