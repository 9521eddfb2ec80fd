"""Process supervisor: runs each job in its own process, and restarts a process that exits.

On SIGTERM or SIGINT it sends SIGTERM to every process and waits; on a second signal it kills them. The parent has no
event loop and no threads, so it can fork at any time. A job detects the death of the parent by a pipe.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping

Job = Callable[[int], int]
"""A function that runs in its own process until SIGTERM; its argument is a pipe that closes when the parent exits."""
EXIT_UNUSABLE = 2
"""Exit code of a job for which a restart is useless. It is restarted nevertheless if any job has worked before."""
_HANDLED_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM})
_STABLE_SECONDS = 5.0
"""A job that ran at least this many seconds is restarted without a longer delay."""
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0


def _do_nothing(*_: object) -> None:
    """Signal handler that does nothing: `sigwait` needs a handler other than the default."""


class Supervisor:
    """Starts jobs in processes and restarts them when they exit."""

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
        """Jobs that the others need: they are stopped after the others have exited."""
        self._notify_exit = on_exit
        self._notify_stop = on_stop
        self._has_worked = has_worked
        """Returns whether any job has ever started to work."""
        self._running: dict[int, tuple[str, float]] = {}
        self._restart_waits: dict[str, float] = {}
        self._restart_times: dict[str, float] = {}
        self._stopped = False
        self._dependencies_stopped = False
        self._code = 0

    def run(self, on_start: Callable[[], None]) -> int:
        """Run all jobs until a stop signal and return the exit code; `on_start` is called when all are started."""
        previous_handlers = {name: signal.signal(name, _do_nothing) for name in _HANDLED_SIGNALS}
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
            for name, handler in previous_handlers.items():
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
        is_graceful = signal_number == signal.SIGTERM
        self._send_signal(self._jobs.keys() - self._dependencies.keys() if is_graceful else self._jobs, signal_number)

    def _send_signal(self, names: Iterable[str], signal_number: signal.Signals) -> None:
        for pid in self._pids_of(names):
            os.kill(pid, signal_number)

    def _pids_of(self, names: Iterable[str]) -> list[int]:
        selected = set(names)
        return [pid for pid, (name, _) in self._running.items() if name in selected]

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
        uptime = time.monotonic() - since
        wait = (
            _FIRST_WAIT
            if uptime > _STABLE_SECONDS
            else min(_LONGEST_WAIT, self._restart_waits.get(name, _FIRST_WAIT / 2) * 2)
        )
        self._restart_waits[name] = wait
        sys.stderr.write(f"dragoman: {name} exited with code {code}; restarting it\n")
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
        """Run a job in the current (forked) process and return its exit code."""
        code = 1
        try:
            os.close(self._pipe[1])
            for number in _HANDLED_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._original_mask)
            code = self._jobs[name](self._pipe[0])
        except BaseException:  # noqa: BLE001  the child must never continue with the parent's code
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        return code
