"""Serve MCP over HTTP, and over standard input and output for MCP hosts and for a plain pipe.

HTTP: the SDK's streamable HTTP is served through the gateway's HTTP server; the first request starts it, and it is
stopped with the gateway. One HTTP exchange becomes one call of an ASGI application. A body that is not a JSON-RPC
message is rejected here, with a clear error.

Standard input: a client that starts with a handshake, or with the envelope of a later revision, is served by the SDK in
that revision. A client that sends a request at once is answered at once, as in the last revision with a handshake. When
the input ends, pending requests are still answered, and only then the server stops. A line that is not a message is
answered with an error. So is a request with an invalid id, because the SDK takes it for a notification and would never
answer.
"""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Protocol

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.runner import serve_connection, serve_dual_era_loop
from mcp.server.stdio import stdio_server
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp.types.version import LATEST_HANDSHAKE_VERSION
from msgspec import Raw, Struct
from pydantic import ValidationError

from dragoman.http.exchange import ClientDisconnected, Exchange
from dragoman.http.message import JSON_HEADERS
from dragoman.mcp.server.service import CALLER_KEY, ToolCaller
from dragoman.tasks import start_task

_NOTIFICATIONS = "notifications/"
"""The prefix of notification methods; every other method is a request."""
_NO_ID = "a request needs an id that is a string or an integer"
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
    if message.method and not message.method.startswith(_NOTIFICATIONS) and not _ID.fullmatch(bytes(message.id)):
        return _NO_ID
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


_LONG_LIVED_METHODS = frozenset({"subscriptions/listen"})
"""Requests that are answered only when the client disconnects."""
_CANCELLED = "notifications/cancelled"
_Item = SessionMessage | Exception


class _Readable(Protocol):
    def __aiter__(self) -> AsyncIterator[_Item]: ...


class _Writable(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


class _PendingRequests:
    """Counts the requests that have no response yet."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._changed = anyio.Event()

    def on_request(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest) and message.method not in _LONG_LIVED_METHODS:
            self._counts[repr(message.id)] += 1
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            # A request that its client has cancelled is never answered.
            self._remove((message.params or {}).get("requestId"))

    def on_response(self, message: Any) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._remove(message.id)

    async def wait_until_empty(self) -> None:
        """Wait until every request has a response."""
        while self._counts.total():
            self._changed = anyio.Event()
            await self._changed.wait()

    def _remove(self, name: Any) -> None:
        key = repr(name)
        if self._counts[key] > 0:
            self._counts[key] -= 1
        self._changed.set()


async def serve_stdio(server: Server[Any]) -> None:
    """Serve standard input and output until the input ends and every request is answered."""
    try:
        # The SDK's writer ends when its stream is closed.
        async with stdio_server() as (read, write), write:
            await serve_streams(server, read, write)
    except* BrokenPipeError:
        pass  # the reader has closed the pipe


async def serve_streams(server: Server[Any], read: _Readable, write: _Writable) -> None:
    """Serve one client over a pair of streams."""
    pending = _PendingRequests()
    to_server, from_client = anyio.create_memory_object_stream[_Item]()
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()
    buffered: list[_Item] = []
    items = aiter(read)
    has_handshake = await _detect_handshake(items, buffered)

    async def read_all() -> None:
        async with to_server:
            for item in buffered:
                await _forward(item, to_server, write, pending)
            async for item in items:
                await _forward(item, to_server, write, pending)
            await pending.wait_until_empty()

    async def write_all() -> None:
        async with from_server:
            async for item in from_server:
                await write.send(item)
                pending.on_response(item.message)

    async with server.lifespan(server) as state, anyio.create_task_group() as group:
        group.start_soon(read_all)
        group.start_soon(write_all)
        serve = _serve_with_handshake if has_handshake else _serve_without_handshake
        await serve(server, from_client, to_client, state)


async def _detect_handshake(items: AsyncIterator[_Item], buffered: list[_Item]) -> bool:
    """Read into `buffered` up to the first request; return whether it is a handshake or has the protocol's envelope."""
    async for item in items:
        buffered.append(item)
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
            meta = (item.message.params or {}).get("_meta")
            enveloped = isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
            return enveloped or item.message.method == "initialize"
    return False


async def _serve_with_handshake(
    server: Server[Any],
    read: MemoryObjectReceiveStream[_Item],
    write: MemoryObjectSendStream[SessionMessage],
    state: Any,
) -> None:
    options = server.create_initialization_options()
    await serve_dual_era_loop(server, read, write, lifespan_state=state, init_options=options)


async def _serve_without_handshake(
    server: Server[Any],
    read: MemoryObjectReceiveStream[_Item],
    write: MemoryObjectSendStream[SessionMessage],
    state: Any,
) -> None:
    async with write:
        dispatcher = JSONRPCDispatcher(read, write, inline_methods=frozenset({"initialize"}))
        connection = Connection.from_envelope(LATEST_HANDSHAKE_VERSION, None, None, outbound=dispatcher)
        await serve_connection(server, dispatcher, connection=connection, lifespan_state=state)


async def _forward(
    item: _Item, to_server: MemoryObjectSendStream[_Item], write: _Writable, pending: _PendingRequests
) -> None:
    if isinstance(item, SessionMessage) and _lacks_id(item.message):
        error = ErrorData(code=INVALID_REQUEST, message=_NO_ID)
        await write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=error)))
    elif isinstance(item, SessionMessage):
        pending.on_request(item.message)
        await to_server.send(item)
    elif (refusal := _build_error(item)) is not None:
        await write.send(SessionMessage(refusal))


def _lacks_id(message: Any) -> bool:
    return isinstance(message, JSONRPCNotification) and not message.method.startswith(_NOTIFICATIONS)


def _build_error(error: Exception) -> JSONRPCError | None:
    """Return the error for a line that is not a message; None for an empty line."""
    found = error.errors()[0] if isinstance(error, ValidationError) else None
    if found is not None and found["type"] != "json_invalid":
        data = ErrorData(code=INVALID_REQUEST, message=_NO_MESSAGE)
    elif found is not None and not str(found["input"]).strip():
        return None
    else:
        data = ErrorData(code=PARSE_ERROR, message="this line is not JSON")
    return JSONRPCError(jsonrpc="2.0", id=None, error=data)
