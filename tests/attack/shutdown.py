"""Shutdown: no stream is cut, readiness turns false first, and a second signal does not wait."""

import http.client
import json
import signal
import time

from attack.gateway import KEY, Gateway, Measure, run_gateway

_MODEL = "{}~stall,after=2"
_CHAT = {"messages": [{"role": "user", "content": "Count from 1 to 50"}], "stream": True}
_REQUESTS = {
    "chat": ("/v1/chat/completions", _CHAT),
    "responses": ("/v1/responses", {"input": "Count from 1 to 50", "stream": True}),
    "messages": ("/v1/messages", {**_CHAT, "max_tokens": 1000}),
    "gemini": (
        "/v1beta/models/{}:streamGenerateContent",
        {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]},
    ),
}
_UPSTREAMS = ("gemini-3-flash", "claude-opus-4-8", "gpt-5.4")


def attack(scale: int) -> list[Measure]:
    """Stop gateways whose upstreams have stalled in the middle of streams."""
    cut = [name for _ in range(scale) for name in _stop_with_streams()]
    return [
        Measure("streams that end without an error event", len(cut), 0, detail=str(cut)),
        Measure("gateways whose /ready is not false before they stop", int(not _drains()), 0),
        Measure("gateways that SIGHUP ends", int(not _survives_hangup()), 0),
        *_stop_twice(),
    ]


def open_stream(gateway: Gateway, dialect: str, model: str) -> tuple[http.client.HTTPResponse, bytes]:
    """Start a stream and read until it stalls; return the response and what has arrived."""
    path, body = _REQUESTS[dialect]
    named = _MODEL.format(model)
    connection = http.client.HTTPConnection(*gateway.address, timeout=30)
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    query = "?alt=sse" if dialect == "gemini" else ""
    members = body if dialect == "gemini" else {"model": named, **body}
    connection.request("POST", path.format(named) + query, json.dumps(members), headers)
    reply = connection.getresponse()
    return reply, reply.read1(1 << 16)


def _stop_with_streams() -> list[str]:
    """Return the streams that did not end with an error event when the gateway was stopped."""
    with run_gateway(server="grace = 0.5") as gateway:
        pairs = [(dialect, model) for dialect in _REQUESTS for model in _UPSTREAMS]
        streams = [open_stream(gateway, dialect, model)[0] for dialect, model in pairs]
        gateway.command.process.send_signal(signal.SIGTERM)
        failed: list[str] = []
        for pair, stream in zip(pairs, streams, strict=True):
            try:
                rest = stream.read()
            except http.client.IncompleteRead:
                failed.append(f"{pair}: cut")
                continue
            if b'"error"' not in rest and b"response.failed" not in rest:
                failed.append(f"{pair}: {rest[-100:]!r}")
        gateway.command.process.wait(30)
    return failed


def _drains() -> bool:
    with run_gateway(server="drain = 1.0") as gateway:
        gateway.command.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        connection = http.client.HTTPConnection(*gateway.address, timeout=10)
        connection.request("GET", "/ready")
        reply = connection.getresponse()
        is_false = (reply.status, reply.read()) == (503, b'{"ready":false}')
        connection.close()
        return is_false and gateway.command.process.wait(30) == 0


def _survives_hangup() -> bool:
    with run_gateway() as gateway:
        gateway.command.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        connection = http.client.HTTPConnection(*gateway.address, timeout=10)
        connection.request("GET", "/ready")
        is_ready = connection.getresponse().read() == b'{"ready":true}'
        connection.close()
        return is_ready


def _stop_twice() -> list[Measure]:
    with run_gateway(server="grace = 30.0") as gateway:
        stream, _ = open_stream(gateway, "chat", _UPSTREAMS[0])
        gateway.command.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        start = time.perf_counter()
        gateway.command.process.send_signal(signal.SIGTERM)
        code = gateway.command.process.wait(60)
        stream.close()
        return [
            Measure("time to end at a second signal", time.perf_counter() - start, 2, "s"),
            Measure("exit codes other than 143", int(code != 128 + signal.SIGTERM), 0, detail=str(code)),
        ]
