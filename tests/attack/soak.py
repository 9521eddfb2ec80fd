# ruff: noqa: T201  # what it prints is its result
"""Send many mixed requests, some with faults, and report how memory grows: `python -m attack.soak --requests N`, or `make soak`.

Requests of all four dialects are passed through and translated, whole and streamed, with tools, stored and continued;
upstreams fail in every way, clients disconnect, and send what is rejected. The caches of the gateway are made small: at
their usual sizes they grow during all of the requests, by two hundred bytes for each, which would hide a leak. The exit code is 1 if the memory of the
gateway grows by more than the bar over the last half, if a request has no answer, or one that fits none of them.
"""

import argparse
import contextlib
import json
import random
import socket
import threading
import time
from collections import Counter
from http.client import HTTPConnection, HTTPException, HTTPResponse
from itertools import count

from attack.gateway import KEY, Gateway, run_gateway, run_simulator
from server import processes

MOST_GROWTH = 3.0
"""Percent by which the memory may grow over the last half of the requests."""
_PROGRAM = f"""
from dragoman.gateway import signatures
from dragoman.interpreter.translate import CACHES
signatures._MAX_CACHED = 300
CACHES.tools._max_bytes = CACHES.prefixes._max_bytes = 300_000
{processes.PROGRAM}
"""
_CLIENTS = 12
_SAMPLES = 40
_MODELS = ("gemini-3-flash", "claude-opus-4-8", "gpt-5.4")
_FAULTS = ("429", "500", "503", "reset,after=1", "cut,after=2", "eof,after=2", "bad-json,after=1", "html", "empty")
_FAULTS += ("no-candidates", "blocked", "malformed-call", "stream-error,after=2")
_LEFT = ("hang", "stall,after=2")
"""Faults that end when the client disconnects."""
_PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/{}:generateContent",
}
_REJECTED = (
    ("POST", "/v1/chat/completions", b'{"model":', KEY),
    ("POST", "/v1/messages", b'{"model":"gemini-3-flash","model":"x"}', KEY),
    ("POST", "/v1/responses", b"{}", "no-key-of-this-gateway"),
    ("GET", "/v1/no-such-path", b"", KEY),
    ("GET", "/health", b"", ""),
    ("GET", "/metrics", b"", KEY),
    ("POST", "/v1/chat/completions", b"[" * 10_000, KEY),
)
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
RETRIES = "[server.retries]\nfirst_wait = 0.01\nlongest_wait = 0.02\nlongest_asked = 0.05\n"


def make_body(dialect: str, model: str, chance: random.Random, previous: str) -> dict[str, object]:
    """Return a request with a different text each time, some with tools, some that continue an answer."""
    text = f"question {chance.random()} " + "about the weather " * chance.choice((1, 5, 200))
    number = chance.randrange(100)
    tool = {"name": f"tool_{number}", "description": text[:40]}
    if dialect == "gemini":
        tools = [{"functionDeclarations": [{**tool, "parameters": _SCHEMA}]}]
        return {"contents": [{"role": "user", "parts": [{"text": text}]}], **({"tools": tools} if number < 40 else {})}
    if dialect == "responses":
        body: dict[str, object] = {"model": model, "input": text, "store": number % 2 == 0}
        tools = [{"type": "function", **tool, "parameters": _SCHEMA}]
        if previous and number % 5 == 0:
            body["previous_response_id"] = previous
    else:
        body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": text}]}
        tools = [{**tool, "input_schema": _SCHEMA}]
        if dialect == "chat":
            tools = [{"type": "function", "function": {**tool, "parameters": _SCHEMA}}]
    return {**body, "tools": tools} if number < 40 else body


