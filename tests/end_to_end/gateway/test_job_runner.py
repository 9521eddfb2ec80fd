"""All agent runs use one job runner: in requests, in background responses and in MCP tasks.

The job runner here keeps what steps returned, as an engine does that outlives a process, and pauses at a
given step. What another gateway continues from there is not done twice.
"""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import pytest

from dragoman.agent import InProcess, Job, Work
from dragoman.agent.values import decode_value, encode_value
from dragoman.config import SessionsTable
from dragoman.gateway.agents.settings import AgentTable
from dragoman.gateway.conversations.runner import LocalJobRunner
from dragoman.sessions.store import Store
from dragoman.simulator import Answer, Call, Received
from dragoman.simulator.runner import in_thread
from dragoman.tools import tool
from end_to_end.gateway.test_background import until_done
from mcp_hosts import post
from server.agents import Client
from server.conftest import Gateway, run_server_gateway
from server.processes import until


class Engine:
    """What outlives a process: the values of steps, and the orders of runs that are not over."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], bytes] = {}
        self.orders: dict[str, Job] = {}
        self.done: list[str] = []
        self.paused_at = ""
        self.stands = threading.Event()

    def job_runner(self, store: Store) -> "Lasting":
        return Lasting(self, store)

    def runtime(self, run: str) -> "RecordedEngine":
        return RecordedEngine(run, self)

    @property
    def kinds(self) -> set[str]:
        """What the runs are called whose steps were done, as far as the first stroke."""
        return {run.partition("_")[0].partition("-")[0] for run, _ in self.values}


class RecordedEngine(InProcess):
    """Executes a step only once, whichever process requests it."""

    def __init__(self, run: str, engine: Engine) -> None:
        super().__init__(run)
        self._engine = engine

    async def step(self, key: str, work: Any) -> Any:
        engine = self._engine
        if (self.run, key) in engine.values:
            return decode_value(engine.values[self.run, key])
        if key == engine.paused_at:
            engine.stands.set()
            await asyncio.Event().wait()
        value = await super().step(key, work)
        engine.values[self.run, key] = encode_value(value)
        engine.done.append(key)
        return value


class Lasting(LocalJobRunner):
    """Carries on what another process has begun."""

    def __init__(self, engine: Engine, store: Store) -> None:
        super().__init__(store.runs, engine.runtime)
        self._engine = engine
        self._recovering: list[asyncio.Task[None]] = []

    async def start(self, order: Job) -> None:
        self._engine.orders[order.run] = order
        await super().start(order)

    def serve(self, kind: str, work: Work) -> None:
        async def once(order: Job, runtime: Any) -> bytes:
            outcome = await work(order, runtime)
            del self._engine.orders[order.run]
            return outcome

        super().serve(kind, once)
        left = [order for order in self._engine.orders.values() if order.kind == kind]
        self._recovering += [asyncio.create_task(super(Lasting, self).start(order)) for order in left]


def script(received: Received) -> Answer:
    """Pay twice, one after the other, and say so."""
    paid = sum(len(turn.calls) for turn in received.request.turns)
    if paid < 2:
        call = Call(id=f"pay_{paid}", name="charge", arguments={"cents": paid + 1})
        return Answer(text=f"Paying {paid + 1}.", calls=(call,), end="calls")
    return Answer(text="Paid.")


class World:
    """Gateways one after the other, over one store and one engine."""

    def __init__(self, folder: Any, simulator: Any) -> None:
        self.engine = Engine()
        self.charged: list[int] = []
        self.simulator = simulator
        self._url = f"sqlite:///{folder}/s.db"

    @contextmanager
    def gateway(self) -> Generator[Gateway]:
        def charge(cents: int) -> str:
            """Charge."""
            self.charged.append(cents)
            return f"charged {cents}"

        with run_server_gateway(
            self.simulator,
            tools=[tool(charge, side_effects=True)],
            agents={"helper": AgentTable(model="gem", tools=("charge",))},
            sessions=SessionsTable(url=self._url),
            more={"job_runner_factory": self.engine.job_runner},
        ) as gateway:
            yield gateway


@pytest.fixture
def world(tmp_path):
    with in_thread(script=script) as simulator:
        yield World(tmp_path, simulator)


STEPS = ["model:1", "tool:pay_0", "model:2", "tool:pay_1", "model:3"]


def test_the_loop_of_a_request_takes_its_steps_there(world):
    with world.gateway() as gateway:
        assert Client(gateway, "chat", stream=False, model="helper").ask("Pay.").text.endswith("Paid.")
    assert world.engine.done == STEPS


def test_another_process_continues_a_background_response_and_repeats_no_step(world):
    world.engine.paused_at = "model:3"
    with world.gateway() as gateway:
        client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))
        begun = client.responses.create(model="helper", input="Pay.", background=True)
        assert world.engine.stands.wait(10)
    world.engine.paused_at = ""
    asked = len(world.simulator.requests)
    with world.gateway() as gateway:
        client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))
        done = until_done(client, begun.id)
        assert done.output_text == "Paying 1.\n\nPaying 2.\n\nPaid."
    assert world.engine.done == STEPS
    assert world.charged == [1, 2]
    assert len(world.simulator.requests) == asked + 1
    assert world.engine.kinds == {"resp"}


def test_a_background_response_of_a_model_alone_is_one_step(world):
    with world.gateway() as gateway:
        client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))
        done = until_done(client, client.responses.create(model="gem", input="Pay.", background=True).id)
        assert done.status == "completed"
    assert world.engine.done == ["model:1"]


def test_another_process_continues_a_task_and_repeats_no_step(world):
    world.engine.paused_at = "model:3"
    with world.gateway() as gateway:
        arguments = {"prompt": "Pay.", "model": "gem", "session_id": "bills"}
        task = ask_of(gateway, "tools/call", "query", name="query", arguments=arguments)["taskId"]
        assert world.engine.stands.wait(10)
    world.engine.paused_at = ""
    with world.gateway() as gateway:
        result = until(lambda: run_to_end(ask_of(gateway, "tasks/get", task, taskId=task)))
        assert result["result"]["structuredContent"]["answer"] == "Paid."
        # What it said stands once in its session.
        arguments = {"prompt": "Again?", "model": "gem", "session_id": "bills"}
        again = ask_of(gateway, "tools/call", "query", name="query", arguments=arguments)["taskId"]
        until(lambda: run_to_end(ask_of(gateway, "tasks/get", again, taskId=again)))
    assert world.engine.done == ["open", *STEPS, "keep", "open", "model:1", "keep"]
    assert world.charged == [1, 2]
    assert world.simulator.requests[-1].body.count(b"Paying 1.") == 1
    assert world.simulator.requests[-1].body.count(b'"Pay."') == 1


def run_to_end(result: dict[str, Any]) -> dict[str, Any] | None:
    return result if result["status"] == "completed" else None


def ask_of(gateway: Gateway, method: str, target: str, **params: Any) -> dict[str, Any]:
    return httpx2.post(f"{gateway.base_url}/mcp", **post(method, target, **params), timeout=30).json()["result"]
