"""Endpoints that need no model: models, OAuth tokens, Code Assist's setup, rules, requests; and the check of keys."""

import hmac
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs

import msgspec

from dragoman.http.message import JSON, Request
from dragoman.simulator import catalogue
from dragoman.simulator.api import Api, Refusal, Told
from dragoman.simulator.apis import APIS
from dragoman.simulator.routes import Route, api_of
from dragoman.simulator.rule import Violation

INVALID = "invalid"
_OPEN = frozenset({"health", "rules", "requests", "token"})
"""Operations that need no key: they are the simulator's own, or where tokens come from."""
_GRANTS = frozenset({"refresh_token", "authorization_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"})


def _reply(value: Any, status: int = 200) -> Told:
    return Told(status, JSON, msgspec.json.encode(value))


def asked_api(request: Request, route: Route) -> str:
    """Return the API of a request; the headers tell, if several vendors have the path."""
    if route.api or route.operation not in {"models", "model"}:
        return route.api or api_of(request.path)
    if _is_google(request, route):
        return "gemini"
    return "messages" if request.header("anthropic-version") else "chat"


def answer_endpoint(request: Request, route: Route) -> Told | Violation:
    """Answer a request that needs no model."""
    match route.operation:
        case "models":
            return _reply(_models(request, route))
        case "model":
            return _reply(_model(request, route))
        case "code_assist":
            code_assist = import_module("dragoman.simulator.apis.gemini.code_assist")
            told = code_assist.told(route.action, route.id, request.body)
            return told if isinstance(told, Violation) else Told(200, JSON, told)
        case "token":
            return _token(request.body)
        case "rules":
            return _reply(rules())
        case _:
            return _reply({"status": "ok", "simulator": True})


def rules() -> list[dict[str, str]]:
    """List all rules."""
    return [
        {"api": api.name, "name": rule.name, "says": rule.says, "source": rule.source}
        for api in APIS.values()
        for rule in api.rules
    ]


def list_requests(seen: list[Any]) -> Told:
    """List the requests that arrived, with their bodies as text."""
    values = [msgspec.to_builtins(one) for one in seen]
    for value, one in zip(values, seen, strict=True):
        value["body"] = one.body.decode("utf-8", "replace")
    return _reply(values)


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
    """Return an OAuth token for any grant but a bad one, as Google's endpoint does."""
    form = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
    if form.get("grant_type") not in _GRANTS:
        return _reply({"error": "unsupported_grant_type", "error_description": "Invalid grant_type"}, 400)
    if any(value.startswith("invalid") for value in form.values()):
        return _reply({"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, 400)
    return _reply(
        {
            "access_token": "ya29.simulated",
            "expires_in": 3599,
            "scope": "https://www.googleapis.com/auth/cloud-platform",
            "token_type": "Bearer",
        }
    )


def given_key(request: Request) -> str:
    """Return the key or token a request came with."""
    scheme, _, token = request.header("authorization").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    return request.header("x-api-key") or request.header("x-goog-api-key") or request.query.get("key", "")


def _is_accepted(request: Request, wanted: str) -> bool:
    """Return whether a request has the key that is `wanted`; without one, any key but an invalid one."""
    given = given_key(request)
    if wanted:
        return hmac.compare_digest(given.encode(), wanted.encode())
    return bool(given) and not given.startswith(INVALID)


def refuse_key(request: Request, route: Route, api: Api, wanted: str) -> Refusal | None:
    """Return the refusal of a request without an accepted key; None for one that has it."""
    if route.operation in _OPEN or _is_accepted(request, wanted):
        return None
    if api.bad_token is not None and (route.vertex or route.wrapped):
        return api.bad_token
    return api.no_key if api.no_key is not None and not given_key(request) else api.bad_key
