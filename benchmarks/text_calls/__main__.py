# ruff: noqa: T201  # what it prints is its result
"""Run the tasks in every mode and print what each took: `python -m benchmarks.text_calls [--rounds N] [--json]`."""

import argparse
import asyncio
import json
from tempfile import TemporaryDirectory
from time import process_time

from msgspec import Struct, to_builtins

from benchmarks.text_calls.tasks import TASKS, TOOLS, Task
from benchmarks.text_calls.writing import WithoutTools, broken, careless, exact, split_lines
from dragoman.agent import Agent, RunEnded
from dragoman.config import Config, SessionsTable, UpstreamTable
from dragoman.core.parts import Text
from dragoman.gateway.model import ModelCaller
from dragoman.server.services import open_gateway_services
from dragoman.simulator import running
from dragoman.simulator.script import Script
from dragoman.tools import Executor, Registry
from dragoman.upstreams.kind import TextForm


class Mode(Struct, frozen=True):
    """The form of the prompt, and of the model's answer."""

    name: str
    form: TextForm | None = None
    script: Script | None = None


class Row(Struct, frozen=True, kw_only=True):
    """What all tasks took in one mode, of the last round; the time is of the fastest, and per task."""

    mode: str
    tasks: int
    answered: int
    turns: int
    calls: int
    failed: int
    unread: int
    """Runs that ended with a call as text."""
    tokens_in: int
    tokens_out: int
    milliseconds: float


MODES = (
    Mode("native"),
    Mode("text, json", "json", WithoutTools(exact)),
    Mode("text, legacy", "legacy", WithoutTools(split_lines)),
    Mode("text, json, careless model", "json", WithoutTools(careless)),
    Mode("text, json, one call in five broken", "json", WithoutTools(broken)),
)
_HEAD = ("mode", "tasks", "answered", "turns", "calls", "failed", "unread", "tokens in", "out", "ms a task")
_WIDTHS = (38, 7, 10, 7, 7, 8, 8, 11, 7, 11)


async def measure(mode: Mode, rounds: int) -> Row:
    """Run all tasks through the loop, the gateway's model function and the simulator, in this process."""
    best = 0.0
    ended: list[tuple[Task, RunEnded]] = []
    with TemporaryDirectory() as folder:
        async with running(script=mode.script) as simulator:
            table = UpstreamTable(kind="openai", base_url=f"{simulator.base_url}/v1", api_key="k", text_calls=mode.form)
            sessions = SessionsTable(url=f"sqlite:///{folder}/s.db")
            async with open_gateway_services(Config(upstreams={"up": table}, sessions=sessions)) as opened:
                agent = Agent(opened.gateway.model(ModelCaller()), Executor(Registry(*TOOLS)))
                for _ in range(rounds):
                    began = process_time()
                    ended = [(task, await agent.run(task.prompt, model="up/gpt-4.1")) for task in TASKS]
                    seconds = process_time() - began
                    best = min(best or seconds, seconds)
    return _row(mode.name, ended, best)


def _row(name: str, ended: list[tuple[Task, RunEnded]], seconds: float) -> Row:
    statistics = [run.statistics for _, run in ended]
    return Row(
        mode=name,
        tasks=len(ended),
        answered=sum(all(word in _get_text(run) for word in task.wanted) for task, run in ended),
        turns=sum(one.turns for one in statistics),
        calls=sum(one.calls for one in statistics),
        failed=sum(one.failed for one in statistics),
        unread=sum("<tool_call>" in _get_text(run) for _, run in ended),
        tokens_in=sum(one.usage.input or 0 for one in statistics),
        tokens_out=sum(one.usage.output or 0 for one in statistics),
        milliseconds=seconds * 1000 / len(ended),
    )


def _get_text(run: RunEnded) -> str:
    last = run.history[-1]
    return " ".join(part.text for part in last.parts if isinstance(part, Text)) if last.role == "assistant" else ""


def _line(cells: tuple[str, ...]) -> str:
    first, *rest = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    return f"{first.strip():<{_WIDTHS[0]}}" + "".join(rest)


def _print_report(row: Row) -> str:
    counts = (row.tasks, row.answered, row.turns, row.calls, row.failed, row.unread, row.tokens_in, row.tokens_out)
    return _line((row.mode, *map(str, counts), f"{row.milliseconds:.1f}"))


def main() -> None:
    """Measure every mode."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text_calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = [asyncio.run(measure(mode, options.rounds)) for mode in MODES]
    if options.json:
        print(json.dumps(to_builtins(rows), indent=1))
        return
    print(_line(_HEAD))
    for row in rows:
        print(_print_report(row))


if __name__ == "__main__":
    main()
