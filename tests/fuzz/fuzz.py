# ruff: noqa: T201  # what it prints is its result
"""Fuzz the readers, the dialects and the interpreter: `python tests/fuzz/fuzz.py --seed N --inputs N --jobs N`.

Each job is a process with bounded memory that takes every JOBS-th number. This process watches them: one that dies (memory, a
crash in C) or hangs is a failure of the input it was at, and its work goes on behind that input.
"""

import argparse
import base64
import multiprocessing
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# In the place of this folder, where this very file would stand for the package it belongs to.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from cpu_limit import cpu_limit  # noqa: E402
from fuzz import campaign  # noqa: E402  # the path is set just above
from fuzz.targets import targets  # noqa: E402

MEMORY = 2 << 30
STANDSTILL = 60.0
BATCH = 5_000
TOLD_EVERY = 10.0


@dataclass
class Job:
    """A process at work; `at` is the number of the input it is at."""

    process: Any
    at: Any
    last: int = -1
    since: float = 0.0


def work(seed: int, numbers: range, names: list[str], at: Any, results: Any) -> None:
    """Run in a separate process; report failures as they occur."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    chosen = [targets()[name] for name in names]

    def note(number: int) -> None:
        at.value = number

    for start in range(0, len(numbers), BATCH):
        failures = campaign.run(seed, numbers[start : start + BATCH], chosen, note)
        results.put(list(failures.values()))


class Campaign:
    """All jobs and what they have found."""

    def __init__(self, options: argparse.Namespace, names: list[str]) -> None:
        self.options = options
        self.names = names
        self.context = multiprocessing.get_context("fork")
        self.results = self.context.SimpleQueue()
        self.failures: dict[str, campaign.Failure] = {}
        self.done = 0

    def start(self, numbers: range) -> Job:
        """Start a process on `numbers`."""
        at = self.context.Value("q", numbers.start, lock=False)
        process = self.context.Process(target=work, args=(self.options.seed, numbers, self.names, at, self.results))
        process.start()
        return Job(process, at, since=time.monotonic())

    def note(self, failure: campaign.Failure) -> None:
        """Report a new failure at once; count a known one."""
        known = self.failures.get(failure.what)
        if known is not None:
            known.merge(failure)
            return
        # What kills or hangs a process is not tried again in this one.
        if failure.trace and not failure.what.startswith("Hang"):
            failure = campaign.shrunk(failure)
        self.failures[failure.what] = failure
        print(failure.describe(), flush=True)

    def drain(self) -> None:
        """Receive the reports of the jobs."""
        while not self.results.empty():
            for failure in self.results.get():
                self.note(failure)

    def lost(self, job: Job) -> campaign.Failure | None:
        """Return the input of a process that died or hangs; None while it is running well."""
        now = time.monotonic()
        if job.at.value != job.last:
            job.last, job.since = job.at.value, now
        position = job.process.is_alive() and now - job.since > STANDSTILL
        if not position and (job.process.is_alive() or job.process.exitcode == 0):
            return None
        if position:
            job.process.kill()
            job.process.join()
        target, data = campaign.make(self.options.seed, job.at.value, [targets()[name] for name in self.names])
        how = "stands still" if position else f"died ({job.process.exitcode})"
        return campaign.Failure(target.name, f"{target.name} {how}", data, "")

    def run(self) -> None:
        """Run all inputs."""
        begun = result = time.monotonic()
        stop, step = self.options.start + self.options.inputs, self.options.jobs
        jobs = [self.start(range(self.options.start + first, stop, step)) for first in range(step)]
        while any(job.process.is_alive() for job in jobs):
            time.sleep(0.2)
            self.drain()
            for index, job in enumerate(jobs):
                failure = self.lost(job)
                if failure is not None:
                    self.note(failure)
                    jobs[index] = self.start(range(job.at.value + step, stop, step))
            if time.monotonic() - result > TOLD_EVERY:
                result = time.monotonic()
                done = sum(max(job.at.value - self.options.start, 0) for job in jobs) // step
                rate = done / (result - begun)
                print(f"{done:>10} inputs  {rate:>6.0f}/s  {len(self.failures)} distinct failures", flush=True)
        self.drain()
        self.done = self.options.inputs
        print(f"{self.done} inputs in {time.monotonic() - begun:.0f} s: {len(self.failures)} distinct failures")


def replay(name: str, encoded: str) -> int:
    """Run one input again and show what it does."""
    data = base64.b64decode(encoded)
    print(data[:4000])
    with cpu_limit(campaign.SECONDS) as restart:
        restart()
        failure = campaign.attempt(targets()[name], data)
    print(failure.describe() if failure is not None else "all is well")
    return 1 if failure is not None else 0


def find_matching(words: str) -> list[str]:
    """Names of the targets that hold one of the comma-separated `words`."""
    return [name for name in targets() if any(word in name for word in words.split(","))]


def main() -> int:
    """Parse the command line, run, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--start", type=int, default=0, help="number of the first input")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="targets whose names hold one of these words, comma-separated")
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "BASE64"))
    options = parser.parse_args()
    if options.replay:
        return replay(*options.replay)
    names = find_matching(options.only)
    if not names:
        parser.error(f"no target matches {options.only!r}")
    whole = Campaign(options, names)
    whole.run()
    if whole.failures:
        print("\n".join(["", *(failure.what for failure in whole.failures.values())]))
    return 1 if whole.failures else 0


if __name__ == "__main__":
    sys.exit(main())
