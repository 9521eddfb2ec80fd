"""Faults: deliberate failures of a reply, and sending a reply with or without one.

A fault is written `NAME` or `NAME,option=value,…`: in the header `x-dragoman-fault`, after a `~` at the end of the
model's name, or as an option of the whole simulator. Names are a status (`429`) or one of `NAMES`. With `times=2` only
the first two requests that name it fail, so that a test can see a retry succeed.
"""

import asyncio
import math
import re
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, Literal

from msgspec import Struct

from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON_HEADERS
from dragoman.simulator.apis.api import HttpReply

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with a timeout of zero: closing such a socket sends a reset."""
FaultName = Literal[
    "status",
    "reset",
    "cut",
    "eof",
    "hang",
    "stall",
    "drip",
    "bad-json",
    "html",
    "empty",
    "no-candidates",
    "blocked",
    "malformed-call",
    "stream-error",
    "slow-headers",
]
NAMES = {
    "status": "a status from 400 to 599, written as its number; `retry-after=SECONDS` sets the header",
    "reset": "the connection is reset after `after=N` events; at once with `after=0` or without a stream",
    "cut": "the connection closes within a chunk after `after=N` events; without a stream, half way through the body",
    "eof": "the stream ends cleanly after `after=N` events, before its last one; otherwise half of the body is missing",
    "hang": "no answer, ever",
    "stall": "the stream stops sending after `after=N` events; without a stream, half way through the body",
    "drip": "every byte is sent on its own, `delay=SECONDS` apart",
    "bad-json": "an event that is not JSON after `after=N` others; without a stream, half of the body",
    "html": "a proxy's error page, with status 502 or `status=N`",
    "empty": "status 200 with an empty body",
    "no-candidates": "a reply without a candidate or choice",
    "blocked": "a content filter blocks the prompt",
    "malformed-call": "the model's tool call cannot be parsed",
    "stream-error": "the stream ends with the vendor's error after `after=N` events; without a stream, status 500",
    "slow-headers": "the first byte is `delay=SECONDS` late",
}
_OPTIONS = {
    "status": {"retry-after"},
    "reset": {"after", "delay"},
    "cut": {"after", "delay"},
    "eof": {"after", "delay"},
    "stall": {"after"},
    "stream-error": {"after", "delay"},
    "bad-json": {"after", "delay"},
    "drip": {"delay"},
    "slow-headers": {"delay"},
    "html": {"status"},
}
_COMMON_OPTIONS = {"times"}
_FAULT_SYNTAX = re.compile(r"(?P<name>\d{3}|[a-z-]+)(?P<options>(?:,[a-z-]+=[\w.]+)*)")

_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n"
_BAD_JSON_EVENT = b'data: {"broken": \n\n'
_STREAM_FAULTS = frozenset({"reset", "cut", "eof", "stall", "stream-error", "drip", "bad-json"})
"""Faults of an answer that has begun."""
_BLANK_LINE = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")

RenderFailure = Callable[[int], bytes]
"""Returns the last frames of a stream that fails with the vendor's own error, given the number of frames before."""


class Fault(Struct, frozen=True, kw_only=True):
    """A deliberate failure."""

    name: FaultName
    status: int = 0
    after: int = 1
    delay: float = 0.05
    retry_after: float | None = None
    times: int | None = None
    written: str = ""


class UnknownFault(ValueError):  # noqa: N818  the name says what the fault is
    """A fault's name or option is not known."""


def read_fault(written: str) -> Fault:
    """Parse a fault; raises `UnknownFault` if its syntax, name or options are wrong."""
    found = _FAULT_SYNTAX.fullmatch(written.strip())
    if found is None:
        raise UnknownFault(f"not a fault: {written!r}; write NAME or NAME,option=value")
    number = found["name"] if found["name"].isdecimal() else ""
    name: Any = "status" if number else found["name"]
    if name not in NAMES or (name == "status" and not 400 <= int(number or 0) <= 599):
        raise UnknownFault(f"not a fault: {written!r}; use a status from 400 to 599 or one of {', '.join(NAMES)}")
    options = dict(option.split("=", 1) for option in found["options"].split(",") if option)
    unknown = options.keys() - _OPTIONS.get(name, set()) - _COMMON_OPTIONS
    if unknown:
        raise UnknownFault(f"the fault {found['name']} has no option {', '.join(sorted(unknown))}")
    try:
        return Fault(
            name=name,
            status=int(number or options.get("status", "502" if name == "html" else "0")),
            after=int(options.get("after", "1")),
            delay=_parse_seconds(options.get("delay", "0.05")),
            retry_after=_parse_seconds(options["retry-after"]) if "retry-after" in options else None,
            times=int(options["times"]) if "times" in options else None,
            written=written.strip(),
        )
    except ValueError as error:
        raise UnknownFault(f"not a fault: {written!r}: {error}") from None


def _parse_seconds(text: str) -> float:
    seconds = float(text)
    if not math.isfinite(seconds):
        raise ValueError(f"{text} is not a number of seconds")
    return seconds


def split_model(model: str) -> tuple[str, str]:
    """Split a model's name from the fault after its last `~`; "" if there is none."""
    name, mark, fault = model.rpartition("~")
    return (name, fault) if mark else (model, "")


def split_frames(stream: bytes) -> list[bytes]:
    """Split a stream of events after its blank lines."""
    return [frame for frame in _BLANK_LINE.split(stream) if frame]


