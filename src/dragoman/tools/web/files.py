"""Read files in allowed directories, safe against path traversal and symbolic links.

The path from the directory to the file is opened one component at a time, and no component may be a symbolic link: the
file system resolves the path at the time of access, so there is no race between a check and the read. Hidden files are
not read.
"""

import errno
import mimetypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dragoman.http.addresses import LinkRefused
from dragoman.http.safe_fetch import LinkedPage

_NOT_ALLOWED = "it is not in an allowed directory"
_MAX_PATH = 4096
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""O_NONBLOCK: opening a named pipe without a writer must not block."""


class FileReader:
    """Reads files of the allowed directories."""

    def __init__(self, directories: Iterable[str] = ()) -> None:
        self._directories = tuple(Path(directory).resolve() for directory in directories)
        if self._directories and os.open not in os.supports_dir_fd:
            raise ValueError(
                "files cannot be read safely on this system, which lacks openat(); remove `files` from [web]"
            )

    def read_page(self, url: str, max_bytes: int) -> LinkedPage:
        """Return a file as a page; raises `LinkRefused`."""
        path = _parse_path(url)
        for directory in self._directories:
            if path.is_relative_to(directory):
                return LinkedPage(
                    mimetypes.guess_type(path.name)[0] or "",
                    _read_file(directory, path.relative_to(directory).parts, max_bytes),
                    url=path.as_uri(),
                )
        raise LinkRefused(_NOT_ALLOWED)


def _parse_path(url: str) -> Path:
    try:
        parts = urlsplit(url)
        path = unquote(parts.path, errors="strict")
    except (ValueError, UnicodeError):
        raise LinkRefused("it is not a valid URL") from None
    if parts.netloc not in {"", "localhost"} or parts.query or len(path) > _MAX_PATH:
        raise LinkRefused("it is not a URL of a local file")
    steps = path.split("/")[1:]
    if not path.startswith("/") or any(_is_forbidden_step(step) for step in steps):
        raise LinkRefused(_NOT_ALLOWED)
    return Path(path)


def _is_forbidden_step(step: str) -> bool:
    return not step or step.startswith(".") or "\\" in step or "\0" in step


def _read_file(directory: Path, steps: tuple[str, ...], max_bytes: int) -> bytes:
    if not steps:
        raise LinkRefused("it is a directory")
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _OPEN_FLAGS)
        for at, step in enumerate(steps, 1):
            flags = os.O_RDONLY | _OPEN_FLAGS | (os.O_DIRECTORY if at < len(steps) else 0)
            try:
                following = os.open(step, flags, dir_fd=handle)
            finally:
                os.close(handle)
            handle = following
    except OSError as error:
        # A symbolic link is reported as a missing file, so that its target is not revealed.
        raise LinkRefused("there is no such file" if error.errno != errno.EACCES else "permission denied") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)  # `os.fdopen` fails for a directory and would leak the descriptor
        raise LinkRefused("it is not a regular file")
    with os.fdopen(handle, "rb") as file:
        if about.st_size > max_bytes:
            raise LinkRefused(f"it is larger than {max_bytes} bytes")
        return file.read(max_bytes)
