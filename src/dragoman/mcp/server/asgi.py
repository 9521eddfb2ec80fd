"""The SDK's streamable HTTP behind our own HTTP server: one exchange becomes one call of an ASGI application.

Rules: a short answer goes out whole, a stream piece by piece as it comes. Who may come in has been decided before. When
the client hangs up the application hears of it and stops what it does for it; what it still says goes nowhere.
"""

import contextlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from dragoman.http.exchange import Exchange, Gone
from dragoman.http.message import JSON
from dragoman.mcp.server.caller import STATE, Caller
from dragoman.mcp.server.wellformed import refusal

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

_STREAM = "text/event-stream"


class _Sender:
    """Sends what the application says."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._status = 0
        self._headers: dict[str, str] = {}

    async def __call__(self, message: Message) -> None:
        with contextlib.suppress(Gone):
            await self._send(message)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            pairs = message.get("headers", ())
            # The server says itself how long an answer is.
            told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}
            self._headers = {name: value for name, value in told.items() if name != "content-length"}
            if self._headers.get("content-type", "").startswith(_STREAM):
                # A stream may have nothing to say for long: its client waits for the head.
                self._exchange.start(self._status, self._headers)
            return
        body = message.get("body", b"")
        goes_on = message.get("more_body", False)
        if not self._exchange.started:
            if not goes_on:
                await self._exchange.send(self._status, self._headers, body)
                return
            self._exchange.start(self._status, self._headers, first=body)
        elif goes_on:
            await self._exchange.write(body)
        else:
            await self._exchange.end(body)


async def answered(application: Application, exchange: Exchange, caller: Caller) -> None:
    """Let an application answer one request for a caller."""
    request = exchange.request
    refused = refusal(request.body) if request.method == "POST" else b""
    if refused:
        await exchange.send(400, JSON, refused)
        return
    path, _, query = request.target.partition("?")
    scope: Message = {
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
        STATE: caller,
    }
    waiting = [request.body]

    async def receive() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        await exchange.wait_gone()
        return {"type": "http.disconnect"}

    await application(scope, receive, _Sender(exchange))
