"""Where those who look on and the gateway meet: a folder for each onlooker, into which every exchange is put.

Nothing is kept as long as nobody looks on. An onlooker's folder bears the number of its process, and one whose process
is gone is taken away; one that is not emptied gets no more. All of it is for the eyes of the user alone: a folder that
others could have made is passed by.
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
"""Exchanges that wait for an onlooker, and their bytes; one that takes none must not fill the disk."""
_LARGE = 1 << 20
"""Bytes that take too long to write down for others to wait."""
_SUFFIX = ".json"


def observers_folder() -> Path:
    """Return the folder in which onlookers have theirs."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "dragoman" / "onlookers"


class ObserverFolders:
    """The gateway's side."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or observers_folder()

    @property
    def has_observers(self) -> bool:
        """Whether somebody looks on."""
        return next(self._find_folders(), None) is not None

    def __call__(self, exchange: InterceptedExchange) -> None:
        """Show an exchange that is over."""
        if sum(map(len, (exchange.came, exchange.left, exchange.reply_came, exchange.reply_left))) < _LARGE:
            self._publish(exchange)
        else:
            Thread(target=self._publish, args=(exchange,), name="lookout").start()

    def _publish(self, exchange: InterceptedExchange) -> None:
        file = b""
        for folder in self._find_folders():
            with suppress(OSError):  # an onlooker that has just left
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
    """One who looks on, and takes what there is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self) -> list[bytes]:
        """Return the files of exchanges that have passed since, oldest first."""
        taken: list[bytes] = []
        for file in sorted(self._folder.glob(f"*{_SUFFIX}")):
            taken.append(file.read_bytes())
            file.unlink()
        return taken


@contextmanager
def observe_exchanges(parent: Path | None = None) -> Generator[ObserverFolder]:
    """Look on as long as the block does."""
    above = parent or observers_folder()
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(above):
        above.chmod(0o700)
    folder = above / f"{os.getpid()}-{secrets.token_hex(4)}"
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
    except FileNotFoundError:  # it was taken just now
        return 0


def _write_atomically(folder: Path, name: str, content: bytes) -> None:
    """Let a file appear whole: whoever takes it may look at any moment."""
    unfinished = folder / f"{name}.part"
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    unfinished.rename(folder / name)
