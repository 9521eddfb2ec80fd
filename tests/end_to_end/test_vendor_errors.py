"""Errors in a vendor's own wording: each SDK raises the exception that programs check, and none retries in vain."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

import pytest
import trustme

from dragoman.config import UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.simulator.runner import in_thread
from end_to_end.fault_rows import CLIENTS
from end_to_end.listening import Listener
from server.conftest import Gateway, run_server_gateway

KINDS = {"chat": "openai", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}
VendorReply = tuple[int, dict[str, Any]]


def _openai(status: int, code: str, message: str) -> VendorReply:
    kind = "invalid_request_error" if status == 400 else code
    return status, {"error": {"message": message, "type": kind, "param": None, "code": code}}


_LONG = "This model's maximum context length is 128000 tokens. However, your messages resulted in 200000 tokens."
_BROKE = "You exceeded your current quota, please check your plan and billing details."
_DAILY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "20"}],
}
TOO_LONG: dict[str, VendorReply] = {
    "chat": _openai(400, "context_length_exceeded", _LONG),
    "responses": _openai(400, "context_length_exceeded", _LONG),
    "messages": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 205000 tokens > 200000 maximum",
            },
        },
    ),
    "gemini": (
        400,
        {
            "error": {
                "code": 400,
                "message": "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
                "status": "INVALID_ARGUMENT",
            }
        },
    ),
}
SPENT: dict[str, VendorReply] = {
    "chat": _openai(429, "insufficient_quota", _BROKE),
    "responses": _openai(429, "insufficient_quota", _BROKE),
    "messages": (402, {"type": "error", "error": {"type": "billing_error", "message": _BROKE}}),
    "gemini": (
        429,
        {"error": {"code": 429, "message": _BROKE, "status": "RESOURCE_EXHAUSTED", "details": [_DAILY]}},
    ),
}


class Vendors:
    """Upstreams of every dialect that send the prepared reply."""

    def __init__(self, gateway: Gateway) -> None:
        self.listener = Listener(gateway)
        self.reply: VendorReply = (500, {})
        self.asked = 0

    async def say(self, exchange: Exchange) -> None:
        self.asked += 1
        status, body = self.reply
        await exchange.send(status, {"content-type": "application/json"}, json.dumps(body).encode())


@contextmanager
def answer_with() -> Iterator[Vendors]:
    found: list[Vendors] = []

    async def say(exchange: Exchange) -> None:
        await found[0].say(exchange)

    with ExitStack() as stack:
        server = stack.enter_context(run_in_thread(lambda: listen(say, grace=0.1), "vendors"))
        tables = {
            f"says-{dialect}": UpstreamTable(
                kind=kind, base_url=f"{server.base_url}/v1" if "openai" in kind else server.base_url
            )
            for dialect, kind in KINDS.items()
        }
        simulator = stack.enter_context(in_thread())
        found.append(Vendors(stack.enter_context(run_server_gateway(simulator, upstreams=tables))))
        yield found[0]


@pytest.fixture(scope="module")
def vendors():
    with answer_with() as found:
        yield found


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_context_overflow_is_reported_so_that_programs_shorten_it(vendors, client, source, streamed):
    vendors.reply, vendors.asked = TOO_LONG[source], 0
    received = vendors.listener.listen(client, f"says-{source}/m", streamed=streamed)
    assert (received.status, vendors.asked) == (400, 1)
    if client in {"chat", "responses"}:
        assert received.error.code == "context_length_exceeded"
    if client == "messages":
        assert "prompt is too long" in str(received.error)


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_quota_that_is_spent_is_not_tried_again(vendors, client, source):
    vendors.reply, vendors.asked = SPENT[source], 0
    received = vendors.listener.listen(client, f"says-{source}/m", streamed=False)
    assert vendors.asked == 1
    assert received.status == (402 if client == source == "messages" else 429)
    assert received.error.response.headers["x-should-retry"] == "false"
    if client in {"chat", "responses"}:
        assert (received.status, received.error.code) == (429, "insufficient_quota")
    if client == source == "gemini":
        assert received.error.details["error"]["details"] == [_DAILY]


@asynccontextmanager
async def run_untrusted_server(asked: list[bytes]) -> AsyncIterator[int]:
    """The port of a server with an untrusted certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("localhost").configure_cert(context)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_an_upstream_with_an_invalid_certificate_gets_no_request():
    asked: list[bytes] = []
    with ExitStack() as stack:
        port = stack.enter_context(run_in_thread(lambda: run_untrusted_server(asked), "secured"))
        table = UpstreamTable(kind="openai", base_url=f"https://localhost:{port}/v1", api_key="hush")
        gateway = stack.enter_context(run_server_gateway(stack.enter_context(in_thread()), upstreams={"mine": table}))
        listener = Listener(gateway)
        for client in CLIENTS:
            received = listener.listen(client, "mine/m", streamed=False)
            assert received.status == 502
            assert received.error.response.headers["x-should-retry"] == "false"
        assert [record.tries for record in gateway.wait_for_records(len(CLIENTS))] == [1] * len(CLIENTS)
    assert not asked
