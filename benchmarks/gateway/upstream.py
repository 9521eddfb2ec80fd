"""A server that answers as Gemini does, at next to no cost: what it says was written before it was asked.

`python -m benchmarks.gateway.upstream`. A path that streams gets events, one write each; with `?pace=SECONDS` of
`/pace` there is a pause before each from then on.
"""

import asyncio
import re
from typing import cast

from benchmarks.gateway.program import LOAD_CORE, pin
from benchmarks.streams import gemini, gemini_whole

EVENTS = 40
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def _sized(kind: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (kind, len(body), body)


_WHOLE = _sized(b"application/json; charset=UTF-8", gemini_whole())
_CHUNKS = [b"%x\r\n%b\r\n" % (len(event), event) for event in gemini(EVENTS - 2).chunks]
_PIECES = [*_CHUNKS[:-1], _CHUNKS[-1] + b"0\r\n\r\n"]


class Answering(asyncio.Protocol):
    """A client of the upstream."""

    pace = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self._come = bytearray()
        self._needed = 0

    def data_received(self, data: bytes) -> None:
        """Answer when a request is whole; nobody sends the next before."""
        come = self._come
        come += data
        if len(come) < self._needed:
            return
        end = come.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(come, 0, end)
        self._needed = end + 4 + (int(length[1]) if length else 0)
        if len(come) >= self._needed:
            target = bytes(come[: come.find(b"\r")]).split(b" ")[1]
            self._needed = 0
            come.clear()
            self._answer(target)

    def _answer(self, target: bytes) -> None:
        if target.startswith(b"/pace?"):
            Answering.pace = float(target.partition(b"?")[2])
            self._transport.write(_sized(b"text/plain", b"ok"))
        elif b":streamGenerateContent" in target:
            self._transport.write(_STREAM_HEAD)
            self._loop.call_soon(self._next, 0)
        else:
            self._transport.write(_WHOLE)

    def _next(self, at: int) -> None:
        self._transport.write(_PIECES[at])
        if at + 1 < len(_PIECES):
            if Answering.pace:
                self._loop.call_later(Answering.pace, self._next, at + 1)
            else:
                self._loop.call_soon(self._next, at + 1)


async def main() -> None:
    """Listen until the end."""
    pin(LOAD_CORE)
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=1024)
    print(f"upstream on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
