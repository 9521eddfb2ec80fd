"""The Prometheus metrics count every exchange, and no client can create labels."""

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dragoman.config import KeyTable
from dragoman.core.losses import Loss
from dragoman.core.response import Usage
from dragoman.gateway.record import Record
from dragoman.server.exposition import render_metrics
from dragoman.server.metrics import Metrics, SharedCounters

HELLO = [{"role": "user", "content": "hello"}]


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read the text with Prometheus' own parser."""
    families = text_string_to_metric_families(text)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def total(text: str, name: str, **labels: str) -> float:
    """Return the sum of all samples of a metric with these labels."""
    expected = set(labels.items())
    return sum(value for (found, limits), value in samples(text).items() if found == name and expected <= limits)


def scrape(gateway, **headers: str) -> str:
    reply = httpx2.get(f"{gateway.base_url}/metrics", headers=headers)
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return reply.text


def post_chat(gateway, model="gem", **more):
    body = {"model": model, "messages": HELLO, **more}
    return httpx2.post(f"{gateway.base_url}/v1/chat/completions", json=body)


def test_an_answer_is_counted_with_its_time_tokens_losses_and_place(serve):
    gateway = serve()
    assert post_chat(gateway, logit_bias={"1": 1}).status_code == 200
    assert post_chat(gateway, stream=True, stream_options={"include_usage": True}).text.endswith("data: [DONE]\n\n")
    text = scrape(gateway)
    place = {"model": "gem", "upstream": "gemini"}
    answered = {"dialect": "chat", "operation": "generate", "status": "200", "outcome": "answered"}
    assert total(text, "dragoman_requests_total", **place, **answered) == 2
    assert total(text, "dragoman_request_seconds_count", **place) == 2
    assert 0 < total(text, "dragoman_request_seconds_sum", **place) < 60
    assert total(text, "dragoman_request_seconds_bucket", **place, le="+Inf") == 2
    assert total(text, "dragoman_first_token_seconds_count", **place) == 1
    used = [record.usage for record in gateway.records if record.usage]
    assert total(text, "dragoman_tokens_total", **place, kind="input") == sum(usage.input for usage in used) > 0
    assert total(text, "dragoman_tokens_total", **place, kind="output") == sum(usage.output for usage in used) > 0
    lost = [loss.kind for record in gateway.records for loss in record.all_losses]
    assert total(text, "dragoman_losses_total", **place, kind="dropped") == lost.count("dropped") > 0
    assert total(text, "dragoman_open_requests") == 0
    assert total(text, "dragoman_workers") == 1


def test_a_refusal_and_a_failure_are_counted_as_such(serve):
    gateway = serve()
    assert post_chat(gateway, "gemini/gemini-3.8-flash~503").status_code == 503
    assert httpx2.post(f"{gateway.base_url}/v1/messages", json={}).status_code == 400
    assert httpx2.get(f"{gateway.base_url}/v1/nothing").status_code == 404
    text = scrape(gateway)
    assert total(text, "dragoman_requests_total", outcome="failed", status="503", upstream="gemini") == 1
    assert total(text, "dragoman_requests_total", outcome="refused", status="400", dialect="messages", model="") == 1
    assert total(text, "dragoman_requests_total", outcome="refused", status="404", operation="unknown") == 1
    assert total(text, "dragoman_retries_total", upstream="gemini") == gateway.records[0].tries - 1 > 0


def test_what_looks_after_the_gateway_is_answered_and_is_no_open_request(serve):
    gateway = serve()
    httpx2.get(f"{gateway.base_url}/health")
    httpx2.get(f"{gateway.base_url}/v1/models")
    text = scrape(gateway)
    for operation in ("health", "models"):
        assert total(text, "dragoman_requests_total", operation=operation, status="200", outcome="answered") == 1
    assert total(text, "dragoman_open_requests") == 0


