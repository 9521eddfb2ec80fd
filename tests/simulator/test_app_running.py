"""A simulator for users' tests: in asyncio, in a thread, and as a fixture."""

import asyncio

import httpx2
import pytest

from dragoman import simulator
from dragoman.simulator import Settings, state

BODY = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Say hello."}]}
KEY = {"authorization": "Bearer k"}


def test_a_simulator_runs_as_long_as_its_block():
    async def steps() -> str:
        async with simulator.running(seed=3) as running:
            async with httpx2.AsyncClient() as client:
                reply = await client.post(running.base_url + "/v1/chat/completions", json=BODY, headers=KEY)
            assert reply.status_code == 200
            assert running.requests[0].json() == BODY
            assert running.simulator.settings.seed == 3
            return running.base_url

    url = asyncio.run(steps())
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(url + "/health")


def test_the_same_seed_gives_the_same_answer():
    def ask(seed: int) -> str:
        with simulator.in_thread(Settings(seed=seed)) as running:
            reply = httpx2.post(running.base_url + "/v1/chat/completions", json=BODY, headers=KEY).json()
        return reply["choices"][0]["message"]["content"]

    assert ask(1) == ask(1)


def test_a_port_in_use_is_reported_at_startup():
    with (
        simulator.in_thread() as running,
        pytest.raises(OSError, match="in use"),
        simulator.in_thread(port=running.port),
    ):
        pass


@pytest.mark.parametrize("options", [{"fault": "burn"}, {"chunk": -1}, {"delay": float("nan")}, {"split": -3}])
def test_invalid_settings_are_reported_at_startup(options):
    with (
        pytest.raises(ValueError, match=r"not a fault|must be 0 or a positive finite number"),
        simulator.in_thread(**options),
    ):
        pass


def test_settings_and_keyword_options_cannot_be_combined():
    with (
        pytest.raises(TypeError, match="Pass either settings or keyword options"),
        simulator.in_thread(Settings(), seed=1),
    ):
        pass


def test_what_came_in_is_forgotten_when_it_gets_too_much(monkeypatch):
    monkeypatch.setattr(state, "_MOST_BYTES", 1000)
    with simulator.in_thread() as running:
        for size in (400, 401, 402):
            httpx2.post(running.base_url + "/v1/chat/completions", content=b"x" * size, headers=KEY)
        assert [len(seen.body) for seen in running.requests] == [401, 402]


def test_the_fixture_runs_a_simulator(dragoman_simulator):
    assert httpx2.get(dragoman_simulator.base_url + "/health").json()["simulator"] is True


@pytest.mark.dragoman(fault="503", key="k")
def test_a_mark_sets_how_it_behaves(dragoman_simulator):
    assert httpx2.post(dragoman_simulator.base_url + "/v1/chat/completions", json=BODY, headers=KEY).status_code == 503


def test_unknown_names_are_reported():
    with pytest.raises(AttributeError, match="no attribute 'walking'"):
        simulator.walking  # noqa: B018
