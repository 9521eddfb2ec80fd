"""`POST /v1/translate`: translate a document without an upstream, as `dragoman translate --batch` does a line.

A document in a large body is translated in the process for large bodies.
"""

from msgspec import Struct

from dragoman.core.losses import Loss, Strict
from dragoman.core.problems import Problem
from dragoman.gateway.client_request import require_distinct_keys
from dragoman.gateway.large_bodies import LargeBodies
from dragoman.gateway.record import Record, build_response_headers
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON_HEADERS
from dragoman.interpreter.job_object import read_job, translate_object
from dragoman.wire import json


class TranslatedBody(Struct, frozen=True):
    """The body of the answer, and the losses of the translation."""

    body: bytes
    losses: tuple[Loss, ...]


async def handle_request(exchange: Exchange, record: Record, large_bodies: LargeBodies, strict: Strict) -> None:
    """Answer a request."""
    request = exchange.request
    if request.is_large:
        translated = await large_bodies.run(translate_body, request.body, strict)
    else:
        translated = translate_body(request.body, strict)
    record.losses = translated.losses
    await exchange.send(200, build_response_headers(record, JSON_HEADERS), translated.body)


def translate_body(body: bytes, strict: Strict) -> TranslatedBody:
    """Translate the document in a body; raises `Problem`."""
    require_distinct_keys(body)
    try:
        job = read_job(body)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    try:
        result = translate_object(job, strict=strict)
    except Problem as problem:
        if problem.kind != "malformed_reply":
            raise
        # The reply comes from the client here, not from an upstream.
        raise Problem("invalid_request", problem.message, where=problem.where, code=problem.kind) from None
    return TranslatedBody(json.encode(result), result["losses"])
