"""A simulator, an intercepting gateway in front of it, and threads for waiting callers."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dragoman.simulator import Answer, Call, Received
from dragoman.simulator.runner import Running, in_thread
from intercept.surroundings import Between, Upstream, between, upstream


def script(received: Received) -> Answer | None:
    """Call what the prompt names: `call a, b` calls tools a and b; then say what they answered."""
    last = received.request.turns[-1]
    if last.results:
        output = f"; you said: {last.text}" if last.text else ""
        return Answer(text="They said: " + ", ".join(result.text for result in last.results) + output)
    before, _, named = last.text.partition("call ")
    if not named or not received.request.tools:
        return Answer(text=f"You said: {last.text}")
    calls = [
        Call(id=f"id-{name}-{len(received.request.turns)}", name=name, arguments={"city": "Paris"})
        for name in named.split(", ")
    ]
    return Answer(text=before.strip(), calls=tuple(calls), end="calls")


@pytest.fixture(scope="session")
def simulator() -> Generator[Running]:
    """A simulator that calls the tools that the prompt names."""
    with in_thread(script=script) as one:
        yield one


@pytest.fixture(scope="session")
def middle(simulator: Running, tmp_path_factory: Any) -> Generator[Between]:
    """A gateway between clients and the simulator."""
    entries = {
        "me": {"upstream": "google"},
        "inside": {"upstream": "assist"},
        "kept": {"upstream": "google", "strip": "none"},
    }
    with between(simulator.base_url, tmp_path_factory.mktemp("between"), intercept=entries) as one:
        yield one


@pytest.fixture(scope="module")
def server() -> Generator[Upstream]:
    """An upstream that answers as each test says."""
    with upstream() as one:
        yield one


@pytest.fixture
def pool() -> Generator[ThreadPoolExecutor]:
    """Threads for those who wait."""
    with ThreadPoolExecutor(8) as one:
        yield one
