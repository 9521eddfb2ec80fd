"""The ways to a server: a process of ours, or an address.

Rules: a process gets few variables and a directory of its own, and what it says on standard error goes into the log,
a little at a time and without secrets. Whoever opens a way is told at once when it is at its end.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any, Self

from dragoman.mcp.client.watchful import LARGEST, Ends, WatchfulClient
from dragoman.mcp.sdk import StdioServerParameters, anyio, httpx2, stdio_client, streamable_http_client
from dragoman.mcp.settings import ToolServer

_LOG = logging.getLogger("dragoman.mcp")
# What is no message comes to us as well; a traceback for each line that a server writes wrongly helps nobody.
for _name in ("mcp.client.stdio", "mcp.client.streamable_http"):
    logging.getLogger(_name).addFilter(lambda record: record.levelno < logging.WARNING)
_LONGEST_LINE = 1000
_MOST_LINES = 100
_WINDOW = 10.0
_LAST_WORDS = 0.5
_HIDDEN = "[redacted]"
_SHORTEST_SECRET = 6
Streams = tuple[Any, Any]


@asynccontextmanager
async def opened(
    settings: ToolServer, ends: Ends, murmur: "Murmur", look: Callable[[Any], None], auth: httpx2.Auth | None = None
) -> AsyncGenerator[Streams]:
    """Open the way to a server; `look` sees each message that comes before anybody else does."""
    async with AsyncExitStack() as stack:
        if settings.command:
            reading, writing = await _process(settings, murmur, stack)
        else:
            client = await stack.enter_async_context(WatchfulClient(settings, ends, auth))
            way = streamable_http_client(settings.url, http_client=client, max_sse_event_size=LARGEST)
            reading, writing = await stack.enter_async_context(way)
        yield _Watched(reading, ends.over, look), writing


async def _process(settings: ToolServer, murmur: "Murmur", stack: AsyncExitStack) -> Streams:
    directory = settings.cwd or stack.enter_context(TemporaryDirectory(prefix="dragoman-mcp-"))
    parameters = StdioServerParameters(
        command=settings.command,
        args=list(settings.args),
        env=settings.env,
        cwd=directory,
        encoding_error_handler="replace",
    )
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as errors:
        await murmur.attach(reader, stack)
        return await stack.enter_async_context(stdio_client(parameters, errors))


class _Watched:
    """A stream that shows what comes, and tells when it is over."""

    def __init__(self, inner: Any, over: Callable[[], None], look: Callable[[Any], None]) -> None:
        self._inner = inner
        self._over = over
        self._look = look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            message = await self._inner.__anext__()
        except (StopAsyncIteration, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._over()
            raise
        self._look(message)
        return message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inner.aclose()


class Murmur:
    """What a process says on standard error."""

    def __init__(self, name: str, secrets: frozenset[str]) -> None:
        self.last = ""
        """The last line."""
        self._name = name
        self._secrets = sorted((each for each in secrets if len(each) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._until = 0.0
        self._lines = 0

    async def attach(self, descriptor: int, stack: AsyncExitStack) -> None:
        """Listen at the end of a pipe until the process has closed the other."""
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", buffering=0)
        )
        stack.callback(transport.close)
        stack.push_async_callback(_ended, asyncio.create_task(self._hear(stream)))

    async def _hear(self, stream: asyncio.StreamReader) -> None:
        rest = b""
        while data := await stream.read(1 << 14):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:_LONGEST_LINE]
            for line in lines:
                self._log(line)
        self._log(rest)

    def _log(self, line: bytes) -> None:
        text = self.hidden(line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip())
        if not text:
            return
        self.last = text
        now = time.monotonic()
        if now > self._until:
            self._until, self._lines = now + _WINDOW, 0
        self._lines += 1
        if self._lines <= _MOST_LINES:
            _LOG.info("%s: %s", self._name, text)
        elif self._lines == _MOST_LINES + 1:
            _LOG.info("%s says more than is worth a log", self._name)

    def hidden(self, text: str) -> str:
        """Return a text without the secrets that the server was given."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text


async def _ended(task: "asyncio.Task[None]") -> None:
    """Let the last words of a process be heard; one that it left behind may hold the pipe for ever."""
    await asyncio.wait({task}, timeout=_LAST_WORDS)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
