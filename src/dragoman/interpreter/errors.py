"""Translate an upstream's error to the client's dialect.

A vendor's error code means nothing to another vendor's client: only the kind of the error is translated. An internal
error of the upstream becomes a 502, so that it does not look like an error of the gateway. Kind, message and retry
delay are kept; other fields that the client's dialect does not have are reported as losses, as for a reply.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from dragoman.core.losses import Loss
from dragoman.core.problems import OWN_ERROR_CODES, Kind, Problem
from dragoman.dialects.record import STATUS_KINDS, Dialect, ErrorReply
from dragoman.dialects.registry import dialect_named
from dragoman.wire import json
from dragoman.wire.lookup import Document, find_leaves


def translate_error(status: int, headers: Mapping[str, str], body: bytes, source: str, target: str) -> ErrorReply:
    """Translate an upstream's error to the client's dialect; an error of the same dialect keeps its body."""
    source_dialect, target_dialect = dialect_named(source), dialect_named(target)
    problem = source_dialect.parse_error(status, headers, body)
    if source_dialect is target_dialect:
        reply = target_dialect.build_error(problem)
        return structs.replace(reply, body=body) if is_envelope(body) else reply
    reply = target_dialect.build_error(adapt_error_reply(problem, source_dialect.issuer, target_dialect.issuer))
    return structs.replace(reply, losses=find_losses(problem, body, source_dialect, reply))


OWN_FINISH_CODES = frozenset({"malformed_function_call", "unknown_finish"})
_KIND_BY_STATUS: dict[int, Kind] = {**STATUS_KINDS, 400: "invalid_request", 422: "invalid_request"}


def adapt_problem(problem: Problem, source_issuer: str, client_issuer: str) -> Problem:
    """Return the problem without a code that only clients of the source's vendor know."""
    if problem.code is None or problem.code in OWN_FINISH_CODES | OWN_ERROR_CODES or source_issuer == client_issuer:
        return problem
    return _with_kind(problem, problem.kind, problem.status)


def adapt_error_reply(problem: Problem, source_issuer: str, client_issuer: str) -> Problem:
    """Return the problem of an error reply; one of kind "internal" gets a better kind from its status, or 502."""
    adapted = adapt_problem(problem, source_issuer, client_issuer)
    if adapted.kind != "internal":
        return adapted
    kind = _KIND_BY_STATUS.get(problem.status)
    if kind is None:
        return _with_kind(adapted, "internal", 502)
    return _with_kind(adapted, kind, problem.status)


def _with_kind(problem: Problem, kind: Kind, status: int) -> Problem:
    return Problem(
        kind,
        problem.message,
        status=status,
        where=problem.where,
        retry_after=problem.retry_after,
        detail=problem.detail,
        detail_dialect=problem.detail_dialect,
        violations=problem.violations,
    )


def is_envelope(body: bytes) -> bool:
    """Return whether a body is an API error and not a proxy's page: all four dialects have an `error` object."""
    error = json.decode_object(body).get("error") if json.is_object(body) else None
    return error is not None and json.first_byte(error) == b"{"


def find_losses(problem: Problem, body: bytes, source: Dialect, reply: ErrorReply) -> tuple[Loss, ...]:
    """Return a loss for each leaf of an upstream's error `body` that is not in the client's `reply`."""
    if not body.strip():
        return ()
    if json.first_byte(body) == b"{" and json.is_nested_too_deeply(body):
        return (Loss("", "nested too deeply: only its kind and message are sent", "dropped"),)
    if not json.is_json(body):
        page = body.decode("utf-8", "replace").strip()
        return () if page == problem.message else (Loss("", "not an API error: only the status is sent", "dropped"),)
    sent = _ClientError(problem, source, reply)
    document = Document(body)
    leaves = ((where, document.find(where)) for where in find_leaves(body, ""))
    lost = [where for where, found in leaves if found is not None and not sent.includes(json.peek(found[1]))]
    return tuple(
        sorted(Loss(where, "errors of the client's dialect have no field for it", "dropped") for where in lost)
    )


class _ClientError:
    """The values that an error reply sends to the client."""

    def __init__(self, problem: Problem, source: Dialect, reply: ErrorReply) -> None:
        self._message = problem.message
        self._error_types = source.mapped_error_types
        self._retry_after = problem.retry_after if "retry-after" in reply.headers else None
        document = Document(reply.body)
        found = (document.find(where) for where in find_leaves(reply.body, ""))
        self._values: list[Any] = [json.peek(value[1]) for value in found if value is not None]
        self._numbers = (problem.status, reply.status, str(problem.status))

    def includes(self, value: Any) -> bool:
        """Return whether the value is empty or is sent to the client, in the body, the status or a header."""
        if value is None or value in ("", [], {}, self._message) or value in self._numbers or value in self._values:
            return True
        if isinstance(value, str) and (value in self._error_types or self._is_retry_after(value)):
            return True
        # A message that is itself JSON is sent as text.
        return self._message.startswith(("{", "[")) and json.encode(value).decode() in self._message

    def _is_retry_after(self, value: str) -> bool:
        return self._retry_after is not None and value in (
            f"{self._retry_after:g}s",
            f"{self._retry_after:.9f}s",
            f"{self._retry_after:.3f}s",
        )
