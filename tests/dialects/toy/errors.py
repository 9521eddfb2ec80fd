"""Errors: `{"error": {"kind": …, "message": …}}` with the status of the kind."""

from collections.abc import Mapping
from typing import Any

from dialects.toy.wire import NAME
from dragoman.core.problems import KINDS, Problem
from dragoman.dialects.record import ErrorReply
from dragoman.wire import json

MAPPED_ERROR_TYPES = frozenset(KINDS)


def read_error(status: int, error: Any) -> Problem:
    """Return the problem of an error object, or of anything else that came instead."""
    match error:
        case {"kind": str(kind), "message": str(message)} if kind in KINDS:
            return Problem(kind, message, status=status, detail_dialect=NAME)
        case _:
            return Problem("internal", f"the upstream answered with status {status}", status=status)


def parse_error(status: int, _headers: Mapping[str, str], body: bytes) -> Problem:
    """Return the problem of an error reply."""
    document = json.peek(body)
    return read_error(status, document.get("error") if isinstance(document, dict) else None)


def error_body(problem: Problem) -> bytes:
    """Write an error object."""
    return json.encode({"error": {"kind": problem.kind, "message": problem.message}})


def build_error(problem: Problem) -> ErrorReply:
    """Write an error reply."""
    return ErrorReply(problem.status, {"content-type": "application/json"}, error_body(problem))
