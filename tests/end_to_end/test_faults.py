"""The fault matrix in the Python SDKs: every fault is the SDK's own error with the right status, and never a success."""

import anthropic
import openai
import pytest

from end_to_end.fault_rows import CELLS, CLIENTS, UPSTREAMS, fail
from end_to_end.listening import Listener
from oracles.clients import genai

TYPED = {
    "chat": openai.APIError,
    "responses": openai.APIError,
    "messages": anthropic.APIStatusError,
    "gemini": genai.errors.APIError,
}
CLASSES = {
    ("openai", 400): openai.BadRequestError,
    ("openai", 404): openai.NotFoundError,
    ("openai", 422): openai.UnprocessableEntityError,
    ("openai", 429): openai.RateLimitError,
    ("openai", 502): openai.InternalServerError,
    ("openai", 503): openai.InternalServerError,
    ("openai", 504): openai.InternalServerError,
    ("messages", 400): anthropic.BadRequestError,
    ("messages", 404): anthropic.NotFoundError,
    ("messages", 413): anthropic.ContentTooLargeError,
    ("messages", 429): anthropic.RateLimitError,
    ("messages", 502): anthropic.InternalServerError,
    ("messages", 504): anthropic.GatewayTimeoutError,
    ("messages", 529): anthropic.OverloadedError,
}


@pytest.fixture(scope="module")
def gateway():
    with fail() as found:
        yield found


@pytest.fixture(scope="module")
def listener(gateway):
    return Listener(gateway)


@pytest.mark.parametrize("name", CELLS)
def test_a_fault_is_the_sdks_own_error_and_never_a_success(listener, name):
    cell = CELLS[name]
    received = listener.listen(cell.client, cell.model, streamed=cell.streamed)
    assert isinstance(received.error, TYPED[cell.client])
    if cell.status:
        assert (received.status, received.text) == (cell.status, "")
        family = "openai" if cell.client in {"chat", "responses"} else cell.client
        assert isinstance(received.error, CLASSES.get((family, cell.status), TYPED[cell.client]))
    else:
        # A fault that comes in one packet with the first words has its true status: nothing was told before it.
        assert received.text or received.status == 502
        assert received.finish in {"", "failed server_error"}


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("wait", "goes_on"), [(50, True), (90, False)])
def test_the_retry_delay_is_where_the_client_looks_for_it(listener, client, upstream, wait, goes_on):
    received = listener.listen(client, f"{UPSTREAMS[upstream]}~429,retry-after={wait}", streamed=False)
    response = received.error.response
    assert response.headers["retry-after"] == str(wait)
    assert response.headers.get("x-should-retry") == (None if goes_on else "false")
    if client == "gemini":
        waits = [detail.get("retryDelay") for detail in received.error.details["error"]["details"]]
        assert f"{wait}s" in waits
    if client in {"chat", "responses"}:
        assert received.error.code == "rate_limit_exceeded"


@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
def test_a_rejected_gateway_key_does_not_make_the_client_change_its_key_or_retry(listener, client):
    received = listener.listen(client, f"{UPSTREAMS['gemini']}~401", streamed=False)
    assert received.status == 502
    assert received.error.response.headers["x-should-retry"] == "false"


BLOCKED = {"chat": "content_filter", "messages": "refusal", "responses": "failed invalid_prompt"}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_filtered_prompt_is_reported_in_the_clients_dialect(listener, client, streamed):
    received = listener.listen(client, f"{UPSTREAMS['gemini']}~blocked", streamed=streamed)
    assert received.text == ""
    assert received.finish == BLOCKED.get(client, "blocked PROHIBITED_CONTENT")
    assert (received.error is not None) == (client == "responses" and streamed)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_malformed_call_is_no_answer_but_to_geminis_own_clients(listener, client, streamed):
    received = listener.listen(client, f"{UPSTREAMS['gemini']}~malformed-call", streamed=streamed)
    if client == "gemini":
        assert (received.error, received.finish) == (None, "MALFORMED_FUNCTION_CALL")
        return
    assert received.status == 502
    if client != "messages":
        assert received.error.code == "malformed_function_call"


@pytest.mark.parametrize("fault", ["drip,delay=0", "slow-headers,delay=0.05"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_slow_reply_is_read_to_the_end(listener, client, fault):
    for model in UPSTREAMS.values():
        received = listener.listen(client, f"{model}~{fault}", streamed=True)
        assert received.error is None
        assert "simulator" in received.text
