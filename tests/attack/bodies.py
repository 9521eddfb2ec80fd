"""Large bodies without a valid key: they must not be buffered."""

import contextlib
import threading

from attack.gateway import KEY, Gateway, Measure, render_head, run_gateway

_SIZE = 50 << 20
_PIECE = bytes(1 << 20)


def attack(scale: int) -> list[Measure]:
    """Send bodies of 50 MB on several connections at once: without a key, and with one but beyond all limits."""
    count = 5 * scale
    measures: list[Measure] = []
    for name, key, limits in (("keyless", "", ""), ("too large", KEY, "body = 1_000_000")):
        with run_gateway(limits) as gateway, gateway.watch_memory() as grown:
            statuses = send_all(gateway, count, key)
        wrong = [status for status in statuses if status not in {b"401", b"413"}]
        measures += [
            Measure(f"memory for {count} {name} bodies of 50 MB", grown[0], 64, "MB"),
            Measure(f"{name} bodies without 401 or 413", len(wrong), 0, detail=str(wrong)),
        ]
    return measures


def send_all(gateway: Gateway, count: int, key: str) -> list[bytes]:
    """Send many bodies at once; return the statuses of the responses."""
    statuses: list[bytes] = []
    threads = [threading.Thread(target=lambda: statuses.append(_send_body(gateway, key))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def _send_body(gateway: Gateway, key: str) -> bytes:
    """Send one body as far as the server reads it, and return the status of the response."""
    with gateway.connect() as client, contextlib.suppress(ConnectionResetError):
        try:
            # In chunks, so that the length in the head does not reject it.
            head = render_head(gateway, 0, key=key).replace(b"content-length: 0", b"transfer-encoding: chunked")
            client.sendall(head)
            for _ in range(_SIZE // len(_PIECE)):
                client.sendall(b"%x\r\n%b\r\n" % (len(_PIECE), _PIECE))
            client.sendall(b"0\r\n\r\n")
        except (ConnectionResetError, BrokenPipeError):
            pass  # the response may have arrived before
        return client.recv(1 << 16)[9:12]
    return b""
