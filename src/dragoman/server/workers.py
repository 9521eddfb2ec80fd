"""Serve one port with several processes: each has its own listening socket, and the kernel distributes connections.

The parent keeps the sockets open, so that none is lost when its worker dies: new connections wait for the next worker.
It restarts a process that exits, and kills a worker whose event loop has not run for 30 seconds. On SIGTERM or SIGINT
it sends SIGTERM to every process and waits; on a second signal it kills them. It has no event loop and no threads, so
it can fork at any time. A process detects the death of the parent by a pipe.
"""

import asyncio
import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dragoman.config import Config, ConfigError
from dragoman.http.server import url_of
from dragoman.server.exchanges import Peers, WorkerContext
from dragoman.server.metrics import SharedCounters, allocate_shared
from dragoman.server.runner import listen_address, serve
from dragoman.server.stop_signals import watch_stop_signals

Job = Callable[[int], int]
"""A function that runs in its own process until SIGTERM; its argument is a pipe that closes when the parent exits."""
EXIT_UNUSABLE = 2
"""Exit code of a job for which a restart is useless. It is restarted nevertheless if any job has worked before."""
_HANDLED_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGALRM, signal.SIGHUP})
_STABLE_SECONDS = 5.0
"""A job that ran at least this many seconds is restarted without a longer delay."""
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0
_BEAT_SECONDS = 2.0
"""Seconds between two signs of life of a worker."""
_STALL_SECONDS = 30.0
"""Seconds without a sign of life after which a worker is killed and replaced."""


def _do_nothing(*_: object) -> None:
    """Signal handler that does nothing: `sigwait` needs a handler other than the default."""


