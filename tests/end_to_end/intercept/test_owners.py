"""With keys, sessions have owners: the same name is another session for another key."""

import json
import urllib.request

import openai
import pytest

from dragoman.config import KeyTable
from intercept.clients import CITY, MODEL
from intercept.surroundings import between, session_of, until

TOOL = {"type": "function", "name": "look", "parameters": CITY}


def create_response(middle, key, output):
    with openai.OpenAI(base_url=f"{middle.base_url}/v1", api_key=key, max_retries=0, timeout=20) as sdk:
        return sdk.responses.create(model=MODEL, conversation="me:same", input=output, tools=[TOOL])


def client(middle, key, text):
    url = f"{middle.base_url}/intercept/me@same/v1beta/models/{MODEL}:generateContent"
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": text}]}]}).encode()
    headers = {"content-type": "application/json", "x-goog-api-key": "the-clients", "x-dragoman-key": key}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:  # noqa: S310  our own gateway
        return json.load(reply)["candidates"][0]["content"]["parts"]


def test_the_same_name_is_another_session_for_another_key(simulator, tmp_path, pool):
    keys = (KeyTable(key="key-a", name="a"), KeyTable(key="key-b", name="b"))
    with between(simulator.base_url, tmp_path, intercept={"me": {"upstream": "google"}}, keys=keys) as middle:
        waiting = pool.submit(create_response, middle, "key-a", "go")
        until(lambda: (found := session_of(middle, "me", "same", "a")) and found.active_turn)
        # The other's client gets no tools of ours, and its words go to nobody.
        assert client(middle, "key-b", "call look")[0]["text"] == "You said: call look"
        assert not waiting.done()
        assert "Waiting for tools" in client(middle, "key-a", "call look")[0]["text"]
        call = waiting.result(10).output[-1]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "stolen"}
        with pytest.raises(openai.BadRequestError, match=f"no call '{call.call_id}' is waiting"):
            create_response(middle, "key-b", [result])
        assert client(middle, "key-b", "hello")[0]["text"] == "You said: hello"
        assert session_of(middle, "me", "same", "a").pending_group is not None
