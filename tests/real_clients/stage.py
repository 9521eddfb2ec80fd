"""A gateway as a process of its own, the simulator behind it, and a folder in which a real program works.

A program runs with an environment of its own: no keys, no home but a fresh one, and no way out of this machine.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.simulator.runner import Running as Simulated
from dragoman.simulator.runner import in_thread
from dragoman.simulator.script import Script
from npm import NODE
from real_clients.dead_end import DeadEnd, dead_end

SOURCE = Path(__file__).parents[2] / "src"


class Upstream(NamedTuple):
    """An upstream of the gateway, played by the simulator."""

    kind: str
    model: str
    api: str
    """The simulator's name of the API that is used then."""
    path: str = ""


UPSTREAMS = {
    "gemini": Upstream("gemini", "gemini-3.8-flash", "gemini"),
    "gemini-2.5": Upstream("gemini", "gemini-2.5-flash", "gemini"),
    "anthropic": Upstream("anthropic", "claude-opus-4-8", "messages"),
    "chat": Upstream("openai", "gpt-5.2", "chat", "/v1"),
    "responses": Upstream("openai-responses", "gpt-5.2", "responses", "/v1"),
}
_UNSIGNED = b"skip_thought_signature_validator"
"""The value that replaces a lost signature for Google; it must not occur here."""
_SERVE = "import sys; from dragoman.cli import main; sys.exit(main(['serve', '--config', sys.argv[1]]))"


class Stage:
    """Everything around a program, while it runs."""

    def __init__(self, base_url: str, simulator: Simulated, outside: DeadEnd, folder: Path, home: Path) -> None:
        self.base_url = base_url
        self.simulator = simulator
        self.outside = outside
        self.folder = folder
        self.home = home
        self.errors = ""
        """What the last program wrote to standard error."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a program, without its own settings."""
        return {
            "PATH": os.pathsep.join([str(NODE.parent), os.environ["PATH"]]),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            **self.outside.environment,
        }

    def run(self, command: Sequence[str | Path], variables: Mapping[str, str], within: float = 90) -> str:
        """Run a program until it ends well; return what it printed."""
        done = subprocess.run(  # noqa: S603  programs that the lock names
            [str(word) for word in command],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        assert not done.returncode, f"{done.stdout}\n{done.stderr}"
        self.errors = done.stderr
        return done.stdout


@contextmanager
def open_stage(
    folder: Path, models: Mapping[str, str], script: Script | None = None, tables: str = ""
) -> Generator[Stage]:
    """Run a gateway for some models, each the name of one of the upstreams; in the end no exchange may have failed.

    `tables` are further tables of the gateway's configuration.
    """
    home, work, log = folder / "home", folder / "work", folder / "exchanges.log"
    home.mkdir()
    work.mkdir(exist_ok=True)
    with in_thread(script=script) as simulator, dead_end() as outside:
        config = folder / "dragoman.toml"
        config.write_text(_configure(simulator.base_url, models, log) + tables, encoding="utf-8")
        with _gateway(config) as base_url:
            yield Stage(base_url, simulator, outside, work, home)
        _assert_all_answered(log, simulator, {UPSTREAMS[name].api for name in models.values()})


def _configure(simulated: str, models: Mapping[str, str], log: Path) -> str:
    lines = ["[server]", 'listen = "127.0.0.1:0"', f'log = "{log}"']
    for name, upstream in UPSTREAMS.items():
        place = f'base_url = "{simulated}{upstream.path}"'
        lines += [f'[upstreams."{name}"]', f'kind = "{upstream.kind}"', place, 'api_key = "any"']
    lines.append("[models]")
    lines += [f'"{asked}" = "{name}/{UPSTREAMS[name].model}"' for asked, name in models.items()]
    return "\n".join(lines) + "\n"


@contextmanager
def _gateway(config: Path) -> Generator[str]:
    """Run `dragoman serve` as a process; it must stop cleanly on a signal."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, "-c", _SERVE, str(config)], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            begun = process.stdout.readline()
            assert begun.startswith("dragoman listening on "), begun
            yield begun.split()[3]
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(30)
        assert status == 0


def _assert_all_answered(log: Path, simulator: Simulated, apis: set[str]) -> None:
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    # Tools that the gateway runs log notes of their own.
    exchanges = [line for line in lines if line.get("event") != "note"]
    assert exchanges
    bad = [line for line in exchanges if line.get("event") != "note" and line.get("outcome") != "answered"]
    assert not bad
    asked = [seen for seen in simulator.requests if seen.method == "POST"]
    assert [(seen.target, seen.rule) for seen in asked if seen.status != 200] == []
    assert {seen.api for seen in asked} == apis
    assert not [seen.target for seen in asked if _UNSIGNED in seen.body]
