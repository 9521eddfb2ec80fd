"""Stored responses, through the official SDK: background responses, lists of items, resumed streams."""

from collections.abc import Generator

import openai
import pytest

from simulator.apis.responses.answers import extras

MODEL = "gpt-5.6-terra"


@pytest.fixture(scope="module")
def sdk(simulator) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="sk-test", max_retries=0) as client:
        yield client


def in_background(sdk, **members):
    return sdk.responses.create(model=MODEL, input="Hello", background=True, **members)


def test_what_runs_in_the_background_is_queued_then_in_progress_then_done(sdk):
    queued = in_background(sdk)
    assert (queued.status, queued.output, queued.usage, queued.background) == ("queued", [], None, True)
    looks = [sdk.responses.retrieve(queued.id) for _ in range(3)]
    assert [look.status for look in looks] == ["in_progress", "completed", "completed"]
    assert looks[0].output == []
    assert "simulator" in looks[1].output_text
    assert looks[1].usage.total_tokens > 0
    assert [name for look in (queued, *looks) for name in extras(look)] == []


def test_what_runs_in_the_background_is_cancelled_for_good(sdk):
    queued = in_background(sdk)
    assert sdk.responses.retrieve(queued.id).status == "in_progress"
    cancelled = sdk.responses.cancel(queued.id)
    assert (cancelled.status, cancelled.output) == ("cancelled", [])
    assert sdk.responses.cancel(queued.id).status == sdk.responses.retrieve(queued.id).status == "cancelled"


def test_what_is_done_stays_done_when_it_is_cancelled(sdk):
    queued = in_background(sdk)
    for _ in range(2):
        done = sdk.responses.retrieve(queued.id)
    assert sdk.responses.cancel(queued.id) == done


def test_what_does_not_run_in_the_background_cannot_be_cancelled(sdk):
    reply = sdk.responses.create(model=MODEL, input="Hello")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        sdk.responses.cancel(reply.id)


def test_a_stream_in_the_background_is_taken_up_again_behind_any_event(sdk):
    events = list(in_background(sdk, stream=True))
    assert [event.type for event in events[:3]] == ["response.created", "response.queued", "response.in_progress"]
    reply = events[0].response
    again = list(sdk.responses.retrieve(reply.id, stream=True, starting_after=4))
    assert again == events[5:]
    assert list(sdk.responses.retrieve(reply.id, stream=True)) == events
    assert sdk.responses.retrieve(reply.id) == events[-1].response


def test_a_disconnected_stream_continues_in_the_background(sdk):
    cut = {"x-dragoman-fault": "cut,after=4"}
    stream = in_background(sdk, stream=True, extra_headers=cut)
    reply = next(stream).response
    with pytest.raises(openai.APIConnectionError):
        list(stream)
    assert list(sdk.responses.retrieve(reply.id, stream=True, starting_after=3))[-1].type == "response.completed"


def test_what_was_not_streamed_is_not_streamed_later(sdk):
    for reply in (in_background(sdk), sdk.responses.create(model=MODEL, input="Hello", stream=False)):
        with pytest.raises(openai.BadRequestError, match="cannot be streamed"):
            sdk.responses.retrieve(reply.id, stream=True)


@pytest.mark.parametrize("action", ["retrieve", "cancel", "delete"])
def test_an_unknown_reply_is_not_found(sdk, action):
    with pytest.raises(openai.NotFoundError) as caught:
        getattr(sdk.responses, action)("resp_unknown")
    assert caught.value.code == "not_found"


THREE = [
    {"role": "developer", "content": "Be brief."},
    {"role": "assistant", "content": "Hi."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
]


def test_the_input_of_a_reply_is_listed_the_newest_first(sdk):
    reply = sdk.responses.create(model=MODEL, input=THREE)
    listed = sdk.responses.input_items.list(reply.id)
    assert [item.role for item in listed.data] == ["user", "assistant", "developer"]
    assert [item.content[0].text for item in listed.data] == ["Hello", "Hi.", "Be brief."]
    assert [name for item in listed.data for name in extras(item)] == []
    assert (listed.has_more, listed.first_id, listed.last_id) == (False, listed.data[0].id, listed.data[-1].id)


def test_the_input_of_a_reply_is_listed_page_by_page(sdk):
    reply = sdk.responses.create(model=MODEL, input=THREE)
    first = sdk.responses.input_items.list(reply.id, order="asc", limit=2)
    assert ([item.role for item in first.data], first.has_more) == (["developer", "assistant"], True)
    rest = sdk.responses.input_items.list(reply.id, order="asc", limit=2, after=first.data[-1].id)
    assert ([item.role for item in rest.data], rest.has_more) == (["user"], False)
    assert [item.id for item in first] == [item.id for item in (*first.data, *rest.data)]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": 101}, "integer_above_max_value"),
        ({"limit": 0}, "integer_below_min_value"),
        ({"limit": "many"}, "invalid_type"),
        ({"order": "up"}, "invalid_value"),
        ({"after": "msg_unknown"}, None),
    ],
    ids=str,
)
def test_a_page_that_cannot_be_is_refused(sdk, query, code):
    reply = sdk.responses.create(model=MODEL, input="Hello")
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.input_items.list(reply.id, **query)
    assert (caught.value.code, caught.value.param) == (code, next(iter(query)))


def test_an_item_of_the_input_can_be_referred_to(sdk):
    reply = sdk.responses.create(model=MODEL, input="My dog is called Rex.")
    (item,) = sdk.responses.input_items.list(reply.id).data
    again = sdk.responses.create(model=MODEL, input=[{"type": "item_reference", "id": item.id}])
    assert "Rex" in again.output_text


def test_an_item_that_was_forgotten_cannot_be_referred_to(sdk):
    reply = sdk.responses.create(model=MODEL, input="Hello")
    (item,) = sdk.responses.input_items.list(reply.id).data
    sdk.responses.delete(reply.id)
    with pytest.raises(openai.NotFoundError, match=item.id):
        sdk.responses.create(model=MODEL, input=[{"type": "item_reference", "id": item.id}])


def test_a_reply_that_failed_is_kept_too(sdk):
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
    stream = sdk.responses.create(
        model=MODEL, input="Hello", tools=[tool], stream=True, extra_headers={"x-dragoman-fault": "malformed-call"}
    )
    last = list(stream)[-1]
    assert last.type == "response.failed"
    assert sdk.responses.retrieve(last.response.id).status == "failed"


def test_a_recorded_request_may_go_on_from_what_only_the_vendor_keeps(simulate):
    server = simulate(recorded=True)
    with openai.OpenAI(base_url=f"{server.base_url}/v1", api_key="sk-test", max_retries=0) as client:
        for members in (
            {"previous_response_id": "resp_elsewhere", "input": "And?"},
            {"conversation": "conv_elsewhere", "input": "And?"},
            {"input": [{"type": "item_reference", "id": "msg_elsewhere"}, {"role": "user", "content": "And?"}]},
        ):
            assert client.responses.create(model=MODEL, **members).status == "completed"


def test_a_response_has_headers_for_its_request_id_and_remaining_limits(sdk):
    raw = sdk.responses.with_raw_response.create(model=MODEL, input="Hello")
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.headers["openai-version"] == "2020-10-01"
    assert int(raw.headers["x-ratelimit-remaining-tokens"]) < int(raw.headers["x-ratelimit-limit-tokens"])
    assert raw.parse()._request_id == raw.headers["x-request-id"]
