"""Fields of an upstream's error are sent if the client's format has them, and are losses otherwise."""

import itertools
import json
from typing import Any

import pytest

from conformance.recordings import errors
from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.errors import translate_error
from laws.documents import DIALECTS, leaves
from shelf import needs_shelf

QUOTA = {
    "code": 429,
    "message": "Quota",
    "status": "RESOURCE_EXHAUSTED",
    "details": [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "21.5s"},
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "a", "quotaMetric": "m"}]},
    ],
}
WRONG = {"message": "bad", "type": "invalid_request_error", "param": "messages[2].content", "code": "invalid_value"}
BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "Over"}, "request_id": "req_1"}


def translate(body: Any, status: int, source: str, client: str) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = translate_error(status, {}, raw, source, client)
    return json.loads(reply.body), [loss.where for loss in reply.losses], reply.headers


@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
def test_googles_error_details_are_losses_except_the_retry_delay(client):
    _, lost, headers = translate({"error": QUOTA}, 429, "gemini", client)
    details = "/error/details/1"
    assert lost == [f"{details}/@type", f"{details}/violations/0/quotaId", f"{details}/violations/0/quotaMetric"]
    assert headers["retry-after"] == "22"
    assert headers.get("retry-after-ms") == (None if client == "messages" else "21500")


def test_the_parameter_at_fault_is_sent_if_the_clients_errors_have_a_field_for_it():
    result, lost, _ = translate({"error": WRONG}, 400, "chat", "responses")
    assert (result["error"]["param"], lost) == ("messages[2].content", ["/error/code"])
    result, lost, _ = translate({"error": WRONG}, 400, "chat", "gemini")
    assert result["error"]["details"][0]["fieldViolations"][0]["field"] == "messages[2].content"
    assert lost == ["/error/code"]
    assert translate({"error": WRONG}, 400, "chat", "messages")[1] == ["/error/code", "/error/param"]


@pytest.mark.parametrize("client", ["chat", "responses", "gemini"])
def test_the_id_of_a_request_is_reported_where_no_error_names_it(client):
    assert translate(BUSY, 529, "messages", client)[1] == ["/request_id"]


def test_a_message_that_is_json_is_sent_as_text():
    body = {"detail": [{"loc": ["body", "model"], "msg": "field required"}]}
    assert translate(body, 422, "chat", "messages")[1] == []


def test_a_proxys_page_is_reported_as_a_whole_and_an_empty_body_is_not():
    assert translate(b"<html>oops</html>", 502, "chat", "messages")[1] == [""]
    assert translate(b" ", 502, "chat", "messages")[1] == []


@pytest.mark.parametrize("name", DIALECTS)
def test_an_error_in_the_clients_own_dialect_keeps_its_bytes_and_loses_nothing(name):
    written = dialect_named(name).build_error(Problem("rate_limit", "slow", retry_after=2.5)).body
    body = written.replace(b'{"', b'{ "', 1).replace(b"}", b',"novel":[1e999]}', 1)
    reply = translate_error(429, {}, body, name, name)
    assert (reply.body, reply.losses) == (body, ())


@pytest.mark.parametrize("name", DIALECTS)
def test_a_page_of_a_proxy_is_no_error_of_the_clients_dialect(name):
    reply = translate_error(502, {}, b"<html>", name, name)
    assert json.loads(reply.body)["error"]["message"]
    assert reply.losses == ()


@needs_shelf
@pytest.mark.parametrize(("source", "client"), list(itertools.permutations(DIALECTS, 2)))
def test_every_leaf_of_a_recorded_error_is_sent_or_a_loss_or_the_name_of_its_kind(source, client):
    words = dialect_named(source).mapped_error_types
    for recorded in errors(source):
        reply = translate_error(recorded.status, recorded.headers, recorded.body, source, client)
        reported = {loss.where for loss in reply.losses}
        result = reply.body.decode() + json.dumps(reply.headers)
        for where, value in leaves(json.loads(recorded.body)) if recorded.body.startswith(b"{") else ():
            if value in (None, "", [], {}) or value in words or value in (recorded.status, str(recorded.status)):
                continue
            text = json.dumps(value, ensure_ascii=False).strip('"')
            assert where in reported or text in result or where.endswith("/retryDelay"), (recorded.id, where)
