"""Send an answer, whole or in frames, and go wrong on the way where that is wanted."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from random import Random

from msgspec import Struct

from dragoman.http.exchange import Exchange
from dragoman.http.message import status_line
from dragoman.simulator.faults import Fault

_HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n"
_BROKEN = b'data: {"broken": \n\n'
_JSON = {"content-type": "application/json"}
_ON_THE_WAY = frozenset({"reset", "cut", "eof", "stall", "stream-error", "drip", "bad-json"})
"""Faults of an answer that has begun."""


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


async def went_wrong_early(exchange: Exchange, fault: Fault | None) -> bool:
    """Do what a fault does before there is an answer; tell whether that was all."""
    if fault is None:
        return False
    match fault.name:
        case "reset" if fault.after == 0:
            exchange.abort()
        case "hang":
            await exchange.wait_gone()
        case "html":
            await exchange.send(fault.status, {"content-type": "text/html"}, _HTML)
        case "empty":
            await exchange.send(200, _JSON)
        case "slow-headers":
            await asyncio.sleep(fault.delay)
            return False
        case _:
            return False
    return True


async def send_whole(exchange: Exchange, headers: Mapping[str, str], body: bytes, fault: Fault | None) -> None:
    """Send a whole body."""
    name = fault.name if fault is not None else ""
    if fault is None or name not in _ON_THE_WAY:
        await exchange.send(200, headers, body)
        return
    if name == "bad-json":
        await exchange.send(200, headers, body[: len(body) // 2])
        return
    if name == "reset":
        exchange.abort()
        return
    lines = "".join(f"{field}: {value}\r\n" for field, value in headers.items())
    exchange.raw(status_line(200) + f"{lines}content-length: {len(body)}\r\n\r\n".encode())
    if name == "drip":
        for byte in body:
            exchange.raw(bytes([byte]))
            await asyncio.sleep(fault.delay)
        exchange.ended = True
        return
    exchange.raw(body[: len(body) // 2])
    if name == "stall":
        await exchange.wait_gone()
    else:
        exchange.cut()


async def send_frames(  # noqa: PLR0913, PLR0917  what, to whom, how, and how it goes wrong
    exchange: Exchange,
    headers: Mapping[str, str],
    frames: Iterable[bytes],
    flow: Flow,
    fault: Fault | None,
    failure: bytes,
) -> None:
    """Send a stream; `failure` is the frame with which this vendor breaks one off."""
    exchange.start(200, headers)
    waiting = iter(frames)
    if fault is None or fault.name not in _ON_THE_WAY:
        await _send(exchange, waiting, flow)
        await exchange.end()
        return
    if fault.name == "drip":
        flow = Flow(delay=fault.delay, split=1)
        await _send(exchange, (bytes([byte]) for frame in waiting for byte in frame), flow)
        await exchange.end()
        return
    all_frames = list(waiting)
    before = all_frames[: min(fault.after, len(all_frames) - 1)]
    await _send(exchange, iter(before), flow)
    following = next(islice(all_frames, len(before), None), b"")
    match fault.name:
        case "reset":
            exchange.abort()
        case "cut":
            half = following[: len(following) // 2]
            exchange.raw(b"%x\r\n%b" % (len(following), half))
            exchange.cut()
        case "stall":
            await exchange.wait_gone()
        case "stream-error":
            await exchange.write(failure)
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
