"""Errors have the vendor's text and location."""

import pytest

from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.messages import API, accept
from dragoman.simulator.apis.rule import CheckContext
from simulator.apis.messages.bodies import (
    WEATHER,
    asks,
    assistant,
    call,
    on_vertex,
    require_rejected,
    result,
    text,
    user,
)


@pytest.mark.parametrize(
    ("body", "words", "where"),
    [
        (asks(seed=1), "seed: Extra inputs are not permitted", ""),
        (asks(max_tokens="a"), "max_tokens: Input should be a valid integer", "/max_tokens"),
        (asks(temperature=1.5), "temperature: Input should be less than or equal to 1.0", "/temperature"),
        (
            asks(user(text(7))),
            "messages.0.content.0.text.text: Input should be a valid string",
            "/messages/0/content/0/text",
        ),
        (
            asks(user(text("a", x=1))),
            "messages.0.content.0.text.x: Extra inputs are not permitted",
            "/messages/0/content/0",
        ),
        (asks(user({"type": "image"})), "messages.0.content.0.image.source: Field required", "/messages/0/content/0"),
        (
            asks(user("a"), assistant(call(input="{}"))),
            "messages.1.content.0.tool_use.input: Input should be an object",
            "/messages/1/content/0/input",
        ),
        (
            asks(system=[text("a", cache_control={"type": "ephemeral", "ttl": "2h"})]),
            "system.0.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
            "/system/0/cache_control/ttl",
        ),
        (asks(tools=[{"name": "a"}]), "tools.0.custom.input_schema: Field required", "/tools/0"),
        (asks(tools=[WEATHER, {**WEATHER, "x": 1}]), "tools.1.custom.x: Extra inputs are not permitted", "/tools/1"),
        (
            asks(tools=[{"type": "web_search_20250305", "name": "search"}]),
            "tools.0.web_search_20250305.name: Input should be 'web_search'",
            "/tools/0/name",
        ),
        (asks(thinking={"type": "enabled"}), "thinking.enabled.budget_tokens: Field required", "/thinking"),
        (
            asks(thinking={"type": "enabled", "budget_tokens": 10}),
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            "/thinking/budget_tokens",
        ),
        (
            asks(thinking={"type": "disabled", "display": "omitted"}),
            "thinking.disabled.display: Extra inputs are not permitted",
            "/thinking",
        ),
        (
            asks(output_config={"format": {"type": "json_schema"}}),
            "output_config.format.schema: Field required",
            "/output_config/format",
        ),
        (
            asks({"role": "tool", "content": "a"}),
            'messages: Unexpected role "tool". Allowed roles are "user", "assistant" or "system"',
            "/messages/0/role",
        ),
    ],
)
def test_a_fault_of_shape_names_its_path_with_the_types_on_the_way(body, words, where):
    found = require_rejected(body)
    assert (found.message, found.where) == (words, where)


def test_an_unknown_type_is_reported_with_the_valid_ones():
    found = require_rejected(asks(user({"type": "input_text", "text": "a"})))
    assert found.message.startswith("messages.0.content.0: Input tag 'input_text' found using 'type' does not match")
    assert "'tool_result'" in found.message


def test_vertex_wants_its_version_in_the_body_and_no_model():
    assert (
        require_rejected({**on_vertex(), "model": "claude-opus-5-5"}).message == "model: Extra inputs are not permitted"
    )
    assert require_rejected(asks(), vertex=True).message in {
        "anthropic_version: Field required",
        "model: Extra inputs are not permitted",
    }
    without = on_vertex()
    del without["anthropic_version"]
    assert require_rejected(without, vertex=True).message == "anthropic_version: Field required"


def test_what_is_not_json_is_refused():
    for body in (b"", b"{", b"\xff", b'{"messages": [{"role": "user"'):
        found = accept(body, CheckContext(model=""), TokenSigner())
        assert getattr(found, "rule", "") == "messages.json"
    assert (
        getattr(accept(b"[]", CheckContext(model=""), TokenSigner()), "message", "")
        == "body: Input should be an object"
    )


def test_turns_are_counted_as_the_vendor_merges_them():
    found = require_rejected(asks(user("a"), user("b"), assistant(call()), user("c"), tools=[WEATHER]))
    assert found.message.startswith(
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1."
    )
    found = require_rejected(asks(user("a"), assistant("b"), user(result(3)), user("c")))
    assert found.message.startswith(
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_3."
    )


def test_an_unknown_model_is_not_found():
    found = require_rejected(asks(model="no-such-model"))
    assert (found.status, found.message) == (404, "model: no-such-model")


def test_every_rule_of_shape_is_listed():
    names = {note.name for note in API.rules}
    assert {f"messages.{fault}" for fault in ("json", "unknown-field", "required", "type", "enum", "bounds")} <= names
