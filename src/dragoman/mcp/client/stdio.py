"""Open the stdio transport to an MCP server: a child process that reads and writes one JSON-RPC message per line.

A process gets few environment variables and its own directory. It is killed when it breaks a limit: a message that is
too large, a flood of messages that answer no request, a flood on standard error, or no answer for too long.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any, cast

from dragoman.mcp.client.process_limits import MisbehaviorError, ProcessLimits
from dragoman.mcp.client.stderr_log import StderrLog
from dragoman.mcp.sdk import SessionMessage, anyio, get_default_environment, types
from dragoman.mcp.settings import ToolServer
from dragoman.tasks import TaskSet

_LOG = logging.getLogger("dragoman.mcp")
_CHUNK = 1 << 16
_EXIT_SECONDS = 2.0
"""Seconds to wait for the process to exit, after its standard input is closed and again after SIGTERM."""
_PIPES_SECONDS = 0.5
"""Seconds after which the pipes of a process that has exited are closed: an orphaned child may hold them open."""
_CHECKS = 8
"""How often the process is checked within `connect` seconds."""
_PING = '{{"jsonrpc":"2.0","id":"{}","method":"ping"}}\n'
Streams = tuple[Any, Any]


class _Process(asyncio.SubprocessProtocol):
    """A child process and its three pipes."""

    transport: asyncio.SubprocessTransport

    def __init__(self) -> None:
        self.readers = {1: asyncio.StreamReader(limit=_CHUNK), 2: asyncio.StreamReader(limit=_CHUNK)}
        self.exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)  # uvloop's has no such base class
        for descriptor, reader in self.readers.items():
            pipe = self.transport.get_pipe_transport(descriptor)
            if pipe is not None:
                reader.set_transport(pipe)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if not self.readers[fd].at_eof():
            self.readers[fd].feed_data(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002  asyncio passes it by position
        if fd in self.readers:
            self.readers[fd].feed_eof()
        else:
            self._is_open = False
            self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def process_exited(self) -> None:
        self.exited.set()
        asyncio.get_running_loop().call_later(_PIPES_SECONDS, self.transport.close)

    async def write(self, data: bytes) -> None:
        """Write to standard input, and wait until the buffer has room again."""
        pipe = cast("asyncio.WriteTransport | None", self.transport.get_pipe_transport(0))
        if not self._is_open or pipe is None or pipe.is_closing():
            raise BrokenPipeError
        pipe.write(data)
        await self._writable.wait()

    def kill(self, number: int) -> None:
        """Send a signal to the process and its descendants."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.transport.get_pid(), number)

    async def stop(self) -> None:
        """Close standard input; if the process does not exit, terminate it, then kill it."""
        if (pipe := self.transport.get_pipe_transport(0)) is not None:
            pipe.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await self._wait_for_exit():
                break
            self.kill(number)
        await self._wait_for_exit()
        self.transport.close()

    async def _wait_for_exit(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_SECONDS):
                await self.exited.wait()
        return self.exited.is_set()


@asynccontextmanager
async def open_process(
    settings: ToolServer, stderr_log: StderrLog, on_misbehavior: Callable[[str], None]
) -> AsyncGenerator[Streams]:
    """Start a server, and yield the streams of its messages; `on_misbehavior` gets the reason why it was killed."""
    with ExitStack() as stack:
        directory = settings.cwd or stack.enter_context(TemporaryDirectory(prefix="dragoman-mcp-"))
        _, process = await asyncio.get_running_loop().subprocess_exec(
            _Process,
            settings.command,
            *settings.args,
            env=get_default_environment() | settings.env,
            cwd=directory,
            start_new_session=True,
        )
        # No await until the block below, so that a cancellation cannot leave the process behind.
        session = _Session(process, ProcessLimits(settings), on_misbehavior)
        async with TaskSet() as tasks:
            tasks.start(session.run(session.read_messages()), "messages of an mcp server")
            tasks.start(session.run(session.write_messages()), "messages to an mcp server")
            tasks.start(session.run(session.check(settings.connect / _CHECKS)), "checks of an mcp server")
            errors = tasks.start(session.run(stderr_log.read(process.readers[2])), "standard error of an mcp server")
            try:
                yield session.incoming, session.outgoing
            finally:
                with anyio.CancelScope(shield=True):
                    session.close()
                    await process.stop()
                    await asyncio.wait({errors}, timeout=_PIPES_SECONDS)  # what the process wrote last


class _Session:
    """Moves messages between a process and the SDK."""

    def __init__(self, process: _Process, limits: ProcessLimits, on_misbehavior: Callable[[str], None]) -> None:
        self._received, self.incoming = anyio.create_memory_object_stream[Any](0)
        self.outgoing, self._to_send = anyio.create_memory_object_stream[SessionMessage](0)
        self._process = process
        self._limits = limits
        self._on_misbehavior = on_misbehavior
        self._is_closed = False

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run one task of the session; if the server misbehaves, kill it and report why."""
        try:
            await work
        except MisbehaviorError as error:
            self._process.kill(signal.SIGKILL)
            self._received.close()
            if not self._is_closed:
                self._is_closed = True
                self._on_misbehavior(str(error))
        except ConnectionError:
            self._received.close()  # the process no longer reads its input, so no request can be answered

    def close(self) -> None:
        """Stop the traffic; what the process still writes is discarded, so that it can exit."""
        self._is_closed = True
        for stream in (self.incoming, self.outgoing, self._received, self._to_send):
            stream.close()

    async def read_messages(self) -> None:
        """Forward what the process writes, line by line, until it closes its standard output."""
        parts, size = list[bytes](), 0
        with self._received:
            while data := await self._process.readers[1].read(_CHUNK):
                *lines, rest = data.split(b"\n")
                for line in lines:
                    parts.append(line)
                    await self._forward(b"".join(parts))
                    parts, size = [], 0
                parts.append(rest)
                size += len(rest)
                self._limits.check_size(size)

    async def _forward(self, line: bytes) -> None:
        self._limits.check_size(len(line))
        try:
            text = line.decode("utf-8", "replace")
            message = SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
        except ValueError:
            self._limits.on_received(None, len(line))
            _LOG.debug("ignored a line of an MCP server that is not a message")
            await asyncio.sleep(0)  # thousands of such lines may not block other tasks
            return
        if self._limits.on_received(message, len(line)):
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the session is over
                await self._received.send(message)

    async def write_messages(self) -> None:
        """Write the SDK's messages to the process."""
        with suppress(anyio.ClosedResourceError):
            async for each in self._to_send:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._limits.on_sent(each.message)
                with self._limits.time_write():
                    await self._process.write(text.encode("utf-8", "replace") + b"\n")

    async def check(self, interval: float) -> None:
        """Check that the process answers: ping it when it is idle, and after a call was cancelled or timed out."""
        while True:
            await asyncio.sleep(interval)
            if (ping := self._limits.check_answers(time.monotonic())) is not None:
                await self._process.write(_PING.format(ping).encode())