class Supervisor:
    """Starts jobs in processes and restarts them when they exit."""

    def __init__(  # noqa: PLR0913  all but the jobs are callbacks
        self,
        jobs: Mapping[str, Job],
        dependencies: Mapping[str, Job],
        *,
        on_exit: Callable[[str], None],
        on_stop: Callable[[], None],
        has_worked: Callable[[], bool],
        before_start: Callable[[str], None] = _do_nothing,
        find_stalled: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._jobs = {**dependencies, **jobs}
        self._dependencies = dependencies
        """Jobs that the others need: they are stopped after the others have exited."""
        self._notify_exit = on_exit
        self._notify_stop = on_stop
        self._has_worked = has_worked
        """Returns whether any job has ever started to work."""
        self._before_start = before_start
        """Called in the parent before it starts the process of a job."""
        self._find_stalled = find_stalled
        """Returns the jobs that do not respond; they are killed, and so restarted."""
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
            signal.setitimer(signal.ITIMER_REAL, _BEAT_SECONDS)
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
            signal.setitimer(signal.ITIMER_REAL, 0)
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
            self._kill_stalled()
            self._start_due()
        elif signal_number != signal.SIGHUP:
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
        wait = min((*self._restart_times.values(), now + _BEAT_SECONDS)) - now
        signal.setitimer(signal.ITIMER_REAL, max(0.001, wait))

    def _kill_stalled(self) -> None:
        stalled = list(self._find_stalled())
        for name in stalled:
            sys.stderr.write(f"dragoman: {name} has not responded for {_STALL_SECONDS:g} seconds; killing it\n")
        self._send_signal(stalled, signal.SIGKILL)

    def _start(self, name: str) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._before_start(name)
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


_BACKLOG = 2048
_SIMULATOR = "the simulator"
RunCoroutine = Callable[[Coroutine[Any, Any, None]], None]


class Workers:
    """The worker processes of one gateway."""

    def __init__(self, config: Config, count: int, run: RunCoroutine) -> None:
        if sys.platform == "win32":
            raise ConfigError(config.source, "--workers", "several workers are not supported on Windows; use one")
        self._run = run
        self._sockets = bind_sockets(*listen_address(config), count)
        self._simulator = bind_sockets("127.0.0.1", 0, 1)[0] if _needs_simulator(config) else None
        self._config = config if self._simulator is None else _use_shared_simulator(config, url_of(self._simulator))
        self._counters = SharedCounters(count, len(config.keys))
        self._served = allocate_shared(1)
        """Set to 1 as soon as any worker has served: the configuration works."""
        self._last_beats = memoryview(allocate_shared(8 * count)).cast("d")
        """When each worker was alive last, 0 if it does not run."""
        self._directory = Path(tempfile.mkdtemp(prefix="dragoman-"))

    @property
    def base_url(self) -> str:
        """The URL of the gateway."""
        return url_of(self._sockets[0])

    def serve(self, on_start: Callable[[], None]) -> int:
        """Serve until a stop signal, and return the exit code."""
        names = [f"worker {at}" for at in range(len(self._sockets))]
        jobs: dict[str, Job] = {name: partial(self._run_worker, at) for at, name in enumerate(names)}
        dependencies: dict[str, Job] = {} if self._simulator is None else {_SIMULATOR: self._run_simulator}

        def on_exit(name: str) -> None:
            if name in names:
                self._counters.reset_open(names.index(name))
                self._last_beats[names.index(name)] = 0.0

        def before_start(name: str) -> None:
            if name in names:  # before the process can be stopped
                self._last_beats[names.index(name)] = time.monotonic()

        def find_stalled() -> Iterable[str]:
            dead_since = time.monotonic() - _STALL_SECONDS
            return [name for name, beat in zip(names, self._last_beats, strict=True) if 0 < beat < dead_since]

        # Objects loaded by now are excluded from garbage collection, so that the processes keep sharing their memory.
        gc.freeze()
        try:
            return Supervisor(
                jobs,
                dependencies,
                on_exit=on_exit,
                on_stop=self._close_sockets,
                has_worked=self._has_served,
                before_start=before_start,
                find_stalled=find_stalled,
            ).run(on_start)
        finally:
            self._close_sockets()
            shutil.rmtree(self._directory, ignore_errors=True)

    def _has_served(self) -> bool:
        return self._served[0] == 1

    def _on_serving(self, worker: int, _: object) -> None:
        self._served[0] = 1
        self._beat(worker, asyncio.get_running_loop())

    def _beat(self, worker: int, loop: asyncio.AbstractEventLoop) -> None:
        """Show the parent regularly that the event loop of a worker runs."""
        self._last_beats[worker] = time.monotonic()
        loop.call_later(_BEAT_SECONDS, self._beat, worker, loop)

    def _close_sockets(self) -> None:
        """Close the sockets in this process; the workers have their own copies."""
        for sock in self._sockets:
            sock.close()

    def _run_worker(self, worker: int, parent_pipe: int) -> int:
        own = self._sockets[worker].dup()
        self._close_sockets()
        peers = Peers(self._directory, worker, len(self._sockets))
        context = WorkerContext(worker=worker, counters=self._counters, socket=own, peers=peers)
        try:
            self._run(
                serve(
                    self._config,
                    on_start=partial(self._on_serving, worker),
                    worker_context=context,
                    parent_pipe=parent_pipe,
                )
            )
        except (ConfigError, OSError) as error:
            sys.stderr.write(f"dragoman: {error}\n")
            return EXIT_UNUSABLE
        return 0

    def _run_simulator(self, parent_pipe: int) -> int:
        self._close_sockets()

        # Ctrl-C in a terminal reaches every process, but open requests of the workers still need the simulator.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

        async def simulate() -> None:
            from dragoman.simulator.runner import running  # noqa: PLC0415  only needed with a simulator upstream

            async with running(sock=self._simulator):
                await watch_stop_signals(parent_pipe, [signal.SIGTERM]).wait()

        self._run(simulate())
        return 0


def bind_sockets(host: str, port: int, count: int) -> list[socket.socket]:
    """Listen on one address with `count` sockets; outside Linux they are duplicates of a single one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    single = _open_socket(family, host, port, reuses_port=False)
    if count == 1:
        return [single]
    if not sys.platform.startswith("linux"):
        return [single, *(single.dup() for _ in range(count - 1))]
    # Sockets with SO_REUSEPORT would also share the port with another gateway; a first socket without it detects that.
    port = single.getsockname()[1]
    single.close()
    return [_open_socket(family, host, port, reuses_port=True) for _ in range(count)]


def _open_socket(family: socket.AddressFamily, host: str, port: int, *, reuses_port: bool) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuses_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from None
    sock.setblocking(False)  # noqa: FBT003
    return sock


def _needs_simulator(config: Config) -> bool:
    return any(table.kind == "simulator" and not table.base_url for table in config.upstreams.values())


def _use_shared_simulator(config: Config, base_url: str) -> Config:
    """Point every simulator upstream to the one simulator that all workers share."""
    upstreams = {
        name: replace(table, base_url=base_url) if table.kind == "simulator" and not table.base_url else table
        for name, table in config.upstreams.items()
    }
    return replace(config, upstreams=upstreams)
