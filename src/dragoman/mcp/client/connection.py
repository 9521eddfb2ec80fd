"""The connection to one external MCP server, and the task that owns it.

In the protocol revision that requires it, the client subscribes to changes of the tool list. Errors are described in
terms of the configuration, for the operator of the gateway.
"""

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from msgspec import Struct

from dragoman.guard import attempt_async
from dragoman.mcp.client.status import NO_ABILITIES, Abilities
from dragoman.mcp.client.stderr_log import StderrLog
from dragoman.mcp.client.tool_list import ToolFilter, ToolList, describe_error, list_all_tools
from dragoman.mcp.client.transports import TransportCallbacks, open_transport
from dragoman.mcp.sdk import (
    MODERN_PROTOCOL_VERSIONS,
    Client,
    MCPError,
    ProgressFnT,
    SubscriptionLost,
    ValidationError,
    anyio,
    httpx2,
    types,
)
from dragoman.mcp.settings import ToolServer
from dragoman.tasks import TaskSet, start_task

_FIRST_LISTEN_WAIT = 1.0
_LONGEST_LISTEN_WAIT = 60.0


_LOG = logging.getLogger("dragoman.mcp")
_MODES = {"auto": "auto", "2025-11-25": "legacy"}
_FIRST_WAIT = 0.25
_LONGEST_WAIT = 60.0
_MAX_DOUBLINGS = 16
_STABLE_SECONDS = 30.0
"""Seconds after which a connection counts as stable; the failure count then starts again."""
_CLOSE_SECONDS = 10.0
"""Timeout for closing a connection, in seconds."""
_MIN_INTERVAL = 0.25
"""Minimum number of seconds between two requests for the tool list, however often the server reports a change."""
_REFUSAL_SECONDS = 1.0
"""Seconds to wait for the server to reject open calls before a connection with an expired session is closed."""
_ENDED = "the connection ended"


async def watch_tool_list(client: Client, on_change: Callable[[], None]) -> None:
    """Call `on_change` whenever the server reports that its tools have changed."""
    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
        return
    wait = _FIRST_LISTEN_WAIT
    while True:
        try:
            async with client.listen(tools_list_changed=True) as news:
                on_change()  # changes before the subscription were not reported
                async for _ in news:
                    wait = _FIRST_LISTEN_WAIT
                    on_change()
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                return
            _LOG.debug("cannot subscribe to tool list changes: %s", error)
        except (SubscriptionLost, TimeoutError) as error:
            _LOG.debug("lost the subscription to tool list changes: %s", error)
        await asyncio.sleep(wait)
        wait = min(_LONGEST_LISTEN_WAIT, wait * 2)


class UnavailableError(Exception):
    """The server is not connected, or the connection was lost."""


class LiveConnection(Struct, frozen=True):
    """A working connection."""

    client: Client
    closed: "asyncio.Future[None]"
    """Done when the connection is closed."""


