"""Every answer is accepted as history: whole replies and the parts of streams."""

import json

import pytest

from dragoman.simulator.apis.gemini import API
from simulator.apis.gemini.asking import ANSWERS, build_request, occasion, require_accepted, user
from simulator.apis.gemini.test_write import PACES, SHOWN, SITUATIONS

SAID = [name for name in ANSWERS if name not in {"blocked", "filtered", "malformed"}]


def go_on(body, parts):
    calls = [part["functionCall"] for part in parts if part.get("functionCall", {}).get("name")]
    results = [
        {
            "functionResponse": {
                **{key: call[key] for key in ("id", "name") if key in call},
                "response": {"output": "18"},
            }
        }
        for call in calls
    ]
    following = user(*results) if results else user("Go on.")
    return {**body, "contents": [*body["contents"], {"role": "model", "parts": parts}, following]}


def parts_of(reply):
    return reply["candidates"][0].get("content", {}).get("parts", [])


@pytest.mark.parametrize("kind", SITUATIONS)
@pytest.mark.parametrize("name", SAID)
def test_a_reply_is_taken_back(name, kind):
    body = build_request(user("Hi."), generationConfig=SHOWN)
    reply = json.loads(API.render_reply(ANSWERS[name], require_accepted(body, SITUATIONS[kind]), occasion()))
    require_accepted(go_on(body, parts_of(reply)), SITUATIONS[kind])


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("kind", ["new", "old"])
@pytest.mark.parametrize("name", SAID)
def test_the_parts_of_a_stream_are_taken_back(name, kind, pace):
    body = build_request(user("Hi."), generationConfig=SHOWN)
    frames = API.render_stream(ANSWERS[name], require_accepted(body, SITUATIONS[kind]), occasion(**PACES[pace]))
    parts = [part for frame in frames for part in parts_of(json.loads(frame[6:]))]
    require_accepted(go_on(body, parts), SITUATIONS[kind])


@pytest.mark.parametrize("kind", ["new", "vertex"])
def test_a_search_that_is_shown_is_taken_back(kind):
    tools = [{"googleSearch": {}}]
    flag = {"toolConfig": {"includeServerSideToolInvocations": True}} if kind == "new" else {}
    body = {"contents": [user("Hi.")], "tools": tools, **flag}
    reply = json.loads(API.render_reply(ANSWERS["search"], require_accepted(body, SITUATIONS[kind]), occasion()))
    require_accepted(go_on(body, parts_of(reply)), SITUATIONS[kind])
