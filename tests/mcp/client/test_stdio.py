"""Servers that are processes and flood, stall or lie: they are stopped, reported and started again."""

import asyncio
import os
import signal

import pytest

from dragoman.mcp.client import process_limits
from mcp_peers import Visit, eventually, plain, text_of, visit_servers

FLOODS = {
    "line": "a message of more than 20000 bytes (`max_message_bytes`)",
    "nonsense": "that answer no request",
    "empty-lines": "that answer no request",
    "notifications": "that answer no request",
    "questions": "that answer no request",
    "false-answers": "that answer no request",
    "stderr": "to stderr in 10 seconds",
}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("kind", FLOODS)
def test_a_server_that_floods_is_killed_and_started_again(kind):
    async def visit(peer: Visit):
        about = await peer.data("p__surroundings")
        result = await peer.call("p__colour")
        status, away = peer.status, await peer.call("p__calls")
        await eventually(lambda: peer.status.connected)
        again = await peer.data("p__surroundings")
        return about["pid"], result, status, away, again["pid"], is_running(about["pid"])

    limit = 20_000 if kind == "line" else 16_000_000
    settings = plain(f"floods-on-call-{kind}", max_message_bytes=limit)
    first, result, status, away, second, survives = visit_servers(visit, p=settings)
    assert result.failed
    assert FLOODS[kind] in text_of(result)
    assert "may or may not have done what was asked" in text_of(result)
    assert (status.connected, FLOODS[kind] in status.error) == (False, True)
    assert away.failed
    assert FLOODS[kind] in text_of(away)
    assert second != first
    assert not survives


def test_a_server_that_floods_at_every_start_is_started_less_and_less_often(tmp_path):
    starts = tmp_path / "starts"

    async def visit(peer: Visit):
        await eventually(lambda: peer.status.failures >= 3)
        return peer.status

    status = visit_servers(visit, p=plain("floods-at-once-line", env={"PLAIN_STARTS": str(starts)}))
    assert "16000000 bytes" in status.error
    assert len(starts.read_text().splitlines()) == status.failures


def test_a_large_message_within_the_limit_arrives_whole():
    async def visit(peer: Visit):
        return await peer.data("p__surroundings")

    word = "x" * 100_000
    assert visit_servers(visit, p=plain(env={"OWN": word}))["environment"]["OWN"] == word


def test_a_server_that_stops_answering_is_killed_after_a_call_timed_out():
    async def visit(peer: Visit):
        about = await peer.data("p__surroundings")
        os.kill(about["pid"], signal.SIGSTOP)
        late = await peer.call("p__colour")
        await eventually(lambda: not peer.status.connected)
        status, away = peer.status, await peer.call("p__colour")
        await eventually(lambda: peer.status.connected)
        return late, status, away, await peer.call("p__colour")

    late, status, away, after = visit_servers(visit, p=plain(timeout=1, connect=3))
    assert "took longer than 1 seconds" in text_of(late)
    assert status.error == "it was stopped, because it answered nothing for 3 seconds"
    assert "it answered nothing for 3 seconds" in text_of(away)
    assert not after.failed


@pytest.mark.slow
def test_a_server_that_stops_answering_is_killed_though_calls_come_all_the_time():
    async def visit(peer: Visit):
        about = await peer.data("p__surroundings")
        os.kill(about["pid"], signal.SIGSTOP)

        async def call_again_and_again(delay: float):
            await asyncio.sleep(delay)
            while peer.status.connected:
                await peer.call("p__colour")

        await asyncio.gather(*(call_again_and_again(delay) for delay in (0, 0.3, 0.6)))
        return peer.status

    status = visit_servers(visit, p=plain(timeout=1, connect=2))
    assert "it answered nothing for" in status.error


def test_an_idle_server_that_stops_answering_pings_is_killed(monkeypatch):
    monkeypatch.setattr(process_limits, "_IDLE_SECONDS", 0.1)

    async def visit(peer: Visit):
        about = await peer.data("p__surroundings")
        await asyncio.sleep(1.5)  # it answers pings
        connected = peer.status.connected
        os.kill(about["pid"], signal.SIGSTOP)
        await eventually(lambda: not peer.status.connected)
        return connected, peer.status

    connected, status = visit_servers(visit, p=plain(connect=3))
    assert connected
    assert status.error == "it was stopped, because it answered nothing for 3 seconds"


@pytest.mark.slow
def test_a_server_that_does_not_read_its_input_is_killed():
    async def visit(peer: Visit):
        about = await peer.data("p__surroundings")
        os.kill(about["pid"], signal.SIGSTOP)
        call = asyncio.create_task(peer.call("p__mumble", {"words": "x" * 1_000_000}))
        await eventually(lambda: not peer.status.connected)
        return await call, peer.status

    result, status = visit_servers(visit, p=plain(timeout=2, connect=3))
    assert result.failed
    assert "it answered nothing for" in status.error


def test_a_slow_call_is_no_reason_to_stop_a_server(monkeypatch):
    monkeypatch.setattr(process_limits, "_IDLE_SECONDS", 0.1)

    async def visit(peer: Visit):
        about = await peer.data("p__surroundings")
        await asyncio.sleep(1)
        os.kill(about["pid"], signal.SIGSTOP)
        call = asyncio.create_task(peer.call("p__colour"))
        await asyncio.sleep(4)
        os.kill(about["pid"], signal.SIGCONT)
        return await call, (await peer.data("p__surroundings"))["pid"] == about["pid"]

    result, is_same = visit_servers(visit, p=plain(timeout=30, connect=2))
    assert not result.failed
    assert is_same
