"""A server made with the official SDK, over stdio and HTTP, in both revisions of the protocol."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import httpx2
import pytest
from mcp_types import ElicitResult
from opentelemetry import trace

from dragoman.core.parts import Data, Inline, Media, Plain, Text
from dragoman.mcp.client import Abilities
from dragoman.mcp.settings import ToolServer
from dragoman.tools import progress_to
from mcp_peers import PEERS, Visit, eventually, text_of, visit_servers

PEER = str(PEERS / "peer.py")
ERAS = ["2025-11-25", "auto"]
SPOKEN = {"2025-11-25": "2025-11-25", "auto": "2026-07-28"}


@contextlib.contextmanager
def listen(directory: Path, port: int = 0) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """A server on a port, and its process."""
    result = directory / f"port-{time.monotonic_ns()}"
    process = subprocess.Popen([sys.executable, PEER, "http", str(result), str(port)], env={"PATH": os.environ["PATH"]})  # noqa: S603
    try:
        deadline = time.monotonic() + 60
        while not (result.exists() and result.read_text()):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"http://127.0.0.1:{result.read_text()}/mcp", process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with listen(tmp_path_factory.mktemp("peer")) as (url, _):
        yield url


@pytest.fixture(params=ERAS)
def http(request, address):
    return ToolServer(url=address, protocol=request.param)


def stdio(protocol: str = "auto", **more: str) -> ToolServer:
    return ToolServer(command=sys.executable, args=(PEER, "stdio"), protocol=protocol, env=more)


async def all_contents(peer: Visit):
    return await peer.call("peer__everything")


def assert_all_contents(result) -> None:
    assert not result.failed
    words, image, audio, link, note, paper, structured = result.content
    assert words == Text(text="words")
    assert (image.kind, image.media_type) == ("image", "image/png")
    assert audio == Media(kind="audio", media_type="audio/wav", source=Inline("UklGRg=="))
    assert link == Data(json=b'{"type":"resource_link","name":"report","uri":"peer://report","mimeType":"text/csv"}')
    assert note == Media(kind="document", media_type="text/markdown", source=Plain("# note"), name="peer://note")
    assert (paper.kind, paper.name) == ("document", "peer://f.pdf")
    assert structured == Data(json=b'{"kept":true}')


@pytest.mark.parametrize("era", ERAS)
def test_over_stdio_every_content_comes_through(era):
    async def visit(peer: Visit):
        return peer.status, await peer.call("peer__everything"), await peer.call("peer__ask")

    status, result, asked = visit_servers(visit, peer=stdio(era))
    assert status.protocol == SPOKEN[era]
    assert (status.transport, status.server) == ("stdio", "peer 1.2")
    assert_all_contents(result)
    assert asked.failed


def test_over_http_every_content_comes_through(http):
    async def visit(peer: Visit):
        return peer.status, await peer.call("peer__everything")

    status, result = visit_servers(visit, peer=http)
    assert (status.transport, status.protocol) == ("http", SPOKEN[http.protocol])
    assert_all_contents(result)


def test_structured_output_errors_and_odd_names(http):
    async def visit(peer: Visit):
        (odd,) = (name for name in peer.servers.registry.names if "odd" in name)
        return odd, await peer.data("peer__add", {"a": 2, "b": 3}), await peer.call("peer__fail"), await peer.call(odd)

    odd, total, failed, answered = visit_servers(visit, peer=http)
    assert total == {"total": 5}
    assert (failed.failed, text_of(failed)) == (True, "the printer is on fire")
    assert len(odd) == 64
    assert odd.startswith("peer__a_very_odd_name_that_is")
    assert text_of(answered) == "odd"


def test_progress_reaches_the_call_it_belongs_to(http):
    collected = []

    async def visit(peer: Visit):
        with progress_to(collected.append):
            return await peer.call("peer__steps")

    assert text_of(visit_servers(visit, peer=http)) == "done"
    assert [(each.call.name, each.done, each.total, each.message) for each in collected] == [
        ("peer__steps", 1, 2, "one"),
        ("peer__steps", 2, 2, "two"),
    ]


@pytest.mark.parametrize("era", ERAS)
def test_a_cancelled_call_is_cancelled_at_the_server(address, tmp_path, era):
    marks = tmp_path / "marks"

    async def visit(peer: Visit):
        call = asyncio.create_task(peer.call("peer__hang", {"marks": str(marks)}))
        await eventually(lambda: marks.exists() and marks.read_text() == "begun")
        call.cancel()
        await eventually(lambda: marks.read_text() == "cancelled")
        return await peer.call("peer__add", {"a": 1, "b": 1})

    assert not visit_servers(visit, peer=ToolServer(url=address, protocol=era)).failed


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_takes_too_long_is_cancelled_at_the_server(address, tmp_path, era):
    marks = tmp_path / "marks"

    async def visit(peer: Visit):
        result = await peer.call("peer__hang", {"marks": str(marks)})
        await eventually(lambda: marks.read_text() == "cancelled")
        return result

    result = visit_servers(visit, peer=ToolServer(url=address, protocol=era, timeout=2))
    assert "took longer than 2 seconds" in text_of(result)


def test_changed_tools_are_notified_over_http(http):
    async def visit(peer: Visit):
        await peer.call("peer__change", {"words": "Tell another colour."})
        await eventually(lambda: peer.status.blocked)
        blocked = peer.status.blocked
        await peer.call("peer__change", {"words": "Tell the colour."})
        await eventually(lambda: not peer.status.blocked)
        return blocked

    assert [each.name for each in visit_servers(visit, peer=http)] == ["peer__colour"]


@pytest.mark.parametrize("era", [pytest.param(ERAS[0], marks=pytest.mark.slow), ERAS[1]])
def test_a_server_that_is_killed_over_http_fails_its_calls_at_once_and_is_found_again(tmp_path, era):
    with contextlib.ExitStack() as stack:
        url, process = stack.enter_context(listen(tmp_path))

        async def visit(peer: Visit):
            marks = tmp_path / "marks"
            call = asyncio.create_task(peer.call("peer__hang", {"marks": str(marks)}))
            await eventually(marks.exists)
            process.kill()
            result = await call
            process.wait()
            away = await peer.call("peer__add", {"a": 1, "b": 1})
            port = int(url.rpartition(":")[2].partition("/")[0])
            await asyncio.to_thread(lambda: stack.enter_context(listen(tmp_path, port)))
            await eventually(lambda: peer.status.connected)
            return result, away, await peer.data("peer__add", {"a": 1, "b": 1})

        result, away, after = visit_servers(visit, peer=ToolServer(url=url, protocol=era))
    assert result.failed
    assert away.failed
    assert "not available" in text_of(away)
    assert after == {"total": 2}


def test_a_server_that_has_forgotten_us_is_reminded_without_a_failure(address):
    async def visit(peer: Visit):
        before = text_of(await peer.call("peer__session"))
        async with httpx2.AsyncClient() as client:
            await client.delete(address, headers={"mcp-session-id": before})
        return before, await peer.call("peer__session"), await peer.call("peer__session")

    before, first, second = visit_servers(visit, peer=ToolServer(url=address, protocol="2025-11-25"))
    assert not first.failed
    assert text_of(first) == text_of(second) != before


async def answer(_, params):
    return ElicitResult(action="accept", content={"total": 7})


@pytest.mark.parametrize(("era", "name"), [("2025-11-25", "ask"), ("auto", "inquire")])
def test_a_tool_that_sends_an_elicitation_fails_unless_a_program_answers(address, era, name):
    async def visit(peer: Visit):
        return await peer.call(f"peer__{name}")

    settings = ToolServer(url=address, protocol=era)
    refused = visit_servers(visit, peer=settings)
    assert refused.failed
    assert "asks back before it answers, which is not supported here (Elicitation not supported)" in text_of(refused)
    result = visit_servers(visit, Abilities(elicit=answer), peer=settings)
    assert not result.failed
    assert "7" in text_of(result)


def test_a_trace_context_is_forwarded(http):
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=trace.TraceFlags(1))

    async def visit(peer: Visit):
        with trace.use_span(trace.NonRecordingSpan(context)):
            return await peer.data("peer__meta")

    assert visit_servers(visit, peer=http)["meta"]["traceparent"] == f"00-{0xABC:032x}-{0xDEF:016x}-01"
