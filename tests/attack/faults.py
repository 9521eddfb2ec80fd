"""A stopped worker and a locked store: the first is replaced, the second is an error in time."""

import http.client
import json
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

from attack.gateway import KEY, Gateway, Measure, run_gateway

_STORED = {"model": "gemini-3-flash", "input": "hello", "store": True}
_PATIENCE = 180
"""Seconds that the attack waits for what takes half a minute, because other programs may use the machine too."""


def attack(scale: int) -> list[Measure]:
    """Stop one of two workers, and lock the store of conversations for several requests."""
    return [*_lock_store(2 * scale), *_stop_worker()]


def post_stored(gateway: Gateway) -> int:
    """Send a request whose answer is stored; return the status of the response."""
    connection = http.client.HTTPConnection(*gateway.address, timeout=_PATIENCE)
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    connection.request("POST", "/v1/responses", json.dumps(_STORED), headers)
    reply = connection.getresponse()
    reply.read()
    connection.close()
    return reply.status


def _lock_store(count: int) -> list[Measure]:
    times: list[float] = []
    statuses: list[int] = []
    with run_gateway() as gateway:
        post_stored(gateway)
        config = next(Path(option) for option in gateway.command.process.args if str(option).endswith(".toml"))
        lock = sqlite3.connect(config.parent / "sessions.db", isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")

        def post() -> None:
            start = time.perf_counter()
            statuses.append(post_stored(gateway))
            times.append(time.perf_counter() - start)

        threads = [threading.Thread(target=post) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lock.execute("ROLLBACK")
        lock.close()
        after = post_stored(gateway)
    wrong = [status for status in statuses if status != 503]
    return [
        Measure("slowest error while the store is locked", max(times), 6, "s"),
        Measure("errors other than 503 while the store is locked", len(wrong), 0, detail=str(wrong)),
        Measure("failures after the store is unlocked", int(after != 200), 0),
    ]


def _stop_worker() -> list[Measure]:
    with run_gateway("", "", "", "--workers", "2") as gateway:
        before = gateway.command.children()
        os.kill(before[-1], signal.SIGSTOP)
        end, is_replaced = time.monotonic() + _PATIENCE, False
        while not is_replaced and time.monotonic() < end:
            time.sleep(0.2)
            after = gateway.command.children()
            is_replaced = before[-1] not in after and len(after) == len(before)
    return [Measure("stopped workers that are not replaced", int(not is_replaced), 0)]
