"""Endpoints that need no model (model lists, OAuth tokens, Code Assist's setup, rules, requests); API key checks."""

import hmac
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs

import msgspec

from dragoman.http.message import JSON_HEADERS, Request
from dragoman.simulator import catalogue
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.api import Api, ApiRejection, HttpReply
from dragoman.simulator.apis.routes import Route, api_of
from dragoman.simulator.apis.rule import Violation

INVALID_KEY_PREFIX = "invalid"
_KEYLESS_OPERATIONS = frozenset({"health", "rules", "requests", "token"})
"""Operations without a key: the simulator's own, and the one that issues tokens."""
_GRANTS = frozenset({"refresh_token", "authorization_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"})


def _build_json_reply(value: Any, status: int = 200) -> HttpReply:
    return HttpReply(status, JSON_HEADERS, msgspec.json.encode(value))


def find_api(request: Request, route: Route) -> str:
    """Return the API of a request; if several vendors have the path, the headers decide."""
    if route.api or route.operation not in {"models", "model"}:
        return route.api or api_of(request.path)
    if _is_google(request, route):
        return "gemini"
    return "messages" if request.header("anthropic-version") else "chat"


def answer_endpoint(request: Request, route: Route) -> HttpReply | Violation:
    """Answer a request that needs no model."""
    match route.operation:
        case "models":
            return _build_json_reply(_list_models(request, route))
        case "model":
            return _build_json_reply(_build_model(request, route))
        case "code_assist":
            code_assist = import_module("dragoman.simulator.apis.gemini.code_assist")
            reply = code_assist.handle_setup_call(route.action, route.id, request.body, catalogue.GEMINI)
            return reply if isinstance(reply, Violation) else HttpReply(200, JSON_HEADERS, reply)
        case "token":
            return _issue_token(request.body)
        case "rules":
            return _build_json_reply(list_rules())
        case _:
            return _build_json_reply({"status": "ok", "simulator": True})


def list_rules() -> list[dict[str, str]]:
    """List all rules; those of Chat-compatible servers last, with `server` for the rules of all of them."""
    servers = import_module("dragoman.simulator.apis.servers")
    listed = [(api.name, rule) for api in APIS.values() for rule in api.rules]
    listed += [(rule.name.partition(".")[0], rule) for rule in servers.RULES]
    return [{"api": api, "name": rule.name, "says": rule.says, "source": rule.source} for api, rule in listed]


def list_requests(requests: list[Any]) -> HttpReply:
    """List the received requests, with their bodies as text."""
    values = [msgspec.to_builtins(one) for one in requests]
    for value, one in zip(values, requests, strict=True):
        value["body"] = one.body.decode("utf-8", "replace")
    return _build_json_reply(values)


def _is_google(request: Request, route: Route) -> bool:
    return route.google or bool(request.header("x-goog-api-key")) or "key" in request.query


def _list_models(request: Request, route: Route) -> dict[str, Any]:
    if _is_google(request, route):
        return catalogue.list_vertex_models() if route.vertex else catalogue.list_gemini_models()
    return catalogue.list_anthropic_models() if request.header("anthropic-version") else catalogue.list_openai_models()


def _build_model(request: Request, route: Route) -> dict[str, Any]:
    if _is_google(request, route):
        return catalogue.build_vertex_model(route.model) if route.vertex else catalogue.build_gemini_model(route.model)
    if request.header("anthropic-version"):
        return catalogue.build_anthropic_model(route.model)
    return catalogue.build_openai_model(route.model)


def _issue_token(body: bytes) -> HttpReply:
    """Return an OAuth token for any grant but an invalid one, as Google's endpoint does."""
    form = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
    if form.get("grant_type") not in _GRANTS:
        return _build_json_reply({"error": "unsupported_grant_type", "error_description": "Invalid grant_type"}, 400)
    if any(value.startswith("invalid") for value in form.values()):
        return _build_json_reply(
            {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, 400
        )
    return _build_json_reply(
        {
            "access_token": "ya29.simulated",
            "expires_in": 3599,
            "scope": "https://www.googleapis.com/auth/cloud-platform",
            "token_type": "Bearer",
        }
    )


def read_key(request: Request) -> str:
    """Return the API key or token of a request."""
    scheme, _, token = request.header("authorization").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    return request.header("x-api-key") or request.header("x-goog-api-key") or request.query.get("key", "")


def _has_valid_key(request: Request, expected_key: str) -> bool:
    """Return whether a request has the expected key; if none is configured, any key that is not marked as invalid."""
    given = read_key(request)
    if expected_key:
        return hmac.compare_digest(given.encode(), expected_key.encode())
    return bool(given) and not given.startswith(INVALID_KEY_PREFIX)


def check_key(request: Request, route: Route, api: Api, expected_key: str) -> ApiRejection | None:
    """Return the rejection of a request without an accepted key; None for a request with one."""
    if route.operation in _KEYLESS_OPERATIONS or _has_valid_key(request, expected_key):
        return None
    if api.bad_token is not None and (route.vertex or route.wrapped):
        return api.bad_token
    return api.no_key if api.no_key is not None and not read_key(request) else api.bad_key
