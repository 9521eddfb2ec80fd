"""Retries and fallbacks when an upstream fails; the errors themselves are tested in the fault matrix."""

import json

import anthropic
import httpx2
import openai
import pytest

from dragoman.config import UpstreamTable
from oracles.clients import genai
from server.conftest import Gateway

MODELS = {"gem": "gemini-3.8-flash", "claude": "claude-opus-4-8", "gpt": "gpt-5.2", "resp": "gpt-5.2"}
ROUTES = {"gem": "gemini", "claude": "anthropic", "gpt": "openai", "resp": "responses"}


def request_text(gateway: Gateway, client: str, model: str, *, streamed: bool) -> str:
    """Request a text with an official SDK and return it."""
    base = gateway.base_url
    match client:
        case "chat":
            sdk = gateway.open(openai.OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0))
            messages = [{"role": "user", "content": "hello"}]
            if not streamed:
                return sdk.chat.completions.create(model=model, messages=messages).choices[0].message.content
            chunks = sdk.chat.completions.create(model=model, messages=messages, stream=True)
            return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        case "responses":
            sdk = gateway.open(openai.OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0))
            if not streamed:
                return sdk.responses.create(model=model, input="hello", store=False).output_text
            with sdk.responses.stream(model=model, input="hello", store=False) as stream:
                return stream.get_final_response().output_text
        case "messages":
            sdk = gateway.open(anthropic.Anthropic(base_url=base, api_key="any", max_retries=0))
            messages = [{"role": "user", "content": "hello"}]
            if not streamed:
                return sdk.messages.create(model=model, max_tokens=200, messages=messages).content[-1].text
            with sdk.messages.stream(model=model, max_tokens=200, messages=messages) as stream:
                return stream.get_final_text()
        case _:
            sdk = gateway.open(genai.Client(api_key="any", http_options={"base_url": base}))
            if not streamed:
                return sdk.models.generate_content(model=model, contents="hello").text
            chunks = sdk.models.generate_content_stream(model=model, contents="hello")
            return "".join(chunk.text or "" for chunk in chunks)


def faulty(model: str, fault: str) -> str:
    """Return a model's name by which the simulator fails."""
    return f"{ROUTES[model]}/{MODELS[model]}~{fault}"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_fault_that_passes_is_tried_again_and_never_seen_by_the_client(serve, streamed):
    gateway = serve()
    assert "simulator" in request_text(gateway, "chat", faulty("gem", "503,times=1"), streamed=streamed)
    assert [seen.status for seen in gateway.simulator.requests] == [503, 200]
    assert [(record.tries, record.outcome) for record in gateway.wait_for_records(1)] == [(2, "answered")]


def test_the_next_upstream_is_used_when_one_fails(serve):
    gateway = serve(models={"both": ("gemini/gemini-3.8-flash~503", "anthropic/claude-opus-4-8")})
    assert "simulator" in request_text(gateway, "chat", "both", streamed=True)
    assert [seen.api for seen in gateway.simulator.requests] == ["gemini", "messages"]


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_a_refused_key_an_empty_account_or_a_missing_model_is_one_upstreams_trouble(serve, status):
    gateway = serve(models={"both": (f"gemini/gemini-3.8-flash~{status}", "anthropic/claude-opus-4-8")})
    assert "simulator" in request_text(gateway, "chat", "both", streamed=False)
    assert [(seen.api, seen.status) for seen in gateway.simulator.requests] == [("gemini", status), ("messages", 200)]


@pytest.mark.parametrize("status", [401, 404])
def test_a_permanent_error_is_not_retried(serve, status):
    gateway = serve()
    with pytest.raises(openai.APIStatusError):
        request_text(gateway, "chat", faulty("gem", str(status)), streamed=False)
    assert len(gateway.simulator.requests) == 1


def test_a_request_that_is_wrong_is_wrong_everywhere(serve):
    gateway = serve(models={"both": ("gemini/gemini-3.8-flash~400", "anthropic/claude-opus-4-8")})
    with pytest.raises(openai.BadRequestError):
        request_text(gateway, "chat", "both", streamed=False)
    assert len(gateway.simulator.requests) == 1


def test_retries_are_limited_and_a_header_stops_the_client_from_retrying(serve):
    gateway = serve()
    with pytest.raises(openai.InternalServerError) as error:
        request_text(gateway, "chat", faulty("gem", "503"), streamed=False)
    assert len(gateway.simulator.requests) == 3
    assert error.value.response.headers["x-should-retry"] == "false"


def test_an_upstream_that_is_always_down_gets_few_requests_more_for_it(serve):
    gateway = serve()
    for _ in range(40):
        with pytest.raises(openai.InternalServerError):
            request_text(gateway, "chat", faulty("gem", "503"), streamed=False)
    assert len(gateway.simulator.requests) < 40 * 2


def test_an_unreachable_upstream_is_a_bad_gateway_without_its_address(serve):
    gateway = serve(
        upstreams={"nobody": UpstreamTable(kind="openai", base_url="http://127.0.0.1:9/v1", api_key="hush")}
    )
    with pytest.raises(openai.InternalServerError) as error:
        request_text(gateway, "chat", "nobody/gpt", streamed=False)
    assert error.value.status_code == 502
    assert "127.0.0.1" not in error.value.response.text
    assert "hush" not in error.value.response.text


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_upstream_that_hangs_is_a_timeout(serve, streamed):
    slow = {"slow": UpstreamTable(kind="gemini", base_url="", first_byte=0.2)}
    gateway = serve(upstreams=slow)
    with pytest.raises(anthropic.APIStatusError) as error:
        request_text(gateway, "messages", "slow/gemini-3.8-flash~hang", streamed=streamed)
    assert error.value.status_code == 504


