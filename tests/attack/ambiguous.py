"""Ambiguous HTTP: requests that two servers could read differently must get 400, and the connection must close."""

from attack.gateway import KEY, Gateway, Measure, run_gateway

_AUTHORIZATION = f"authorization: Bearer {KEY}\r\n"
_HEADERS = {
    "two transfer-encodings": "host: 127.0.0.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
    "two transfer-encodings, one unknown": "host: 127.0.0.1\r\ntransfer-encoding: x\r\ntransfer-encoding: chunked\r\n",
    "no host": "transfer-encoding: chunked\r\n",
    "two hosts": "host: 127.0.0.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n",
    "two different hosts": "host: 127.0.0.1\r\nhost: evil.test\r\ntransfer-encoding: chunked\r\n",
    "a port that is no number": "host: 127.0.0.1:evil\r\ntransfer-encoding: chunked\r\n",
    "half a bracket": "host: [::1\r\ntransfer-encoding: chunked\r\n",
    "a name behind a bracket": "host: [::1]evil\r\ntransfer-encoding: chunked\r\n",
    "a user in the host": "host: localhost@evil.test\r\ntransfer-encoding: chunked\r\n",
    "a space in the host": "host: localhost evil.test\r\ntransfer-encoding: chunked\r\n",
    "a backslash in the host": "host: localhost\\evil.test\r\ntransfer-encoding: chunked\r\n",
}
_GOOD = f"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n{_AUTHORIZATION}\r\n"


def attack(scale: int) -> list[Measure]:
    """Send each request alone, behind a good one in one packet, and on a connection that has been used."""
    wrong: list[str] = []
    with run_gateway() as gateway:
        for _ in range(scale):
            for name, headers in _HEADERS.items():
                bad = f"POST /v1/chat/completions HTTP/1.1\r\n{headers}{_AUTHORIZATION}\r\n0\r\n\r\n"
                wrong += [f"{name}, {way}" for way, answer in _send_all_ways(gateway, bad) if not answer]
    return [Measure("ambiguous requests without 400 and close", len(wrong), 0, detail=", ".join(sorted(set(wrong))))]


def _send_all_ways(gateway: Gateway, bad: str) -> list[tuple[str, bool]]:
    smuggled = _GOOD
    return [
        ("alone", _is_rejected(_exchange(gateway, bad + smuggled), before=0)),
        ("pipelined", _is_rejected(_exchange(gateway, _GOOD + bad + smuggled), before=1)),
        ("reused connection", _is_rejected(_exchange(gateway, _GOOD, bad + smuggled), before=1)),
    ]


def _is_rejected(answer: bytes, before: int) -> bool:
    return answer.count(b"HTTP/1.1 200") == before and answer.count(b"HTTP/1.1") == before + 1 and b" 400 " in answer


def _exchange(gateway: Gateway, *parts: str) -> bytes:
    """Send parts, each when there is an answer to the last one, and read until the server closes or is silent."""
    received = b""
    with gateway.connect(timeout=0.5) as client:
        for number, part in enumerate(parts):
            client.sendall(part.encode())
            if number < len(parts) - 1:
                received += client.recv(1 << 16)
        try:
            while chunk := client.recv(1 << 16):
                received += chunk
        except TimeoutError:
            return received + b"(open)HTTP/1.1"  # the connection was not closed
        except ConnectionResetError:
            return received
    return received
