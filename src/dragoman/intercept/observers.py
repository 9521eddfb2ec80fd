"""Pass exchanges to observers: each observer has a folder, and the gateway writes every exchange into it.

Nothing is written while there is no observer. The name of an observer's folder starts with its process id, and the
folder of a dead process is deleted. An observer that does not read its files gets no more. Everything is readable only
by the user: a parent folder that others could write to is ignored.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from dragoman.intercept.exchange import InterceptedExchange, encode_exchange

_MAX_WAITING = 64
_MAX_BYTES = 256 << 20
"""The maximum number and size of unread exchanges per observer, so that an inactive one does not fill the disk."""
_LARGE = 1 << 20
"""Exchanges of at least this size are written in a thread, so that other requests do not wait."""
_SUFFIX = ".json"


def observers_folder() -> Path:
    """Return the folder that contains the observers' folders."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "dragoman" / "onlookers"


class ObserverFolders:
    """Writes exchanges to the folders of all observers."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or observers_folder()

    @property
    def has_observers(self) -> bool:
        """Whether there is an observer."""
        return next(self._find_folders(), None) is not None

    def __call__(self, exchange: InterceptedExchange) -> None:
        """Write an exchange that has ended to all observers."""
        if sum(map(len, (exchange.came, exchange.left, exchange.reply_came, exchange.reply_left))) < _LARGE:
            self._publish(exchange)
        else:
            Thread(target=self._publish, args=(exchange,), name="intercept-observer").start()

    def _publish(self, exchange: InterceptedExchange) -> None:
        file = b""
        for folder in self._find_folders():
            with suppress(OSError):  # the observer has just ended
                waiting = [_file_size(found) for found in folder.iterdir()]
                if len(waiting) < _MAX_WAITING and sum(waiting) < _MAX_BYTES:
                    file = file or encode_exchange(exchange)
                    _write_atomically(folder, f"{exchange.began:017.6f}-{exchange.id}{_SUFFIX}", file)

    def _find_folders(self) -> Iterator[Path]:
        try:
            if not _is_private(self._folder):
                return
            found = [Path(entry.path) for entry in os.scandir(self._folder)]
        except FileNotFoundError:
            return
        for folder in found:
            process = folder.name.partition("-")[0]
            if process.isdecimal() and not _is_alive(int(process)):
                shutil.rmtree(folder, ignore_errors=True)
            else:
                yield folder


class ObserverFolder:
    """The folder of one observer, from which it reads exchanges."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self) -> list[bytes]:
        """Return the files of the new exchanges, oldest first, and delete them."""
        taken: list[bytes] = []
        for file in sorted(self._folder.glob(f"*{_SUFFIX}")):
            taken.append(file.read_bytes())
            file.unlink()
        return taken


@contextmanager
def observe_exchanges(parent: Path | None = None) -> Generator[ObserverFolder]:
    """Observe exchanges inside the block."""
    root = parent or observers_folder()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(root):
        root.chmod(0o700)
    folder = root / f"{os.getpid()}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    try:
        yield ObserverFolder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_private(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _file_size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # the observer has just read it
        return 0


def _write_atomically(folder: Path, name: str, content: bytes) -> None:
    """Write a file and then rename it, because the observer may read at any moment."""
    unfinished = folder / f"{name}.part"
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    unfinished.rename(folder / name)
