"""Serve the SDK's streamable HTTP through the gateway's HTTP server; the first request starts it.

It is stopped with the gateway. One HTTP exchange becomes one call of an ASGI application. A body that is not a JSON-RPC
message is rejected here, with a clear error.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.types import INVALID_REQUEST
from msgspec import Raw, Struct

from dragoman.http.exchange import ClientDisconnected, Exchange
from dragoman.http.message import JSON_HEADERS
from dragoman.mcp.server.service import CALLER_KEY, ToolCaller
from dragoman.tasks import start_task

NOTIFICATIONS = "notifications/"
"""The prefix of notification methods; every other method is a request."""
NO_ID = "a request needs an id that is a string or an integer"
_NO_MESSAGE = "not a JSON-RPC 2.0 message"
_ID = re.compile(rb'".*"|-?[0-9]+', re.DOTALL)
_STREAM = "text/event-stream"


class _Message(Struct):
    jsonrpc: str = ""
    method: str = ""
    id: Raw = Raw(b"")
    params: dict[str, Raw] | None = None


def build_rejection(body: bytes) -> bytes:
    """Return the JSON-RPC error for an invalid body, or b"" for one that the SDK accepts or rejects clearly itself."""
    reason = _find_error(body)
    error = {"code": INVALID_REQUEST, "message": reason}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error}) if reason else b""


def _find_error(body: bytes) -> str:
    try:
        message = msgspec.json.decode(body, type=_Message)
    except msgspec.ValidationError as error:
        return f"{_NO_MESSAGE}: {error}"
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    if message.jsonrpc != "2.0":
        return f'{_NO_MESSAGE}: "jsonrpc" must be "2.0"'
    if message.method and not message.method.startswith(NOTIFICATIONS) and not _ID.fullmatch(bytes(message.id)):
        return NO_ID
    return ""


AsgiMessage = MutableMapping[str, Any]
AsgiApplication = Callable[
    [AsgiMessage, Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Awaitable[None]
]


class _Sender:
    """Forwards the ASGI application's response to the HTTP exchange."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._status = 0
        self._headers: dict[str, str] = {}

    async def __call__(self, message: AsgiMessage) -> None:
        with contextlib.suppress(ClientDisconnected):
            await self._send(message)

    async def _send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            pairs = message.get("headers", ())
            # The HTTP server sets the content length itself.
            decoded = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}
            self._headers = {name: value for name, value in decoded.items() if name != "content-length"}
            if self._headers.get("content-type", "").startswith(_STREAM):
                # A stream may be silent for long, and its client waits for the response headers: send them now.
                self._exchange.start(self._status, self._headers)
            return
        body = message.get("body", b"")
        has_more = message.get("more_body", False)
        if not self._exchange.started:
            if not has_more:
                await self._exchange.send(self._status, self._headers, body)
                return
            self._exchange.start(self._status, self._headers, first=body)
        elif has_more:
            await self._exchange.write(body)
        else:
            await self._exchange.end(body)


async def run_application(application: AsgiApplication, exchange: Exchange, caller: ToolCaller) -> None:
    """Let an ASGI application answer one request of a caller."""
    request = exchange.request
    rejection = build_rejection(request.body) if request.method == "POST" else b""
    if rejection:
        await exchange.send(400, JSON_HEADERS, rejection)
        return
    path, _, query = request.target.partition("?")
    scope: AsgiMessage = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": query.encode("latin-1", "replace"),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers],
        "client": None,
        "server": None,
        "state": {},
        CALLER_KEY: caller,
    }
    waiting = [request.body]

    async def receive() -> AsgiMessage:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        await exchange.wait_disconnected()
        return {"type": "http.disconnect"}

    await application(scope, receive, _Sender(exchange))


class HttpEndpoint:
    """Handles the HTTP requests of the MCP path."""

    def __init__(self, server: MCPServer[Any]) -> None:
        self._manager = server.session_manager
        self._ready: asyncio.Future[None] | None = None
        self._closing = asyncio.Event()
        self._manager_task: asyncio.Task[None] | None = None

    async def handle_request(self, exchange: Exchange, caller: ToolCaller) -> None:
        """Answer one request of an authorised caller."""
        if self._manager_task is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._manager_task = start_task(self._run_manager(self._ready), "mcp session manager")
        if self._ready is not None:
            await asyncio.shield(self._ready)
        await run_application(self._manager.handle_request, exchange, caller)

    async def close(self) -> None:
        """Stop the session manager."""
        self._closing.set()
        if self._manager_task is not None:
            await self._manager_task

    async def _run_manager(self, ready: asyncio.Future[None]) -> None:
        async with self._manager.run():
            ready.set_result(None)
            await self._closing.wait()
