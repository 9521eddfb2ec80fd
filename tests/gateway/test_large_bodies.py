"""Large bodies are handled in a process of their own, exactly as small ones are handled in the gateway."""

import asyncio
import json
import os
import pickle
import signal
import time
from itertools import product
from pathlib import Path

import pytest
from msgspec import Struct, structs

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS
from dragoman.gateway import large_bodies
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.errors import Rejection
from dragoman.gateway.large_bodies import LargeBodies
from dragoman.gateway.router import Target
from dragoman.gateway.signatures import SignatureStore
from dragoman.gateway.upstream_call import UpstreamClient
from dragoman.interpreter.choices import SeveralChoices
from dragoman.interpreter.translate import translate_request
from dragoman.server.services import LARGE_BODY_PROCESS
from dragoman.sessions.signatures import SignatureRow

MODELS = {"chat": "gpt-5.4", "responses": "gpt-5.4", "messages": "claude-opus-4-8", "gemini": "gemini-3-flash"}
WEATHER = Path(__file__).parents[2].joinpath("examples/weather.chat.json").read_bytes()


class _Upstream(Struct, frozen=True):
    name: str
    dialect: str
    form: str = ""


def build_request(dialect: str, **members) -> ClientRequest:
    body = json.loads(translate_request(Call(WEATHER), "chat", dialect, model=MODELS[dialect]).call.body)
    call = Call(json.dumps({**body, **members}).encode(), MODELS[dialect])
    return ClientRequest(dialect=dialect, call=call, is_large=True)


def build_target(dialect: str) -> Target:
    return Target(_Upstream("upstream", dialect), MODELS[dialect], signs=True)


def build_client(bodies: LargeBodies, store: SignatureStore | None = None) -> UpstreamClient:
    return UpstreamClient(None, store, large_translator=bodies)


@pytest.fixture
def run():
    """Run a coroutine with large bodies whose process ends with the test."""

    async def run_with(work):
        bodies = LargeBodies(LARGE_BODY_PROCESS)
        try:
            async with asyncio.timeout(120):
                return await work(bodies)
        finally:
            await bodies.close()

    return lambda work: asyncio.run(run_with(work))


def test_every_pair_of_dialects_gives_the_same_translation_as_in_the_gateway(run):
    async def work(bodies):
        for client, upstream in product(DIALECTS, repeat=2):
            request, target = build_request(client), build_target(upstream)
            ours = await build_client(bodies).translate(request, target)
            expected = await UpstreamClient(None).translate(request, target)
            assert (ours.call, ours.losses, ours.undo) == (expected.call, expected.losses, expected.undo)
            plain = structs.replace(expected.request, messages=()) if expected.request is not None else None
            kept = structs.replace(ours.request, messages=()) if ours.request is not None else None
            assert pickle.dumps(kept) == pickle.dumps(plain) or kept == plain
            if expected.request is not None:
                assert len(ours.request.messages) == len(expected.request.messages)

    run(work)


def test_a_bad_request_is_the_same_error(run):
    async def work(bodies):
        request = build_request("chat", tools=[{"type": "function", "function": {"name": "f", "parameters": 1}}])
        with pytest.raises(Problem) as expected:
            await UpstreamClient(None).translate(request, build_target("gemini"))
        with pytest.raises(Problem) as ours:
            await build_client(bodies).translate(request, build_target("gemini"))
        assert ours.value == expected.value

    run(work)


def test_a_rejection_is_located_in_the_clients_request(run):
    async def work(bodies):
        request, target = build_request("chat"), build_target("messages")
        message = "tools.0.input_schema: JSON schema is invalid"
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        rejection = Rejection(400, (), json.dumps(error).encode())
        problem = await bodies.map_rejection(request, target, None, rejection)
        assert (problem.status, message in problem.message) == (400, True)

    run(work)


def test_several_choices_are_asked_of_the_caller(run):
    async def work(bodies):
        request = build_request("chat", n=3)
        with pytest.raises(SeveralChoices) as several:
            await build_client(bodies).translate(request, build_target("messages"))
        assert several.value.count == 3

    run(work)


