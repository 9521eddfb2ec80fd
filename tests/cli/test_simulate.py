"""`dragoman simulate`: a server until it is interrupted."""

import re
import signal
import subprocess
import sys

import httpx2
import pytest

from dragoman.cli import main

PROGRAM = "from dragoman.cli import main; raise SystemExit(main())"


def test_it_serves_until_it_is_told_to_stop():
    command = [sys.executable, "-c", PROGRAM, "simulate", "--port", "0", "--seed", "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            told = process.stdout.readline()
            url = re.search(r"http://127\.0\.0\.1:\d+", told)[0]
            assert httpx2.get(url + "/health").json()["simulator"] is True
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_faults_are_listed(capsys):
    assert main(["simulate", "--fault", "list"]) == 0
    assert "stream-error: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--fault", "burn"), "not a fault"),
        (("--script", "no/such/file.toml"), "No such file"),
        (("--recording", "no/such/file.jsonl"), "No such file"),
    ],
)
def test_what_cannot_be_served_is_told(arguments, words, capsys):
    assert main(["simulate", *arguments]) == 2
    assert words in capsys.readouterr().err
