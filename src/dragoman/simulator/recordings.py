"""Replay recorded exchanges: a request that was recorded gets the recorded reply.

A recording is one JSON object per line, with `url_path`, `request`, `status`, and `response` (JSON), `sse` (a stream)
or `response_text`. A request matches if its path and its JSON are the same, regardless of the order of members and of
white space. Several recordings of one request are replayed in turn; the last one is then repeated.
"""

import json
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote

import msgspec
from msgspec import Raw, Struct

from dragoman.simulator.apis.api import HttpReply

SSE = "text/event-stream"
_TRANSPORT_HEADERS = frozenset({"connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"})
"""Headers about the transport of the recorded bytes, which do not apply to the replay."""


class RecordedExchange(Struct):
    """One recorded request and its reply."""

    url_path: str
    request: Raw
    status: int = 200
    response: Raw = Raw()
    sse: str | None = None
    response_text: str | None = None
    response_headers: dict[str, str] = {}


class Recordings:
    """Recorded exchanges, found by their request."""

    def __init__(self) -> None:
        self._replies: defaultdict[tuple[str, str], list[HttpReply]] = defaultdict(list)

    @classmethod
    def read(cls, path: Path) -> "Recordings":
        """Read a file; raises `ValueError` naming the first line that is not an exchange."""
        recordings = cls()
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                recordings.add(msgspec.json.decode(line, type=RecordedExchange))
            except msgspec.MsgspecError as error:
                raise ValueError(f"{path.name}, line {number} is not a recorded exchange: {error}") from None
        return recordings

    def add(self, recording: RecordedExchange) -> None:
        """Add an exchange."""
        text = recording.sse if recording.sse is not None else recording.response_text
        body = text.encode() if text is not None else bytes(recording.response)
        recorded = {name.lower(): value for name, value in recording.response_headers.items()}
        headers = {name: value for name, value in recorded.items() if name not in _TRANSPORT_HEADERS}
        headers.setdefault("content-type", SSE if recording.sse is not None else "application/json")
        key = (_strip_query(recording.url_path), _normalise_json(bytes(recording.request)))
        self._replies[key].append(HttpReply(recording.status, headers, body))

    def has(self, target: str, body: bytes) -> bool:
        """Return whether a request was recorded."""
        return bool(self._find_replies(target, body))

    def find(self, target: str, body: bytes) -> HttpReply | None:
        """Return the next reply to a recorded request, or None if it was not recorded."""
        replies = self._find_replies(target, body)
        if not replies:
            return None
        return replies.pop(0) if len(replies) > 1 else replies[0]

    def _find_replies(self, target: str, body: bytes) -> list[HttpReply]:
        try:
            return self._replies.get((_strip_query(target), _normalise_json(body)), [])
        except (ValueError, RecursionError):
            return []


def _strip_query(target: str) -> str:
    """Return the path without its query, which may contain keys."""
    return unquote(target.partition("?")[0])


def _normalise_json(body: bytes) -> str:
    return json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"))
