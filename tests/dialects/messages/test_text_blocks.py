"""Search results and documents made of blocks: kept whole for Claude, and as texts and images for all others."""

import json

import pytest

from dragoman.dialects.messages import DIALECT
from dragoman.dialects.messages.text_blocks import read_texts
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation

MODELS = {"chat": "gpt-4.1", "responses": "gpt-4.1", "gemini": "gemini-3.8-flash"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
SEARCH = {
    "type": "search_result",
    "source": "https://example.com/paper",
    "title": "Alpha",
    "content": [{"type": "text", "text": "Beta"}, {"type": "text", "text": "Gamma"}],
    "citations": {"enabled": True},
}
BLOCKS = {
    "search": (SEARCH, ["https://example.com/paper", "Alpha", "Beta", "Gamma"]),
    "text": (
        {
            "type": "document",
            "title": "Alpha",
            "source": {"type": "text", "media_type": "text/plain", "data": "Beta\nGamma"},
        },
        ["Alpha", "Beta\nGamma"],
    ),
    "content": (
        {
            "type": "document",
            "title": "Alpha",
            "context": "Delta",
            "source": {"type": "content", "content": [{"type": "text", "text": "Beta"}, IMAGE]},
        },
        ["Alpha", "Delta", "Beta", PIXEL],
    ),
    "browser": (
        {
            "type": "browser_state",
            "tabs": [
                {"tab_id": "1", "title": "Alpha", "url": "https://example.com/", "active": True},
                {"tab_id": "2", "title": "", "url": ""},
            ],
            "state_changes": [
                {"type": "tab_opened", "tab_id": "2"},
                {"type": "download_completed", "download_id": "d1", "url": "https://example.com/a", "size_bytes": 7},
            ],
        },
        [
            "tab 1 (active): Alpha, https://example.com/",
            "tab 2: blank",
            "tab opened: 2",
            "download completed: d1, https://example.com/a, 7",
        ],
    ),
    "no tab": ({"type": "browser_state", "tabs": []}, ["No tab is open."]),
    "string": ({"type": "document", "source": {"type": "content", "content": "Beta"}}, ["Beta"]),
}


def build_request(block, place):
    messages = [{"role": "user", "content": "hi"}]
    if place == "user":
        messages = [{"role": "user", "content": [block, {"type": "text", "text": "hi"}]}]
    else:
        messages += [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [block]}]},
        ]
    tools = [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]
    return json.dumps({"model": "m", "max_tokens": 99, "messages": messages, "tools": tools}).encode()


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("place", ["user", "result"])
@pytest.mark.parametrize("name", BLOCKS)
def test_the_text_of_a_block_reaches_every_dialect(name, place, target):
    block, texts = BLOCKS[name]
    model = MODELS[target]
    translation = translate_request(Call(build_request(block, place)), "messages", target, model=model)
    sent = json.dumps(json.loads(translation.call.body))
    assert [text for text in texts if json.dumps(text)[1:-1] not in sent] == []
    assert [loss.where for loss in translation.losses if loss.kind == "dropped" and "/text" in loss.where] == []
    assert "approximated" in [loss.kind for loss in translation.losses]
    verdict = APIS[target].accept(translation.call.body, CheckContext(model=model, recorded=True), TokenSigner())
    assert not isinstance(verdict, Violation)


@pytest.mark.parametrize("target", MODELS)
def test_members_of_a_search_result_that_are_no_text_are_reported(target):
    translation = translate_request(Call(build_request(SEARCH, "user")), "messages", target, model=MODELS[target])
    assert "/messages/0/content/0/citations" in [loss.where for loss in translation.losses]


@pytest.mark.parametrize("place", ["user", "result"])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_rendered_again_as_it_was(name, place):
    body = build_request(BLOCKS[name][0], place)
    again = DIALECT.render_request(DIALECT.parse_request(Call(body)), DIALECT.traits[-1])
    assert json.loads(again.body)["messages"] == json.loads(body)["messages"]


@pytest.mark.parametrize("content", [5, [5], {}, [], [{"type": "hologram"}], None])
def test_a_block_without_readable_content_stays_opaque(content):
    body = build_request({**SEARCH, "content": content}, "user")
    part = DIALECT.parse_request(Call(body)).messages[0].parts[0]
    assert part.content == ()
    assert read_texts(part, lambda *_: None) == part


@pytest.mark.parametrize("members", [{"tabs": 5}, {"tabs": [5]}, {"tabs": {}, "state_changes": ["opened"]}])
def test_a_browser_state_that_is_malformed_stays_opaque(members):
    body = build_request({"type": "browser_state", **members}, "result")
    (result,) = DIALECT.parse_request(Call(body)).messages[-1].parts
    assert result.content[0].content == ()


@pytest.mark.parametrize("name", BLOCKS)
def test_the_text_of_a_block_in_a_result_reaches_a_model_without_tools(name):
    block, texts = BLOCKS[name]
    call = Call(build_request(block, "result"))
    sent = translate_request(call, "messages", "chat", model="llama", text_calls="json").call.body
    assert [text for text in texts if json.dumps(text)[1:-1].encode() not in sent] == []
