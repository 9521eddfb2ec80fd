"""A duplicate key in a request is rejected in the client's dialect, before any upstream call."""

import httpx2
import pytest

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/gem:generateContent",
}
HISTORY = {
    "chat": '"messages":[{"role":"user","content":"hi"}]',
    "responses": '"input":"hi"',
    "messages": '"max_tokens":9,"messages":[{"role":"user","content":"hi"}]',
    "gemini": '"contents":[{"parts":[{"text":"hi"}]}]',
}


def place_and_code(dialect: str, error: dict) -> tuple[str, str]:
    """Return the message and the field of an error."""
    match dialect:
        case "messages":
            return error["message"].rpartition("object at ")[2], error["details"]["error_code"]
        case "gemini":
            bad, info = error["details"]
            return bad["fieldViolations"][0]["field"], info["reason"]
        case _:
            return error["param"], error["code"]


@pytest.mark.parametrize("model", ["gem", "gpt"])
@pytest.mark.parametrize(
    ("twice", "places"),
    [
        ('"model":"gem","model":"gpt"', {"/model", "model", "the root"}),
        (
            '"metadata":{"a":{"b":"1","\\u0062":"2"}},"model":"MODEL"',
            {"metadata.a.b", "/metadata/a"},
        ),
    ],
)
@pytest.mark.parametrize("dialect", PATHS)
def test_a_duplicate_key_is_rejected(gateway, dialect, twice, places, model):
    asked = len(gateway.simulator.requests)
    body = f"{{{twice.replace('MODEL', model)},{HISTORY[dialect]}}}"
    reply = httpx2.post(gateway.base_url + PATHS[dialect], content=body)
    assert reply.status_code == 400
    place, code = place_and_code(dialect, reply.json()["error"])
    assert code == "duplicate_key"
    assert place in places
    assert len(gateway.simulator.requests) == asked


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/conversations", '{"metadata":{"a":"1","a":"2"}}'),
        ("/v1/conversations/any", '{"metadata":{},"metadata":{}}'),
        ("/v1/conversations/any/items", '{"items":[{"type":"message","type":"message"}]}'),
        ("/v1/gemini", '{"model":"gem","input":"hi","input":"ho"}'),
        ("/v1/gemini", '{"model":"gem","input":[{"text":"hi","text":"ho"}]}'),
        ("/v1internal:loadCodeAssist", '{"metadata":{"a":1,"a":2}}'),
    ],
)
def test_a_duplicate_key_is_rejected_on_every_path_of_the_gateway(gateway, path, body):
    reply = httpx2.post(gateway.base_url + path, content=body)
    assert reply.status_code == 400
    assert "duplicate_key" in reply.text
