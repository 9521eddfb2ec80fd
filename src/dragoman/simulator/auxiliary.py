"""What is asked beside answers: models, tokens for OAuth, Code Assist's first steps, the rules, what has come in."""

from importlib import import_module
from typing import Any
from urllib.parse import parse_qs

import msgspec

from dragoman.http.message import JSON, Request
from dragoman.simulator import catalogue
from dragoman.simulator.api import Told
from dragoman.simulator.apis import APIS
from dragoman.simulator.routes import Route, api_of
from dragoman.simulator.rule import Violation

_GRANTS = frozenset({"refresh_token", "authorization_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"})


def _told(value: Any, status: int = 200) -> Told:
    return Told(status, JSON, msgspec.json.encode(value))


def asked_api(request: Request, route: Route) -> str:
    """Return whose API is asked: of a path that several vendors have, the headers tell."""
    if route.api or route.operation not in {"models", "model"}:
        return route.api or api_of(request.path)
    if _is_google(request, route):
        return "gemini"
    return "messages" if request.header("anthropic-version") else "chat"


def told(request: Request, route: Route) -> Told | Violation:
    """Answer what needs no model."""
    match route.operation:
        case "models":
            return _told(_models(request, route))
        case "model":
            return _told(_model(request, route))
        case "code_assist":
            code_assist = import_module("dragoman.simulator.apis.gemini.code_assist")
            told = code_assist.told(route.action, route.id, request.body)
            return told if isinstance(told, Violation) else Told(200, JSON, told)
        case "token":
            return _token(request.body)
        case "rules":
            return _told(rules())
        case _:
            return _told({"status": "ok", "simulator": True})


def rules() -> list[dict[str, str]]:
    """List all rules."""
    return [
        {"api": api.name, "name": rule.name, "says": rule.says, "source": rule.source}
        for api in APIS.values()
        for rule in api.rules
    ]


def listed(seen: list[Any]) -> Told:
    """List what has come in; bodies as text."""
    values = [msgspec.to_builtins(one) for one in seen]
    for value, one in zip(values, seen, strict=True):
        value["body"] = one.body.decode("utf-8", "replace")
    return _told(values)


def _is_google(request: Request, route: Route) -> bool:
    return route.google or bool(request.header("x-goog-api-key")) or "key" in request.query


def _models(request: Request, route: Route) -> dict[str, Any]:
    if _is_google(request, route):
        return catalogue.vertex_models() if route.vertex else catalogue.gemini_models()
    return catalogue.anthropic_models() if request.header("anthropic-version") else catalogue.openai_models()


def _model(request: Request, route: Route) -> dict[str, Any]:
    if _is_google(request, route):
        return catalogue.vertex_model(route.model) if route.vertex else catalogue.gemini_model(route.model)
    if request.header("anthropic-version"):
        return catalogue.anthropic_model(route.model)
    return catalogue.openai_model(route.model)


def _token(body: bytes) -> Told:
    """Give a token for any grant but a bad one, as Google's endpoint does."""
    form = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
    if form.get("grant_type") not in _GRANTS:
        return _told({"error": "unsupported_grant_type", "error_description": "Invalid grant_type"}, 400)
    if any(value.startswith("invalid") for value in form.values()):
        return _told({"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, 400)
    return _told(
        {
            "access_token": "ya29.simulated",
            "expires_in": 3599,
            "scope": "https://www.googleapis.com/auth/cloud-platform",
            "token_type": "Bearer",
        }
    )
