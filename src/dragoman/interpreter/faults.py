"""An upstream's problem as the client may hear it.

A vendor's own code word means nothing to another vendor's client, which has words of its own for the kind. An upstream
that breaks is a bad gateway to the client: it must not look as if we had broken.
"""

from dragoman.core.problems import Kind, Problem

OUR_CODES = frozenset({"malformed_function_call", "unknown_finish"})
_KIND_OF_STATUS: dict[int, Kind] = {
    400: "invalid_request",
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    422: "invalid_request",
    429: "rate_limit",
    499: "cancelled",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}


def retold(problem: Problem, source_issuer: str, client_issuer: str) -> Problem:
    """Return the problem without words only the source's own clients know."""
    if problem.code is None or problem.code in OUR_CODES or source_issuer == client_issuer:
        return problem
    return _changed(problem, problem.kind, problem.status)


def as_fault(problem: Problem, source_issuer: str, client_issuer: str) -> Problem:
    """Return the problem of an error reply: a vague one is known better by its status."""
    told = retold(problem, source_issuer, client_issuer)
    if told.kind != "internal":
        return told
    kind = _KIND_OF_STATUS.get(problem.status)
    if kind is None:
        return _changed(told, "internal", 502)
    return _changed(told, kind, problem.status)


def _changed(problem: Problem, kind: Kind, status: int) -> Problem:
    return Problem(
        kind,
        problem.message,
        status=status,
        where=problem.where,
        retry_after=problem.retry_after,
        detail=problem.detail,
        detail_dialect=problem.detail_dialect,
    )
