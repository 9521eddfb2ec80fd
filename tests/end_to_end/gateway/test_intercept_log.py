"""`dragoman intercept --log` in another terminal shows what passes a gateway, whichever worker has it."""

import signal
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from cli.terminal import environment
from server.processes import PROGRAM, serve, until

pytestmark = pytest.mark.slow

BODY = '{"contents":[{"role":"user","parts":[{"text":"number %d"}]}]}'


def ask(base_url: str, number: int) -> None:
    parts = urlsplit(base_url)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=20)) as link:
        headers = {"x-goog-api-key": "any", "content-type": "application/json"}
        link.request(
            "POST", "/intercept/simulator/v1beta/models/gemini-3-flash:generateContent", BODY % number, headers
        )
        reply = link.getresponse()
        assert (reply.status, b"candidates" in reply.read()) == (200, True)


def test_an_observer_sees_the_exchanges_of_every_worker_and_leaves_nothing_behind(tmp_path):
    with serve(tmp_path, "--workers", "2") as gateway:
        ask(gateway.base_url, 0)
        with subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", PROGRAM, "intercept", "--log", "--save", "kept"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(tmp_path),
        ) as looking:
            try:
                assert "waiting for exchanges" in looking.stderr.readline()
                for number in range(1, 7):
                    ask(gateway.base_url, number)
                until(lambda: len([*(tmp_path / "kept").iterdir()]) == 6)
                looking.send_signal(signal.SIGINT)
                shown, _ = looking.communicate(timeout=20)
                assert looking.returncode == 0
            finally:
                looking.kill()
    assert [f"number {number}" in shown for number in range(7)] == [False, *[True] * 6]
    assert [*(tmp_path / "dragoman" / "onlookers").iterdir()] == []
