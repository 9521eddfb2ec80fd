"""Whether a caller may ask at all, and where the vendors look for a key."""

import hmac

from dragoman.http.message import Request

INVALID = "invalid"


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
