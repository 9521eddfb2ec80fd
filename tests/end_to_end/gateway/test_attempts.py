"""Every call of an upstream is recorded with its outcome and cause; the address of an upstream is for the log only."""

import socket

import httpx2
import pytest

from dragoman.config import UpstreamTable
from server.log_records import render_line
from server.test_metrics import total

HELLO = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def closed_port():
    """A port at which nothing listens as long as the test runs."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


def start(serve, port, *targets):
    dead = UpstreamTable(kind="openai", base_url=f"http://127.0.0.1:{port}/v1", api_key="k")
    return serve(upstreams={"dead": dead}, models={"m": targets})


def test_a_failed_fallback_is_recorded_with_its_cause(serve, closed_port):
    gateway = start(serve, closed_port, "dead/m", "gemini/gemini-3.8-flash~429", "gemini/gemini-3.8-flash")
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json={"model": "m", **HELLO}, timeout=60)
    assert reply.status_code == 200
    shown = httpx2.get(f"{gateway.base_url}/v1/exchanges/{reply.headers['x-dragoman-exchange']}")
    attempts = shown.json()["attempts"]
    assert [(attempt["upstream"], attempt["outcome"], attempt["cause"]) for attempt in attempts] == [
        ("dead", "failed", "refused"),
        ("gemini", "failed", "status 429"),
        ("gemini", "answered", ""),
    ]
    assert all(attempt["seconds"] >= 0 for attempt in attempts)
    assert str(closed_port) not in shown.text
    line = render_line(gateway.wait_for_records(1)[0])
    assert [attempt["cause"] for attempt in line["attempts"]] == ["refused", "status 429", ""]
    assert f"127.0.0.1:{closed_port} cannot be reached" in line["attempts"][0]["report"]
    text = httpx2.get(f"{gateway.base_url}/metrics").text
    assert total(text, "dragoman_attempts_total", upstream="dead", outcome="refused") == 1
    assert total(text, "dragoman_attempts_total", upstream="gemini", outcome="status 429") == 1
    assert total(text, "dragoman_attempts_total", upstream="gemini", outcome="answered") == 1


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_the_client_reads_why_without_the_address(serve, closed_port, path):
    gateway = start(serve, closed_port, "dead/m")
    body = {"model": "m", "max_tokens": 9, **HELLO} if "responses" not in path else {"model": "m", "input": "hello"}
    reply = httpx2.post(gateway.base_url + path, json=body, timeout=60)
    assert reply.status_code == 502
    assert "could not connect to upstream 'dead': connection refused" in reply.json()["error"]["message"]
    assert str(closed_port) not in f"{reply.text} {reply.headers}"
    causes = [attempt.cause for attempt in gateway.wait_for_records(1)[0].attempts]
    assert set(causes) == {"refused"}
    assert len(causes) == 3


def test_a_request_that_is_answered_at_once_has_one_attempt_and_none_in_its_log_line(serve):
    gateway = serve()
    httpx2.post(f"{gateway.base_url}/v1/chat/completions", json={"model": "gem", **HELLO}, timeout=60)
    record = gateway.wait_for_records(1)[0]
    assert [(attempt.upstream, attempt.outcome) for attempt in record.attempts] == [("gemini", "answered")]
    assert "attempts" not in render_line(record)


def test_a_timeout_says_what_it_waited_for(serve):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        table = UpstreamTable(kind="openai", base_url=url, api_key="k", first_byte=0.2)
        gateway = serve(upstreams={"slow": table}, models={"m": ("slow/m",)})
        reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json={"model": "m", **HELLO}, timeout=60)
        assert reply.status_code == 504
        assert {attempt.cause for attempt in gateway.wait_for_records(1)[0].attempts} == {"timeout: first byte"}
