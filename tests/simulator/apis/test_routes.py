"""Paths of the vendors."""

import pytest

from dragoman.simulator.apis.routes import Route, api_of, route_of

PLACE = "/projects/p/locations/global/publishers"


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        ("POST", "/v1/chat/completions", Route(api="chat", operation="generate")),
        ("POST", "/v1/responses", Route(api="responses", operation="generate")),
        ("POST", "/v1/responses/input_tokens", Route(api="responses", operation="count")),
        ("GET", "/v1/responses/resp_1", Route(api="responses", operation="stored", id="resp_1", action="get")),
        ("DELETE", "/v1/responses/resp_1", Route(api="responses", operation="stored", id="resp_1", action="delete")),
        (
            "GET",
            "/v1/responses/resp_1/input_items",
            Route(api="responses", operation="stored", id="resp_1", action="input_items"),
        ),
        ("POST", "/v1/messages", Route(api="messages", operation="generate")),
        ("POST", "/v1/messages/count_tokens", Route(api="messages", operation="count")),
        (
            "POST",
            "/v1/models/g:generateContent",
            Route(api="gemini", operation="generate", model="g", version="v1"),
        ),
        (
            "POST",
            "/v1beta/models/g-3.8:streamGenerateContent",
            Route(api="gemini", operation="generate", model="g-3.8", stream=True, version="v1beta"),
        ),
        ("POST", "/v1alpha/models/g:countTokens", Route(api="gemini", operation="count", model="g", version="v1alpha")),
        (
            "POST",
            f"/v1beta1{PLACE}/google/models/g:streamGenerateContent",
            Route(api="gemini", operation="generate", model="g", stream=True, vertex=True, version="v1beta1"),
        ),
        (
            "POST",
            "/v1/publishers/google/models/g:generateContent",
            Route(api="gemini", operation="generate", model="g", vertex=True, version="v1"),
        ),
        (
            "GET",
            "/v1beta1/publishers/google/models",
            Route(api="gemini", operation="models", google=True, vertex=True, version="v1beta1"),
        ),
        (
            "GET",
            f"/v1beta1{PLACE}/google/models/g",
            Route(api="gemini", operation="model", model="g", google=True, vertex=True, version="v1beta1"),
        ),
        (
            "POST",
            f"/v1{PLACE}/anthropic/models/claude@1:rawPredict",
            Route(api="messages", operation="generate", model="claude@1", vertex=True),
        ),
        (
            "POST",
            f"/v1{PLACE}/anthropic/models/claude@1:streamRawPredict",
            Route(api="messages", operation="generate", model="claude@1", stream=True, vertex=True),
        ),
        (
            "POST",
            f"/v1{PLACE}/anthropic/models/count-tokens:rawPredict",
            Route(api="messages", operation="count", vertex=True),
        ),
        ("POST", "/v1internal:generateContent", Route(api="gemini", operation="generate", wrapped=True)),
        (
            "POST",
            "/v1internal:streamGenerateContent",
            Route(api="gemini", operation="generate", wrapped=True, stream=True),
        ),
        ("POST", "/v1internal:countTokens", Route(api="gemini", operation="count", wrapped=True)),
        (
            "POST",
            "/v1internal:loadCodeAssist",
            Route(api="gemini", operation="code_assist", wrapped=True, action="loadCodeAssist"),
        ),
        (
            "GET",
            "/v1internal/operations/onboard.p",
            Route(api="gemini", operation="code_assist", wrapped=True, action="operation", id="operations/onboard.p"),
        ),
        ("POST", "/v1internal:getCodeAssistGlobalUserSetting", None),
        ("GET", "/v1/models", Route(operation="models")),
        ("GET", "/v1/models/org/name", Route(operation="model", model="org/name")),
        ("GET", "/v1beta/models", Route(api="gemini", operation="models", google=True)),
        ("GET", "/v1beta/models/g", Route(api="gemini", operation="model", model="g", google=True)),
        ("POST", "/token", Route(operation="token")),
        ("GET", "/rules", Route(operation="rules")),
        ("GET", "/health", Route(operation="health")),
        ("GET", "/requests", Route(operation="requests")),
        ("GET", "/v1/chat/completions", None),
        ("POST", "/v1/chat/completions/c", None),
        ("POST", "/v1/responses/compact", Route(api="responses", operation="compact")),
        ("POST", "/v1/responses/r/cancel", Route(api="responses", operation="stored", action="cancel", id="r")),
        ("POST", "/v1/conversations", Route(api="responses", operation="conversations", action="create")),
        (
            "DELETE",
            "/v1/conversations/c/items/i",
            Route(api="responses", operation="conversations", action="remove", id="c", item="i"),
        ),
        ("PUT", "/v1/chat/completions", None),
        ("POST", "/v1/chat/completions/x/y", None),
        ("POST", "/v2/models/g:generateContent", None),
        ("POST", "/v1/models/g:burn", None),
    ],
)
def test_a_path_belongs_to_an_api(method, path, route):
    assert route_of(method, path) == route


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1beta/nothing", "gemini"),
        ("/v1internal:burn", "gemini"),
        ("/v1/models/x:generateContents", "gemini"),
        (f"/v1{PLACE}/google/x", "gemini"),
        (f"/v1{PLACE}/anthropic/x", "messages"),
        ("/v1/messages/batches", "messages"),
        ("/v1/responses/x/cancel", "responses"),
        ("/v1/embeddings", "chat"),
        ("/", "chat"),
    ],
)
def test_an_unknown_path_is_rejected_by_the_vendor_it_resembles(path, api):
    assert api_of(path) == api