class Soak:
    """The clients and what they have seen."""

    def __init__(self, gateway: Gateway, requests: int, seed: int) -> None:
        self._gateway = gateway
        self._requests = requests
        self._seed = seed
        self._numbers = count()
        self.sent = 0
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []

    def run(self) -> list[tuple[int, int]]:
        """Send all requests; return how many were sent and the memory, at regular intervals."""
        threads = [threading.Thread(target=self._work, args=(at,)) for at in range(_CLIENTS)]
        for thread in threads:
            thread.start()
        samples: list[tuple[int, int]] = []
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.1)
            if self.sent >= (len(samples) + 1) * self._requests / _SAMPLES:
                samples.append((self.sent, self._gateway.memory))
                print(f"   {self.sent:>7,} requests: {samples[-1][1] / 1e6:.1f} MB", flush=True)
        return samples

    def _work(self, client: int) -> None:
        chance = random.Random(self._seed * _CLIENTS + client)  # noqa: S311  a repeatable mix
        connection, previous = HTTPConnection(*self._gateway.address, timeout=60), ""
        while (number := next(self._numbers)) < self._requests:
            self.sent = max(self.sent, number)
            share = chance.random()
            try:
                if share < 0.05:
                    self._send_rejected(connection, chance)
                elif share < 0.1:
                    self._leave(chance)
                else:
                    previous = self._send(connection, chance, previous)
            except (HTTPException, OSError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                connection.close()
        connection.close()

    def _send_rejected(self, connection: HTTPConnection, chance: random.Random) -> None:
        method, path, body, key = chance.choice(_REJECTED)
        connection.request(method, path, body, {"authorization": f"Bearer {key}", "content-type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        self.outcomes[f"{reply.status} {path}"] += 1

    def _send(self, connection: HTTPConnection, chance: random.Random, previous: str) -> str:
        dialect, model = chance.choice(list(_PATHS)), chance.choice(_MODELS)
        is_faulty, streams = chance.random() < 0.2, chance.random() < 0.5
        named = f"{model}~{chance.choice(_FAULTS)}" if is_faulty else model
        reply = self._request(connection, dialect, named, make_body(dialect, named, chance, previous), streams=streams)
        content = reply.read()
        self.outcomes[f"{reply.status}{' with a fault' if is_faulty else ''}"] += 1
        if not is_faulty and reply.status not in {200, 404, 503}:
            self.wrong.append(f"{dialect} {named}: {reply.status} {content[:200]!r}")
        if dialect == "responses" and reply.status == 200 and not streams:
            return json.loads(content)["id"] if b'"store":true' in content.replace(b" ", b"") else previous
        return "" if reply.status == 404 else previous

    def _leave(self, chance: random.Random) -> None:
        """Start a request that never ends, and disconnect."""
        dialect, model = chance.choice(list(_PATHS)), chance.choice(_MODELS)
        named = f"{model}~{chance.choice(_LEFT)}"
        connection = HTTPConnection(*self._gateway.address, timeout=chance.choice((0.02, 0.2)))
        with contextlib.suppress(TimeoutError, socket.timeout):
            self._request(connection, dialect, named, make_body(dialect, named, chance, ""), streams=True).read()
        connection.close()
        self.outcomes["left"] += 1

    def _request(
        self, connection: HTTPConnection, dialect: str, model: str, body: dict[str, object], *, streams: bool
    ) -> HTTPResponse:
        path = _PATHS[dialect].format(model)
        if dialect == "gemini":
            path = path.replace("generateContent", "streamGenerateContent?alt=sse") if streams else path
        else:
            body = {**body, "stream": streams}
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        return connection.getresponse()


def find_growth(samples: list[tuple[int, int]]) -> tuple[float, float]:
    """Return the slope of the memory over the last half: percent of it, and bytes for each request."""
    half = samples[len(samples) // 2 :]
    mean_x = sum(x for x, _ in half) / len(half)
    mean_y = sum(y for _, y in half) / len(half)
    spread = sum((x - mean_x) ** 2 for x, _ in half)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in half) / spread if spread else 0.0
    return 100 * slope * (half[-1][0] - half[0][0]) / mean_y, slope


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    processes.PROGRAM = _PROGRAM
    with (
        run_simulator() as simulator,
        run_gateway(upstream=f'base_url = "{simulator}"', tables=RETRIES) as gateway,
    ):
        soak = Soak(gateway, options.requests, options.seed)
        samples = soak.run()
    percent, slope = find_growth(samples)
    print(f"   outcomes: {dict(soak.outcomes.most_common())}")
    print(f"   wrong: {len(soak.wrong)} {Counter(soak.wrong).most_common(5)}")
    print(
        f"   memory over the last half: {percent:+.1f} % ({slope:+.0f} bytes for each request; at most {MOST_GROWTH} %)"
    )
    return int(percent > MOST_GROWTH or bool(soak.wrong))


if __name__ == "__main__":
    raise SystemExit(main())
