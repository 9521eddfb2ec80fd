"""Every captured request of real clients, sent to every upstream of another dialect."""

import json

import httpx2
import pytest

from shelf import ROOT, needs_shelf

UPSTREAMS = {
    "gem": "gemini",
    "claude": "messages",
    "gpt": "chat",
    "resp": "responses",
    "vgem": "gemini",
    "vclaude": "messages",
    "assist": "gemini",
}
PATHS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "messages",
    "/v1internal:generateContent": "gemini",
    "/v1internal:streamGenerateContent": "gemini",
}
KEPT_ELSEWHERE = ("previous_response_id", "thread", "conversation")
"""Members that name what only the server of the capture has kept."""
PASSED = {"anthropic-version", "anthropic-beta", "openai-beta", "x-goog-api-client"}


def captures():
    """The recorded requests for generation, one per parameter."""
    for file in sorted((ROOT / "clients" / "captures").rglob("*.json")):
        capture = json.loads(file.read_text(encoding="utf-8"))
        body = capture.get("body")
        dialect = "gemini" if "/models/" in capture["path"] else PATHS.get(capture["path"])
        if capture["method"] == "POST" and dialect and isinstance(body, dict) and not body.keys() & set(KEPT_ELSEWHERE):
            yield pytest.param(dialect, capture, id=f"{file.parent.name}/{file.stem[:2]}")


@needs_shelf
@pytest.mark.slow
@pytest.mark.parametrize(("dialect", "capture"), list(captures()))
def test_what_a_real_client_sends_is_answered_by_every_foreign_upstream(gateway, dialect, capture):
    before, _, verb = capture["path"].partition("/models/")
    headers = {name: value for name, value in capture["headers"] if name.lower() in PASSED}
    for model, other in UPSTREAMS.items():
        if other == dialect:
            continue
        path = f"{before}/models/{model}:{verb.rpartition(':')[2]}" if verb else capture["path"]
        body = capture["body"] if verb else {**capture["body"], "model": model}
        reply = httpx2.post(gateway.base_url + path, json=body, params=capture["query"], headers=headers)
        assert reply.status_code == 200, (model, reply.text)
        assert "event: error" not in reply.text
        assert '"response.failed"' not in reply.text
