"""Serve recorded exchanges: a request that was recorded gets the reply that was recorded.

A recording is one JSON object a line, with `url_path`, `request`, `status` and `response` or `sse`. A request matches
when its path and its JSON are the same, whatever the order of members and white space. Of several recordings of one
request each is served in turn, and the last again and again.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.simulator.api import Told

_SSE = "text/event-stream"


class Recording(Struct):
    """One exchange."""

    url_path: str
    request: Raw
    status: int = 200
    response: Raw = Raw()
    sse: str | None = None
    response_headers: dict[str, str] = {}


class Recordings:
    """Exchanges, found by their request."""

    def __init__(self) -> None:
        self._known: defaultdict[tuple[str, str], list[Told]] = defaultdict(list)

    @classmethod
    def read(cls, path: Path) -> "Recordings":
        """Read a file; raises `ValueError` naming the first line that is no exchange."""
        recordings = cls()
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                recordings.add(msgspec.json.decode(line, type=Recording))
            except msgspec.MsgspecError as error:
                raise ValueError(f"{path.name}, line {number} is not a recorded exchange: {error}") from None
        return recordings

    def add(self, recording: Recording) -> None:
        """Take one more exchange."""
        body = recording.sse.encode() if recording.sse is not None else bytes(recording.response)
        kind = _SSE if recording.sse is not None else "application/json"
        headers = {"content-type": recording.response_headers.get("content-type", kind)}
        key = (_bare(recording.url_path), _same(json.loads(bytes(recording.request))))
        self._known[key].append(Told(recording.status, headers, body))

    def find(self, target: str, body: bytes) -> Told | None:
        """Return the reply to a request that was recorded."""
        try:
            key = (_bare(target), _same(json.loads(body)))
        except ValueError:
            return None
        told = self._known.get(key)
        if not told:
            return None
        return told.pop(0) if len(told) > 1 else told[0]


def _bare(target: str) -> str:
    """Return the path without its query: keys stand there."""
    return target.partition("?")[0]


def _same(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
