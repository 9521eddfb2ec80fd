"""Serve one port with several processes: each has its own listening socket, and the kernel distributes connections.

The parent keeps the sockets open, so that none is lost when its worker dies: new connections wait for the next worker.
"""

import gc
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dragoman.config import Config, ConfigError
from dragoman.http.server import url_of
from dragoman.server.metrics import SharedCounters, allocate_shared
from dragoman.server.peers import Peers, WorkerContext
from dragoman.server.process.supervisor import EXIT_UNUSABLE, Job, Supervisor
from dragoman.server.runner import listen_address, serve, watch_stop_signals

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

        # Objects loaded by now are excluded from garbage collection, so that the processes keep sharing their memory.
        gc.freeze()
        try:
            return Supervisor(
                jobs, dependencies, on_exit=on_exit, on_stop=self._close_sockets, has_worked=self._has_served
            ).run(on_start)
        finally:
            self._close_sockets()
            shutil.rmtree(self._directory, ignore_errors=True)

    def _has_served(self) -> bool:
        return self._served[0] == 1

    def _mark_served(self, _: object) -> None:
        self._served[0] = 1

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
            self._run(serve(self._config, on_start=self._mark_served, worker_context=context, parent_pipe=parent_pipe))
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
