# ruff: noqa: T201  # what it prints is its result
"""Measure and print: `python -m benchmarks [--rounds N] [--only WORDS] [--json] [--check]`."""

import argparse
import json
import sys

from msgspec import Struct, to_builtins

from benchmarks import litellm_peer
from benchmarks.cases import Case, cases
from benchmarks.clock import compare

NO_PEER = "LiteLLM is not installed here, so it is not in the table."
_HEAD = ("what", "bytes", "us", "yardstick us", "median", "best", "target", "")
_WIDTHS = (44, 8, 9, 13, 8, 8, 8, 5)


class Row(Struct, frozen=True):
    """One measured case; times are of one request or one event."""

    name: str
    size: int
    microseconds: float
    yardstick: float
    median_ratio: float
    best_ratio: float
    target: float | None

    @property
    def verdict(self) -> str:
        """Judge by the quietest rounds: a neighbour can only make it slower."""
        return "" if self.target is None else "ok" if self.best_ratio <= self.target else "over"


def measure(case: Case, rounds: int) -> Row:
    """Measure one case."""
    timing = compare(case.work, case.yardstick, rounds)
    return Row(
        name=case.name,
        size=case.size,
        microseconds=timing.microseconds / case.units,
        yardstick=timing.yardstick / case.units,
        median_ratio=timing.median_ratio,
        best_ratio=timing.best_ratio,
        target=case.target,
    )


def _line(cells: tuple[str, ...]) -> str:
    first, *rest = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    return (f"{first.strip():<{_WIDTHS[0]}}" + "".join(rest)).rstrip()


def _print_report(row: Row) -> str:
    target = "" if row.target is None else f"{row.target:g}x"
    ratios = (f"{row.median_ratio:.2f}x", f"{row.best_ratio:.2f}x")
    times = (f"{row.microseconds:.1f}", f"{row.yardstick:.1f}")
    return _line((row.name, str(row.size), *times, *ratios, target, row.verdict))


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", default="", help="rows whose names hold these words")
    parser.add_argument("--check", action="store_true", help="exit with status 1 when a target is missed")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows: list[Row] = []
    if not options.json:
        print(_line(_HEAD))
    for case in cases():
        if options.only not in case.name:
            continue
        rows.append(measure(case, options.rounds))
        if not options.json:
            print(_print_report(rows[-1]), flush=True)
    if options.json:
        print(json.dumps([{**to_builtins(row), "verdict": row.verdict} for row in rows], indent=1))
    elif not litellm_peer.INSTALLED:
        print(NO_PEER)
    return 1 if options.check and any(row.verdict == "over" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
