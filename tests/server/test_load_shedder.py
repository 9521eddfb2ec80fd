"""While the server has as many requests as it can handle, others are rejected at once, counted, and logged together."""

import logging

import httpx2
import pytest

from dragoman.http.admission import ClientLimits
from dragoman.server import load_shedder
from server.processes import until
from server.test_metrics import total

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/gem:generateContent",
    "mcp": "/mcp",
}
STALLED = {"model": "gemini/gemini-3.8-flash~stall,after=5", "stream": True}
HELLO = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def full(serve):
    """A gateway that handles one request, and can handle no more."""
    gateway = serve(limits=ClientLimits(requests=1))
    with httpx2.stream("POST", f"{gateway.base_url}/v1/chat/completions", json={**STALLED, **HELLO}) as reply:
        chunks = reply.iter_bytes()  # whose end would close the stream
        assert next(chunks)
        yield gateway


@pytest.mark.parametrize("client", PATHS)
def test_a_rejection_is_in_the_clients_dialect_and_has_an_id_of_its_own(full, client):
    replies = [httpx2.post(full.base_url + PATHS[client], json={}) for _ in range(2)]
    for reply in replies:
        assert (reply.status_code, reply.headers["retry-after"]) == (529 if client == "messages" else 503, "1")
        assert "1 open requests; the limit is `requests`" in reply.json()["error"]["message"]
    first, second = (reply.headers["x-dragoman-exchange"] for reply in replies)
    assert first != second
    assert "ex_00000000" not in replies[0].text
    if client == "messages":
        assert replies[0].json()["request_id"] == replies[0].headers["request-id"] == first


def test_monitoring_and_unknown_paths_are_answered_even_then(full):
    assert httpx2.get(f"{full.base_url}/health").status_code == 200
    assert httpx2.get(f"{full.base_url}/ready").json() == {"ready": True}
    httpx2.post(f"{full.base_url}/v1/chat/completions", json=HELLO)
    text = httpx2.get(f"{full.base_url}/metrics").text
    assert total(text, "dragoman_requests_total", operation="generate", status="503", outcome="refused") == 1
    assert total(text, "dragoman_open_requests") == 1


def test_the_connection_can_be_used_for_the_next_request(full):
    with httpx2.Client(base_url=full.base_url) as client:
        for _ in range(3):
            assert client.post("/v1/messages", json=HELLO).status_code == 529
        assert client.get("/health").status_code == 200


def test_rejections_have_one_log_line_together_and_no_record(full, caplog, monkeypatch):
    monkeypatch.setattr(load_shedder, "_SECONDS", 0.5)
    with caplog.at_level(logging.WARNING, logger="dragoman.server.load_shedder"):
        for _ in range(5):
            assert httpx2.post(f"{full.base_url}/v1/messages", json=HELLO).status_code == 529

        def count() -> int:
            return sum(line.args[0] for line in caplog.records if line.name == "dragoman.server.load_shedder")

        until(lambda: count() == 5, seconds=30)
    assert not full.records
