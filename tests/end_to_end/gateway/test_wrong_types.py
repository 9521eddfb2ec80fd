"""A field of the wrong type is answered with 400 in the client's dialect, never with an internal error."""

import copy
from itertools import cycle

import httpx2
import pytest

from interpreter.test_tool_errors_wrong_types import WRONG, find_leaves
from laws.maximal import REQUESTS

PATHS = {
    "chat": ("/v1/chat/completions",),
    "responses": ("/v1/responses", "/v1/responses/input_tokens"),
    "messages": ("/v1/messages", "/v1/messages/count_tokens"),
    "gemini": ("/v1beta/models/{}:generateContent", "/v1beta/models/{}:countTokens"),
}
MODELS = ("gem", "claude", "gpt", "resp")


def replace_at(document, path, value, model):
    changed = copy.deepcopy(document)
    for name in ("stream", "previous_response_id"):
        changed.pop(name, None)
    if "model" in changed:
        changed["model"] = model
    owner = changed
    for key in path[:-1]:
        owner = owner[key]
    owner[path[-1]] = value
    return changed


@pytest.mark.parametrize("dialect", PATHS)
def test_a_string_replaced_by_another_type_is_no_internal_error(gateway, dialect):
    values, models, paths = cycle(WRONG), cycle(MODELS), cycle(PATHS[dialect])
    failed, statuses = [], set()
    with httpx2.Client(base_url=gateway.base_url) as client:
        for leaf in find_leaves(REQUESTS[dialect]):
            for _ in range(len(WRONG) - 1):
                wrong, model = next(values), next(models)
                body = replace_at(REQUESTS[dialect], leaf, wrong, model)
                reply = client.post(next(paths).format(model), json=body)
                statuses.add(reply.status_code)
                if reply.status_code >= 500:
                    failed.append((leaf, wrong, model, reply.text))
    assert failed == []
    assert 400 in statuses


@pytest.mark.parametrize("model", ["gem", "claude"])
@pytest.mark.parametrize("whole", [[[5]], 5, "x", True])
def test_a_count_of_a_request_that_is_no_object_is_rejected(gateway, whole, model):
    url = f"{gateway.base_url}/v1beta/models/{model}:countTokens"
    reply = httpx2.post(url, json={"generateContentRequest": whole})
    assert reply.status_code == 400


@pytest.mark.parametrize("include", [5, {}, "x", True])
def test_an_include_that_is_no_array_is_rejected_for_a_stored_response(gateway, include):
    body = {"model": "gem", "input": "hi", "include": include}
    reply = httpx2.post(f"{gateway.base_url}/v1/responses", json=body)
    assert reply.status_code == 400


@pytest.mark.parametrize(
    ("path", "body", "read"),
    [
        ("/v1/chat/completions", {"messages": [{"role": {"type": [5]}, "content": "x"}]}, lambda e: e["param"]),
        ("/v1/responses", {"input": [{"role": {"type": [5]}, "content": "x"}]}, lambda e: e["param"]),
        (
            "/v1/messages",
            {"max_tokens": 5, "messages": [{"role": {"type": [5]}, "content": "x"}]},
            lambda e: e["message"],
        ),
        (
            "/v1beta/models/claude:generateContent",
            {"contents": [{"role": {"type": [5]}, "parts": [{"text": "x"}]}]},
            lambda e: str(e["details"]),
        ),
    ],
)
@pytest.mark.parametrize("model", ["gem", "claude"])
def test_a_role_that_is_an_object_is_named_in_the_error(gateway, path, body, read, model):
    reply = httpx2.post(f"{gateway.base_url}{path}", json={"model": model, **body} if "beta" not in path else body)
    assert reply.status_code == 400
    assert "role" in read(reply.json()["error"])
