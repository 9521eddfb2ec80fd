"""Recorded replies of the real vendors, served by an upstream and requested through the gateway in any dialect."""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx2

from conformance.comparison import build_expected, same_meaning, same_reading
from conformance.recordings import Recording, replies
from dragoman.config import Config, RetriesTable, ServerTable, UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.server.runner import running
from oracles import Reading, read_stream, read_whole
from oracles.reading import finish_after

KINDS = {"chat": "openai", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}
_TEXTS = {"chat", "responses"}
_ASKED = [{"role": "user", "content": "hello"}]
_BODIES: dict[str, dict[str, Any]] = {
    "chat": {"messages": _ASKED},
    "responses": {"input": "hello", "store": False},
    "messages": {"messages": _ASKED, "max_tokens": 100},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
}
_PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_WORDS = re.compile(rb'"(?:type|finish_reason|finishReason|stop_reason|reason)":\s*"(\w+)"')
_WRAPPED = "codeassist/"
"""Replies in Code Assist's envelope are unwrapped."""
_BEHIND = re.compile(rb'data: \[DONE\]\s*|event: ping\ndata: {"type":"ping","cost":"0"}\s*')
"""What compatible hosts say behind the last event of Responses."""


class Replay:
    """A gateway, and an upstream behind it that sends the prepared reply."""

    def __init__(self, base_url: str, http: httpx2.Client, lay: list[Recording]) -> None:
        self._base_url = base_url
        self._http = http
        self._lay = lay

    def ask(self, recording: Recording, source: str, client: str) -> httpx2.Response:
        """Replay a recording from an upstream of the dialect `source` to a client of the same or another dialect."""
        self._lay[:] = [recording]
        model = f"{source}/recorded"
        if client == "gemini":
            verb = "streamGenerateContent?alt=sse" if recording.streamed else "generateContent"
            return self._http.post(f"{self._base_url}/v1beta/models/{model}:{verb}", json=_BODIES[client])
        asked = {"model": model, "stream": recording.streamed, **_BODIES[client]}
        if client == "chat" and recording.streamed:
            asked["stream_options"] = {"include_usage": True}
        return self._http.post(f"{self._base_url}{_PATHS[client]}", json=asked)


@contextmanager
def run_replay() -> Generator[Replay]:
    """Run both."""
    lay: list[Recording] = []

    async def say(exchange: Exchange) -> None:
        kind = "text/event-stream" if lay[0].streamed and lay[0].body[:1] not in (b"[", b"{") else "application/json"
        await exchange.send(200, {"content-type": kind}, lay[0].body)

    with run_in_thread(lambda: listen(say, grace=0.1), "replay") as server:
        base = {"openai": f"{server.base_url}/v1", "openai-responses": f"{server.base_url}/v1"}
        upstreams = {
            dialect: UpstreamTable(kind=kind, base_url=base.get(kind, server.base_url), api_key="k")
            for dialect, kind in KINDS.items()
        }
        table = ServerTable(listen="127.0.0.1:0", retries=RetriesTable(most=0))
        config = Config(server=table, keys=(), upstreams=upstreams, models={})
        with run_in_thread(lambda: running(config, grace=0.5), "gateway") as gateway, httpx2.Client(timeout=30) as http:
            yield Replay(gateway.base_url, http, lay)


def own_reading(recording: Recording, dialect: str) -> Reading:
    """Return what the vendor's own SDK makes of a recording."""
    own = (read_stream if recording.streamed else read_whole)(dialect, recording.body, strict=False)
    if own.finish or own.problem:
        return own
    # Some compatible hosts never say why they end: then they have simply come to it.
    return replace(own, finish=finish_after("stop", calls=bool(own.calls), refusal=bool(own.refusal)))


def differences(replay: Replay, recording: Recording, source: str, client: str, own: Reading) -> Iterator[str]:
    """Return the differences between a recording and what a client of another dialect sees."""
    reply = replay.ask(recording, source, client)
    expected = build_expected(own, client, streamed=recording.streamed)
    got = _read(client, reply, expected, streamed=recording.streamed)
    return same_meaning(expected, got, exact={source, client} <= _TEXTS)


def _read(client: str, result: httpx2.Response, expected: Reading, *, streamed: bool) -> Reading:
    if result.status_code != 200:
        return Reading(problem=f"{result.status_code} {result.text}")
    if not streamed:
        return read_whole(client, result.content)
    free_form = client == "chat" and any(call.form == "text" for call in expected.calls)
    return read_stream(client, result.content, strict=not free_form)


def sample(dialect: str, most: int) -> list[Recording]:
    """Return recordings of distinct shapes: the smallest of each, evenly over all."""
    by_shape: dict[tuple[bool, frozenset[bytes]], Recording] = {}
    for recording in sorted(replies(dialect), key=lambda one: len(one.body)):
        by_shape.setdefault((recording.streamed, frozenset(_WORDS.findall(recording.body))), recording)
    found = list(by_shape.values())
    return found[:: max(1, len(found) // most)][:most]


def find_passing_differences(replay: Replay, recording: Recording, dialect: str, own: Reading) -> Iterator[str]:
    """Return the differences between a recording and the bytes that a client of the vendor's own dialect gets.

    What a host says behind the end of a reply is not passed on, and no error is passed on as a success.
    """
    reply = replay.ask(recording, dialect, dialect)
    got = _read(dialect, reply, own, streamed=recording.streamed)
    if own.problem:
        if not got.problem:
            yield f"a success: {reply.status_code} {reply.text[-200:]}"
    elif recording.id.startswith(_WRAPPED):
        yield from same_reading(own, got, exact=False)
    elif reply.status_code != 200 or not reply.content:
        yield f"an error: {reply.status_code} {reply.text[-200:]}"
    elif reply.content != recording.body:
        behind = recording.body.removeprefix(reply.content)
        if behind == recording.body or _BEHIND.fullmatch(behind) is None:
            yield f"other bytes: {reply.text[-200:]}"
