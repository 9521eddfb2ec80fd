"""Send an answer, whole or in frames, and go wrong on the way where that is wanted."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random

from msgspec import Struct

from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON
from dragoman.simulator.api import Told
from dragoman.simulator.faults import Fault

_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n"
_BROKEN = b'data: {"broken": \n\n'
_ON_THE_WAY = frozenset({"reset", "cut", "eof", "stall", "stream-error", "drip", "bad-json"})
"""Faults of an answer that has begun."""
_BLANK_LINE = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")

Failure = Callable[[int], bytes]
"""Makes the last frames of a stream that breaks off in the vendor's own way, behind so many others."""


def frames_of(stream: bytes) -> list[bytes]:
    """Cut a stream of events behind its blank lines."""
    return [frame for frame in _BLANK_LINE.split(stream) if frame]


class Flow(Struct, frozen=True, kw_only=True):
    """How bytes leave: `delay` seconds between frames, in pieces of at most `split` bytes (0: a frame at once)."""

    delay: float = 0.0
    split: int = 0
    seed: int = 0

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Cut bytes anywhere, also within a character."""
        if not self.split:
            yield data
            return
        chance = Random(self.seed + len(data))  # noqa: S311  it shall come out the same each time
        at = 0
        while at < len(data):
            length = chance.randint(1, self.split)
            yield data[at : at + length]
            at += length


def changed_frames(frames: Iterable[bytes], change: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Change the data of every frame that holds an object; nothing left of one means that it is not sent."""
    for frame in frames:
        head, mark, data = frame.partition(b"data: ")
        if not data.startswith(b"{"):
            yield frame
            continue
        end = data[len(data.rstrip()) :]
        changed = change(data.rstrip())
        if changed:
            yield head + mark + changed + end


def early_status(fault: Fault) -> int | None:
    """Return the status of a fault that answers before there is an answer, 0 for no answer; None for other faults."""
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


async def go_wrong_early(exchange: Exchange, fault: Fault) -> None:
    """Do what a fault does before there is an answer."""
    match fault.name:
        case "reset":
            exchange.abort()
        case "hang":
            await exchange.wait_gone()
        case "html":
            await exchange.send(fault.status, {"content-type": "text/html"}, _HTML)
        case _:
            await exchange.send(200, JSON)


async def send_whole(exchange: Exchange, told: Told, fault: Fault | None) -> None:
    """Send a whole reply."""
    body, half = told.body, told.body[: len(told.body) // 2]
    match fault.name if fault is not None else "":
        case "bad-json":
            await exchange.send(told.status, told.headers, half)
        case "reset":
            exchange.abort()
        case "drip":
            exchange.start(told.status, told.headers, len(body))
            await _send(exchange, (bytes([byte]) for byte in body), _drip(fault))
            await exchange.end()
        case "stall":
            exchange.start(told.status, told.headers, len(body))
            await exchange.write(half)
            await exchange.wait_gone()
        case "cut" | "eof":
            exchange.start(told.status, told.headers, len(body))
            await exchange.write(half)
            exchange.cut()
        case _:
            await exchange.send(told.status, told.headers, body)


def _drip(fault: Fault | None) -> Flow:
    return Flow(delay=fault.delay if fault is not None else 0.0)


async def send_frames(  # noqa: PLR0913, PLR0917  what, to whom, how, and how it goes wrong
    exchange: Exchange,
    headers: Mapping[str, str],
    frames: Iterable[bytes],
    flow: Flow,
    fault: Fault | None,
    failure: Failure,
) -> None:
    """Send a stream."""
    exchange.start(200, headers)
    waiting = iter(frames)
    if fault is None or fault.name not in _ON_THE_WAY:
        await _send(exchange, waiting, flow)
        await exchange.end()
        return
    if fault.name == "drip":
        await _send(exchange, (bytes([byte]) for frame in waiting for byte in frame), _drip(fault))
        await exchange.end()
        return
    all_frames = list(waiting)
    before = all_frames[: min(fault.after, len(all_frames) - 1)]
    await _send(exchange, iter(before), flow)
    following = b"".join(all_frames[len(before) : len(before) + 1])
    match fault.name:
        case "reset":
            exchange.abort()
        case "cut":
            exchange.cut_within(following)
        case "stall":
            await exchange.wait_gone()
        case "stream-error":
            await exchange.write(failure(len(before)))
            await exchange.end()
        case "bad-json":
            await exchange.write(_BROKEN)
            await _send(exchange, iter(all_frames[len(before) :]), flow)
            await exchange.end()
        case _:
            await exchange.end()


async def _send(exchange: Exchange, frames: Iterator[bytes], flow: Flow) -> None:
    for frame in frames:
        for piece in flow.pieces(frame):
            await exchange.write(piece)
            if flow.split:
                # Let each piece leave by itself: written together they would arrive together.
                await asyncio.sleep(0)
        if flow.delay:
            await asyncio.sleep(flow.delay)
