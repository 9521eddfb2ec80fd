"""Log the standard error of a server process, limited and without secrets."""

import asyncio
import logging
import time

from dragoman.mcp.client.process_limits import MisbehaviorError

_LOG = logging.getLogger("dragoman.mcp")
_CHUNK = 1 << 14
_MAX_LINE = 1000
_MAX_LINES = 100
_MAX_BYTES = 16_000_000
_WINDOW = 10.0
_REDACTED = "[redacted]"
_MIN_SECRET = 6


class StderrLog:
    """Logs the standard error of a server process."""

    def __init__(self, name: str, secrets: frozenset[str]) -> None:
        self.last_line = ""
        """The last line that was written."""
        self._name = name
        self._secrets = sorted((each for each in secrets if len(each) >= _MIN_SECRET), key=len, reverse=True)
        self._window_end = 0.0
        self._lines = 0
        self._bytes = 0

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read until the process has closed its end; raise `MisbehaviorError` if it writes too much."""
        rest = b""
        while data := await stream.read(_CHUNK):
            self._count(len(data))
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:_MAX_LINE]
            # Over the limit only the last line is of use, as the reason of a failure.
            for line in lines if self._lines <= _MAX_LINES else lines[-1:]:
                self._log(line)
        self._log(rest)

    def _count(self, size: int) -> None:
        now = time.monotonic()
        if now > self._window_end:
            self._window_end, self._lines, self._bytes = now + _WINDOW, 0, 0
        self._bytes += size
        if self._bytes > _MAX_BYTES:
            raise MisbehaviorError(f"it wrote more than {_MAX_BYTES} bytes to stderr in {_WINDOW:g} seconds")

    def _log(self, line: bytes) -> None:
        text = self.redact(line[:_MAX_LINE].decode("utf-8", "replace").rstrip())
        if not text:
            return
        self.last_line = text
        self._lines += 1
        if self._lines <= _MAX_LINES:
            _LOG.info("%s: %s", self._name, text)
        elif self._lines == _MAX_LINES + 1:
            _LOG.info("%s writes too much to stderr; further lines are dropped for a while", self._name)

    def redact(self, text: str) -> str:
        """Return a text without the secrets in the server's configuration."""
        for secret in self._secrets:
            text = text.replace(secret, _REDACTED)
        return text
