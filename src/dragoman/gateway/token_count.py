"""Counts the tokens of a request with the upstream's counter, or estimates them and marks the result as an estimate."""

from msgspec import structs

from dragoman.core.problems import Problem
from dragoman.dialects.record import TokenCountFormat
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.record import Record
from dragoman.gateway.router import Target
from dragoman.gateway.upstream_call import UpstreamClient, read_body
from dragoman.interpreter.choices import SeveralChoices, split_request
from dragoman.wire import json
from dragoman.wire.lookup import lookup

_BYTES_PER_TOKEN = 4
_NO_COUNTER_STATUSES = frozenset({404, 405, 501})
"""Statuses with which a compatible server says that it has no counter."""


async def count_tokens(
    request: ClientRequest, target: Target, upstreams: UpstreamClient, record: Record
) -> tuple[bytes, bool]:
    """Return the response body of a token count, and whether the count is an estimate."""
    upstream = target.upstream
    try:
        translation = await upstreams.translate_unsigned(request, target)
    except SeveralChoices as several:
        # Each choice has the same input.
        single = split_request(request.call, dialect_named(request.dialect), several)[0]
        translation = await upstreams.translate_unsigned(structs.replace(request, call=single), target)
    record.losses = (*request.losses, *translation.losses)
    record.note_attempt(upstream.name, target.model)
    headers = request.headers if upstream.dialect == request.dialect else ()
    outgoing = await upstream.count(translation.call, headers)
    counted = None
    if outgoing is not None:
        incoming = await upstreams.send(outgoing, target, translation, request, _NO_COUNTER_STATUSES)
        body = await read_body(incoming, target)
        if incoming.is_success:
            counted = _parse_count(body, _find_count_format(upstream.dialect).member)
    form = _find_count_format(request.dialect)
    tokens = len(translation.call.body) // _BYTES_PER_TOKEN if counted is None else counted
    return json.encode({**form.leading_members, form.member: tokens}), counted is None


def _find_count_format(dialect: str) -> TokenCountFormat:
    form = dialect_named(dialect).count
    if form is None:
        raise Problem("not_found", "this API has no token count endpoint", code="unknown_url")
    return form


def _parse_count(body: bytes, member: str) -> int:
    try:
        found = lookup(body, f"/{member}")
        tokens = json.decode(found[1]) if found is not None else None
    except json.Malformed:
        tokens = None
    if not isinstance(tokens, int):
        raise Problem("malformed_reply", "the upstream's token count is not a number")
    return tokens
