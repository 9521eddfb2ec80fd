"""Background responses."""

import threading
import time
from uuid import uuid4

import openai
import pytest

from dragoman.config import KeyTable
from dragoman.simulator import Fault, Received, read_fault
from server.processes import until
from server.responding import FLAT, QUESTION, calls_of, result


@pytest.fixture
def client(gateway):
    return gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))


@pytest.fixture
def name():
    return f"c-{uuid4().hex}"


def test_a_background_response_completes_without_a_connected_client(client, name):
    begun = client.responses.create(model="gem", input=QUESTION, tools=[FLAT], background=True, conversation=name)
    assert begun.status == "queued"
    assert begun.background
    done = until_done(client, begun.id)
    assert done.status == "completed"
    (call,) = calls_of(done)
    second = client.responses.create(model="gem", conversation=name, input=[result(call)])
    assert "72" in second.output_text
    assert client.responses.cancel(begun.id) == done


def until_done(client, name):
    deadline = time.monotonic() + 20
    while (found := client.responses.retrieve(name)).status in {"queued", "in_progress"}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_a_background_response_is_cancelled_and_its_upstream_left(serve):
    arrived = threading.Event()

    def delay(received: Received) -> Fault:
        arrived.set()
        return read_fault("slow-headers,delay=600")

    gateway = serve(simulate={"script": delay})
    client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0))
    begun = client.responses.create(model="gem", input="Hi", background=True)
    assert arrived.wait(20)
    with pytest.raises(openai.BadRequestError, match="in progress"):
        client.responses.create(model="gem", input="Hi", previous_response_id=begun.id)
    assert client.responses.cancel(begun.id).status == "cancelled"
    assert client.responses.retrieve(begun.id).status == "cancelled"
    until(lambda: [seen.status for seen in gateway.simulator.requests] == [0])


def test_a_failed_background_response_has_an_error(client):
    begun = client.responses.create(model="gemini/gemini-3.8-flash~400", input="Hi", background=True)
    done = until_done(client, begun.id)
    assert done.status == "failed"
    assert done.error.message


def test_a_background_response_that_is_not_stored_is_refused(client):
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="gem", input="Hi", background=True, store=False)


def test_a_background_response_counts_for_its_key(serve):
    gateway = serve(keys=(KeyTable(key="a", name="ann", concurrency=1),))
    client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="a", max_retries=0))
    slow = "gemini/gemini-3.8-flash~slow-headers,delay=30"
    begun = client.responses.create(model=slow, input="Hi", background=True)
    with pytest.raises(openai.RateLimitError):
        client.responses.create(model="gem", input="Hi")
    client.responses.delete(begun.id)
    deadline = time.monotonic() + 10
    while True:
        try:
            assert client.responses.create(model="gem", input="Hi").output_text
        except openai.RateLimitError:
            assert time.monotonic() < deadline
        else:
            break


def test_an_empty_background_response_completes_too(client, name):
    slow = "gemini/gemini-3.8-flash~blocked"
    begun = client.responses.create(model=slow, input="Bad words", background=True, conversation=name)
    assert until_done(client, begun.id).status not in {"queued", "in_progress"}
