"""Gemini 4 stops in the middle of an answer and continues with its token; google-genai does that automatically."""

import json

import httpx2
import pytest

from dragoman.simulator.apis.conversation import Answer
from simulator.apis.gemini.asking import NEW, errors, genai, types

ARGON = "gemini-4-argon"
LONG = "".join(f"Line {number}: something was said about it.\n" for number in range(40))


@pytest.fixture
def saying(simulate):
    """A simulator with a long answer."""
    return simulate(script=lambda _: Answer(text=LONG))


@pytest.fixture
def client(saying):
    with genai.Client(api_key="key", http_options=types.HttpOptions(base_url=saying.base_url)) as made:
        yield made


def test_the_sdk_gathers_the_hops_of_a_whole_answer(client, saying):
    reply = client.models.generate_content(model=ARGON, contents="Go on and on.")
    assert reply.text == LONG
    assert reply.candidates[0].finish_reason == types.FinishReason.STOP
    tokens = [json.loads(seen.body).get("continuationToken") for seen in saying.requests]
    assert tokens[0] is None
    assert len(set(tokens)) == len(tokens) == -(-len(LONG) // 600)


def test_the_sdk_gathers_the_hops_of_a_stream(client):
    chunks = list(client.models.generate_content_stream(model=ARGON, contents="Go on and on."))
    assert "".join(chunk.text or "" for chunk in chunks) == LONG
    ends = [chunk.candidates[0].finish_reason for chunk in chunks if chunk.candidates[0].finish_reason]
    assert ends == [types.FinishReason.STOP]


def test_a_hop_counts_its_own_tokens(saying):
    url = f"{saying.base_url}/v1beta/models/{ARGON}:generateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "Go on and on."}]}]}
    reply = httpx2.post(url, json=body, headers={"x-goog-api-key": "k"}).json()
    types.GenerateContentResponse.model_validate(reply)
    assert reply["candidates"][0]["finishReason"] == "CONTINUATION"
    assert reply["usageMetadata"]["candidatesTokenCount"] == 150


def test_a_token_that_was_not_given_is_refused(client):
    config = types.GenerateContentConfig(continuation_token=b"made up")
    with pytest.raises(errors.ClientError, match=r"gemini\.continuation-token"):
        client.models.generate_content(model=ARGON, contents="Go on.", config=config)


def test_older_models_send_everything_in_one_chunk(client, saying):
    assert client.models.generate_content(model=NEW, contents="Go on and on.").text == LONG
    assert len(saying.requests) == 1
