"""The least a gateway on our server can be: it passes bytes on, with a client that can do nothing else.

`python -m benchmarks.gateway.forwarder UPSTREAM`. No deadlines, no limits, no back pressure, no errors: what a gateway
costs beyond this is what it does.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import cast

import httptools

from dragoman.http.exchange import Exchange
from dragoman.http.message import split_url
from dragoman.http.server import listen

_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream", "cache-control": "no-cache"}
_WANTS_STREAM = b'"stream":true'


class Wire(asyncio.Protocol):
    """A connection to the upstream."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def ask(self, request: bytes, take: Callable[[bytes], None]) -> asyncio.Future[None]:
        """Send a request; `take` gets the body as it comes."""
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_body = take
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)
        return self._done

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._done.set_result(None)


class Forwarder:
    """Passes every request on."""

    def __init__(self, upstream: str) -> None:
        self._origin, _ = split_url(upstream)
        self._idle: list[Wire] = []
        head = f"HTTP/1.1\r\nhost: {self._origin.authority}\r\ncontent-type: application/json\r\ncontent-length: "
        self._whole = f"POST /v1beta/models/m:generateContent {head}".encode()
        self._stream = f"POST /v1beta/models/m:streamGenerateContent?alt=sse {head}".encode()

    async def handle(self, exchange: Exchange) -> None:
        """Pass one request on, and its reply back."""
        body = exchange.request.body
        wire = self._idle.pop() if self._idle else await self._connected()
        size = b"%d\r\n\r\n" % len(body)
        if _WANTS_STREAM in body:
            exchange.start(200, _EVENTS)
            await wire.ask(self._stream + size + body, exchange.push)
            self._idle.append(wire)
            await exchange.end()
        else:
            pieces: list[bytes] = []
            await wire.ask(self._whole + size + body, pieces.append)
            self._idle.append(wire)
            await exchange.send(200, _JSON, b"".join(pieces))

    async def _connected(self) -> Wire:
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(Wire, self._origin.host, self._origin.port)
        return wire


async def main(upstream: str) -> None:
    """Listen until the end."""
    async with listen(Forwarder(upstream).handle) as server:
        print(f"forwarder on {server.base_url}", flush=True)  # noqa: T201
        await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(sys.argv[1]))
