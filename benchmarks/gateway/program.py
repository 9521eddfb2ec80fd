"""Run a program on a core of its own, and read what it costs."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

SERVER_CORE = 0
"""What is measured runs here; the upstream and the load share the other core."""
LOAD_CORE = 1
_LONGEST_STOP = 10.0
_CPU_CLOCK = 2


def pin(core: int, process: int = 0) -> None:
    """Keep a process on one core, where there are several and the system can."""
    if hasattr(os, "sched_setaffinity") and core in os.sched_getaffinity(0):
        os.sched_setaffinity(process, {core})


class Program:
    """A program that runs as long as the block does."""

    def __init__(self, command: Sequence[str], core: int, environment: Mapping[str, str] | None = None) -> None:
        self._command = list(command)
        self._core = core
        self._environment = {**os.environ, **(environment or {})}
        self.began = 0.0

    def __enter__(self) -> Self:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(  # noqa: S603  our own commands
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self._environment
        )
        pin(self._core, self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_LONGEST_STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def runs(self) -> bool:
        """Return whether it is still running."""
        return self._process.poll() is None

    def address(self) -> str:
        """Wait for the first line it prints, whose last word is where it listens."""
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if "http://" not in line:
            raise RuntimeError(f"{self._command[-1]} did not start: {line!r}")
        return line.split()[-1]

    def cpu_seconds(self) -> float:
        """Return the CPU time of it and its child processes so far."""
        # The clock of another process by its number, as clock_getcpuclockid(3) makes it: exact to the nanosecond.
        return sum(time.clock_gettime((~process << 3) | _CPU_CLOCK) for process in self._family())

    def _family(self) -> list[int]:
        found = [self._process.pid]
        for process in found:
            children = Path(f"/proc/{process}/task/{process}/children")
            found += map(int, children.read_text(encoding="ascii").split()) if children.exists() else []
        return found

    def resident_megabytes(self) -> float:
        """Return how much memory it holds."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        held = next(line for line in lines if line.startswith("VmRSS:"))
        return int(held.split()[1]) / 1024


def python(*arguments: str) -> list[str]:
    """Return the command of a Python program in this environment."""
    return [sys.executable, *arguments]
