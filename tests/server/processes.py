"""The gateway as the command runs it, in processes of its own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import compiled

PROGRAM = "from dragoman.cli import main; raise SystemExit(main())"
_KEYS = ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_CLOUD_PROJECT", "DRAGOMAN_CONFIG")


class Command:
    """A process that runs the command."""

    def __init__(self, process: "subprocess.Popen[str]", base_url: str, errors: Path) -> None:
        self.process = process
        self.base_url = base_url
        self._errors = errors

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    def children(self) -> list[int]:
        """The processes it has started, oldest first."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in listed.split()]


@contextlib.contextmanager
def serve(directory: Path, *options: str, **environment: str) -> Generator[Command]:
    """Run `dragoman serve` in a directory on a free port; yields when it has printed its address."""
    command = [sys.executable, "-c", PROGRAM, "serve", *options]
    if "--config" not in options:
        command += ["--listen", "127.0.0.1:0"]
    outside = {name: value for name, value in os.environ.items() if name not in _KEYS}
    variables = {**outside, **compiled.VARIABLES, "TMPDIR": str(directory), "XDG_STATE_HOME": str(directory)}
    variables |= environment
    with (
        (directory / "stderr").open("w") as errors,
        subprocess.Popen(  # noqa: S603
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=variables,
            cwd=directory,
            start_new_session=True,
        ) as process,
    ):
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert found, (directory / "stderr").read_text()
            yield Command(process, found[0], directory / "stderr")
        finally:
            # Its workers too: one that is stopped never notices that its parent has died.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait for what another process does; fail if it does not. Only a test that fails waits so long."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.01)
    return found
