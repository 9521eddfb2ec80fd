"""Which API a path belongs to, and what is asked of it there."""

import re
from typing import Literal

from msgspec import Struct

Operation = Literal[
    "generate",
    "count",
    "compact",
    "models",
    "model",
    "code_assist",
    "token",
    "rules",
    "requests",
    "health",
    "stored",
    "conversations",
]


class Route(Struct, frozen=True, kw_only=True):
    """What a path means."""

    api: str = ""
    operation: Operation
    model: str = ""
    stream: bool = False
    vertex: bool = False
    wrapped: bool = False
    """Requests and replies stand in Code Assist's envelope."""
    google: bool = False
    """Only Google has such a path."""
    version: str = ""
    """The version of Google's API that the path names."""
    id: str = ""
    item: str = ""
    action: str = ""


_GEMINI = r"/(?P<version>v1|v1beta|v1beta1|v1alpha)"
_VERTEX = r"/(?P<version>v1|v1beta1|v1beta)(?:/projects/[^/]+/locations/[^/]+)?/publishers/google"
"""In express mode, with a key, Vertex wants neither project nor location."""
_CLAUDE = r"/(?:v1|v1beta1|v1beta)/projects/[^/]+/locations/[^/]+/publishers/anthropic"
_VERBS = r"(?P<verb>generateContent|streamGenerateContent|countTokens)"
_PATHS: tuple[tuple[str, re.Pattern[str], Route], ...] = (
    ("POST", re.compile(r"/v1/chat/completions"), Route(api="chat", operation="generate")),
    *(
        (method, re.compile(f"/v1/chat/completions{path}"), Route(api="chat", operation="stored", action=action))
        for method, path, action in (
            ("GET", "", "list"),
            ("GET", "/(?P<id>[^/]+)", "get"),
            ("POST", "/(?P<id>[^/]+)", "update"),
            ("DELETE", "/(?P<id>[^/]+)", "delete"),
            ("GET", "/(?P<id>[^/]+)/messages", "messages"),
        )
    ),
    ("POST", re.compile(r"/v1/responses"), Route(api="responses", operation="generate")),
    ("POST", re.compile(r"/v1/responses/input_tokens"), Route(api="responses", operation="count")),
    ("GET", re.compile(r"/v1/responses/(?P<id>[^/]+)"), Route(api="responses", operation="stored", action="get")),
    ("DELETE", re.compile(r"/v1/responses/(?P<id>[^/]+)"), Route(api="responses", operation="stored", action="delete")),
    (
        "GET",
        re.compile(r"/v1/responses/(?P<id>[^/]+)/input_items"),
        Route(api="responses", operation="stored", action="input_items"),
    ),
    ("POST", re.compile(r"/v1/responses/compact"), Route(api="responses", operation="compact")),
    (
        "POST",
        re.compile(r"/v1/responses/(?P<id>[^/]+)/cancel"),
        Route(api="responses", operation="stored", action="cancel"),
    ),
    *(
        (
            method,
            re.compile(f"/v1/conversations{path}"),
            Route(api="responses", operation="conversations", action=action),
        )
        for method, path, action in (
            ("POST", "", "create"),
            ("GET", "/(?P<id>[^/]+)", "get"),
            ("POST", "/(?P<id>[^/]+)", "update"),
            ("DELETE", "/(?P<id>[^/]+)", "delete"),
            ("GET", "/(?P<id>[^/]+)/items", "items"),
            ("POST", "/(?P<id>[^/]+)/items", "add"),
            ("GET", "/(?P<id>[^/]+)/items/(?P<item>[^/]+)", "item"),
            ("DELETE", "/(?P<id>[^/]+)/items/(?P<item>[^/]+)", "remove"),
        )
    ),
    ("POST", re.compile(r"/v1/messages"), Route(api="messages", operation="generate")),
    ("POST", re.compile(r"/v1/messages/count_tokens"), Route(api="messages", operation="count")),
    ("POST", re.compile(rf"{_GEMINI}/models/(?P<model>[^/]+):{_VERBS}"), Route(api="gemini", operation="generate")),
    (
        "POST",
        re.compile(rf"{_VERTEX}/models/(?P<model>[^/]+):{_VERBS}"),
        Route(api="gemini", operation="generate", vertex=True),
    ),
    (
        "POST",
        re.compile(rf"{_CLAUDE}/models/count-tokens:rawPredict"),
        Route(api="messages", operation="count", vertex=True),
    ),
    (
        "POST",
        re.compile(rf"{_CLAUDE}/models/(?P<model>[^/]+):(?P<verb>rawPredict|streamRawPredict)"),
        Route(api="messages", operation="generate", vertex=True),
    ),
    ("POST", re.compile(rf"/v1internal:{_VERBS}"), Route(api="gemini", operation="generate", wrapped=True)),
    (
        "POST",
        re.compile(
            r"/v1internal:(?P<action>loadCodeAssist|onboardUser|retrieveUserQuota|listExperiments|fetchAdminControls"
            r"|recordCodeAssistMetrics|setCodeAssistGlobalUserSetting)"
        ),
        Route(api="gemini", operation="code_assist", wrapped=True),
    ),
    (
        "GET",
        re.compile(r"/v1internal:(?P<action>getCodeAssistGlobalUserSetting)"),
        Route(api="gemini", operation="code_assist", wrapped=True),
    ),
    (
        "GET",
        re.compile(r"/v1internal/(?P<id>operations/[^/]+)"),
        Route(api="gemini", operation="code_assist", wrapped=True, action="operation"),
    ),
    ("GET", re.compile(r"/v1/models"), Route(operation="models")),
    ("GET", re.compile(r"/v1/models/(?P<model>.+)"), Route(operation="model")),
    ("GET", re.compile(r"/(?:v1beta|v1beta1|v1alpha)/models"), Route(api="gemini", operation="models", google=True)),
    (
        "GET",
        re.compile(r"/(?:v1beta|v1beta1|v1alpha)/models/(?P<model>[^/]+)"),
        Route(api="gemini", operation="model", google=True),
    ),
    ("GET", re.compile(rf"{_VERTEX}/models"), Route(api="gemini", operation="models", google=True, vertex=True)),
    (
        "GET",
        re.compile(rf"{_VERTEX}/models/(?P<model>[^/]+)"),
        Route(api="gemini", operation="model", google=True, vertex=True),
    ),
    ("POST", re.compile(r"/token|/oauth2/v4/token"), Route(operation="token")),
    ("GET", re.compile(r"/rules"), Route(operation="rules")),
    ("GET", re.compile(r"/requests"), Route(operation="requests")),
    ("GET", re.compile(r"/health"), Route(operation="health")),
)


def route_of(method: str, path: str) -> Route | None:
    """Return what a path means; None for a path that no vendor has."""
    asked = "GET" if method == "HEAD" else method
    for known, pattern, route in _PATHS:
        found = pattern.fullmatch(path) if known == asked else None
        if found is not None:
            return _filled(route, found.groupdict())
    return None


def _filled(route: Route, found: dict[str, str | None]) -> Route:
    verb = found.get("verb") or ""
    return Route(
        api=route.api,
        operation="count" if verb == "countTokens" else route.operation,
        model=found.get("model") or route.model,
        stream=verb.startswith("stream"),
        vertex=route.vertex,
        wrapped=route.wrapped,
        google=route.google,
        version=found.get("version") or "",
        id=found.get("id") or "",
        item=found.get("item") or "",
        action=found.get("action") or route.action,
    )


def api_of(path: str) -> str:
    """Guess whose error a client wants for a path that nobody has."""
    if "generateContent" in path or "/v1beta" in path or "v1internal" in path or "/publishers/google" in path:
        return "gemini"
    if path.startswith("/v1/messages") or "/publishers/anthropic" in path:
        return "messages"
    return "responses" if path.startswith(("/v1/responses", "/v1/conversations")) else "chat"
