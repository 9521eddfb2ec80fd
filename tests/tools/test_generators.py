"""Generators report progress with what they yield."""

import asyncio

import pytest

from dragoman.core.parts import ToolCall
from dragoman.tools import Executor, Registry, ToolFailure, progress_to, tool
from dragoman.tools.generators import run_generator


@tool
def returns(count: int):
    """Yield numbers and return a text."""
    for number in range(count):
        yield number + 1
    return "done"


@tool
def yields_last(count: int):
    """Yield texts; the last one is the result."""
    for number in range(count):
        yield f"text {number}"


@tool
async def streams(count: int):
    """Yield pairs, then the result."""
    for number in range(count):
        yield number + 1, count, f"step {number}"
    yield {"total": count}


@tool
async def fails(count: int):
    """Yield, then fail."""
    yield count
    raise ToolFailure("no more")


class Counter:
    async def __call__(self, count: int):
        """Count."""
        yield count
        yield "counted"


def run(handler, arguments='{"count": 2}'):
    async def execute():
        reports = []
        with progress_to(reports.append):
            result = await Executor(Registry(handler)).execute(ToolCall(id="c", name=handler.name, arguments=arguments))
        part = result.content[0]
        shown = part.text if hasattr(part, "text") else part.json.decode()
        return shown, [(each.done, each.total, each.message) for each in reports]

    return asyncio.run(execute())


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (returns, ("done", [(1, None, ""), (2, None, "")])),
        (yields_last, ("text 1", [(1, None, "text 0")])),
        (streams, ('{"total":2}', [(1, 2, "step 0"), (2, 2, "step 1")])),
        (fails, ("no more", [])),
        (tool(name="count")(Counter()), ("counted", [(2, None, "")])),
    ],
)
def test_what_is_yielded_is_progress_and_the_end_is_the_result(handler, expected):
    assert run(handler) == expected


def test_a_generator_without_a_listener_runs_to_its_end():
    assert run_generator(value for value in "abc") == "c"
