"""Sessions of `query` in several processes: one turn at a time, and none is lost that failed or was cancelled."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from mcp import Client

import dragoman.simulator
from dragoman.config import Config, ServerTable, SessionsTable, UpstreamTable
from dragoman.mcp.settings import McpTable
from dragoman.server.runner import running
from dragoman.sessions.store import open_store
from dragoman.simulator import Answer, Call, Received, read_fault
from dragoman.tools import tool
from mcp_hosts import post


class Bank:
    """A tool with an effect, which waits until the test releases it."""

    def __init__(self) -> None:
        self.paid = 0
        self.begun, self.free = asyncio.Event(), asyncio.Event()

    @property
    def handler(self) -> Any:
        async def pay() -> str:
            """Pay."""
            self.paid += 1
            self.begun.set()
            await self.free.wait()
            return "paid"

        return tool(pay, side_effects=True)


def pay_or_report(received: Received) -> Any:
    """Pay if the prompt says so, then fail if requested, or report the length of the history."""
    turns = received.request.turns
    if turns[-1].results and not turns[-1].text:
        failing = any("fail" in turn.text for turn in turns if turn.role == "user" and turn.text)
        return read_fault("400") if failing else Answer(text="It is paid.")
    if turns[-1].text.startswith("Pay"):
        return Answer(text="I pay.", calls=(Call(id=f"c{len(turns)}", name="pay", arguments={}),), end="calls")
    return Answer(text=f"{len(turns)} turns")


class Stage:
    """Gateways over one store, and a bank."""

    def __init__(self, stack: AsyncExitStack, folder: Any) -> None:
        self._stack, self._url = stack, f"sqlite:///{folder}/sessions.db"
        self.bank = Bank()
        self.simulator: Any = None

    async def gateway(self, **mcp: Any) -> str:
        if self.simulator is None:
            self.simulator = await self._stack.enter_async_context(dragoman.simulator.running(script=pay_or_report))
        config = Config(
            server=ServerTable(log="off"),
            upstreams={"gemini": UpstreamTable(kind="gemini", base_url=self.simulator.base_url, api_key="k")},
            sessions=SessionsTable(url=self._url),
            mcp=McpTable(**mcp),
        )
        started = running(config, port=0, grace=0.1, tools=[self.bank.handler])
        return (await self._stack.enter_async_context(started)).base_url

    def bodies(self) -> list[str]:
        return [seen.body.decode() for seen in self.simulator.requests]


@pytest.fixture
def scene(tmp_path):
    def play(do: Any) -> None:
        async def run() -> None:
            async with AsyncExitStack() as stack:
                await do(Stage(stack, tmp_path))

        asyncio.run(run())

    return play


async def query(base_url: str, prompt: str, session: str | None = "bills") -> Any:
    async with Client(f"{base_url}/mcp") as client:
        arguments = {"prompt": prompt, "model": "gemini/gemini-3.8-flash"}
        return await client.call_tool("query", arguments | ({"session_id": session} if session else {}))


async def call_mcp(base_url: str, method: str, target: str, **params: Any) -> dict[str, Any]:
    """Send a query as a host that supports tasks."""
    async with httpx2.AsyncClient(timeout=30) as http:
        return (await http.post(f"{base_url}/mcp", **post(method, target, **params))).json()["result"]


async def start_query(base_url: str, prompt: str, session: str = "bills") -> str:
    arguments = {"prompt": prompt, "model": "gemini/gemini-3.8-flash", "session_id": session}
    return (await call_mcp(base_url, "tools/call", "query", name="query", arguments=arguments))["taskId"]


def test_a_failed_call_names_its_session_and_the_next_call_continues_it(scene):
    async def do(stage: Stage) -> None:
        stage.bank.free.set()
        first = await stage.gateway()
        result = await query(first, "Pay, and fail.", None)
        assert result.is_error
        session = result.structured_content["session_id"]
        assert f"(session_id: {session})" in result.content[0].text
        assert result.structured_content["stop_reason"] == "failed"
        assert result.structured_content["statistics"]["calls"] == 1
        assert not (await query(first, "What now?", session)).is_error
        again = stage.bodies()[-1]
        assert again.count("Pay, and fail.") == again.count("I pay.") == again.count('"paid"') == 1
        # And it is kept from then on.
        assert (await query(first, "And now?", session)).structured_content["answer"] == "5 turns"
        assert stage.bodies()[-1].count("I pay.") == 1

    scene(do)


def test_a_prompt_that_failed_is_not_in_the_history(scene):
    async def do(stage: Stage) -> None:
        first = await stage.gateway()
        async with Client(f"{first}/mcp") as client:
            arguments = {"prompt": "Hello.", "session_id": "bills", "model": "gemini/gemini-3.8-flash~400"}
            assert (await client.call_tool("query", arguments)).structured_content["session_id"] == "bills"
        assert (await query(first, "Hello again.")).structured_content["answer"] == "1 turns"
        assert "Hello." not in stage.bodies()[-1]

    scene(do)


def test_what_was_done_is_not_lost_by_another_call_that_fails_after_it(scene):
    async def do(stage: Stage) -> None:
        stage.bank.free.set()
        first = await stage.gateway()
        assert (await query(first, "Pay, and fail.")).is_error
        async with Client(f"{first}/mcp") as client:
            arguments = {"prompt": "Is it paid?", "session_id": "bills", "model": "gemini/gemini-3.8-flash~400"}
            assert (await client.call_tool("query", arguments)).is_error
        assert not (await query(first, "And now?")).is_error
        assert stage.bodies()[-1].count("I pay.") == 1
        assert "Is it paid?" not in stage.bodies()[-1]

    scene(do)


def test_a_call_whose_client_leaves_is_gone_on_from_with_its_open_calls_closed(scene):
    async def do(stage: Stage) -> None:
        first = await stage.gateway()
        waiting = asyncio.create_task(query(first, "Pay."))
        await stage.bank.begun.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        stage.bank.free.set()
        assert not (await query(first, "Was it paid?")).is_error
        again = stage.bodies()[-1]
        assert again.count("I pay.") == 1
        assert "this call was interrupted" in again

    scene(do)


def test_a_task_that_is_cancelled_elsewhere_is_gone_on_from(scene):
    async def do(stage: Stage) -> None:
        first, second = await stage.gateway(), await stage.gateway()
        task = await start_query(first, "Pay.")
        await stage.bank.begun.wait()
        await call_mcp(second, "tasks/cancel", task, taskId=task)
        result = await call_mcp(second, "tasks/get", task, taskId=task)
        assert (result["status"], result["_meta"]["session_id"]) == ("cancelled", "bills")
        assert not (await query(second, "Was it paid?")).is_error
        assert "this call was interrupted" in stage.bodies()[-1]

    scene(do)


def test_a_session_used_by_two_processes_runs_one_turn_at_a_time(scene):
    async def do(stage: Stage) -> None:
        current, second = await stage.gateway(), await stage.gateway(seconds=0.3)
        first = asyncio.create_task(query(current, "Pay."))
        await stage.bank.begun.wait()
        refused = await query(second, "Pay too.")
        assert refused.is_error
        assert "another call is using the session 'bills'" in refused.content[0].text
        assert (stage.bank.paid, len(stage.bodies())) == (1, 1)
        stage.bank.free.set()
        assert (await first).structured_content["answer"] == "It is paid."

    scene(do)


def test_a_second_call_waits_and_continues_from_the_first(scene, tmp_path):
    async def do(stage: Stage) -> None:
        first, second = await stage.gateway(), await stage.gateway()
        store = open_store(f"sqlite:///{tmp_path}/sessions.db")
        await store.claims.acquire("local", "mcp:bills", "somebody")
        calls = [asyncio.create_task(query(base_url, "Hello.")) for base_url in (first, second)]
        done, _ = await asyncio.wait(calls, timeout=0.3)
        assert not done
        await store.claims.release("local", "mcp:bills", "somebody")
        answers = {(await call).structured_content["answer"] for call in calls}
        assert answers == {"1 turns", "3 turns"}
        await store.close()

    scene(do)


def ask(stage: Stage) -> Any:
    """A tool whose result is untrusted, and which sends data out: its second call needs the user's word."""

    async def send(to: str) -> str:
        """Send."""
        stage.bank.paid += 1
        return f"sent to {to}"

    return tool(send, untrusted=True, sends_out=True)