class _Table:
    """Has signatures of some calls, and records what is looked up."""

    def __init__(self, saved=None) -> None:
        self.asked = []
        self._saved = saved or {}

    async def has_any(self, owner):
        return True

    async def find(self, owner, ids):
        self.asked += ids
        return self._saved


def test_signatures_that_the_translation_needs_are_looked_up_once(run):
    table = _Table()

    async def work(bodies):
        calls = [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        history = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "call_1", "content": "1"},
        ]
        request, target = build_request("chat", messages=history), build_target("gemini")
        ours = await build_client(bodies, SignatureStore(table)).translate(request, target)
        expected = await UpstreamClient(None, SignatureStore(_Table())).translate(request, target)
        assert ours.call == expected.call

    run(work)
    assert table.asked == ["call_1"]


def test_signatures_recorded_for_another_vendor_are_removed_from_a_request_of_the_targets_dialect(run):
    signature = "c2lnbmVkIGJ5IGdvb2dsZQ=="
    table = _Table({"call_1": {"digest": SignatureRow("google", signature)}})

    async def work(bodies):
        made = {"type": "tool_use", "id": "call_1", "name": "f", "input": {}}
        thinking = {"type": "thinking", "thinking": "Hm.", "signature": signature}
        history = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [thinking, made]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "1"}]},
        ]
        request, target = build_request("messages", messages=history), build_target("messages")
        ours = await build_client(bodies, SignatureStore(table)).translate(request, target)
        expected = await UpstreamClient(None, SignatureStore(table)).translate(request, target)
        assert (ours.call, ours.losses) == (expected.call, expected.losses)
        assert signature.encode() not in ours.call.body
        (loss,) = ours.losses
        assert "signed by google" in loss.what

    run(work)


def test_a_process_that_dies_is_replaced(run):
    async def work(bodies):
        first = await bodies.run(os.getpid)
        assert first != os.getpid()
        with pytest.raises(Problem, match="has ended"):
            await bodies.run(os.kill, first, signal.SIGKILL)
        assert await bodies.run(os.getpid) not in {first, os.getpid()}

    run(work)


def test_a_cancelled_call_ends_the_process_and_the_next_has_another(run):
    async def work(bodies):
        first = await bodies.run(os.getpid)
        call = asyncio.create_task(bodies.run(time.sleep, 3600))
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await bodies.run(os.getpid) != first
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)

    run(work)


def test_a_body_that_takes_too_long_is_rejected(run, monkeypatch):
    monkeypatch.setattr(large_bodies, "_MOST_SECONDS", 0.2)

    async def work(bodies):
        with pytest.raises(Problem, match=r"takes more than 0\.2 seconds") as error:
            await bodies.run(time.sleep, 3600)
        assert error.value.status == 400

    run(work)


def test_a_bounded_number_of_bodies_waits(run, monkeypatch):
    monkeypatch.setattr(large_bodies, "_MOST_WAITING", 1)

    async def work(bodies):
        calls = [asyncio.create_task(bodies.run(time.sleep, 3600)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Problem) as error:
            await bodies.run(os.getpid)
        assert (error.value.status, error.value.retry_after) == (503, 5)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)

    run(work)


def test_an_unexpected_error_has_the_traceback_of_the_process(run):
    async def work(bodies):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            await bodies.run(divmod, 1, 0)

    run(work)


def test_an_idle_process_ends(run, monkeypatch):
    monkeypatch.setattr(large_bodies, "_IDLE_SECONDS", 0.0)

    async def work(bodies):
        first = await bodies.run(os.getpid)
        end = asyncio.get_running_loop().time() + 30
        while asyncio.get_running_loop().time() < end:
            try:
                os.kill(first, 0)
            except ProcessLookupError:
                return
            await asyncio.sleep(0.05)
        pytest.fail("it did not end")

    run(work)
