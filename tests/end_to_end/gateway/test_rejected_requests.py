"""A request that our own translation refuses was never sent: no upstream is named for it, and none has failed."""

import httpx2
import pytest

from end_to_end.gateway.test_clients import is_recorded

HELLO = {"messages": [{"role": "user", "content": "hello"}]}
THREAD = {"thread": {"type": "continue", "previous_message_id": "msg_1"}}


def the_record(gateway, result):
    assert is_recorded(gateway, result.headers["x-dragoman-exchange"])
    return gateway.records[-1]


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/messages", {**HELLO, "max_tokens": 100, **THREAD}, {}),
        ("/v1/messages/count_tokens", {**HELLO, **THREAD}, {}),
        ("/v1/chat/completions", {**HELLO, "logit_bias": {"1": 1}}, {"x-dragoman-strict": "true"}),
        ("/v1/chat/completions", {**HELLO, "n": 9}, {}),
    ],
)
def test_what_cannot_be_translated_is_refused_and_no_upstream_is_named(serve, path, body, headers):
    gateway = serve()
    reply = httpx2.post(f"{gateway.base_url}{path}", json={"model": "gem", **body}, headers=headers)
    assert reply.status_code == 400
    assert "x-dragoman-upstream" not in reply.headers
    record = the_record(gateway, reply)
    assert (record.outcome, record.upstream, record.upstream_model, record.tries) == ("refused", "", "", 0)


def test_the_upstream_that_was_called_is_named_whatever_the_outcome(serve):
    gateway = serve()
    failed = httpx2.post(
        f"{gateway.base_url}/v1/chat/completions", json={"model": "gemini/gemini-3.8-flash~400", **HELLO}
    )
    assert failed.status_code == 400
    assert failed.headers["x-dragoman-upstream"] == "gemini"
    record = the_record(gateway, failed)
    assert (record.outcome, record.tries) == ("failed", 1)


@pytest.mark.parametrize(
    ("output", "status"),
    [("1", 400), ("yes", 400), ("ON", 400), ("TRUE", 400), ("0", 200), ("False", 200), ("no", 200), ("off", 200)],
)
def test_the_strict_header_accepts_all_usual_booleans(gateway, output, status):
    body = {"model": "gem", **HELLO, "logit_bias": {"1": 1}}
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=body, headers={"x-dragoman-strict": output})
    assert reply.status_code == status


def test_an_unknown_value_of_the_strict_header_is_rejected(gateway):
    body = {"model": "gem", **HELLO}
    reply = httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=body, headers={"x-dragoman-strict": "ture"})
    assert reply.status_code == 400
    assert "x-dragoman-strict" in reply.json()["error"]["message"]