def send_twice(received: Received) -> Answer:
    sent = sum(len(turn.calls) for turn in received.request.turns)
    if sent < 2:
        return Answer(calls=(Call(id=f"s{sent}", name="send", arguments={"to": f"place {sent}"}),), end="calls")
    return Answer(text=received.request.turns[-1].results[0].text)


@pytest.mark.parametrize("approved", [True, False])
def test_a_task_waiting_for_approval_is_visible_and_answered_in_another_process(scene, approved):
    async def do(stage: Stage) -> None:
        stage.simulator = await stage._stack.enter_async_context(dragoman.simulator.running(script=send_twice))
        stage.bank = type("Post", (), {"paid": 0, "handler": ask(stage)})()
        first, second = await stage.gateway(), await stage.gateway()
        task = await start_query(first, "Send.")
        result = await until(second, task, "input_required")
        ((topic, question),) = result["inputRequests"].items()
        assert "place 1" in question["params"]["message"]
        answers = {topic: {"action": "accept", "content": {"approve": approved}}, "cancel": {}}
        await call_mcp(second, "tasks/update", task, taskId=task, inputResponses=answers)
        result = await until(second, task, "completed")
        answer = result["result"]["structuredContent"]["answer"]
        assert ("sent to place 1" in answer) is approved
        assert stage.bank.paid == 1 + approved

    scene(do)


async def until(base_url: str, task: str, status: str) -> dict[str, Any]:
    async with asyncio.timeout(10):
        while True:
            result = await call_mcp(base_url, "tasks/get", task, taskId=task)
            if result["status"] == status:
                return result
            await asyncio.sleep(0.02)
