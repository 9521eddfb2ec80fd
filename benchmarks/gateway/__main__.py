# ruff: noqa: T201  # what it prints is its result
"""Measure the gateway as a process, on traffic that varies, compared with the smallest program that translates."""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from msgspec import to_builtins

from benchmarks.gateway import peers
from benchmarks.gateway.cases import ROUTES, Case, all_cases, chosen
from benchmarks.gateway.measure import FORWARDER, OURS, TRANSLATOR, Row, SideBySideRun
from benchmarks.gateway.program import LOAD_CORE, pin
from benchmarks.gateway.start import start
from benchmarks.gateway.traffic import MODES

_MOST_SECONDS = 1.0
_MOST_MEGABYTES = 80.0
_HELP = f"""
A case is ROUTE:SIZE:MODE, or ROUTE:SIZE:MODE:sse5 for streams with an event every 5 ms. `*` and `?` match names of
the table; other cases can be named in full.

  ROUTE  {" ".join(ROUTES)}
         the client's dialect and the upstream; chat-openai is passed through
  SIZE   small (2 KB, 2 tools), medium (30 KB, 20 tools), large (300 KB, a history of 75 tool rounds)
  MODE   {(chr(10) + "         ").join(f"{mode:9} {what}" for mode, what in MODES.items())}

Columns: microseconds of CPU per request (per event for sse5), medians of the rounds. `x translator` and `x forwarder`
are medians of the rounds' ratios. The translator gets the same conversations as Chat requests for Gemini. LITELLM=PATH
in the environment adds LiteLLM's proxy. The exit status is 1 when an answer was wrong, or with --check when a goal was
missed.
"""


def _columns(names: list[str]) -> list[str]:
    others = [name for name in names if name not in (OURS, TRANSLATOR, FORWARDER)]
    shown = ["case", "bytes", f"{OURS} us", "x translator", "goal", "translator us", "x forwarder"]
    return [*shown, *(cell for name in others for cell in (f"{name} us", f"x {OURS}"))]


def _cells(row: Row, names: list[str]) -> list[str]:
    if row.wrong:
        return [row.name, f"{row.bytes:,}", "WRONG ANSWER", row.wrong]
    goal = "" if row.goal is None else f"{row.goal:g}, missed" if row.is_missed else f"{row.goal:g}"
    shown = [
        *(row.name, f"{row.bytes:,}", f"{row.median(OURS):.1f}", f"{row.ratio(OURS, TRANSLATOR):.2f}", goal),
        *(f"{row.median(TRANSLATOR):.1f}", f"{row.ratio(OURS, FORWARDER):.2f}"),
    ]
    for name in names:
        if name in (OURS, TRANSLATOR, FORWARDER):
            continue
        ratio = f"{row.ratio(name, OURS):.2f}" if name in row.spent else ""
        shown += [f"{row.median(name):.1f}" if name in row.spent else "", ratio]
    return shown


def _measure(options: argparse.Namespace, cases: list[Case], folder: Path) -> int:
    others = dict(_get_named_path(one, at) for at, one in enumerate(options.ours, 2))
    rows: list[Row] = []
    with SideBySideRun(folder, options.rounds, others, peers.litellm_command()) as run:
        if not options.json:
            columns = _columns(run.names)
            print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        for case in cases:
            rows.append(row := run.row(case))
            if not options.json:
                print(f"| {' | '.join(_cells(row, run.names))} |", flush=True)
    if options.json:
        print(json.dumps(to_builtins(rows), indent=1))
    missed = options.check and any(row.is_missed for row in rows if not row.wrong)
    return 1 if missed or any(row.wrong for row in rows) else 0


def _get_named_path(given: str, number: int) -> tuple[str, str]:
    name, separator, path = given.partition("=")
    return (name, path) if separator else (f"{OURS} {number}", given)


def _start(options: argparse.Namespace, folder: Path) -> int:
    found = [start(folder) for _ in range(options.starts)]
    seconds, megabytes = min(one.seconds for one in found), max(one.megabytes for one in found)
    late, large = seconds > _MOST_SECONDS, megabytes > _MOST_MEGABYTES
    if options.json:
        print(json.dumps(to_builtins(found)))
    else:
        print(f"start to first answer: {seconds:.2f} s (goal {_MOST_SECONDS:g}{', missed' if late else ''})")
        print(f"memory, idle: {megabytes:.0f} MB (goal {_MOST_MEGABYTES:g}{', missed' if large else ''})", flush=True)
    return 1 if options.check and (late or large) else 0


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gateway",
        description=__doc__,
        epilog=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["all", "run", "start"], nargs="?", default="all", help="default: all")
    parser.add_argument("--cases", default="*", help="comma-separated names or patterns (default: the whole table)")
    parser.add_argument("--list", action="store_true", help="print the names of the table's cases and exit")
    parser.add_argument("--rounds", type=int, default=5, help="how often all servers take turns (default: 5)")
    parser.add_argument(
        "--ours",
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="measure another dragoman too: its command, or a folder with its package (src); may be repeated",
    )
    parser.add_argument("--starts", type=int, default=3, help="how often it is started (default: 3)")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a goal is missed")
    parser.add_argument("--json", action="store_true", help="print JSON, with every round")
    options = parser.parse_args()
    if options.list:
        print("\n".join(case.name for case in all_cases()))
        return 0
    try:
        cases = chosen(options.cases)
    except ValueError as error:
        parser.error(str(error))
    pin(LOAD_CORE)
    uvloop.install()
    status = 0
    with TemporaryDirectory() as folder:
        if options.what != "run":
            status |= _start(options, Path(folder))
        if options.what != "start":
            status |= _measure(options, cases, Path(folder))
    return status


if __name__ == "__main__":
    sys.exit(main())