def test_names_of_models_that_clients_invent_are_no_labels(serve):
    gateway = serve()
    for at in range(5):
        assert post_chat(gateway, f"invented-{at}").status_code == 404
        assert post_chat(gateway, f"gemini/gemini-3.8-flash-{at}~404").status_code == 404
    assert post_chat(gateway, "gemini/gemini-3.8-flash").status_code == 200
    text = scrape(gateway)
    models = {dict(labels)["model"] for name, labels in samples(text) if name == "dragoman_requests_total"}
    assert models == {"unknown", "gemini-3.8-flash"}
    assert total(text, "dragoman_requests_total", model="unknown") == 10


def test_metrics_want_a_key_where_one_is_configured_and_health_does_not(serve):
    gateway = serve(keys=(KeyTable(key="a-secret-key", name="one"),))
    assert httpx2.get(f"{gateway.base_url}/metrics").status_code == 401
    assert httpx2.get(f"{gateway.base_url}/health").status_code == 200
    assert total(scrape(gateway, authorization="Bearer a-secret-key"), "dragoman_requests_total", status="401") == 1


def record(**more) -> Record:
    place = {"operation": "generate", "dialect": "chat", "upstream": "u", "upstream_model": "m", "model": "m"}
    return Record(**{**place, "status": 200, "outcome": "answered", "seconds": 0.2, **more})


def test_however_many_models_answer_there_is_an_end_to_labels():
    metrics = Metrics()
    for at in range(3000):
        metrics.on_end(record(model=f"m{at}", upstream_model=f"m{at}", dialect=f"d{at % 50}"))
    text = render_metrics(metrics.counters)[1].decode()
    models = {dict(labels)["model"] for name, labels in samples(text) if name == "dragoman_requests_total"}
    assert len(models) == 101
    assert len(text) < 1 << 20
    assert total(text, "dragoman_requests_total") == 3000
    assert total(text, "dragoman_request_seconds_count") == 3000


def test_rows_that_find_no_room_are_counted_together():
    metrics = Metrics(models=[f"m{at}" for at in range(2000)])
    for at in range(2000):
        metrics.on_end(record(model=f"m{at}"))
    metrics.on_end(record(model="m1", upstream="u" * 300))
    text = render_metrics(metrics.counters)[1].decode()
    assert total(text, "dragoman_requests_total") == 2001
    assert total(text, "dragoman_requests_total", model="other") > 900
    assert total(text, "dragoman_request_seconds_count") == 2001


def test_counts_of_workers_are_summed_and_a_replacement_continues_them():
    counters = SharedCounters(workers=2)
    usage, loss = Usage(input=10, output=5, cached=4, cache_written=3, reasoning=2), Loss("/x", "x", "approximated")
    for worker in (0, 1, 1):
        metrics = Metrics(counters, worker, ["m"])
        metrics.on_begin(record())
        metrics.on_begin(record())
        metrics.on_end(record(usage=usage, losses=(loss,), stream=True, first_token_seconds=0.1, tries=3))
        text = render_metrics(metrics.counters)[1].decode()
    assert total(text, "dragoman_requests_total", model="m") == 3
    assert total(text, "dragoman_first_token_seconds_bucket", le="0.1") == 3
    assert total(text, "dragoman_first_token_seconds_bucket", le="0.05") == 0
    kinds = {"input": 30, "output": 15, "cached": 12, "cache_written": 9, "reasoning": 6}
    assert {kind: total(text, "dragoman_tokens_total", kind=kind) for kind in kinds} == kinds
    assert total(text, "dragoman_losses_total", kind="approximated") == 3
    assert total(text, "dragoman_retries_total") == 6
    assert total(text, "dragoman_open_requests") == 3
    counters.reset_open(1)
    assert total(render_metrics(Metrics(counters).counters)[1].decode(), "dragoman_open_requests") == 1
    assert total(text, "dragoman_workers") == 2


@pytest.mark.parametrize("name", ['with "quotes"', "with\nlines", "ünïcode", "back\\slash"])
def test_any_configured_name_is_a_label_that_prometheus_reads(name):
    metrics = Metrics(models=[name])
    metrics.on_end(record(model=name))
    assert total(render_metrics(metrics.counters)[1].decode(), "dragoman_requests_total", model=name) == 1
