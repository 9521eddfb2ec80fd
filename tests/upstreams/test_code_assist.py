"""Code Assist's set-up: which project an account has, found out once, or set up where it may."""

import asyncio
import json

import pytest

from dragoman.config import UpstreamTable
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.http.client import Client, Outgoing
from dragoman.server.services import open_running_upstream
from dragoman.simulator.runner import in_thread
from dragoman.upstreams import code_assist
from dragoman.upstreams.code_assist import CodeAssist
from dragoman.upstreams.google_tokens import FixedToken, GoogleAccount

CALL = Call(b'{"model":"gemini-3.8-flash","request":{"contents":[]}}', "gemini-3.8-flash")


def ask(base_url: str, project: str, times: int = 1) -> list[Outgoing]:
    """Address requests of an account, with the set-up that goes before."""

    async def steps() -> list[Outgoing]:
        client = Client()
        table = UpstreamTable(kind="code-assist", base_url=base_url, project=project, access_token="t")  # noqa: S106
        upstream = open_running_upstream("assist", table, client)(CALL.model)
        try:
            return await asyncio.gather(*(upstream.generate(CALL, ()) for _ in range(times)))
        finally:
            await client.close()

    return asyncio.run(steps())


@pytest.mark.parametrize(
    ("project", "verbs"),
    [
        ("", ["loadCodeAssist"]),
        ("mine", ["loadCodeAssist"]),
        ("new-one", ["loadCodeAssist", "onboardUser"]),
    ],
)
def test_the_project_of_an_account_is_found_out_once_and_sent_with_every_request(project, verbs):
    with in_thread() as simulator:
        sent = ask(simulator.base_url, project, times=5)
        assert [seen.target.partition(":")[2] for seen in simulator.requests] == verbs
    assert len({json.loads(outgoing.body)["project"] for outgoing in sent}) == 1
    assert json.loads(sent[0].body)["project"]
    assert json.loads(sent[0].body)["request"] == {"contents": []}


def test_a_slow_setup_is_polled(monkeypatch):
    monkeypatch.setattr(code_assist, "_POLL_SECONDS", 0.01)
    with in_thread() as simulator:
        assert json.loads(ask(simulator.base_url, "new-slow")[0].body)["project"]
        assert simulator.requests[-1].method == "GET"


def test_a_rejected_setup_is_a_gateway_error():
    with in_thread(key="another") as simulator, pytest.raises(Problem) as error:
        ask(simulator.base_url, "mine")
    assert (error.value.status, error.value.code) == (502, "credentials")


@pytest.mark.parametrize(
    ("loaded", "words"),
    [
        ({"ineligibleTiers": [{"reasonMessage": "your country is not served"}]}, "your country is not served"),
        ({}, "no tier is available"),
        ({"currentTier": {"id": "standard-tier"}}, "set `project`"),
    ],
)
def test_an_ineligible_account_gets_the_reason(loaded, words):
    async def send(_: Outgoing) -> dict:
        return loaded

    upstream = CodeAssist("assist", "", GoogleAccount("", FixedToken("t")), "a", send)
    with pytest.raises(Problem, match=words):
        asyncio.run(upstream.generate(CALL, ()))
