"""Errors as a client receives them: of a body that cannot be read, and of upstreams, mapped to the client's terms.

An upstream that rejects our credentials is an error of the gateway: the client gets a 502, never the message that its
own key is wrong. An error says which request it is about, where its dialect has a place for that.
"""

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.record import Record
from dragoman.gateway.router import Target
from dragoman.http.link import ConnectionFailure, DeadlineExceeded, UntrustedCertificate
from dragoman.http.message import Headers
from dragoman.interpreter.errors import adapt_error_reply
from dragoman.interpreter.tool_errors import SentRequest, add_code, locate_rejection
from dragoman.interpreter.translation import Translation
from dragoman.wire import json
from dragoman.wire.json import Malformed, encode
from dragoman.wire.pointer import escape, split
from dragoman.wire.splice import set_member


def build_body_error(error: Malformed) -> Problem:
    """Return the error for a body that cannot be parsed, with its pointer."""
    return Problem("invalid_request", error.message, where=error.where)


def build_duplicate_key_error(where: str) -> Problem:
    """Return the error for the duplicate key at a pointer."""
    *above, name = split(where)
    place = "".join(f"/{escape(token)}" for token in above)
    words = f"the key {json.encode(name).decode()} stands twice in the object at {place or 'the root'}"
    return Problem("invalid_request", words, where=where, code="duplicate_key")


def add_id(error: bytes, record: Record) -> bytes:
    """Add the id of the request to an error, where its dialect has a place for that."""
    member = dialect_named(record.dialect).id_member
    if not member:
        return error
    try:
        return set_member(error, member, encode(record.id))
    except Malformed:
        return error


def add_id_to_event(events: bytes, record: Record) -> bytes:
    """Add the id of the request to the error among the last events of a stream."""
    member = dialect_named(record.dialect).id_member
    if not member:
        return events
    before, unsigned, after = events.rpartition(encode(member) + b":null")
    return before + encode(member) + b":" + encode(record.id) + after if unsigned else events


_KEY_REJECTED = frozenset({401, 403})


class Rejection(Struct, frozen=True):
    """A reply of an upstream with an error status, without our credentials in it."""

    status: int
    headers: Headers
    body: bytes


def map_failure(failure: ConnectionFailure, name: str) -> Problem:
    """Return the error for an upstream that could not be called, without its address: that is the operator's."""
    match failure:
        case DeadlineExceeded():
            return Problem("timeout", f"the upstream {name} did not answer in time")
        case UntrustedCertificate():
            return Problem("internal", f"the upstream {name} cannot prove who it is", status=502, code="untrusted")
        case _:
            return Problem("unreachable", f"the upstream {name} cannot be reached or broke off")


def map_rejection(
    rejection: Rejection, target: Target, translation: Translation, dialect: str, document: bytes
) -> Problem:
    """Return an upstream's error in the terms of a client that sent `document` in `dialect`; "" for no client."""
    here, there = dialect_named(target.upstream.dialect), dialect_named(dialect) if dialect else None
    problem = here.parse_error(rejection.status, dict(rejection.headers), rejection.body)
    if rejection.status in _KEY_REJECTED or problem.kind == "authentication":
        words = f"the upstream {target.upstream.name} refuses the gateway's credentials: {problem.message}"
        return Problem("internal", words, status=502, code="credentials")
    if here is there and not target.text_calls:
        problem = add_code(problem, document)
    elif there is not None and translation.request is not None:
        sent = SentRequest(translation.call.body, here.name, target.model, translation.undo)
        problem = locate_rejection(problem, sent, translation.request, there, document)
    return adapt_error_reply(problem, here.issuer, there.issuer if there is not None else "")


def map_error_in_reply(problem: Problem, client: str) -> Problem:
    """Return the error that an upstream sent as a reply with status 200 in the client's terms."""
    if problem.kind != "internal" or problem.status != 500 or not problem.detail_dialect:
        return problem
    return adapt_error_reply(problem, dialect_named(problem.detail_dialect).issuer, dialect_named(client).issuer)
