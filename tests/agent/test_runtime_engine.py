"""Agent runs on a durable engine: a small one that stores steps as bytes and crashes at given points."""

import asyncio
from typing import Any

import pytest
from hypothesis import given

from agent.scripted import Scripted, call, reply, text_of, user_request
from dragoman.agent import Agent, Approvals, Limits, RunEnded
from dragoman.agent.runtime import InProcess
from dragoman.agent.values import decode_value, encode_value
from dragoman.core.parts import Text
from dragoman.core.stream import replay
from dragoman.tools import Execution, Executor, Registry, tool
from strategies import responses, results


class Died(BaseException):
    """The process is gone."""


class Engine(InProcess):
    """Stores the results of steps and the messages of topics, so that a new process finds them."""

    def __init__(self, run: str, memory: dict[str, bytes], dies_at: str = "", *, after: bool = False) -> None:
        super().__init__(run, max_pending=10**6)
        self.memory, self._dies_at, self._after = memory, dies_at, after
        self.did: list[str] = []

    async def step(self, key: str, work: Any) -> Any:
        if key in self.memory:
            return decode_value(self.memory[key])
        if key == self._dies_at and not self._after:
            raise Died
        value = await super().step(key, work)
        self.memory[key] = encode_value(value)
        self.did.append(key)
        if key == self._dies_at:
            raise Died
        return value


TURNS = (
    [Text(text="Two things."), call("charge", {"cents": 1}, "a"), call("charge", {"cents": 2}, "b")],
    [call("charge", {"cents": 3}, "a")],
    [Text(text="Paid.")],
)


async def model(request):
    """Say what comes next in the history, whichever process asks."""
    turn = sum(message.role == "assistant" for message in request.messages)
    for event in replay(reply(TURNS[turn], turn + 1)):
        yield event


class World:
    """What a run does, counted."""

    def __init__(self) -> None:
        self.charged: list[int] = []

        @tool(side_effects=True)
        async def charge(cents: int) -> str:
            """Charge."""
            await asyncio.sleep(0.001 * (3 - cents))
            self.charged.append(cents)
            return f"charged {cents}"

        self.tools = (charge,)

    def agent(self) -> Agent:
        """An agent as a new process would make it."""
        return Agent(model, Executor(Registry(*self.tools)), approve=Approvals())


KEYS = ["model:1", "approve:a", "approve:b", "tool:a", "tool:b", "model:2", "approve:a#2", "tool:a#2", "model:3"]


def run_job(world: World, engine: Engine) -> RunEnded | None:
    async def run():
        try:
            return await world.agent().run_on(user_request("Pay."), engine, run="r")
        except (Died, BaseExceptionGroup):  # calls run in a group
            return None

    return asyncio.run(run())


def test_a_run_that_is_not_disturbed_has_these_steps():
    world, engine = World(), Engine("r", {})
    ended = run_job(world, engine)
    assert sorted(engine.did) == sorted(KEYS)
    assert ended.stop == "finished"
    assert sorted(world.charged) == [1, 2, 3]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("key", KEYS)
def test_wherever_a_process_dies_another_one_continues_the_run(key, after):
    whole = run_job(World(), Engine("r", {}))
    world, memory = World(), {}
    assert run_job(world, Engine("r", memory, key, after=after)) is None
    known = set(memory)
    second = Engine("r", memory)
    ended = run_job(world, second)
    assert ended.history == whole.history
    assert ended.stop == "finished"
    assert not known & set(second.did), "what had ended was not done again"
    assert set(world.charged) == {1, 2, 3}
    # A call that was under way beside one at which the process died is begun again, with the same idempotency key.
    assert world.charged.count(3) == 1


def test_an_answer_that_came_while_the_process_was_gone_is_found():
    world, memory = World(), {}
    made = Agent(
        Scripted([call("charge", {"cents": 1}, "a")], [Text(text="Paid.")]),
        Executor(Registry(*world.tools)),
        approve=Approvals(others="deny", side_effects="ask"),
        limits=Limits(approval=5),
    )

    async def run():
        engine = Engine("r", memory)
        engine.tell("approval:a", "allow")
        return await made.run_on(user_request("Pay."), engine, run="r")

    assert asyncio.run(run()).stop == "finished"
    assert world.charged == [1]


@given(responses())
def test_a_model_reply_survives_serialization(response):
    assert decode_value(encode_value(response)) == response


@given(results())
def test_what_became_of_a_call_is_kept_but_for_its_handler(result):
    execution = Execution(result=result, outcome="oversized", milliseconds=1.5, size=7, repeated=True)
    assert decode_value(encode_value(execution)) == execution


def test_text_survives_serialization():
    assert decode_value(encode_value("allow")) == "allow"


@pytest.mark.parametrize(
    "kept", [b"", b"{}", b'{"type":"other"}', b'{"type":"execution","outcome":"failed","answered":[]}']
)
def test_bytes_that_are_no_value_are_refused(kept):
    with pytest.raises(ValueError, match=r".+"):
        decode_value(kept)


def test_the_text_of_a_result_survives_serialization():
    world, engine = World(), Engine("r", {})
    run_job(world, engine)
    assert text_of(decode_value(engine.memory["tool:a#2"]).result) == "charged 3"