class ServerConnection:
    """Keeps one server connected: connects, lists its tools, and reconnects after failures."""

    def __init__(
        self,
        name: str,
        settings: ToolServer,
        on_tools: Callable[[ToolList], None],
        abilities: Abilities = NO_ABILITIES,
    ) -> None:
        self.name = name
        self._auth = abilities.auth or _build_auth(name, settings)
        self._abilities = abilities
        self.settings = settings
        self.protocol = ""
        self.server = ""
        self.error = ""
        self.failures = 0
        self.first_attempt = asyncio.Event()
        """Set when the first connection attempt has succeeded or failed."""
        self._on_tools = on_tools
        self._logged_error = ""
        self._misbehavior = ""
        """Why the server was stopped, if it broke a limit since it was started."""
        self._stderr_log = StderrLog(name, settings.secrets)
        self._tool_filter = ToolFilter()
        self._live: LiveConnection | None = None
        self._forgotten_connection: LiveConnection | None = None
        """The last connection whose session the server no longer knows."""
        self._connected_event = asyncio.Event()
        self._wake = asyncio.Event()
        self._is_stale = False
        self._closing = False
        self._restarting = False
        self._scope: anyio.CancelScope | None = None
        self._calls: set[asyncio.Task[types.CallToolResult]] = set()

    @property
    def is_connected(self) -> bool:
        """Check whether tools can be called."""
        return self._live is not None

    async def run(self) -> None:
        """Keep the server connected until `close` is called; the owning task runs this."""
        while not self._closing:
            began = time.monotonic()
            # Any failure of a server affects only this server.
            error = (await attempt_async(self._run_connection)).error or UnavailableError(_ENDED)
            if self._misbehavior:
                error = UnavailableError(self._misbehavior)
            self.first_attempt.set()
            self._wake.clear()
            if self._closing:
                return
            lasted = time.monotonic() - began
            if self._restarting and lasted > _MIN_INTERVAL:
                self._restarting = False
                continue
            self._restarting = False
            self.failures = 1 if lasted > _STABLE_SECONDS else self.failures + 1
            self._log_error(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._retry_delay()):
                    await self._wait_for_wake()

    def _retry_delay(self) -> float:
        """Return the delay before the next attempt: exponential, with jitter."""
        longer = 2.0 ** min(self.failures - 1, _MAX_DOUBLINGS)
        return min(_LONGEST_WAIT, _FIRST_WAIT * longer) * random.uniform(0.75, 1.25)  # noqa: S311

    def close(self) -> None:
        """Ask the owning task to close the connection cleanly."""
        self._closing = True
        self._wake.set()
        if self._scope is not None and self._live is None:
            self._scope.cancel()  # there is no session to end
        elif self._scope is not None:
            self._scope.deadline = anyio.current_time() + _CLOSE_SECONDS

    async def _wait_for_wake(self) -> None:
        await self._wake.wait()
        self._wake.clear()

    async def _run_connection(self) -> None:
        """Connect, and run until the connection ends."""
        over = asyncio.Event()
        self._stderr_log.last_line, self._misbehavior, self._tool_filter = "", "", ToolFilter()
        deadline = anyio.current_time() + self.settings.connect
        ends = TransportCallbacks(
            lambda: self._signal_end(over),
            lambda: self._on_session_lost(over),
            lambda reason: self._on_misbehavior(reason, over),
        )
        with anyio.CancelScope(deadline=deadline) as self._scope:
            async with Client(
                open_transport(self.settings, ends, self._stderr_log, self._tool_filter.filter_message, self._auth),
                mode=_MODES[self.settings.protocol],
                read_timeout_seconds=self.settings.connect,
                client_info=types.Implementation(name="dragoman", version=_package_version()),
                message_handler=self._on_message,
                elicitation_callback=self._abilities.elicit,
                cache=None,
            ) as client:
                # The gateway validates results itself, with a check that no declared schema can make run forever.
                setattr(client.session, "validate_tool_result", _skip_validation)  # noqa: B010  it is a method
                listed = await list_all_tools(client, self._tool_filter)
                self._scope.deadline = math.inf
                self._set_connected(client, listed)
                try:
                    await self._watch_connection(client, over)
                finally:
                    self._set_disconnected()
        if self._scope.cancelled_caught and not self._closing:
            raise TimeoutError

    def _on_session_lost(self, over: asyncio.Event) -> None:
        """Reconnect at once, because the server no longer knows the session."""
        if self._live is not None and not over.is_set():
            self._restarting = True
            self._forgotten_connection, self._live = self._live, None
            self._connected_event.clear()
            self._signal_end(over)

    def _on_misbehavior(self, reason: str, over: asyncio.Event) -> None:
        """Fail all calls at once; the owning task starts the server again after a delay."""
        self._misbehavior = f"it was stopped, because {reason}"
        self._set_disconnected()
        self._signal_end(over)

    def _signal_end(self, over: asyncio.Event) -> None:
        over.set()
        self._wake.set()

    def _set_connected(self, client: Client, tool_list: ToolList) -> None:
        self._live = LiveConnection(client, asyncio.get_running_loop().create_future())
        self.protocol = client.protocol_version
        info = client.server_info
        self.server = f"{info.name} {info.version}" if info is not None else ""
        self.error = self._logged_error = ""
        self._is_stale = False
        self._on_tools(tool_list)
        self._connected_event.set()
        self.first_attempt.set()
        _LOG.info("MCP server %s is connected: %d tools, protocol %s", self.name, len(tool_list.tools), self.protocol)

    def _set_disconnected(self) -> None:
        live, self._live = self._live, None
        self._connected_event.clear()
        self.error = self._misbehavior or _ENDED
        if live is not None and not live.closed.done():
            live.closed.set_result(None)

    async def _watch_connection(self, client: Client, over: asyncio.Event) -> None:
        """Wait for the end of the connection, and list the tools again when they have changed."""
        async with TaskSet() as background:
            background.start(watch_tool_list(client, self._on_tools_changed), f"tool list of {self.name}")
            while not (self._closing or over.is_set()):
                if self._is_stale:
                    self._is_stale = False
                    await self._refresh_tools(client)
                    await asyncio.sleep(_MIN_INTERVAL)
                else:
                    await self._wait_for_wake()
            if self._restarting and self._calls:
                # The server has rejected these calls; wait until each sees its rejection and is retried.
                await asyncio.wait(self._calls, timeout=_REFUSAL_SECONDS)

    async def _refresh_tools(self, client: Client) -> None:
        """Replace the tool list with the current one; if listing fails, keep the old list."""
        try:
            listed = await list_all_tools(client, self._tool_filter)
        except (MCPError, ValidationError) as error:
            if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
                raise
            _LOG.warning(
                "MCP server %s failed to list its changed tools: %s", self.name, describe_error(error, self.settings)
            )
        else:
            self._on_tools(listed)

    def _on_tools_changed(self) -> None:
        self._is_stale = True
        self._wake.set()

    async def _on_message(self, message: Any) -> None:
        match message:
            case types.ToolListChangedNotification():
                self._on_tools_changed()
            case types.LoggingMessageNotification(params=params):
                _LOG.debug("%s: %s", self.name, self._stderr_log.redact(str(params.data))[:1000])
            case Exception():
                _LOG.debug("MCP server %s sent an invalid message: %s", self.name, type(message).__name__)
            case _:
                pass

    def _log_error(self, error: BaseException) -> None:
        reason = self._stderr_log.redact(describe_error(error, self.settings))
        stderr = (
            f"; last line of stderr: {self._stderr_log.last_line}"
            if self.settings.command and self._stderr_log.last_line
            else ""
        )
        # A failure that repeats is logged as a warning only once.
        level = logging.DEBUG if self._logged_error == reason + stderr else logging.WARNING
        self.error = self._logged_error = reason + stderr
        _LOG.log(level, "MCP server %s is not available: %s", self.name, self.error)

    async def call(self, tool: str, arguments: Any, report: ProgressFnT | None = None) -> types.CallToolResult:
        """Call a tool; a connection that is missing or lost raises `UnavailableError`."""
        live = self._require_connection()
        try:
            return await self._call_tool(live, tool, arguments, report)
        except MCPError as error:
            if self._misbehavior and error.code == types.CONNECTION_CLOSED:
                raise UnavailableError(self._describe_lost_call()) from None
            if self._forgotten_connection is not live or error.code == types.CONNECTION_CLOSED:
                raise
        # The server rejected the session and has not run the call, so the call is safe to retry.
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.connect):
                await self._connected_event.wait()
        return await self._call_tool(self._require_connection(), tool, arguments, report)

    def _require_connection(self) -> LiveConnection:
        if self._live is None:
            raise UnavailableError(self.error or "not connected yet")
        return self._live

    async def _call_tool(
        self, live: LiveConnection, tool: str, arguments: Any, report: ProgressFnT | None
    ) -> types.CallToolResult:
        seconds = self.settings.timeout + 1  # the executor's own timeout fires first
        task = start_task(live.client.call_tool(tool, arguments, seconds, report), f"call of {tool}")
        self._calls.add(task)
        task.add_done_callback(self._on_call_done)
        try:
            await asyncio.wait({task, live.closed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()  # this also sends a cancellation to the server
        if task.done() and not task.cancelled():
            return task.result()
        raise UnavailableError(self._describe_lost_call())

    def _describe_lost_call(self) -> str:
        reason = self._misbehavior or "it ended"
        return f"{reason} while the call ran, and may or may not have done what was asked"

    def _on_call_done(self, call: "asyncio.Task[types.CallToolResult]") -> None:
        self._calls.discard(call)
        # The caller may be gone: it already got an UnavailableError when the connection closed.
        if not call.cancelled() and (error := call.exception()) is not None:
            _LOG.debug("%s: %s failed: %s", self.name, call.get_name(), type(error).__name__)


def _build_auth(name: str, settings: ToolServer) -> httpx2.Auth | None:
    if settings.sign_in:
        from dragoman.mcp.client.sign_in import SignedIn, find_token_file  # noqa: PLC0415  few servers need it

        return SignedIn(name, settings.url, find_token_file(name, settings.url))
    if settings.oauth is None:
        return None
    from dragoman.mcp.client.transports import build_auth  # noqa: PLC0415  few servers need it, and it is slow to load

    return build_auth(settings, settings.oauth)


async def _skip_validation(*_: object) -> None:
    """Replace the SDK's own validation of results with nothing."""


def _package_version() -> str:
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return "0"
