"""Errors as clients receive them: errors of the request body, and upstream errors mapped to the client's terms.

If an upstream rejects the gateway's credentials, that is an error of the gateway: the client gets a 502, and no
message that its own key is wrong. An error has the request id if its dialect has a field for it.
"""

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.record import Record
from dragoman.gateway.router import Target
from dragoman.http.message import Headers
from dragoman.http.upstream_connection import ConnectionFailure, DeadlineExceeded, ShuttingDown, UntrustedCertificate
from dragoman.interpreter.errors import adapt_error_reply
from dragoman.interpreter.tool_errors import SentRequest, add_code, locate_rejection
from dragoman.interpreter.translation import Translation
from dragoman.wire import json
from dragoman.wire.json import Malformed, encode
from dragoman.wire.pointer import join, split
from dragoman.wire.splice import set_member


def build_body_error(error: Malformed) -> Problem:
    """Return the error for a body that cannot be parsed, with its pointer."""
    return Problem("invalid_request", error.message, where=error.where)


def build_duplicate_key_error(where: str) -> Problem:
    """Return the error for a duplicate key at a pointer."""
    *parents, name = split(where)
    message = f"duplicate key {json.encode(name).decode()} in the object at {join(parents) or 'the root'}"
    return Problem("invalid_request", message, where=where, code="duplicate_key")


def add_id(error: bytes, record: Record) -> bytes:
    """Add the request id to an error body, if its dialect has a field for it."""
    member = dialect_named(record.dialect).id_member
    if not member:
        return error
    try:
        return set_member(error, member, encode(record.id))
    except Malformed:
        return error


def add_id_to_event(events: bytes, record: Record) -> bytes:
    """Add the request id to the error in the last events of a stream."""
    member = dialect_named(record.dialect).id_member
    if not member:
        return events
    before, found, after = events.rpartition(encode(member) + b":null")
    return before + encode(member) + b":" + encode(record.id) + after if found else events


_KEY_REJECTED = frozenset({401, 403})


class Rejection(Struct, frozen=True):
    """An upstream reply with an error status; the gateway's credentials are removed from its body."""

    status: int
    headers: Headers
    body: bytes


def map_failure(failure: ConnectionFailure, name: str) -> Problem:
    """Return the error for a failed connection to an upstream. Only its `report`, for the log, has the address."""
    problem = _build_failure(failure, name)
    problem.cause, problem.report = failure.cause, str(failure)
    return problem


_CONNECT_FAILURES = {"refused": "connection refused", "dns": "its host name is not known", "unreachable": "no route"}


def _build_failure(failure: ConnectionFailure, name: str) -> Problem:
    if failure.cause in _CONNECT_FAILURES:
        return Problem("unreachable", f"could not connect to upstream {name!r}: {_CONNECT_FAILURES[failure.cause]}")
    match failure:
        case DeadlineExceeded():
            return Problem("timeout", f"upstream {name!r} did not respond in time")
        case ShuttingDown():
            return Problem("overloaded", "the gateway is shutting down; retry", retry_after=1)
        case UntrustedCertificate():
            message = f"the TLS certificate of upstream {name!r} could not be verified"
            return Problem("internal", message, status=502, code="untrusted")
        case _:
            return Problem("unreachable", f"upstream {name!r} cannot be reached or closed the connection too early")


def build_credentials_error(name: str, detail: str | None = None, *, is_setup: bool = False) -> Problem:
    """Return the error for an upstream that rejects the gateway's credentials, in its setup or in a request."""
    message = (
        f"setup of the upstream {name} failed" if is_setup else f"upstream {name!r} rejected the gateway's credentials"
    )
    return Problem("internal", message if detail is None else f"{message}: {detail}", status=502, code="credentials")


def map_rejection(
    rejection: Rejection, target: Target, translation: Translation, dialect: str, document: bytes
) -> Problem:
    """Map an upstream's error for a client that sent `document` in `dialect`, which is "" if there is no client."""
    source, client = dialect_named(target.upstream.dialect), dialect_named(dialect) if dialect else None
    problem = source.parse_error(rejection.status, dict(rejection.headers), rejection.body)
    if rejection.status in _KEY_REJECTED or problem.kind == "authentication":
        return build_credentials_error(target.upstream.name, problem.message)
    if source is client and not target.text_calls:
        problem = add_code(problem, document)
    elif client is not None and translation.request is not None:
        sent = SentRequest(translation.call.body, source.name, target.model, translation.undo, target.server)
        problem = locate_rejection(problem, sent, translation.request, client, document)
    return adapt_error_reply(problem, source.issuer, client.issuer if client is not None else "")


def map_error_in_reply(problem: Problem, client: str) -> Problem:
    """Map an error that an upstream sent with status 200 to the client's terms."""
    if problem.kind != "internal" or problem.status != 500 or not problem.detail_dialect:
        return problem
    return adapt_error_reply(problem, dialect_named(problem.detail_dialect).issuer, dialect_named(client).issuer)
