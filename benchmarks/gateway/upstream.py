"""A server that answers as Gemini, OpenAI's Chat Completions and Anthropic do, at next to no cost.

`python -m benchmarks.gateway.upstream`. What it says was written before it was asked, but for the ticket of the
request, which it puts into its text. A stream is one write an event; with `/pace?SECONDS` there is a pause before each
from then on.
"""

import asyncio
import re
from typing import cast

from benchmarks.gateway.program import LOAD_CORE, pin
from benchmarks.gateway.traffic import TICKET, TICKET_DIGITS
from benchmarks.streams import STREAMS, WHOLE

EVENTS = 40
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_WANTS_STREAM = re.compile(rb'"stream": *true')
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_FIRST_WORDS = b"I read both tables"
"""What every reply says first, and the first piece of a stream; a ticket takes its place."""
_NO_TICKET = TICKET + b"0" * TICKET_DIGITS


def _make_sized(kind: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (kind, len(body), body)


def _pieces(dialect: str) -> list[bytes]:
    """Return the events of a stream as HTTP chunks, `EVENTS` of them, the last with the end."""
    make = STREAMS[dialect]
    others = len(make(1).chunks) - 1
    events = [_add_ticket(event) for event in make(EVENTS - others).chunks]
    chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
    return [*chunks[:-1], chunks[-1] + b"0\r\n\r\n"]


def _add_ticket(output: bytes) -> bytes:
    return output.replace(_FIRST_WORDS, _NO_TICKET, 1)


_WHOLE = {name: _make_sized(b"application/json; charset=UTF-8", _add_ticket(make())) for name, make in WHOLE.items()}
_PIECES = {name: _pieces(name) for name in STREAMS}


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
        """Answer when a request is complete; clients do not pipeline requests."""
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
            body = bytes(come)
            self._needed = 0
            come.clear()
            self._answer(body[: body.find(b"\r")].split(b" ")[1], body)

    def _answer(self, target: bytes, request: bytes) -> None:
        if target.startswith(b"/pace?"):
            Answering.pace = float(target.partition(b"?")[2])
            self._transport.write(_make_sized(b"text/plain", b"ok"))
            return
        at = request.rfind(TICKET)
        ticket = request[at : at + len(_NO_TICKET)] if at >= 0 else _NO_TICKET
        if target.endswith(b"/chat/completions"):
            self._say("chat", ticket, stream=_WANTS_STREAM.search(request) is not None)
        elif target.endswith(b"/messages"):
            self._say("messages", ticket, stream=_WANTS_STREAM.search(request) is not None)
        else:
            self._say("gemini", ticket, stream=b":streamGenerateContent" in target)

    def _say(self, dialect: str, ticket: bytes, *, stream: bool) -> None:
        if stream:
            self._transport.write(_STREAM_HEAD)
            self._loop.call_soon(self._next, _PIECES[dialect], ticket, 0)
        else:
            self._transport.write(_WHOLE[dialect].replace(_NO_TICKET, ticket, 1))

    def _next(self, pieces: list[bytes], ticket: bytes, at: int) -> None:
        self._transport.write(pieces[at].replace(_NO_TICKET, ticket, 1) if at < 4 else pieces[at])
        if at + 1 < len(pieces):
            if Answering.pace:
                self._loop.call_later(Answering.pace, self._next, pieces, ticket, at + 1)
            else:
                self._loop.call_soon(self._next, pieces, ticket, at + 1)


async def main() -> None:
    """Listen until the end."""
    pin(LOAD_CORE)
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=1024)
    print(f"upstream on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
