"""Size limits of a request, the betas it needs, and what Vertex itself rejects."""

import json

import anthropic
import httpx2
import pytest
from anthropic import Anthropic, AnthropicVertex

from simulator.apis.messages.bodies import (
    WEATHER,
    asks,
    assistant,
    call,
    on_vertex,
    require_accepted,
    require_rejected,
    result,
    text,
    user,
)

MEGABYTE = 1 << 20
LINKED = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
SCREEN = {"type": "computer_20251124", "name": "computer", "display_height_px": 600, "display_width_px": 800}


def test_a_body_is_only_so_large_and_smaller_on_vertex():
    large = user("a" * (31 * MEGABYTE))
    found = require_rejected({**on_vertex(), "messages": [large]})
    assert (found.rule, found.status) == ("messages.request-size", 413)
    assert require_rejected(asks(large)).rule == "messages.prompt-length"


@pytest.mark.parametrize(
    ("model", "betas", "most"),
    [
        ("claude-haiku-4-5", None, 200_000),
        ("claude-sonnet-4-5", ("context-1m-2025-08-07",), 1_000_000),
        ("claude-opus-5-5", None, 1_000_000),
    ],
)
def test_a_prompt_is_only_so_long(model, betas, most):
    found = require_rejected(asks(user("a" * 4 * most), model=model), betas=betas)
    assert found.rule == "messages.prompt-length"
    assert found.message.startswith("prompt is too long: ")
    assert found.message.endswith(f" tokens > {most} maximum")
    require_accepted(asks(user("a" * (4 * most - 100)), model=model), betas=betas)


@pytest.mark.parametrize(
    ("members", "beta"),
    [
        ({"tools": [SCREEN], "model": "claude-opus-4-8"}, "computer-use-2025-11-24"),
        ({"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "m"}]}, "advisor-tool-2026-03-01"),
        ({"output_config": {"task_budget": {"type": "tokens", "total": 20_000}}}, "task-budgets-2026-03-13"),
        ({"thinking": {"type": "adaptive", "display": "updates"}}, "thinking-display-updates-2026-08-18"),
        (
            {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}},
            "thinking-binding-controls-2026-08-01",
        ),
        (
            {"messages": [user("Hi"), {"role": "system", "content": "Be brief.", "clear_at": "next_user_message"}]},
            "mid-conversation-system-clear-at-2026-08-21",
        ),
        (
            {"messages": [user("Hi"), {"role": "system", "output_config": {"effort": "low"}}]},
            "mid-conversation-output-config-2026-07-01",
        ),
    ],
)
def test_a_beta_feature_needs_its_header(members, beta):
    body = asks(**members)
    assert require_rejected(body, betas=("files-api-2025-04-14",)).rule == "messages.beta-header"
    require_accepted(body, betas=("files-api-2025-04-14", beta))
    require_accepted(body, betas=None)


def test_a_tool_that_is_declared_on_the_way_needs_a_beta_of_its_own():
    tool = {"type": "tool_definition", "definition": WEATHER}
    added = {"role": "system", "content": [{"type": "tool_addition", "tool": tool}]}
    body = asks(user("Hi"), added)
    assert require_rejected(body, betas=("mid-conversation-tool-changes-2026-07-01",)).rule == "messages.beta-header"
    require_accepted(body, betas=("inline-tools-2026-09-15",))


def test_vertex_takes_no_links_in_results_either():
    shown = {"messages": [user("Hi"), assistant(call()), user(result(content=[LINKED]))], "tools": [WEATHER]}
    found = require_rejected({**on_vertex(), **shown})
    assert (found.rule, found.where) == ("messages.vertex-features", "/messages/2/content/0/content/0/source")
    require_accepted(asks(**shown))


def test_the_user_cites_nothing_in_the_newest_version():
    location = {"type": "char_location", "cited_text": "a", "document_index": 0, "document_title": None}
    cited = text("a", citations=[{**location, "start_char_index": 0, "end_char_index": 1}])
    found = {"type": "search_result", "source": "https://example.com", "title": "A", "content": [cited]}
    for body in (
        asks(user(found)),
        asks(user("Hi"), assistant(call()), user(result(content=[found])), tools=[WEATHER]),
    ):
        assert require_rejected(body, version="2026-10-21").rule == "messages.version-blocks"
        require_accepted(body, version="2023-06-01")
    require_accepted(
        asks(user({**found, "content": [text("a")], "citations": {"enabled": True}})), version="2026-10-21"
    )


def test_a_structured_answer_cannot_be_prefilled():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    body = asks(user("Hi"), assistant("{"), model="claude-haiku-4-5")
    require_accepted(body)
    structured = {**body, "output_config": {"format": {"type": "json_schema", "schema": schema}}}
    assert require_rejected(structured).rule == "messages.output-format-prefill"


@pytest.mark.parametrize(("key", "words"), [("invalid", "invalid x-api-key"), ("", "x-api-key header is required")])
def test_an_invalid_key_is_an_error(simulator, key, words):
    headers = {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
    reply = httpx2.post(f"{simulator.base_url}/v1/messages", json=asks(), headers=headers)
    assert (reply.status_code, reply.json()["error"]["type"]) == (401, "authentication_error")
    assert reply.json()["error"]["message"].startswith(words)


def google(simulator, token):
    place = {"region": "us-east5", "project_id": "p", "access_token": token}
    return AnthropicVertex(**place, base_url=f"{simulator.base_url}/v1", max_retries=0)


def test_vertex_itself_rejects_unknown_clients_and_models(simulator):
    with pytest.raises(anthropic.AuthenticationError) as stranger:
        google(simulator, "invalid").messages.create(**asks())
    assert stranger.value.body["error"]["status"] == "UNAUTHENTICATED"
    with pytest.raises(anthropic.NotFoundError, match="Publisher Model") as missing:
        google(simulator, "token").messages.create(**asks(model="no-such-model"))
    assert missing.value.body["error"]["status"] == "NOT_FOUND"
    assert missing.value.response.headers["x-dragoman-rule"] == "messages.model-exists"


def test_a_response_has_headers_for_its_request_id_and_remaining_limits(simulator):
    client = Anthropic(api_key="k", base_url=simulator.base_url, max_retries=0)
    raw = client.messages.with_raw_response.create(**asks())
    assert raw.request_id == raw.headers["request-id"]
    assert raw.request_id.startswith("req_011C")
    assert int(raw.headers["anthropic-ratelimit-input-tokens-remaining"]) > 0
    with client.messages.stream(**asks()) as stream:
        assert stream.request_id not in {None, raw.request_id}


def test_a_thought_of_another_conversation_is_left_out_where_that_is_wanted(simulator):
    client = Anthropic(api_key="k", base_url=simulator.base_url, max_retries=0)
    binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    expected = {"thinking": {"type": "adaptive", **binding}, "betas": ["thinking-binding-controls-2026-08-01"]}
    first = client.beta.messages.create(**asks(), **expected)
    assert first.input_transformations is None
    body = json.loads(first.model_dump_json(exclude_none=True))["content"]
    moved = asks(user("Something else."), {"role": "assistant", "content": body}, user("Go on."))
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        client.beta.messages.create(**moved)
    (dropped,) = client.beta.messages.create(**moved, **expected).input_transformations
    assert (dropped.type, dropped.path) == ("thinking_dropped", "messages.1.content.0")
    assert dropped.reason == "prefix_binding_mismatch"
    with client.beta.messages.stream(**moved, **expected) as stream:
        assert stream.get_final_message().input_transformations == [dropped]
