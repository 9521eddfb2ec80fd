"""Completions that are kept, through the official SDK."""

from collections.abc import Generator

import openai
import pytest

from simulator.chat.answers import extras
from simulator.chat.bodies import WEATHER

MODEL = "gpt-5.2"


@pytest.fixture
def sdk(simulate) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{simulate().base_url}/v1", api_key="sk-test", max_retries=0) as client:
        yield client


def said(sdk, text="Hello", **members):
    return sdk.chat.completions.create(
        **{"model": MODEL, "messages": [{"role": "user", "content": text}], "store": True, **members}
    )


def test_a_completion_is_kept_until_it_is_deleted(sdk):
    reply = said(sdk, "What is the weather in Paris?", tools=[WEATHER])
    assert sdk.chat.completions.retrieve(reply.id) == reply
    gone = sdk.chat.completions.delete(reply.id)
    assert (gone.id, gone.object, gone.deleted) == (reply.id, "chat.completion.deleted", True)
    assert list(extras(gone)) == []
    with pytest.raises(openai.NotFoundError) as caught:
        sdk.chat.completions.retrieve(reply.id)
    assert caught.value.code == "not_found"


def test_a_streamed_completion_is_kept_as_it_would_be_whole(sdk):
    chunks = list(said(sdk, stream=True))
    kept = sdk.chat.completions.retrieve(chunks[0].id)
    assert kept.choices[0].message.content == "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert kept.usage.total_tokens > 0


@pytest.mark.parametrize("store", [None, False])
def test_who_does_not_ask_for_it_is_not_remembered(sdk, store):
    reply = said(sdk, store=store)
    with pytest.raises(openai.NotFoundError):
        sdk.chat.completions.retrieve(reply.id)
    assert sdk.chat.completions.list().data == []


def test_completions_are_listed_the_oldest_first_by_model_and_by_marks(sdk):
    first = said(sdk, metadata={"topic": "demo", "run": "1"})
    second = said(sdk, model="gpt-4.1")
    completions = sdk.chat.completions
    assert [one.id for one in completions.list()] == [first.id, second.id]
    assert [one.id for one in completions.list(order="desc")] == [second.id, first.id]
    assert [one.id for one in completions.list(model="gpt-4.1")] == [second.id]
    assert [one.id for one in completions.list(metadata={"topic": "demo"})] == [first.id]
    assert completions.list(limit=1).has_more
    assert [one.id for one in completions.list(after=first.id)] == [second.id]


def test_marks_are_changed(sdk):
    reply = said(sdk)
    assert sdk.chat.completions.update(reply.id, metadata={"topic": "late"}) == reply
    assert [one.id for one in sdk.chat.completions.list(metadata={"topic": "late"})] == [reply.id]
    with pytest.raises(openai.BadRequestError):
        sdk.chat.completions.update(reply.id, metadata={"topic": 7})


def test_the_messages_of_a_completion_are_listed(sdk):
    parts = [
        {"type": "text", "text": "Hello"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
    reply = said(sdk, messages=messages)
    first, second = sdk.chat.completions.messages.list(reply.id).data
    assert (first.role, first.content, first.content_parts) == ("system", "Be brief.", None)
    assert second.content is None
    assert [part.type for part in second.content_parts] == ["text", "image_url"]
    assert first.id != second.id
