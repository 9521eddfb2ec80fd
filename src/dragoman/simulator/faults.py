"""Ways to go wrong on purpose.

A fault is written `NAME` or `NAME,option=value,…`: in the header `x-dragoman-fault`, behind a `~` at the end of the
model's name, or as an option of the whole simulator. Names are a status (`429`) or one of `NAMES`. With `times=2` only
the first two requests that name it go wrong, so that a retry can be seen to succeed.
"""

import re
from typing import Any, Literal

from msgspec import Struct

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
    "status": "a status from 400 to 599, written as its number; `retry-after=SECONDS` tells when to come back",
    "reset": "the connection is reset before an answer; with `after=N`, behind so many frames of a stream",
    "cut": "the connection ends in the middle of a chunk, behind `after=N` frames",
    "eof": "the stream ends cleanly, but before its last event",
    "hang": "nothing is ever answered",
    "stall": "the stream falls silent behind `after=N` frames",
    "drip": "every byte comes by itself, `delay=SECONDS` apart",
    "bad-json": "the answer, or a frame of the stream, is not JSON",
    "html": "a proxy's error page, with status 502 or `status=N`",
    "empty": "status 200 and nothing else",
    "no-candidates": "an answer without an answer in it",
    "blocked": "the prompt is refused by a filter",
    "malformed-call": "the model calls a tool in a way that cannot be read",
    "stream-error": "the stream breaks off with the vendor's own error, behind `after=N` frames",
    "slow-headers": "the first byte comes `delay=SECONDS` late",
}
_WRITTEN = re.compile(r"(?P<name>\d{3}|[a-z-]+)(?P<options>(?:,[a-z-]+=[\w.]+)*)")


class Fault(Struct, frozen=True, kw_only=True):
    """One way to go wrong."""

    name: FaultName
    status: int = 0
    after: int = 1
    delay: float = 0.05
    retry_after: float | None = None
    times: int | None = None
    written: str = ""


class UnknownFault(ValueError):  # noqa: N818  it says what the fault is
    """Nobody knows this fault."""


def read_fault(written: str) -> Fault:
    """Read a fault; raise `UnknownFault` for what is none."""
    found = _WRITTEN.fullmatch(written.strip())
    if found is None:
        raise UnknownFault(f"not a fault: {written!r}")
    name = found["name"]
    options = dict(option.split("=", 1) for option in found["options"].split(",") if option)
    try:
        fault = _with_options(name, options, written.strip())
    except ValueError as error:
        raise UnknownFault(f"not a fault: {written!r}: {error}") from None
    if options:
        raise UnknownFault(f"not an option of a fault: {', '.join(options)}")
    if fault.name not in NAMES or (fault.name == "status" and not 400 <= fault.status <= 599):
        raise UnknownFault(f"not a fault: {written!r}; known are a status from 400 to 599, {', '.join(NAMES)}")
    return fault


def _with_options(name: str, options: dict[str, str], written: str) -> Fault:
    status = int(options.pop("status", "502" if name == "html" else "0"))
    known: Any = "status" if name.isdecimal() else name
    return Fault(
        name=known,
        status=int(name) if name.isdecimal() else status,
        after=int(options.pop("after", "1")),
        delay=float(options.pop("delay", "0.05")),
        retry_after=float(options.pop("retry-after")) if "retry-after" in options else None,
        times=int(options.pop("times")) if "times" in options else None,
        written=written,
    )


def split_model(model: str) -> tuple[str, str]:
    """Split a model's name from the fault behind its last `~`; "" for none."""
    name, mark, fault = model.rpartition("~")
    return (name, fault) if mark else (model, "")
