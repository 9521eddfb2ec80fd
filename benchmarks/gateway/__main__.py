# ruff: noqa: T201  # what it prints is its result
"""Measure the gateway: `python -m benchmarks.gateway [start] [--rounds N] [--seconds S] [--check] [--json]`."""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from msgspec import to_builtins

from benchmarks.gateway import peers
from benchmarks.gateway.measure import Bench, Row
from benchmarks.gateway.program import LOAD_CORE, pin
from benchmarks.gateway.start import started

NO_PEER = "LiteLLM was not found (set LITELLM to its command or its environment), so it is not in the table."
_HEAD = ("what", "gateway us", "forwarder us", "median", "best", "target", "", "LiteLLM us", "best", "target", "")
_WIDTHS = (28, 11, 13, 8, 8, 8, 6, 11, 8, 8, 6)
_MOST_SECONDS = 1.0
_MOST_MEGABYTES = 80.0


def _line(cells: tuple[str, ...]) -> str:
    first, *rest = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    return (f"{first.strip():<{_WIDTHS[0]}}" + "".join(rest)).rstrip()


def _told(row: Row) -> str:
    most = f"{row.most:g}x" if row.most else ""
    beside = (f"{row.forwarder:.1f}", f"{row.median_ratio:.2f}x", f"{row.best_ratio:.2f}x", most, row.verdict)
    peer = ("", "", "", "")
    if row.litellm is not None:
        least = f"{row.least:g}x" if row.least else ""
        peer = (f"{row.litellm:.0f}", f"{row.peer_ratio:.0f}x", least, row.peer_verdict)
    return _line((row.name, f"{row.gateway:.1f}", *beside, *peer))


def _measure(options: argparse.Namespace, folder: Path) -> int:
    command = peers.litellm_command()
    rows: list[Row] = []
    with Bench(folder, command, options.rounds, options.seconds) as bench:
        if not options.json:
            print(_line(_HEAD))
        for row in bench.rows(options.only):
            rows.append(row)
            if not options.json:
                print(_told(row), flush=True)
    if options.json:
        print(json.dumps(to_builtins(rows), indent=1))
    elif command is None:
        print(NO_PEER)
    return 1 if options.check and any("over" in (row.verdict, row.peer_verdict) for row in rows) else 0


def _start(options: argparse.Namespace, folder: Path) -> int:
    found = [started(folder) for _ in range(options.starts)]
    seconds, megabytes = min(one.seconds for one in found), max(one.megabytes for one in found)
    late, large = seconds > _MOST_SECONDS, megabytes > _MOST_MEGABYTES
    if options.json:
        print(json.dumps(to_builtins(found)))
    else:
        print(f"start to first answer: {seconds:.2f} s (target {_MOST_SECONDS:g}) {'over' if late else 'ok'}")
        print(f"memory, idle: {megabytes:.0f} MB (target {_MOST_MEGABYTES:g}) {'over' if large else 'ok'}")
    return 1 if options.check and (late or large) else 0


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument("what", choices=["all", "run", "start"], nargs="?", default="all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long one round of one server is")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose names hold these words")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    pin(LOAD_CORE)
    uvloop.install()
    missed = 0
    with TemporaryDirectory() as folder:
        if options.what != "run":
            missed |= _start(options, Path(folder))
        if options.what != "start":
            missed |= _measure(options, Path(folder))
    return missed


if __name__ == "__main__":
    sys.exit(main())
