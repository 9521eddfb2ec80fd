"""Ways to go wrong on purpose.

A fault is written `NAME` or `NAME,option=value,…`: in the header `x-dragoman-fault`, behind a `~` at the end of the
model's name, or as an option of the whole simulator. Names are a status (`429`) or one of `NAMES`. With `times=2` only
the first two requests that name it go wrong, so that a retry can be seen to succeed.
"""

import math
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
    "reset": "the connection is reset behind `after=N` frames of a stream; at once with `after=0` or no stream",
    "cut": "the connection ends in the middle of a chunk, behind `after=N` frames; of a whole reply, half way",
    "eof": "the stream ends cleanly behind `after=N` frames, before its last event; of a whole reply half is missing",
    "hang": "nothing is ever answered",
    "stall": "the stream falls silent behind `after=N` frames, a whole reply half way",
    "drip": "every byte comes by itself, `delay=SECONDS` apart",
    "bad-json": "half a whole reply, or a frame of the stream behind `after=N` others that is not JSON",
    "html": "a proxy's error page, with status 502 or `status=N`",
    "empty": "status 200 and nothing else",
    "no-candidates": "an answer without an answer in it",
    "blocked": "the prompt is refused by a filter",
    "malformed-call": "the model calls a tool in a way that cannot be read",
    "stream-error": "the stream breaks off with the vendor's error behind `after=N` frames; no stream: status 500",
    "slow-headers": "the first byte comes `delay=SECONDS` late",
}
_OPTIONS = {
    "status": {"retry-after"},
    "reset": {"after"},
    "cut": {"after"},
    "eof": {"after"},
    "stall": {"after"},
    "stream-error": {"after"},
    "bad-json": {"after"},
    "drip": {"delay"},
    "slow-headers": {"delay"},
    "html": {"status"},
}
_EVERYWHERE = {"times"}
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
    number = found["name"] if found["name"].isdecimal() else ""
    name: Any = "status" if number else found["name"]
    if name not in NAMES or (name == "status" and not 400 <= int(number or 0) <= 599):
        raise UnknownFault(f"not a fault: {written!r}; known are a status from 400 to 599, {', '.join(NAMES)}")
    options = dict(option.split("=", 1) for option in found["options"].split(",") if option)
    unknown = options.keys() - _OPTIONS.get(name, set()) - _EVERYWHERE
    if unknown:
        raise UnknownFault(f"not an option of the fault {found['name']}: {', '.join(sorted(unknown))}")
    try:
        return Fault(
            name=name,
            status=int(number or options.get("status", "502" if name == "html" else "0")),
            after=int(options.get("after", "1")),
            delay=_seconds(options.get("delay", "0.05")),
            retry_after=_seconds(options["retry-after"]) if "retry-after" in options else None,
            times=int(options["times"]) if "times" in options else None,
            written=written.strip(),
        )
    except ValueError as error:
        raise UnknownFault(f"not a fault: {written!r}: {error}") from None


def _seconds(written: str) -> float:
    seconds = float(written)
    if not math.isfinite(seconds):
        raise ValueError(f"{written} is no time")
    return seconds


def split_model(model: str) -> tuple[str, str]:
    """Split a model's name from the fault behind its last `~`; "" for none."""
    name, mark, fault = model.rpartition("~")
    return (name, fault) if mark else (model, "")
