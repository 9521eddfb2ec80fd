"""The same five programs with Dragoman and with three other libraries: each runs, does the same, and ours is never the longest."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from architecture.tree import ROOT
from dragoman.simulator import in_thread
from pypi import install

FOLDER = ROOT / "examples" / "side_by_side"
PAGE = ROOT / "docs" / "reference" / "python.md"
PROGRAMS = sorted(FOLDER.glob("*/*.py"))
PACKAGES = {
    "llm": ("llm==0.36",),
    "openai_agents": ("openai-agents==0.24.0",),
    "pydantic_ai": ("pydantic-ai-slim[openai,mcp]==2.68.0",),
}
LIBRARIES = ("dragoman", "pydantic_ai", "openai_agents", "llm")
JOBS = ("one_tool", "parallel_tools", "structured_output", "mcp_server", "approval")
EXPECTED = {
    "one_tool": "get_weather says: Sun in Oslo.",
    "parallel_tools": "get_weather says: Sun in Oslo.\nget_weather says: Sun in Rome.",
    "structured_output": "sun",
    "mcp_server": "says: Sun in Oslo.",
    "approval": "delete_file says: a.txt is deleted.",
}


def count_lines(path: Path) -> int:
    """The lines of a program that are not blank."""
    return sum(bool(line.strip()) for line in path.read_text(encoding="utf-8").splitlines())


def run_program(path: Path, binaries: Path, tmp_path: Path, answer: str = "y\n") -> str:
    """Run a program with a simulator as its model and return its output."""
    with in_thread() as simulator:
        base_url = f"{simulator.base_url}/v1"
        file = tmp_path / "dragoman.toml"
        file.write_text(f'[upstreams.openai]\nkind = "openai-responses"\nbase_url = "{base_url}"\napi_key = "k"\n')
        environment = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": "k",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "DRAGOMAN_CONFIG": str(file),
        }
        done = subprocess.run(  # noqa: S603
            [str(binaries / "python"), str(path)],
            cwd=FOLDER,
            env=environment,
            input=answer,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("job", JOBS)
def test_our_program_does_its_job(job, tmp_path):
    output = run_program(FOLDER / "dragoman" / f"{job}.py", Path(sys.executable).parent, tmp_path)
    assert output.endswith(EXPECTED[job])


def test_our_program_does_not_run_what_is_not_approved(tmp_path):
    program = FOLDER / "dragoman" / "approval.py"
    assert "is deleted" not in run_program(program, Path(sys.executable).parent, tmp_path, "n\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [path for path in PROGRAMS if path.parent.name in PACKAGES],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_the_program_of_another_library_does_the_same(path, tmp_path, pytestconfig):
    binaries = install(pytestconfig.cache.mkdir("pypi"), *PACKAGES[path.parent.name])
    assert run_program(path, binaries, tmp_path).endswith(EXPECTED[path.stem])


def test_our_program_is_never_the_longest():
    for job in JOBS:
        others = [count_lines(path) for path in PROGRAMS if path.stem == job and path.parent.name != "dragoman"]
        assert count_lines(FOLDER / "dragoman" / f"{job}.py") <= min(others), job


def test_every_program_has_the_format_of_ruff():
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--check", str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout


def test_no_program_uses_semicolons():
    assert not [path for path in PROGRAMS if re.search(r";\s*$|; ", path.read_text(encoding="utf-8"), re.MULTILINE)]


def test_the_table_of_the_reference_has_the_counts():
    table = PAGE.read_text(encoding="utf-8").partition("## Side by side")[2]
    rows = [
        re.findall(r"\[(\d+)\]\(\.\./\.\./examples/side_by_side/(\w+)/(\w+)\.py\)", line) for line in table.splitlines()
    ]
    cells = {(library, job): int(count) for row in rows for count, library, job in row}
    assert cells == {(path.parent.name, path.stem): count_lines(path) for path in PROGRAMS}
    assert Counter(library for library, _ in cells) == Counter({name: 5 - (name == "llm") for name in LIBRARIES})