@pytest.mark.parametrize("client", ["chat", "responses", "messages", "gemini"])
@pytest.mark.parametrize("kind", ["gemini", "anthropic"])
def test_a_stream_that_had_to_begin_without_the_upstream_ends_in_an_error_that_each_sdk_reads(serve, client, kind):
    gateway = serve(
        hold=0.05, heartbeat=0.05, upstreams={"slow": UpstreamTable(kind=kind, base_url="", first_byte=0.4)}
    )
    with pytest.raises((openai.APIError, anthropic.APIError, genai.errors.APIError), match="in time"):
        request_text(gateway, client, f"slow/{MODELS[NAMES[kind]]}~hang", streamed=True)
    (record,) = gateway.wait_for_records(1)
    assert (record.status, record.outcome, record.tries, record.problem.kind) == (200, "failed", 1, "timeout")


NAMES = {"gemini": "gem", "anthropic": "claude"}


def test_an_error_in_a_stream_that_began_without_the_upstream_names_the_exchange(serve):
    slow = {"slow": UpstreamTable(kind="anthropic", base_url="", first_byte=0.3)}
    gateway = serve(hold=0.05, heartbeat=0.05, upstreams=slow)
    body = {"model": "slow/claude-opus-4-8~hang", "max_tokens": 9, "stream": True, "messages": []}
    reply = httpx2.post(f"{gateway.base_url}/v1/messages", json=body)
    assert f'"request_id":"{reply.headers["x-dragoman-exchange"]}"' in reply.text


def test_heartbeats_are_sent_before_the_upstream_starts_to_answer(serve):
    gateway = serve(hold=0.05, heartbeat=0.05)
    body = {
        "model": "openai/gpt-5.2~slow-headers,delay=0.5",
        "stream": True,
        "messages": [{"role": "user", "content": "x"}],
    }
    with httpx2.stream("POST", f"{gateway.base_url}/v1/chat/completions", json=body) as reply:
        assert reply.headers["x-dragoman-upstream"] == "openai"
        text = b"".join(reply.iter_bytes())
    assert text.startswith(b"\n\n")
    assert text.rstrip().endswith(b"data: [DONE]")


def test_a_stream_that_stalls_ends_in_an_error(serve):
    gateway = serve(upstreams={"slow": UpstreamTable(kind="anthropic", base_url="", idle=0.2)})
    with pytest.raises(openai.APIError, match="in time"):
        request_text(gateway, "chat", "slow/claude-opus-4-8~stall,after=4", streamed=True)


@pytest.mark.parametrize("model", MODELS)
def test_a_gateway_key_that_an_upstream_rejects_is_not_a_client_error(serve, model):
    gateway = serve(simulate={"key": "another"})
    with pytest.raises(openai.APIStatusError, match="rejected the gateway's credentials") as error:
        request_text(gateway, "chat", model, streamed=False)
    assert error.value.status_code == 502


def test_a_header_stops_the_client_from_retrying_if_too_many_other_requests_were_retried(serve):
    gateway = serve()
    collected = []
    for _ in range(25):
        with pytest.raises(openai.InternalServerError) as raised:
            request_text(gateway, "chat", faulty("gem", "503"), streamed=False)
        collected.append(raised.value.response.headers.get("x-should-retry"))
    assert {record.tries for record in gateway.wait_for_records(25)} >= {1, 3}
    assert set(collected) == {"false"}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_broken_gemini_is_unavailable_to_its_own_clients(gateway, streamed):
    with pytest.raises(genai.errors.ServerError) as error:
        request_text(gateway, "gemini", faulty("gem", "500"), streamed=streamed)
    assert (error.value.code, error.value.status) == (502, "UNAVAILABLE")


@pytest.mark.parametrize("model", ["gem", "claude"])
def test_an_error_in_a_stream_of_messages_names_the_exchange(gateway, model):
    messages = [{"role": "user", "content": "hello"}]
    body = {"model": faulty(model, "eof,after=4"), "max_tokens": 99, "stream": True, "messages": messages}
    for _ in range(50):
        reply = httpx2.post(f"{gateway.base_url}/v1/messages", json=body)
        if reply.status_code == 200:
            break
        # The end came in one packet with the first words: nothing was sent before it.
        assert reply.status_code == 502
    error = json.loads(reply.text.rpartition("data: ")[2])
    assert (reply.status_code, error["type"]) == (200, "error")
    assert error["request_id"] == reply.headers["request-id"]


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_rate_limit_has_its_delay_in_the_message_also_in_the_same_dialect(serve, client):
    gateway = serve()
    home = {"chat": "gpt", "responses": "resp"}
    with pytest.raises(openai.RateLimitError, match=r"[Tt]ry again in 30s") as error:
        request_text(gateway, client, faulty(home[client], "429,retry-after=30"), streamed=False)
    assert error.value.response.headers["retry-after"] == "30"
    assert error.value.type in {"rate_limit_error", "requests", "tokens"}
