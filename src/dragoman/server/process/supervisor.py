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
EXIT_UNUSABLE = 2
"""A job ends with this where starting it again would not help, unless it was done before: what fails then may pass."""
_HANDLED_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM})
_STABLE_SECONDS = 5.0
"""Seconds after which a death is no sign that the next one comes soon."""
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


def _do_nothing(*_: object) -> None:
    """Keep the system from ignoring a signal that is waited for."""


class Supervisor:
    """Keeps processes running."""

    def __init__(
        self,
        jobs: Mapping[str, Job],
        dependencies: Mapping[str, Job],
        *,
        on_exit: Callable[[str], None],
        on_stop: Callable[[], None],
        has_worked: Callable[[], bool],
    ) -> None:
        self._jobs = {**dependencies, **jobs}
        self._dependencies = dependencies
        """Jobs that the others cannot do without: they are told to stop when the others are gone."""
        self._notify_exit = on_exit
        self._notify_stop = on_stop
        self._has_worked = has_worked
        """Tells whether any job has ever come to do its work."""
        self._running: dict[int, tuple[str, float]] = {}
        self._restart_waits: dict[str, float] = {}
        self._restart_times: dict[str, float] = {}
        self._stopped = False
        self._dependencies_stopped = False
        self._code = 0

    def run(self, on_start: Callable[[], None]) -> int:
        """Run every job until told to stop; `begun` is called when all have been started."""
        before = {name: signal.signal(name, _do_nothing) for name in _HANDLED_SIGNALS}
        self._original_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED_SIGNALS)
        self._pipe = os.pipe()
        try:
            for name in self._jobs:
                self._start(name)
            on_start()
            while self._running or self._restart_times:
                if (
                    self._stopped
                    and not self._dependencies_stopped
                    and not self._pids_of(self._jobs.keys() - self._dependencies.keys())
                ):
                    self._dependencies_stopped = True
                    self._send_signal(self._dependencies, signal.SIGTERM)
                self._on_signal(signal.sigwait(_HANDLED_SIGNALS))
        finally:
            for end in self._pipe:
                os.close(end)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._original_mask)
            for name, handler in before.items():
                signal.signal(name, handler)
        return self._code

    def _on_signal(self, signal_number: int) -> None:
        if signal_number == signal.SIGCHLD:
            self._reap()
        elif signal_number == signal.SIGALRM:
            self._start_due()
        else:
            self._stop_jobs(signal.SIGKILL if self._stopped else signal.SIGTERM)

    def _stop_jobs(self, signal_number: signal.Signals) -> None:
        if not self._stopped:
            self._stopped = True
            self._restart_times.clear()
            self._notify_stop()
        first = signal_number == signal.SIGTERM
        self._send_signal(self._jobs.keys() - self._dependencies.keys() if first else self._jobs, signal_number)

    def _send_signal(self, names: Iterable[str], signal_number: signal.Signals) -> None:
        for pid in self._pids_of(names):
            os.kill(pid, signal_number)

    def _pids_of(self, names: Iterable[str]) -> list[int]:
        wanted = set(names)
        return [pid for pid, (name, _) in self._running.items() if name in wanted]

    def _reap(self) -> None:
        while self._running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in self._running:
                self._handle_exit(*self._running.pop(pid), os.waitstatus_to_exitcode(status))

    def _handle_exit(self, name: str, since: float, code: int) -> None:
        self._notify_exit(name)
        if self._stopped:
            return
        if code == EXIT_UNUSABLE and not self._has_worked():
            self._code = code
            self._stop_jobs(signal.SIGTERM)
            return
        lived = time.monotonic() - since
        wait = (
            _FIRST_WAIT
            if lived > _STABLE_SECONDS
            else min(_LONGEST_WAIT, self._restart_waits.get(name, _FIRST_WAIT / 2) * 2)
        )
        self._restart_waits[name] = wait
        sys.stderr.write(f"dragoman: {name} ended with {code}, and is started again\n")
        self._restart_times[name] = time.monotonic() + wait
        self._start_due()

    def _start_due(self) -> None:
        now = time.monotonic()
        for name in [name for name, due in self._restart_times.items() if due <= now]:
            del self._restart_times[name]
            self._start(name)
        if self._restart_times:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, min(self._restart_times.values()) - now))

    def _start(self, name: str) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os._exit(self._run_job(name))
        self._running[pid] = (name, time.monotonic())

    def _run_job(self, name: str) -> int:
        """Do a job, in its own process."""
        code = 1
        try:
            os.close(self._pipe[1])
            for each in _HANDLED_SIGNALS:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._original_mask)
            code = self._jobs[name](self._pipe[0])
        except BaseException:  # noqa: BLE001  nothing of the parent's may run on in here
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        return code
