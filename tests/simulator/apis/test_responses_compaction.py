"""Compacted conversations: by the compact endpoint, by a trigger, or when they grow too long."""

from collections.abc import Generator

import openai
import pytest

from simulator.apis.responses.answers import extras

MODEL = "gpt-5.6-terra"
SAID = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "What is 4 + 4?"},
]


@pytest.fixture(scope="module")
def sdk(simulator) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{simulator.base_url}/v1", api_key="sk-test", max_retries=0) as client:
        yield client


def again(items):
    """Return items to send back; the SDK's type of them does not expect user messages, and would warn."""
    return [item.model_dump(exclude_none=True, warnings=False) for item in items]


def test_user_messages_are_kept_and_everything_else_is_encrypted(sdk):
    short = sdk.responses.compact(model=MODEL, input=SAID)
    assert (short.object, short.usage.input_tokens > 0) == ("response.compaction", True)
    assert list(extras(short)) == []
    *output, sealed = short.output
    assert [(item.role, item.content[0].text) for item in output] == [("user", "Hello"), ("user", "What is 4 + 4?")]
    assert (sealed.type, sealed.id[:4]) == ("compaction", "cmp_")
    reply = sdk.responses.create(model=MODEL, input=[*again(short.output), {"role": "user", "content": "And 5 + 5?"}])
    assert reply.status == "completed"


def test_encrypted_content_is_not_repeated(sdk):
    short = sdk.responses.compact(model=MODEL, input=SAID)
    twice = sdk.responses.compact(model=MODEL, input=[*again(short.output), {"role": "user", "content": "And?"}])
    assert [item.content[0].text for item in twice.output[:-1]] == ["And?"]


def test_a_stored_conversation_is_made_short(sdk):
    reply = sdk.responses.create(model=MODEL, input="Hello")
    short = sdk.responses.compact(model=MODEL, previous_response_id=reply.id)
    assert [item.type for item in short.output] == ["message", "compaction"]


def test_a_seal_that_was_broken_is_refused(sdk):
    *_, sealed = again(sdk.responses.compact(model=MODEL, input=SAID).output)
    sealed["encrypted_content"] = sealed["encrypted_content"][:-8]
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model=MODEL, input=[sealed, {"role": "user", "content": "And?"}])
    assert caught.value.code == "invalid_encrypted_content"


def test_only_what_belongs_to_making_short_is_taken(sdk):
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.compact(model=MODEL, input=SAID, extra_body={"temperature": 1})
    assert (caught.value.code, caught.value.param) == ("unknown_parameter", "temperature")


def test_only_what_belongs_to_counting_is_taken(sdk):
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.input_tokens.count(model=MODEL, input="Hello", extra_body={"max_output_tokens": 100})
    assert (caught.value.code, caught.value.param) == ("unknown_parameter", "max_output_tokens")


def test_a_conversation_that_grows_too_long_is_sealed_behind_the_answer(sdk):
    limit = [{"type": "compaction", "compact_threshold": 5}]
    reply = sdk.responses.create(model=MODEL, input=SAID, context_management=limit)
    assert [item.type for item in reply.output][-2:] == ["message", "compaction"]
    far = [{"type": "compaction", "compact_threshold": 100_000}]
    reply = sdk.responses.create(model=MODEL, input=SAID, context_management=far)
    assert "compaction" not in [item.type for item in reply.output]


def test_a_trigger_is_answered_with_a_seal_alone(sdk):
    with sdk.responses.stream(model=MODEL, input=[*SAID, {"type": "compaction_trigger"}]) as stream:
        kinds = [event.type for event in stream]
        reply = stream.get_final_response()
    assert [item.type for item in reply.output] == ["compaction"]
    assert kinds[2:5] == [
        "response.output_item.added",
        "response.compaction.compacting",
        "response.output_item.done",
    ]
