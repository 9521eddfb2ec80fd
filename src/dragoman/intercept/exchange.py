"""One intercepted exchange, its file format (a readable JSON object with every byte that was sent), and its observers.

Each observer has a folder, and the gateway writes every exchange into it. Nothing is written while there is no
observer. The name of an observer's folder starts with its process id, and the folder of a dead process is deleted. An
observer that does not read its files gets no more. Everything is readable only by the user: a parent folder that others
could write to is ignored.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from os import urandom
from pathlib import Path
from threading import Thread
from time import monotonic, time
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from dragoman.http.message import Headers
from dragoman.intercept.plan import CapturedToolCall

_MAX_KEPT = 8 << 20
"""The maximum number of reply bytes to keep."""


def _make_id() -> str:
    return f"in_{urandom(8).hex()}"


class InterceptedExchange(Struct, kw_only=True):
    """One exchange, filled in as it proceeds; reply bodies are kept only while it is observed."""

    id: str = field(default_factory=_make_id)
    name: str
    """The path segment after `/intercept/`."""
    session: str = ""
    upstream: str = ""
    method: str
    target: str
    """The path and query at the upstream as the client wrote them, without an API key."""
    target_left: str = ""
    headers: Headers = ()
    came: bytes = b""
    left: bytes = b""
    """The body sent to the upstream; the same object as `came` if nothing was changed."""
    rules: tuple[str, ...] = ()
    """The rules that changed the request, in order."""
    problem: str = ""
    """Why the request was forwarded unchanged, although rules applied to it."""
    blocked: bool = False
    """The gateway answered it itself, because calls were waiting for results."""
    status: int = 0
    reply_headers: Headers = ()
    reply_came: bytes = b""
    reply_left: bytes = b""
    captured: tuple[CapturedToolCall, ...] = ()
    is_observed: bool = False
    """There is an observer, so the bodies are kept until the end."""
    is_cut: bool = False
    """The reply was larger than the limit, and is not kept completely."""
    began: float = field(default_factory=time)
    clock: float = field(default_factory=monotonic)
    seconds: float | None = None

    def record_reply(self, came: bytes, left: bytes) -> None:
        """Keep a chunk of the reply, as received and as forwarded, up to the size limit."""
        if not self.is_observed:
            return
        self.is_cut = self.is_cut or len(self.reply_came) + len(came) > _MAX_KEPT
        if not self.is_cut:
            self.reply_came += came
            self.reply_left += left

    def close(self) -> None:
        """Record the duration: the exchange has ended."""
        self.seconds = monotonic() - self.clock


ExchangeObserver = Callable[[InterceptedExchange], None]
"""Called with each exchange that has ended; must not block for long."""


class BinaryBody(Struct, frozen=True):
    """Bytes that are not valid UTF-8."""

    base64: bytes


Body = str | BinaryBody


class SavedCall(Struct, frozen=True, kw_only=True):
    """A captured call."""

    id: str
    name: str
    part: Body


class SavedExchange(Struct, frozen=True, kw_only=True):
    """An exchange as saved in a file, in the order in which it happened."""

    version: Literal[1] = 1
    id: str
    name: str
    session: str
    upstream: str
    began: float
    seconds: float | None
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    came: Body
    target_left: str
    left: Body | None
    """The body sent to the upstream; None if it is the same as `came`."""
    rules: tuple[str, ...]
    problem: str
    blocked: bool
    status: int
    reply_headers: tuple[tuple[str, str], ...]
    reply_came: Body
    reply_left: Body | None
    """The body sent to the client; None if it is the same as `reply_came`."""
    is_cut: bool
    captured: tuple[SavedCall, ...]


class SavedExchangeError(ValueError):
    """A file is not a saved exchange."""


def to_saved(exchange: InterceptedExchange) -> SavedExchange:
    """Convert an exchange to its saved form."""
    converted: dict[str, Any] = {
        "came": encode_body(exchange.came),
        "left": None if exchange.left == exchange.came else encode_body(exchange.left),
        "reply_came": encode_body(exchange.reply_came),
        "reply_left": None if exchange.reply_left == exchange.reply_came else encode_body(exchange.reply_left),
        "captured": tuple(map(_to_saved_call, exchange.captured)),
    }
    kept = [name for name in SavedExchange.__struct_fields__ if name not in converted and name != "version"]
    return SavedExchange(**{name: getattr(exchange, name) for name in kept}, **converted)


def encode_exchange(exchange: InterceptedExchange) -> bytes:
    """Return the content of the file for an exchange."""
    return msgspec.json.format(msgspec.json.encode(to_saved(exchange)), indent=1) + b"\n"


def decode_exchange(content: bytes) -> SavedExchange:
    """Parse the content of a file."""
    try:
        return msgspec.json.decode(content, type=SavedExchange)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SavedExchangeError(f"not a saved exchange: {error}") from None


def encode_body(content: bytes) -> Body:
    """Return bytes as text if they are valid UTF-8, else as base64."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return BinaryBody(content)


def decode_body(body: Body) -> bytes:
    """Return the bytes of a saved body."""
    return body.base64 if isinstance(body, BinaryBody) else body.encode()


def _to_saved_call(call: CapturedToolCall) -> SavedCall:
    return SavedCall(id=call.id, name=call.name, part=encode_body(call.part))


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
