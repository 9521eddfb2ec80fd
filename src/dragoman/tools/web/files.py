"""Files that were laid open, by directory.

The way from the directory to the file is walked step by step, and no step may be a link: where a path leads is decided
by the file system at the moment it is walked, and not by looking at its letters before. Hidden files are left alone.
"""

import errno
import mimetypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dragoman.http.addresses import Refused
from dragoman.http.guarded import Page

_NOT_HERE = "it is not in a directory that may be read"
_LONGEST = 4096
_STEP = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""A pipe that nobody writes into must not be waited for."""


class Files:
    """Directories that may be read."""

    def __init__(self, directories: Iterable[str] = ()) -> None:
        self._directories = tuple(Path(directory).resolve() for directory in directories)
        if self._directories and os.open not in os.supports_dir_fd:
            raise ValueError("files cannot be read safely on this system")

    def page(self, url: str, most: int) -> Page:
        """Return what stands in a file; raises `Refused`."""
        path = _path_of(url)
        for directory in self._directories:
            if path.is_relative_to(directory):
                return Page(_kind(path), _read(directory, path.relative_to(directory).parts, most), url=path.as_uri())
        raise Refused(_NOT_HERE)


def _path_of(url: str) -> Path:
    try:
        parts = urlsplit(url)
        path = unquote(parts.path, errors="strict")
    except (ValueError, UnicodeError):
        raise Refused("it is no address") from None
    if parts.netloc not in {"", "localhost"} or parts.query or len(path) > _LONGEST:
        raise Refused("it is no address of a file")
    steps = path.split("/")[1:]
    if not path.startswith("/") or any(_is_odd(step) for step in steps):
        raise Refused(_NOT_HERE)
    return Path(path)


def _is_odd(step: str) -> bool:
    return not step or step.startswith(".") or "\\" in step or "\0" in step


def _read(directory: Path, steps: tuple[str, ...], most: int) -> bytes:
    if not steps:
        raise Refused("it is a directory")
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _STEP)
        for at, step in enumerate(steps, 1):
            flags = os.O_RDONLY | _STEP | (os.O_DIRECTORY if at < len(steps) else 0)
            try:
                following = os.open(step, flags, dir_fd=handle)
            finally:
                os.close(handle)
            handle = following
    except OSError as error:
        # A link is told like what is not there: nobody learns where it would have led.
        raise Refused("there is no such file" if error.errno != errno.EACCES else "it may not be read") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)  # a directory cannot even be made a file of
        raise Refused("it is no file")
    with os.fdopen(handle, "rb") as file:
        if about.st_size > most:
            raise Refused(f"it is larger than {most} bytes")
        return file.read(most)


def _kind(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or ""
