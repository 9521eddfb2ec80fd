"""Processes that stay: each job runs in a process of its own, and one that dies is started again.

Told to stop, every process is told, and waited for; told twice, they are killed. The parent only waits: it has no
event loop and no threads, so it can fork at any time. A job notices by the pipe it is given that the parent has died.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping

Job = Callable[[int], int]
"""Runs in a process of its own until it is told to stop. Is given a file that ends when the parent does."""
UNUSABLE = 2
"""A job ends with this where starting it again would not help, unless it was done before: what fails then may pass."""
_WATCHED = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM})
_LONG_ENOUGH = 5.0
"""Seconds after which a death is no sign that the next one comes soon."""
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


def _heed(*_: object) -> None:
    """Keep the system from ignoring a signal that is waited for."""


class Supervisor:
    """Keeps processes running."""

    def __init__(
        self,
        jobs: Mapping[str, Job],
        needed: Mapping[str, Job],
        *,
        died: Callable[[str], None],
        stopping: Callable[[], None],
        worked: Callable[[], bool],
    ) -> None:
        self._jobs = {**needed, **jobs}
        self._needed = needed
        """Jobs that the others cannot do without: they are told to stop when the others are gone."""
        self._died = died
        self._stopping = stopping
        self._worked = worked
        """Tells whether any job has ever come to do its work."""
        self._running: dict[int, tuple[str, float]] = {}
        self._waits: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._stopped = False
        self._told_last = False
        self._code = 0

    def run(self, begun: Callable[[], None]) -> int:
        """Run every job until told to stop; `begun` is called when all have been started."""
        before = {name: signal.signal(name, _heed) for name in _WATCHED}
        self._unmasked = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        self._pipe = os.pipe()
        try:
            for name in self._jobs:
                self._start(name)
            begun()
            while self._running or self._due:
                if self._stopped and not self._told_last and not self._pids(self._jobs.keys() - self._needed.keys()):
                    self._told_last = True
                    self._tell(self._needed, signal.SIGTERM)
                self._heard(signal.sigwait(_WATCHED))
        finally:
            for end in self._pipe:
                os.close(end)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._unmasked)
            for name, handler in before.items():
                signal.signal(name, handler)
        return self._code

    def _heard(self, told: int) -> None:
        if told == signal.SIGCHLD:
            self._reap()
        elif told == signal.SIGALRM:
            self._start_due()
        else:
            self._stop(signal.SIGKILL if self._stopped else signal.SIGTERM)

    def _stop(self, how: signal.Signals) -> None:
        if not self._stopped:
            self._stopped = True
            self._due.clear()
            self._stopping()
        first = how == signal.SIGTERM
        self._tell(self._jobs.keys() - self._needed.keys() if first else self._jobs, how)

    def _tell(self, names: Iterable[str], how: signal.Signals) -> None:
        for pid in self._pids(names):
            os.kill(pid, how)

    def _pids(self, names: Iterable[str]) -> list[int]:
        wanted = set(names)
        return [pid for pid, (name, _) in self._running.items() if name in wanted]

    def _reap(self) -> None:
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in self._running:
                self._ended(*self._running.pop(pid), os.waitstatus_to_exitcode(status))

    def _ended(self, name: str, since: float, code: int) -> None:
        self._died(name)
        if self._stopped:
            return
        if code == UNUSABLE and not self._worked():
            self._code = code
            self._stop(signal.SIGTERM)
            return
        lived = time.monotonic() - since
        wait = _FIRST_WAIT if lived > _LONG_ENOUGH else min(_LONGEST_WAIT, self._waits.get(name, _FIRST_WAIT / 2) * 2)
        self._waits[name] = wait
        sys.stderr.write(f"dragoman: {name} ended with {code}, and is started again\n")
        self._due[name] = time.monotonic() + wait
        self._start_due()

    def _start_due(self) -> None:
        now = time.monotonic()
        for name in [name for name, due in self._due.items() if due <= now]:
            del self._due[name]
            self._start(name)
        if self._due:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, min(self._due.values()) - now))

    def _start(self, name: str) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os._exit(self._work(name))
        self._running[pid] = (name, time.monotonic())

    def _work(self, name: str) -> int:
        """Do a job, in its own process."""
        code = 1
        try:
            os.close(self._pipe[1])
            for each in _WATCHED:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._unmasked)
            code = self._jobs[name](self._pipe[0])
        except BaseException:  # noqa: BLE001  nothing of the parent's may run on in here
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        return code
