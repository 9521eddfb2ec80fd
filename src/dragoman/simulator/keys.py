"""Whether a caller may ask at all, and where the vendors look for a key."""

import hmac

from dragoman.http.message import Request
from dragoman.simulator.api import Api, Refusal
from dragoman.simulator.routes import Route

INVALID = "invalid"
_OPEN = frozenset({"health", "rules", "requests", "token"})
"""What no vendor asks a key for: they are the simulator's own, or where tokens come from."""


def given_key(request: Request) -> str:
    """Return the key or token a request came with."""
    scheme, _, token = request.header("authorization").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    return request.header("x-api-key") or request.header("x-goog-api-key") or request.query.get("key", "")


def is_accepted(request: Request, wanted: str) -> bool:
    """Tell whether a caller may ask: with the one key that is `wanted`; else with any but an invalid one."""
    given = given_key(request)
    if wanted:
        return hmac.compare_digest(given.encode(), wanted.encode())
    return bool(given) and not given.startswith(INVALID)


def unaccepted(request: Request, route: Route, api: Api, wanted: str) -> Refusal | None:
    """Say what a caller is told who may not ask; None for one who may."""
    if route.operation in _OPEN or is_accepted(request, wanted):
        return None
    if api.bad_token is not None and (route.vertex or route.wrapped):
        return api.bad_token
    return api.no_key if api.no_key is not None and not given_key(request) else api.bad_key
