"""MCP over standard input and output: for a host that speaks the protocol, and for a plain pipe.

Rules: a client that greets is served by the SDK in the era it greets in. One that asks at once is answered at once, as
the last era with a greeting would. The end of the input ends nothing that was asked before: what is in flight is
finished and written, and only then the server stops. A line that is no message is answered with an error, and so is a
request whose id is none: the SDK takes it for a notification, and nobody would hear of it.
"""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
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
from pydantic import ValidationError

from dragoman.mcp.server.http import NO_ID, NOTIFICATIONS

_LONG_LIVED_METHODS = frozenset({"subscriptions/listen"})
"""Requests that are answered only when the client hangs up."""
_CANCELLED = "notifications/cancelled"
_Item = SessionMessage | Exception


class _Readable(Protocol):
    def __aiter__(self) -> AsyncIterator[_Item]: ...


class _Writable(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


class _PendingRequests:
    """Counts what is asked and not answered."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._changed = anyio.Event()

    def on_request(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest) and message.method not in _LONG_LIVED_METHODS:
            self._counts[repr(message.id)] += 1
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            # A request that its client gave up is never answered.
            self._remove((message.params or {}).get("requestId"))

    def on_response(self, message: Any) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._remove(message.id)

    async def wait_until_empty(self) -> None:
        """Return when everything is answered."""
        while self._counts.total():
            self._changed = anyio.Event()
            await self._changed.wait()

    def _remove(self, name: Any) -> None:
        key = repr(name)
        if self._counts[key] > 0:
            self._counts[key] -= 1
        self._changed.set()


async def serve_stdio(server: Server[Any]) -> None:
    """Serve standard input and output until the input ends and all is answered."""
    try:
        # The SDK's writer ends when its stream is closed.
        async with stdio_server() as (read, write), write:
            await serve_streams(server, read, write)
    except* BrokenPipeError:
        pass  # who read the answers has seen enough


async def serve_streams(server: Server[Any], read: _Readable, write: _Writable) -> None:
    """Serve one client over a pair of streams."""
    flight = _PendingRequests()
    to_server, from_client = anyio.create_memory_object_stream[_Item]()
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()
    lead: list[_Item] = []
    items = aiter(read)
    greets = await _detect_handshake(items, lead)

    async def read_on() -> None:
        async with to_server:
            for item in lead:
                await _forward(item, to_server, write, flight)
            async for item in items:
                await _forward(item, to_server, write, flight)
            await flight.wait_until_empty()

    async def write_on() -> None:
        async with from_server:
            async for item in from_server:
                await write.send(item)
                flight.on_response(item.message)

    async with server.lifespan(server) as state, anyio.create_task_group() as group:
        group.start_soon(read_on)
        group.start_soon(write_on)
        await (_serve_with_handshake if greets else _serve_without_handshake)(server, from_client, to_client, state)


async def _detect_handshake(items: AsyncIterator[_Item], buffered: list[_Item]) -> bool:
    """Read up to the first request into `lead`, and tell whether it speaks as the protocol wants it."""
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
        said = ErrorData(code=INVALID_REQUEST, message=NO_ID)
        await write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=said)))
    elif isinstance(item, SessionMessage):
        pending.on_request(item.message)
        await to_server.send(item)
    elif (refusal := _build_error(item)) is not None:
        await write.send(SessionMessage(refusal))


def _lacks_id(message: Any) -> bool:
    return isinstance(message, JSONRPCNotification) and not message.method.startswith(NOTIFICATIONS)


def _build_error(error: Exception) -> JSONRPCError | None:
    """Return what is said to a line that is no message; nothing is said to an empty one."""
    found = error.errors()[0] if isinstance(error, ValidationError) else None
    if found is not None and found["type"] != "json_invalid":
        said = ErrorData(code=INVALID_REQUEST, message="this is no message of JSON-RPC 2.0")
    elif found is not None and not str(found["input"]).strip():
        return None
    else:
        said = ErrorData(code=PARSE_ERROR, message="this line is no JSON")
    return JSONRPCError(jsonrpc="2.0", id=None, error=said)
