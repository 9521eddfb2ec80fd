"""Map a method and path to an API and an operation."""

import re
from typing import Literal, get_args

from msgspec import Struct, structs

Operation = Literal[
    "generate", "count", "compact", "models", "model", "code_assist", "token", "rules", "requests", "health", "stored",
    "conversations",
]  # fmt: skip


class Route(Struct, frozen=True, kw_only=True):
    """The API and operation of a path, with the values in it."""

    api: str = ""
    operation: Operation
    model: str = ""
    stream: bool = False
    vertex: bool = False
    wrapped: bool = False
    """Requests and replies are wrapped in Code Assist's envelope."""
    google: bool = False
    """Only Google has this path."""
    version: str = ""
    """The version of Google's API that the path names."""
    id: str = ""
    item: str = ""
    action: str = ""


ServerName = Literal["deepseek", "kimi", "glm", "qwen", "vllm", "openrouter"]
"""Chat-compatible servers."""
SERVERS: tuple[str, ...] = get_args(ServerName)
_GEMINI = "/(?P<version>v1|v1beta|v1beta1|v1alpha)"
_GEMINI_ONLY = "/(?:v1beta|v1beta1|v1alpha)"
_VERTEX = "/(?P<version>v1|v1beta1|v1beta)(?:/projects/[^/]+/locations/[^/]+)?/publishers/google"
"""In express mode, with an API key, Vertex needs neither project nor location."""
_CLAUDE = "/(?:v1|v1beta1|v1beta)/projects/[^/]+/locations/[^/]+/publishers/anthropic"
_VERBS = "(?P<verb>generateContent|streamGenerateContent|countTokens)"
_RAW_VERBS = "(?P<verb>rawPredict|streamRawPredict)"
_CODE_ASSIST = (
    "(?P<action>loadCodeAssist|onboardUser|retrieveUserQuota|listExperiments|fetchAdminControls"
    "|recordCodeAssistMetrics|setCodeAssistGlobalUserSetting)"
)
_ID, _ITEM, _MODEL = "(?P<id>[^/]+)", "(?P<item>[^/]+)", "(?P<model>[^/]+)"
_COMPLETIONS, _RESPONSES, _CONVERSATIONS = "/v1/chat/completions", "/v1/responses", "/v1/conversations"
_ACTIONS = (
    ("GET", f"{_RESPONSES}/{_ID}", "get"),
    ("DELETE", f"{_RESPONSES}/{_ID}", "delete"),
    ("GET", f"{_RESPONSES}/{_ID}/input_items", "input_items"),
    ("POST", f"{_RESPONSES}/{_ID}/cancel", "cancel"),
    ("POST", _CONVERSATIONS, "create"),
    ("GET", f"{_CONVERSATIONS}/{_ID}", "get"),
    ("POST", f"{_CONVERSATIONS}/{_ID}", "update"),
    ("DELETE", f"{_CONVERSATIONS}/{_ID}", "delete"),
    ("GET", f"{_CONVERSATIONS}/{_ID}/items", "items"),
    ("POST", f"{_CONVERSATIONS}/{_ID}/items", "add"),
    ("GET", f"{_CONVERSATIONS}/{_ID}/items/{_ITEM}", "item"),
    ("DELETE", f"{_CONVERSATIONS}/{_ID}/items/{_ITEM}", "remove"),
)
"""The operations on responses and conversations that the OpenAI API stores."""
_ROUTES: tuple[tuple[str, str, Route], ...] = (
    ("POST", _COMPLETIONS, Route(api="chat", operation="generate")),
    ("POST", f"/(?P<api>{'|'.join(SERVERS)})(?:/v1)?/chat/completions", Route(operation="generate")),
    ("POST", _RESPONSES, Route(api="responses", operation="generate")),
    ("POST", f"{_RESPONSES}/input_tokens", Route(api="responses", operation="count")),
    ("POST", f"{_RESPONSES}/compact", Route(api="responses", operation="compact")),
    ("POST", "/v1/messages", Route(api="messages", operation="generate")),
    ("POST", "/v1/messages/count_tokens", Route(api="messages", operation="count")),
    ("POST", f"{_GEMINI}/models/{_MODEL}:{_VERBS}", Route(api="gemini", operation="generate")),
    ("POST", f"{_VERTEX}/models/{_MODEL}:{_VERBS}", Route(api="gemini", operation="generate", vertex=True)),
    ("POST", f"{_CLAUDE}/models/count-tokens:rawPredict", Route(api="messages", operation="count", vertex=True)),
    ("POST", f"{_CLAUDE}/models/{_MODEL}:{_RAW_VERBS}", Route(api="messages", operation="generate", vertex=True)),
    ("POST", f"/v1internal:{_VERBS}", Route(api="gemini", operation="generate", wrapped=True)),
    ("POST", f"/v1internal:{_CODE_ASSIST}", Route(api="gemini", operation="code_assist", wrapped=True)),
    (
        "GET",
        "/v1internal:(?P<action>getCodeAssistGlobalUserSetting)",
        Route(api="gemini", operation="code_assist", wrapped=True),
    ),
    (
        "GET",
        "/v1internal/(?P<id>operations/[^/]+)",
        Route(api="gemini", operation="code_assist", wrapped=True, action="operation"),
    ),
    ("GET", "/v1/models", Route(operation="models")),
    ("GET", "/v1/models/(?P<model>.+)", Route(operation="model")),
    ("GET", f"{_GEMINI_ONLY}/models", Route(api="gemini", operation="models", google=True)),
    ("GET", f"{_GEMINI_ONLY}/models/{_MODEL}", Route(api="gemini", operation="model", google=True)),
    ("GET", f"{_VERTEX}/models", Route(api="gemini", operation="models", google=True, vertex=True)),
    ("GET", f"{_VERTEX}/models/{_MODEL}", Route(api="gemini", operation="model", google=True, vertex=True)),
    ("POST", "/token|/oauth2/v4/token", Route(operation="token")),
    ("GET", "/rules", Route(operation="rules")),
    ("GET", "/requests", Route(operation="requests")),
    ("GET", "/health", Route(operation="health")),
)


def _build_stored_route(path: str, action: str) -> Route:
    operation: Operation = "conversations" if path.startswith(_CONVERSATIONS) else "stored"
    return Route(api="responses", operation=operation, action=action)


_PATHS = [
    *((method, re.compile(path), route) for method, path, route in _ROUTES),
    *((method, re.compile(path), _build_stored_route(path, action)) for method, path, action in _ACTIONS),
]


def route_of(method: str, path: str) -> Route | None:
    """Return the route of a path; None if no vendor has it."""
    wanted_method = "GET" if method == "HEAD" else method
    for allowed_method, pattern, route in _PATHS:
        found = pattern.fullmatch(path) if allowed_method == wanted_method else None
        if found is not None:
            return _fill_route(route, found.groupdict())
    return None


def _fill_route(route: Route, found: dict[str, str | None]) -> Route:
    verb = found.pop("verb", None) or ""
    operation = "count" if verb == "countTokens" else route.operation
    named = {name: value for name, value in found.items() if value is not None}
    return structs.replace(route, operation=operation, stream=verb.startswith("stream"), **named)


def api_of(path: str) -> str:
    """Return the API whose error format a client expects for a path that no API has."""
    if "generateContent" in path or "/v1beta" in path or "v1internal" in path or "/publishers/google" in path:
        return "gemini"
    if path.startswith("/v1/messages") or "/publishers/anthropic" in path:
        return "messages"
    return "responses" if path.startswith(("/v1/responses", "/v1/conversations")) else "chat"
