"""Real programs from npm, and the stage on which they run."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dragoman.simulator.script import Script
from npm import NODE, install
from real_clients.stage import Stage, open_stage

PACKAGES = Path(__file__).parent / "node"


class Programs:
    """The programs, and how each is started where no script of its package was run."""

    def __init__(self, folder: Path) -> None:
        self.modules = folder / "node_modules"

    def __getitem__(self, name: str) -> list[Path]:
        """Return the words that start a program."""
        match name:
            case "claude":
                return [NODE, self.modules / "@anthropic-ai/claude-code/cli-wrapper.cjs"]
            case "codex":
                return [NODE, self.modules / "@openai/codex/bin/codex.js"]
            case "gemini":
                return [NODE, self.modules / "@google/gemini-cli/bundle/gemini.js"]
            case "opencode":
                found = [*self.modules.glob("opencode-*/bin/opencode")]
                return found or pytest.skip("there is no opencode for this machine in the lock")
            case _:
                raise KeyError(name)


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Programs:
    """Install the programs, once for each lock."""
    assert request.config.cache is not None
    return Programs(install(PACKAGES, request.config.cache.mkdir("node-clients")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder in which the program will work."""
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def stage(tmp_path: Path) -> Generator[Callable[..., Stage]]:
    """Set the stage for a program."""
    with ExitStack() as stack:

        def start(models: dict[str, str], script: Script | None = None, tables: str = "") -> Stage:
            return stack.enter_context(open_stage(tmp_path, models, script, tables))

        yield start
