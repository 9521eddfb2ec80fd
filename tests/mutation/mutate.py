# ruff: noqa: T201  # what it prints is its result
"""Mutation test: how many small wrong changes to the dialects and the interpreter do the tests notice?

A mutant is a temporary copy of the package with one change, put first on the path; the checkout is never touched. This process
imports pytest, the SDKs and the recordings once and forks for each run, so a run pays only for the package and its tests. A mutant
meets the test files named after its module, then its room's tests, then all others, and is killed by the first that fails, or
by taking far longer than the unchanged package. The unchanged package must pass first, otherwise nothing is reported.
"""

import argparse
import contextlib
import gc
import importlib
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutation.mutants import Mutant, find  # the path is set just above

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "dragoman"
TESTS = ROOT / "tests"
ROOMS = ("dialects", "interpreter")
SDKS = ("openai", "openai.types.responses", "anthropic", "google.genai", "jsonschema_rs")
NOT_JUDGES = {"architecture", "mutation", "core", "wire", "http", "simulator"}
"""Tests that cannot notice a change in the rooms that are mutated."""
ENOUGH = 0.9
UNCHANGED = Mutant(0, 0, 0, "", "unchanged")
BROKEN = 70
"""Exit status of a run that went wrong in itself."""


@dataclass
class Trial:
    """One mutant and the runs it still has to survive; `place` is the file's path in the package."""

    place: Path
    mutant: Mutant
    copy: Path
    stages: list[list[str]]
    killed_by: str = ""
    seconds: float = 0.0


@dataclass
class Run:
    """A forked process at work."""

    trial: Trial
    started: float
    deadline: float


def choose(snapshot: Path, seed: int, count: int, only: str) -> list[tuple[Path, Mutant]]:
    """Draw `count` mutants from all there are, the same ones for the same seed and sources."""
    paths = sorted(path.relative_to(snapshot) for room in ROOMS for path in (snapshot / room).rglob("*.py"))
    every = [
        (path, mutant) for path in paths if only in path.as_posix() for mutant in find((snapshot / path).read_bytes())
    ]
    if not every:
        sys.exit(f"nothing to mutate: no file of {' or '.join(ROOMS)} matches {only!r}")
    print(f"{len(every)} mutants are possible in {len({path for path, _ in every})} files")
    return random.Random(seed).sample(every, min(count, len(every)))  # noqa: S311


def stages_for(place: Path, *, near_only: bool) -> list[list[str]]:
    """Test files in the order they are tried: named after the module, of the room, all others."""
    depth = 2 if place.parts[0] == "dialects" and len(place.parts) > 2 else 1
    room = TESTS.joinpath(*place.parts[:depth])
    words = {word for part in place.with_suffix("").parts[depth:] for word in part.strip("_").split("_")}
    every = sorted(test for test in TESTS.rglob("test_*.py") if test.relative_to(TESTS).parts[0] not in NOT_JUDGES)
    named = [test for test in every if room in test.parents and _find_namesake(test, words)]
    near = [test for test in every if room in test.parents and test not in named]
    far = [test for test in every if test not in named and test not in near and not near_only]
    return [[str(test) for test in stage] for stage in (named, near, far) if stage]


def _find_namesake(test: Path, words: set[str]) -> bool:
    return any(token.startswith(word) for token in test.stem.split("_") for word in words)


