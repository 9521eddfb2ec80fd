"""One external server and the task that owns the connection to it.

In the revision in which a client must ask for it, changes of the tool list are subscribed to. Why a server is not
available is said in terms of the configuration, for whoever runs the gateway.
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
from dragoman.mcp.client.tool_list import Listed, Sieve, all_tools, words_of
from dragoman.mcp.client.transports import Ends, Murmur, opened
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
_MOST_DOUBLED = 16
_STEADY = 30.0
"""Seconds after which a connection counts as one that worked."""
_FAREWELL = 10.0
"""Seconds that ending a connection may take."""
_BREATH = 0.25
"""Seconds between two lists of tools, however often a server says that they have changed."""
_REFUSALS = 1.0
"""Seconds that refusals of calls have to come in before a forgotten connection is given up."""
_ENDED = "the connection ended"


async def listen(client: Client, changed: Callable[[], None]) -> None:
    """Call `changed` whenever the server says that its tools have changed."""
    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
        return
    wait = _FIRST_LISTEN_WAIT
    while True:
        try:
            async with client.listen(tools_list_changed=True) as news:
                changed()  # nobody has told of what was changed before
                async for _ in news:
                    wait = _FIRST_LISTEN_WAIT
                    changed()
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                return
            _LOG.debug("no news of tools: %s", error)
        except (SubscriptionLost, TimeoutError) as error:
            _LOG.debug("no more news of tools: %s", error)
        await asyncio.sleep(wait)
        wait = min(_LONGEST_LISTEN_WAIT, wait * 2)


class UnavailableError(Exception):
    """There is no connection to the server, or none any more."""


class Live(Struct, frozen=True):
    """A connection that works."""

    client: Client
    gone: "asyncio.Future[None]"
    """Done when it works no more."""


class ServerConnection:
    """A server, connected or about to be."""

    def __init__(
        self,
        name: str,
        settings: ToolServer,
        listed: Callable[[Listed], None],
        abilities: Abilities = NO_ABILITIES,
    ) -> None:
        self.name = name
        self._auth = abilities.auth or _signer(settings)
        self._abilities = abilities
        self.settings = settings
        self.protocol = ""
        self.server = ""
        self.error = ""
        self.failures = 0
        self.tried = asyncio.Event()
        """Set when the first try is over, well or not."""
        self._listed = listed
        self._told = ""
        self._murmur = Murmur(name, settings.secrets)
        self._sieve = Sieve()
        self._live: Live | None = None
        self._forgot: Live | None = None
        """The last connection that the server has forgotten."""
        self._opened = asyncio.Event()
        self._wake = asyncio.Event()
        self._stale = False
        self._closing = False
        self._restarting = False
        self._scope: anyio.CancelScope | None = None
        self._calls: set[asyncio.Task[types.CallToolResult]] = set()

    @property
    def connected(self) -> bool:
        """Tell whether calls can be made."""
        return self._live is not None

    async def run(self) -> None:
        """Keep the server connected until `close`: this is the owner's task."""
        while not self._closing:
            began = time.monotonic()
            # A server may fail in any way, and only itself.
            error = (await attempt_async(self._connection)).error or UnavailableError(_ENDED)
            self.tried.set()
            self._wake.clear()
            if self._closing:
                return
            lasted = time.monotonic() - began
            if self._restarting and lasted > _BREATH:
                self._restarting = False
                continue
            self._restarting = False
            self.failures = 1 if lasted > _STEADY else self.failures + 1
            self._note(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._wait()):
                    await self._woken()

    def _wait(self) -> float:
        """Return how long to wait before the next try: longer each time, and not the same for all."""
        longer = 2.0 ** min(self.failures - 1, _MOST_DOUBLED)
        return min(_LONGEST_WAIT, _FIRST_WAIT * longer) * random.uniform(0.75, 1.25)  # noqa: S311

    def close(self) -> None:
        """Let the owner come to its end, in order."""
        self._closing = True
        self._wake.set()
        if self._scope is not None and self._live is None:
            self._scope.cancel()  # nobody is there to say goodbye to
        elif self._scope is not None:
            self._scope.deadline = anyio.current_time() + _FAREWELL

    async def _woken(self) -> None:
        await self._wake.wait()
        self._wake.clear()

    async def _connection(self) -> None:
        """Connect, and stay as long as it lasts."""
        over = asyncio.Event()
        self._murmur.last, self._sieve = "", Sieve()
        deadline = anyio.current_time() + self.settings.connect
        ends = Ends(lambda: self._end(over), lambda: self._forgotten(over))
        with anyio.CancelScope(deadline=deadline) as self._scope:
            async with Client(
                opened(self.settings, ends, self._murmur, self._sieve.look_at, self._auth),
                mode=_MODES[self.settings.protocol],
                read_timeout_seconds=self.settings.connect,
                client_info=types.Implementation(name="dragoman", version=_version()),
                message_handler=self._heard,
                elicitation_callback=self._abilities.elicit,
                cache=None,
            ) as client:
                # What a server declares of its results is checked by us, where no schema can make the check run on.
                setattr(client.session, "validate_tool_result", _unchecked)  # noqa: B010  it is a method
                listed = await all_tools(client, self._sieve)
                self._scope.deadline = math.inf
                self._open(client, listed)
                try:
                    await self._attend(client, over)
                finally:
                    self._lose()
        if self._scope.cancelled_caught and not self._closing:
            raise TimeoutError

    def _forgotten(self, over: asyncio.Event) -> None:
        """Connect anew, at once, for the server has forgotten who we are."""
        if self._live is not None and not over.is_set():
            self._restarting = True
            self._forgot, self._live = self._live, None
            self._opened.clear()
            self._end(over)

    def _end(self, over: asyncio.Event) -> None:
        over.set()
        self._wake.set()

    def _open(self, client: Client, listed: Listed) -> None:
        self._live = Live(client, asyncio.get_running_loop().create_future())
        self.protocol = client.protocol_version
        info = client.server_info
        self.server = f"{info.name} {info.version}" if info is not None else ""
        self.error = self._told = ""
        self._stale = False
        self._listed(listed)
        self._opened.set()
        self.tried.set()
        _LOG.info("%s is connected: %d tools, %s", self.name, len(listed.tools), self.protocol)

    def _lose(self) -> None:
        live, self._live = self._live, None
        self._opened.clear()
        self.error = _ENDED
        if live is not None and not live.gone.done():
            live.gone.set_result(None)

    async def _attend(self, client: Client, over: asyncio.Event) -> None:
        """Wait for the end, and list tools anew when they have changed."""
        async with TaskSet() as background:
            background.start(listen(client, self._changed), f"tool list of {self.name}")
            while not (self._closing or over.is_set()):
                if self._stale:
                    self._stale = False
                    await self._relist(client)
                    await asyncio.sleep(_BREATH)
                else:
                    await self._woken()
            if self._restarting and self._calls:
                # Calls that the server has refused for this are about to hear of it, and are made again.
                await asyncio.wait(self._calls, timeout=_REFUSALS)

    async def _relist(self, client: Client) -> None:
        """Take in what there is now; a list that does not come changes nothing."""
        try:
            listed = await all_tools(client, self._sieve)
        except (MCPError, ValidationError) as error:
            if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
                raise
            _LOG.warning("%s does not list its tools anew: %s", self.name, words_of(error, self.settings))
        else:
            self._listed(listed)

    def _changed(self) -> None:
        self._stale = True
        self._wake.set()

    async def _heard(self, message: Any) -> None:
        match message:
            case types.ToolListChangedNotification():
                self._changed()
            case types.LoggingMessageNotification(params=params):
                _LOG.debug("%s: %s", self.name, self._murmur.hidden(str(params.data))[:1000])
            case Exception():
                _LOG.debug("%s sent what is no message: %s", self.name, type(message).__name__)
            case _:
                pass

    def _note(self, error: BaseException) -> None:
        words = self._murmur.hidden(words_of(error, self.settings))
        said = f"; it said: {self._murmur.last}" if self.settings.command and self._murmur.last else ""
        # A server that stays away is told of once.
        level = logging.DEBUG if self._told == words + said else logging.WARNING
        self.error = self._told = words + said
        _LOG.log(level, "%s is not available: %s", self.name, self.error)

    async def call(self, tool: str, arguments: Any, report: ProgressFnT | None = None) -> types.CallToolResult:
        """Run a tool; whatever becomes of the connection is an `UnavailableError`."""
        live = self._current()
        try:
            return await self._called(live, tool, arguments, report)
        except MCPError as error:
            if self._forgot is not live or error.code == types.CONNECTION_CLOSED:
                raise
        # The server had forgotten who we are, so it has not run the call: that may be made again.
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.connect):
                await self._opened.wait()
        return await self._called(self._current(), tool, arguments, report)

    def _current(self) -> Live:
        if self._live is None:
            raise UnavailableError(self.error or "it is not connected yet")
        return self._live

    async def _called(self, live: Live, tool: str, arguments: Any, report: ProgressFnT | None) -> types.CallToolResult:
        seconds = self.settings.timeout + 1  # whoever runs the call is first to end it
        task = start_task(live.client.call_tool(tool, arguments, seconds, report), f"call of {tool}")
        self._calls.add(task)
        task.add_done_callback(self._settled)
        try:
            await asyncio.wait({task, live.gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()  # the server is told, too
        if task.done() and not task.cancelled():
            return task.result()
        raise UnavailableError("it ended while the call ran, and may or may not have done what was asked")

    def _settled(self, call: "asyncio.Task[types.CallToolResult]") -> None:
        self._calls.discard(call)
        # Nobody may wait for it any more: whoever did was told that the connection ended.
        if not call.cancelled() and (error := call.exception()) is not None:
            _LOG.debug("%s: %s failed: %s", self.name, call.get_name(), type(error).__name__)


def _signer(settings: ToolServer) -> httpx2.Auth | None:
    if settings.oauth is None:
        return None
    from dragoman.mcp.client.transports import signer  # noqa: PLC0415  few servers need it, and it is slow to load

    return signer(settings, settings.oauth)


async def _unchecked(*_: object) -> None:
    """Do without the SDK's own check."""


def _version() -> str:
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return "0"
