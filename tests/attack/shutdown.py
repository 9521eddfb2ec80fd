"""Shutdown: no stream is cut, readiness turns false first, and a second signal does not wait."""

import http.client
import json
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack

from attack.gateway import KEY, Gateway, Measure, run_gateway

_MODEL = "{}~stall,after=5"
"""Stalls when every client has received something: one that has not waits for the first heartbeat."""
_PATIENCE = 120
"""Seconds that the attack waits for what needs far less, because other programs may use the machine too."""
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


def open_stream(gateway: Gateway, dialect: str, model: str, stack: ExitStack) -> http.client.HTTPResponse:
    """Start a stream and return its response when it has stalled; the stack closes it."""
    path, body = _REQUESTS[dialect]
    named = _MODEL.format(model)
    connection = http.client.HTTPConnection(*gateway.address, timeout=_PATIENCE)
    stack.callback(connection.close)
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    query = "?alt=sse" if dialect == "gemini" else ""
    members = body if dialect == "gemini" else {"model": named, **body}
    connection.request("POST", path.format(named) + query, json.dumps(members), headers)
    reply = stack.enter_context(connection.getresponse())
    assert reply.read1(1 << 16)
    return reply


def _stop_with_streams() -> list[str]:
    """Return the streams that did not end with an error event when the gateway was stopped."""
    with run_gateway(server="grace = 0.5") as gateway, ExitStack() as stack:
        pairs = [(dialect, model) for dialect in _REQUESTS for model in _UPSTREAMS]
        streams = [open_stream(gateway, dialect, model, stack) for dialect, model in pairs]
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
        if code := gateway.command.process.wait(_PATIENCE):
            failed.append(f"exit code {code}")
    return failed


def _drains() -> bool:
    """Return whether `/ready` turns false before a gateway stops, which it then does at a second signal."""
    with run_gateway(server=f"drain = {2 * _PATIENCE}.0") as gateway:
        gateway.command.process.send_signal(signal.SIGTERM)
        is_false = _wait_until(lambda: _get_ready(gateway) == (503, b'{"ready":false}'))
        _signal_again(gateway)
        return is_false and gateway.command.process.wait(_PATIENCE) == 128 + signal.SIGTERM


def _survives_hangup() -> bool:
    with run_gateway() as gateway:
        gateway.command.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        return _get_ready(gateway) == (200, b'{"ready":true}')


def _get_ready(gateway: Gateway) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*gateway.address, timeout=_PATIENCE)
    connection.request("GET", "/ready")
    reply = connection.getresponse()
    answer = reply.status, reply.read()
    connection.close()
    return answer


def _is_listening(gateway: Gateway) -> bool:
    try:
        gateway.connect().close()
    except ConnectionRefusedError:
        return False
    return True


def _wait_until(is_true: Callable[[], bool]) -> bool:
    end = time.monotonic() + _PATIENCE
    while not (found := is_true()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def _signal_again(gateway: Gateway) -> None:
    """Send a second signal to a gateway that has handled the first, and so late that it is not the same one."""
    time.sleep(0.5)
    gateway.command.process.send_signal(signal.SIGTERM)


def _stop_twice() -> list[Measure]:
    with run_gateway(server=f"grace = {2 * _PATIENCE}.0") as gateway, ExitStack() as stack:
        open_stream(gateway, "chat", _UPSTREAMS[0], stack)
        gateway.command.process.send_signal(signal.SIGTERM)
        _wait_until(lambda: not _is_listening(gateway))
        _signal_again(gateway)
        start = time.perf_counter()
        code = gateway.command.process.wait(_PATIENCE)
        return [
            Measure("time to end at a second signal", time.perf_counter() - start, 2, "s"),
            Measure("exit codes other than 143", int(code != 128 + signal.SIGTERM), 0, detail=str(code)),
        ]