def fork(copy: Path, tests: list[str]) -> int:
    """Run `tests` on the package in `copy`, in a process of its own; return its id."""
    child = os.fork()
    if child:
        return child
    status = BROKEN
    with contextlib.suppress(BaseException):
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        quiet = os.open(copy / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.environ["PYTHONPATH"] = str(copy)
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(copy / "hypothesis")
        sys.path.insert(0, str(copy))
        os.chdir(ROOT)
        ignored = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        plugins = ["-p", "no:cacheprovider", "-p", "no:xdist"]
        limits = ["-x", "-m", "not slow", f"--basetemp={copy / 'tmp'}"]
        status = int(pytest.main([*ignored, *plugins, *limits, *tests]))
        import dragoman  # only now: it must come from the copy

        if not Path(dragoman.__file__).is_relative_to(copy):
            status = BROKEN
        sys.stdout.flush()
    os._exit(status)


def copy_package(into: Path, source: Path) -> Path:
    """Make a copy of the package that can be changed."""
    copy = Path(tempfile.mkdtemp(dir=into))
    shutil.copytree(source, copy / "dragoman", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def measure(snapshot: Path, folder: Path, files: list[str], jobs: int) -> dict[str, float]:
    """Time every test file on the unchanged package; stop if one fails there."""
    trials = [Trial(Path(file), UNCHANGED, copy_package(folder, snapshot), [[file]]) for file in files]
    Field(jobs, {}, lambda _: None).run(trials)
    failed = [trial for trial in trials if trial.killed_by]
    if failed:
        tails = ((trial.copy / "output.txt").read_text(errors="replace")[-3000:] for trial in failed)
        sys.exit("\n".join(("the tests fail on the unchanged package:", *tails)))
    for trial in trials:
        shutil.rmtree(trial.copy)
    return {str(trial.place): trial.seconds for trial in trials}


class Field:
    """Runs trials, several at a time; where no file's time is known, each may take as long as it likes."""

    def __init__(self, jobs: int, seconds: dict[str, float], done: Callable[[Trial], None]) -> None:
        self._jobs = jobs
        self._seconds = seconds
        self._done = done
        self._runs: dict[int, Run] = {}

    def run(self, trials: list[Trial]) -> None:
        """Run all trials to their end."""
        waiting = [trial for trial in reversed(trials) if trial.stages]
        try:
            while waiting or self._runs:
                while waiting and len(self._runs) < self._jobs:
                    self._start(waiting.pop())
                self._reap(waiting)
        finally:
            for child in self._runs:
                os.killpg(child, signal.SIGKILL)

    def _start(self, trial: Trial) -> None:
        tests = trial.stages.pop(0)
        patience = 10 + 4 * sum(self._seconds[test] for test in tests) if self._seconds else math.inf
        started = time.monotonic()
        self._runs[fork(trial.copy, tests)] = Run(trial, started, started + patience)

    def _reap(self, waiting: list[Trial]) -> None:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            self._judge(self._runs.pop(child), os.waitstatus_to_exitcode(status), waiting)
            return
        for late in [pid for pid, run in self._runs.items() if time.monotonic() > run.deadline]:
            os.killpg(late, signal.SIGKILL)
            os.waitpid(late, 0)
            run = self._runs.pop(late)
            run.trial.killed_by = "timeout"
            self._done(run.trial)
        time.sleep(0.01)

    def _judge(self, run: Run, code: int, waiting: list[Trial]) -> None:
        trial = run.trial
        trial.seconds += time.monotonic() - run.started
        if code in (BROKEN, pytest.ExitCode.USAGE_ERROR):
            tail = (trial.copy / "output.txt").read_text(errors="replace")[-3000:]
            sys.exit(f"a run went wrong in itself (exit {code}):\n{tail}")
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            if trial.stages:
                waiting.append(trial)
                return
        else:
            trial.killed_by = "tests"
        self._done(trial)


def clear_away(trial: Trial) -> None:
    """Remove a judged mutant's copy and show that it went on: killed, killed by time or survived."""
    shutil.rmtree(trial.copy, ignore_errors=True)
    print("." if trial.killed_by == "tests" else "T" if trial.killed_by else "S", end="", flush=True)


def prepare(folder: Path, chosen: list[tuple[Path, Mutant]], snapshot: Path, *, near_only: bool) -> list[Trial]:
    """Write every chosen mutant into a copy of its own."""
    trials: list[Trial] = []
    for place, mutant in chosen:
        copy = copy_package(folder, snapshot)
        (copy / "dragoman" / place).write_bytes(mutant.apply((snapshot / place).read_bytes()))
        trials.append(Trial(place, mutant, copy, stages_for(place, near_only=near_only)))
    return trials


def warm_up() -> None:
    """Import what every run needs and no mutant changes."""
    for name in SDKS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # A found failure is enough: shrinking it would cost minutes. Profiles that tests load inherit this.
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile("mutation", phases=phases, database=None, derandomize=True, deadline=None)
    hypothesis.settings.load_profile("mutation")
    shelf = importlib.import_module("shelf")
    for dialect in shelf.CORPUS_FILES:
        shelf.exchanges(dialect)
    assert "dragoman" not in sys.modules, "the package must be imported by the runs only"
    gc.freeze()


def report(trials: list[Trial], snapshot: Path) -> int:
    """Print survivors and the score; return the exit status."""
    survivors = [trial for trial in trials if not trial.killed_by]
    print("\n")
    for trial in survivors:
        print(f"survived: {PACKAGE.relative_to(ROOT) / trial.place}:{trial.mutant.line} ({trial.mutant.kind})")
        print(trial.mutant.diff((snapshot / trial.place).read_bytes()), end="\n\n")
    killed = len(trials) - len(survivors)
    late = sum(trial.killed_by == "timeout" for trial in trials)
    print(f"killed {killed} of {len(trials)} ({killed / len(trials):.1%}), {late} of them by timeout")
    return 0 if killed >= ENOUGH * len(trials) else 1


def main() -> int:
    """Draw, run, report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="mutate only files whose path contains this")
    parser.add_argument("--near", action="store_true", help="let only the tests of the mutated room judge")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that runs and copies are cleared away
    warm_up()
    with tempfile.TemporaryDirectory(prefix="dragoman-mutants-") as name:
        folder = Path(name)
        snapshot = folder / "snapshot"
        shutil.copytree(PACKAGE, snapshot, ignore=shutil.ignore_patterns("__pycache__"))
        chosen = choose(snapshot, options.seed, options.count, options.only)
        trials = prepare(folder, chosen, snapshot, near_only=options.near)
        files = sorted({test for trial in trials for stage in trial.stages for test in stage})
        seconds = measure(snapshot, folder, files, options.jobs)
        print(f"the unchanged package passes {len(files)} files of tests in {sum(seconds.values()):.0f} s", flush=True)
        Field(options.jobs, seconds, clear_away).run(trials)
        return report(trials, snapshot)


if __name__ == "__main__":
    sys.exit(main())
