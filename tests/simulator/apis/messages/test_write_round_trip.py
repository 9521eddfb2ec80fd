"""Every answer is accepted as history: replies and accumulated streams."""

import json

import pytest

from simulator.apis.messages.bodies import require_accepted, user
from simulator.apis.messages.test_write import ANSWERS, BODIES, QUESTION, client, frames, whole

SAID = [name for name in ANSWERS if name != "nothing"]


def go_on(body, content):
    calls = [block["id"] for block in content if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": one, "content": "18"} for one in calls]
    following = user(*results) if results else user("Go on.")
    return {**body, "messages": [*body["messages"], {"role": "assistant", "content": content}, following]}


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("name", SAID)
def test_a_reply_is_taken_back(name, form):
    content = json.loads(whole(ANSWERS[name], BODIES[form]))["content"]
    require_accepted(go_on(BODIES[form], content))


@pytest.mark.parametrize("form", BODIES)
@pytest.mark.parametrize("name", SAID)
def test_a_gathered_stream_is_taken_back(name, form):
    streamed = client(b"".join(frames(ANSWERS[name], BODIES[form])), "text/event-stream")
    with streamed.messages.stream(**QUESTION) as events:
        message = events.get_final_message()
    content = [block.model_dump(mode="json", exclude_none=True) for block in message.content]
    require_accepted(
        go_on(BODIES[form], [{k: v for k, v in block.items() if k != "parsed_output"} for block in content])
    )