class SendOptions(Struct, frozen=True, kw_only=True):
    """How bytes are sent: `delay` seconds between frames, in pieces of at most `split` bytes (0: each frame whole)."""

    delay: float = 0.0
    split: int = 0
    seed: int = 0

    def split_bytes(self, data: bytes) -> Iterator[bytes]:
        """Split bytes at arbitrary positions, even within a character."""
        if not self.split:
            yield data
            return
        chance = Random(self.seed + len(data))  # noqa: S311  reproducible on purpose
        at = 0
        while at < len(data):
            length = chance.randint(1, self.split)
            yield data[at : at + length]
            at += length


def transform_frames(frames: Iterable[bytes], transform: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Transform the data of every frame that holds a JSON object; a frame whose data becomes empty is not sent."""
    for frame in frames:
        head, mark, data = frame.partition(b"data: ")
        if not data.startswith(b"{"):
            yield frame
            continue
        end = data[len(data.rstrip()) :]
        changed = transform(data.rstrip())
        if changed:
            yield head + mark + changed + end


def find_early_status(fault: Fault) -> int | None:
    """Return the status of a fault that is sent instead of an answer (0 for none at all); None for other faults."""
    match fault.name:
        case "reset" if fault.after == 0:
            return 0
        case "hang":
            return 0
        case "html":
            return fault.status
        case "empty":
            return 200
        case _:
            return None


async def is_disconnected_within(exchange: Exchange, seconds: float) -> bool:
    """Wait that long, or until the client disconnects; return whether it did."""
    try:
        async with asyncio.timeout(seconds):
            await exchange.wait_disconnected()
    except TimeoutError:
        return False
    return True


def _reset(exchange: Exchange) -> None:
    """Reset the connection, as a server that crashes."""
    connection = exchange.transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    exchange.transport.abort()
    exchange.truncate()


def _truncate_within(exchange: Exchange, data: bytes) -> None:
    """Close the connection in the middle of a chunk."""
    size = b"%x\r\n" % len(data) if exchange.is_chunked else b""
    exchange.transport.write(size + data[: len(data) // 2])
    exchange.truncate()


async def send_early_fault(exchange: Exchange, fault: Fault) -> None:
    """Send what a fault sends instead of an answer."""
    match fault.name:
        case "reset":
            _reset(exchange)
        case "hang":
            await exchange.wait_disconnected()
        case "html":
            await exchange.send(fault.status, {"content-type": "text/html"}, _HTML)
        case _:
            await exchange.send(200, JSON_HEADERS)


async def send_reply(exchange: Exchange, reply: HttpReply, fault: Fault | None) -> None:
    """Send a whole reply, with the fault applied."""
    body, half = reply.body, reply.body[: len(reply.body) // 2]
    match fault.name if fault is not None else "":
        case "bad-json":
            await exchange.send(reply.status, reply.headers, half)
        case "reset":
            _reset(exchange)
        case "drip":
            exchange.start(reply.status, reply.headers, len(body))
            await _send(exchange, (bytes([byte]) for byte in body), _build_drip_options(fault))
            await exchange.end()
        case "stall":
            exchange.start(reply.status, reply.headers, len(body))
            await exchange.write(half)
            await exchange.wait_disconnected()
        case "cut" | "eof":
            exchange.start(reply.status, reply.headers, len(body))
            await exchange.write(half)
            exchange.truncate()
        case _:
            await exchange.send(reply.status, reply.headers, body)


def _build_drip_options(fault: Fault | None) -> SendOptions:
    return SendOptions(delay=fault.delay if fault is not None else 0.0)


async def send_frames(
    exchange: Exchange,
    frames: Iterable[bytes],
    options: SendOptions,
    fault: Fault | None,
    render_failure: RenderFailure,
) -> None:
    """Send the frames of a stream whose head was sent; for a fault, break it off or end it with `render_failure`."""
    waiting = iter(frames)
    if fault is None or fault.name not in _STREAM_FAULTS:
        await _send(exchange, waiting, options)
        await exchange.end()
        return
    if fault.name == "drip":
        await _send(exchange, (bytes([byte]) for frame in waiting for byte in frame), _build_drip_options(fault))
        await exchange.end()
        return
    all_frames = list(waiting)
    before = all_frames[: min(fault.after, len(all_frames) - 1)]
    await _send(exchange, iter(before), options)
    if before:
        # A real fault rarely comes in one packet with what precedes it.
        await asyncio.sleep(fault.delay)
    following = b"".join(all_frames[len(before) : len(before) + 1])
    match fault.name:
        case "reset":
            _reset(exchange)
        case "cut":
            _truncate_within(exchange, following)
        case "stall":
            await exchange.wait_disconnected()
        case "stream-error":
            await exchange.write(render_failure(len(before)))
            await exchange.end()
        case "bad-json":
            await exchange.write(_BAD_JSON_EVENT)
            await _send(exchange, iter(all_frames[len(before) :]), options)
            await exchange.end()
        case _:
            await exchange.end()


async def _send(exchange: Exchange, frames: Iterator[bytes], options: SendOptions) -> None:
    for frame in frames:
        for piece in options.split_bytes(frame):
            await exchange.write(piece)
            if options.split:
                # Send each piece by itself: pieces written together would arrive together.
                await asyncio.sleep(0)
        if options.delay:
            await asyncio.sleep(options.delay)
